//! A double of Jenkins: the part of its JSON API that says what a job has built, and what was archived, with faults on command.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use base64::Engine as _;
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Below this it lies, as behind a proxy.
pub const BASE: &str = "/ci/jenkins";
pub const USER: &str = "robot";
pub const TOKEN: &str = "11aa22bb-a-secret-of-the-test";

/// What goes wrong instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Status(u16),
    /// Sends to the page to log in on, as the reverse proxy and single sign-on set-ups do.
    Login,
    /// Sends to another host.
    Elsewhere,
    /// A page instead of JSON.
    Page,
    /// Ends in the middle of the body.
    Cut,
    /// Comes piece by piece.
    Slow,
    /// More bytes than anybody wants.
    Huge,
}

/// A build with what it archived.
#[derive(Clone, Debug)]
pub struct Build {
    pub number: u64,
    pub result: &'static str,
    pub artifacts: Vec<(String, String)>,
}

#[derive(Default)]
struct Site {
    address: Mutex<String>,
    /// By full name; a folder has no build at all.
    jobs: Mutex<BTreeMap<String, Option<Vec<Build>>>>,
    faults: Mutex<Vec<Fault>>,
    asked: Mutex<Vec<String>>,
}

/// A running double; it stops when dropped.
pub struct JenkinsDouble {
    address: SocketAddr,
    site: Arc<Site>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl JenkinsDouble {
    pub fn serve() -> JenkinsDouble {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::new(Site::default());
        *site.address.lock().unwrap() = format!("http://{address}{BASE}");
        let (stop, stopped) = oneshot::channel();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&site));
        let thread = std::thread::spawn(move || {
            // A runtime of its own, on a thread of its own: a plain `#[test]` can use the double as well.
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        JenkinsDouble {
            address,
            site,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}{BASE}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A job with its builds, the last one last.
    pub fn job(&self, name: &str, builds: &[Build]) {
        let mut jobs = self.site.jobs.lock().unwrap();
        for (end, _) in name.match_indices('/') {
            jobs.entry(name[..end].to_owned()).or_insert(None);
        }
        jobs.insert(name.to_owned(), Some(builds.to_vec()));
    }

    /// The next answers go wrong so, one after the other.
    pub fn fail(&self, faults: &[Fault]) {
        self.site.faults.lock().unwrap().extend(faults);
    }

    /// What was to go wrong and has not yet does not.
    pub fn fail_no_more(&self) {
        self.site.faults.lock().unwrap().clear();
    }

    /// Method and target of what was asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.site.asked.lock().unwrap().clone()
    }
}

impl Drop for JenkinsDouble {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).unwrap();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    let target = request.uri().path_and_query().unwrap().to_string();
    let line = format!("{} {target}", request.method());
    site.asked.lock().unwrap().push(line);
    let fault = {
        let mut faults = site.faults.lock().unwrap();
        (!faults.is_empty()).then(|| faults.remove(0))
    };
    if let Some(fault) = fault.filter(|fault| *fault != Fault::Slow) {
        return faulty(fault);
    }
    let credentials = format!("{USER}:{TOKEN}");
    let expected = base64::engine::general_purpose::STANDARD.encode(credentials);
    match request.headers().get(header::AUTHORIZATION) {
        // Without anybody named, Jenkins answers with a page that leads to the login.
        None => return page(StatusCode::FORBIDDEN, "Authentication required"),
        Some(given) if *given != format!("Basic {expected}") => {
            return page(StatusCode::UNAUTHORIZED, "Unauthorized");
        }
        Some(_) => {}
    }
    let path = request.uri().path();
    let Some(path) = path.strip_prefix(BASE) else {
        return page(StatusCode::NOT_FOUND, "Not Found");
    };
    let segments: Vec<String> = path
        .split('/')
        .skip(1)
        .map(|segment| {
            let query = format!("a={}", segment.replace('+', "%2B"));
            let (_, text) = form_urlencoded::parse(query.as_bytes()).next().unwrap();
            text.into_owned()
        })
        .collect();
    let mut items = Vec::new();
    let mut rest = segments.as_slice();
    while let [job, item, behind @ ..] = rest
        && job == "job"
    {
        items.push(item.as_str());
        rest = behind;
    }
    let name = items.join("/");
    let job = {
        let jobs = site.jobs.lock().unwrap();
        // Jenkins finds an item in any case.
        let mut found = jobs
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(&name));
        found
            .next()
            .map(|(known, builds)| (known.clone(), builds.clone()))
    };
    let Some((name, builds)) = job else {
        return page(StatusCode::NOT_FOUND, "Not Found");
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (rest.as_slice(), builds) {
        (["api", "json"], builds) => {
            let tree = request.uri().query().unwrap_or_default();
            let (_, tree) = form_urlencoded::parse(tree.as_bytes()).next().unwrap();
            let base = site.address.lock().unwrap().clone();
            let told = about(&name, builds, &base, &tree);
            let slow = fault == Some(Fault::Slow);
            json_answer(&told, slow)
        }
        ([number, "artifact", path @ ..], Some(builds)) => {
            let wanted = path.join("/");
            let build = builds
                .iter()
                .find(|build| build.number.to_string() == *number);
            let found = build.and_then(|b| b.artifacts.iter().find(|(path, _)| *path == wanted));
            match found {
                Some((_, content)) => Response::new(Body::from(content.clone())),
                None => page(StatusCode::NOT_FOUND, "Not Found"),
            }
        }
        _ => page(StatusCode::NOT_FOUND, "Not Found"),
    }
}

