//! A real browser without a window, spoken to by its DevTools protocol over two pipes
//! (<https://chromedevtools.github.io/devtools-protocol/>, `--remote-debugging-pipe`).
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// An answer takes far less; without any the browser hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser, with one page.
pub struct Browser {
    program: Child,
    to: File,
    from: Receiver<Value>,
    beyond: Arc<Mutex<String>>,
    session: Option<String>,
    asked: u64,
    events: Vec<Value>,
    _folder: tempfile::TempDir,
}

/// The program of a browser, where the machine has one.
pub fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = names
        .iter()
        .map(|name| stagewright::child::find_program(Path::new(name)));
    found.find_map(|found| found)
}

impl Browser {
    /// Starts it. It reaches nothing but files: everything else goes to a proxy that answers nothing and knows who asked.
    pub fn start(program: &Path) -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let beyond = Arc::default();
        for pipe in ["in", "out"] {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join(pipe), mode).unwrap();
        }
        let address = proxy(Arc::clone(&beyond));
        let program = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<in 4>out"#, "sh"])
            .arg(program)
            // Root may not use its sandbox, and the page is one of ours.
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--disable-default-apps",
                "--disable-dev-shm-usage",
            ])
            .args(["--user-data-dir=profile", "--proxy-bypass-list=<-loopback>"])
            .arg(format!("--proxy-server=http://{address}"))
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options()
            .write(true)
            .open(folder.path().join("in"))
            .unwrap();
        let out = File::open(folder.path().join("out")).unwrap();
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let Ok(message) = message else { return };
                let Ok(()) = tell.send(serde_json::from_slice(&message).unwrap()) else {
                    return;
                };
            }
        });
        let mut browser = Browser {
            program,
            to,
            from,
            beyond,
            session: None,
            asked: 0,
            events: Vec::new(),
            _folder: folder,
        };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Network", "Runtime"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Asks for something and gives the answer.
    pub fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let came = self.next();
            if came["id"] == self.asked {
                assert!(came["error"].is_null(), "{method}: {came}");
                return came["result"].clone();
            }
            self.events.push(came);
        }
    }

    fn next(&self) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap()
    }

    /// Opens a file at a width in CSS pixels, and waits until it is loaded. Gives every address that was asked for.
    pub fn open(&mut self, file: &Path, width: u32) -> Vec<String> {
        self.events.clear();
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", &metrics);
        let address = format!("file://{}", file.display());
        self.ask("Page.navigate", &json!({ "url": address }));
        let is = |event: &Value, method: &str| event["method"] == method;
        while !self
            .events
            .iter()
            .any(|event| is(event, "Page.loadEventFired"))
        {
            let came = self.next();
            self.events.push(came);
        }
        // What a page asks for is asked before this is answered.
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
        let requests = self
            .events
            .iter()
            .filter(|event| is(event, "Network.requestWillBeSent"));
        let addresses = requests.map(|event| event["params"]["request"]["url"].as_str().unwrap());
        addresses.map(str::to_owned).collect()
    }

    /// What an expression gives on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let given = self.ask("Runtime.evaluate", &wanted);
        assert!(given["exceptionDetails"].is_null(), "{expression}: {given}");
        given["result"]["value"].clone()
    }

    /// Shows it as on `media` (`screen`, `print`) to a reader who prefers `scheme` (`light`, `dark`).
    pub fn shown_as(&mut self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask(
            "Emulation.setEmulatedMedia",
            &json!({"media": media, "features": features}),
        );
    }

    /// The whole page as a picture.
    pub fn picture(&mut self) -> Vec<u8> {
        let wanted = json!({"format": "png", "captureBeyondViewport": true});
        decoded(&self.ask("Page.captureScreenshot", &wanted)["data"])
    }

    /// The page on paper.
    pub fn pdf(&mut self) -> Vec<u8> {
        decoded(&self.ask("Page.printToPDF", &json!({"preferCSSPageSize": true}))["data"])
    }

    /// The first line of everything that was asked for beyond this machine's files.
    pub fn asked_beyond(&self) -> String {
        self.beyond.lock().unwrap().clone()
    }
}

/// Takes down what it is asked for, and answers nothing.
fn proxy(beyond: Arc<Mutex<String>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut line = String::new();
            let stream = stream.unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            BufReader::new(stream).read_line(&mut line).ok();
            beyond.lock().unwrap().push_str(&line);
        }
    });
    address
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.program.kill().ok();
        self.program.wait().ok();
    }
}

fn decoded(data: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = data.as_str().unwrap();
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}