/// What the `tree` asks for, and nothing else.
fn about(name: &str, builds: Option<Vec<Build>>, base: &str, tree: &str) -> Value {
    let mut told = Map::new();
    let class = match builds {
        Some(_) => "org.jenkinsci.plugins.workflow.job.WorkflowJob",
        None => "com.cloudbees.hudson.plugins.folder.Folder",
    };
    told.insert("_class".to_owned(), json!(class));
    if tree.contains("fullName") {
        told.insert("fullName".to_owned(), json!(name));
    }
    let Some(builds) = builds else {
        return Value::Object(told);
    };
    let path = name
        .split('/')
        .map(|item| format!("/job/{}", item.replace(' ', "%20")));
    let url = format!("{base}{}", path.collect::<String>());
    let mut latest = builds.iter().rev();
    let successful = latest.find(|b| matches!(b.result, "SUCCESS" | "UNSTABLE"));
    for (key, build) in [
        ("lastSuccessfulBuild", successful),
        ("lastCompletedBuild", builds.last()),
    ] {
        let Some((_, fields)) = tree.split_once(&format!("{key}[")) else {
            continue;
        };
        let artifacts = fields.split(']').next().unwrap().contains("artifacts");
        let value = build.map(|build| {
            let mut value = json!({
                "_class": "org.jenkinsci.plugins.workflow.job.WorkflowRun",
                "number": build.number,
                "result": build.result,
                "url": format!("{url}/{}/", build.number),
            });
            if artifacts {
                let paths = build.artifacts.iter();
                let paths: Vec<Value> = paths.map(|(p, _)| json!({ "relativePath": p })).collect();
                value["artifacts"] = Value::Array(paths);
            }
            value
        });
        told.insert(key.to_owned(), value.unwrap_or(Value::Null));
    }
    Value::Object(told)
}

fn json_answer(value: &Value, slow: bool) -> Response<Body> {
    let text = value.to_string();
    let body = if slow {
        let pieces: Vec<Bytes> = text
            .as_bytes()
            .chunks(40)
            .map(Bytes::copy_from_slice)
            .collect();
        Body::from_stream(stream::unfold(
            pieces.into_iter(),
            |mut pieces| async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let piece = pieces.next()?;
                Some((Ok::<_, std::io::Error>(piece), pieces))
            },
        ))
    } else {
        Body::from(text)
    };
    Response::builder()
        .header(header::CONTENT_TYPE, "application/json;charset=utf-8")
        .body(body)
        .unwrap()
}

fn page(status: StatusCode, text: &str) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/html;charset=utf-8")
        .body(Body::from(format!("<html><body>{text}</body></html>")))
        .unwrap()
}

fn faulty(fault: Fault) -> Response<Body> {
    let to = |location: &str| {
        Response::builder()
            .status(StatusCode::FOUND)
            .header(header::LOCATION, location)
            .body(Body::empty())
            .unwrap()
    };
    let streamed = |pieces: Vec<Result<Bytes, std::io::Error>>| {
        Response::builder()
            .header(header::CONTENT_TYPE, "application/json;charset=utf-8")
            .body(Body::from_stream(stream::iter(pieces)))
            .unwrap()
    };
    match fault {
        Fault::Status(status) => page(StatusCode::from_u16(status).unwrap(), "no"),
        Fault::Login => to(&format!("{BASE}/login?from=%2Fjob%2FAaC")),
        Fault::Elsewhere => to("https://sso.example.com/start?token=secret"),
        Fault::Page => page(StatusCode::OK, "Welcome"),
        Fault::Cut => {
            let cut = std::io::Error::other("cut");
            streamed(vec![Ok(Bytes::from_static(b"{\"fullName\":")), Err(cut)])
        }
        Fault::Huge => {
            let piece = Bytes::from(vec![b' '; 1024 * 1024]);
            streamed((0..20).map(|_| Ok(piece.clone())).collect())
        }
        Fault::Slow => Response::new(Body::empty()),
    }
}
