//! The real cluster that `tests/testbed/up` starts, with what `deploy/` puts into it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic here fails the test that asked the cluster"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The image that pods of the tests run: the programs of this very test run.
pub const IMAGE: &str = "stagewright.invalid/presync:test";
/// Where launches and hooks run.
pub const NAMESPACE: &str = "argocd-hooks";

/// A running testbed.
pub struct Testbed {
    kubeconfig: PathBuf,
    /// The folder whose repositories are served.
    pub git: PathBuf,
    /// Where they are served, for pods too.
    pub git_url: String,
}

/// Somebody who asks the API server.
pub struct User {
    kubeconfig: PathBuf,
    /// Keeps the kubeconfig.
    _folder: Option<tempfile::TempDir>,
}

impl Testbed {
    /// The one that was started for this run of the tests, with the image loaded and `deploy/` applied.
    pub fn find() -> Option<&'static Testbed> {
        static TESTBED: OnceLock<Option<Testbed>> = OnceLock::new();
        let found = TESTBED.get_or_init(|| {
            let variable = |name| std::env::var(format!("STAGEWRIGHT_TESTBED_{name}")).ok();
            let testbed = Testbed {
                kubeconfig: variable("KUBECONFIG")?.into(),
                git: variable("GIT")?.into(),
                git_url: variable("GIT_URL")?,
            };
            testbed.load_image();
            testbed.deploy();
            Some(testbed)
        });
        super::tools::found_or_left_out(
            "the testbed (STAGEWRIGHT_TESTBED_KUBECONFIG)",
            "STAGEWRIGHT_TOOLS_REQUIRED",
            found.as_ref(),
        )
    }

    /// The administrator.
    pub fn admin(&self) -> User {
        User {
            kubeconfig: self.kubeconfig.clone(),
            _folder: None,
        }
    }

    /// A service account of the namespace of launches, with a token of its own and nothing else.
    pub fn account(&self, name: &str) -> User {
        let admin = self.admin();
        let token = admin.done(&["create", "token", name, "--namespace", NAMESPACE], "");
        let config = admin.done(
            &["config", "view", "--raw", "--minify", "--output=json"],
            "",
        );
        let mut config: Value = serde_json::from_str(&config).unwrap();
        *config.pointer_mut("/users/0/user").unwrap() = json!({ "token": token.trim() });
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        User {
            kubeconfig,
            _folder: Some(folder),
        }
    }

    /// The folder of its state.
    pub fn state(&self) -> &Path {
        self.kubeconfig.parent().unwrap()
    }

    fn load_image(&self) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        run(
            Command::new("deploy/rootfs")
                .arg(&root)
                .arg(env!("CARGO_BIN_EXE_presync")),
            "",
        );
        // Where Terraform looks by itself before it asks a registry.
        let plugins = root.join("usr/share/terraform/plugins");
        std::fs::create_dir_all(plugins.parent().unwrap()).unwrap();
        run(
            Command::new("cp").arg("-r").arg(providers()).arg(plugins),
            "",
        );
        run(
            Command::new("tests/testbed/load-image")
                .arg(IMAGE)
                .arg(&root)
                .env("STAGEWRIGHT_TESTBED", self.state()),
            "",
        );
    }

    /// Applies `deploy/` by a kustomization of our own, as a site does.
    fn deploy(&self) {
        let folder = tempfile::tempdir().unwrap();
        run(
            Command::new("cp")
                .args(["-r", "deploy"])
                .arg(folder.path().join("deploy")),
            "",
        );
        let site = folder.path().join("site");
        std::fs::create_dir(&site).unwrap();
        let url = &self.git_url;
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["../deploy"],
            "patches": [{ "patch": json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": "stagewright-launches", "namespace": NAMESPACE },
                "data": {
                    "images": format!("registry.example.com/other:1, {IMAGE}"),
                    "repositories": format!("{url}/"),
                    "state": format!("{url}/TerraformState.git"),
                    "unrestricted": "argocd",
                },
            }).to_string() }],
        });
        std::fs::write(site.join("kustomization.yaml"), kustomization.to_string()).unwrap();
        let admin = self.admin();
        admin.done(&["apply", "--kustomize", site.to_str().unwrap()], "");
        // The API server learns of a policy a moment after it has taken it.
        until("the admission policy", || {
            let job = json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": { "name": "no-launch", "namespace": NAMESPACE },
                "spec": { "template": { "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "a", "image": "a" }],
                } } },
            });
            let answer = admin.ask(&["create", "--dry-run=server", "--filename=-"], &job);
            (!answer.status.success()).then_some(())
        });
    }
}

impl User {
    /// The kubeconfig by which this user asks; its context is `testbed`.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Asks by kubectl.
    pub fn ask(&self, arguments: &[&str], input: &Value) -> Output {
        output(&mut self.kubectl(arguments), &input.to_string())
    }

    /// Asks for what must succeed, and returns the answer.
    pub fn done(&self, arguments: &[&str], input: &str) -> String {
        run(&mut self.kubectl(arguments), input)
    }

    /// Reads one object, or a list.
    pub fn read(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["get", "--output=json"];
        all.extend(arguments);
        serde_json::from_str(&self.done(&all, "")).unwrap()
    }

    fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut kubectl = Command::new("kubectl");
        kubectl
            .args(arguments)
            .arg("--request-timeout=30s")
            .env("KUBECONFIG", &self.kubeconfig);
        kubectl
    }
}

/// The mirror of providers that `tests/testbed/up` puts on PATH.
pub fn providers() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|folder| folder.join("providers"))
        .find(|mirror| {
            mirror
                .join("registry.terraform.io/hashicorp/kubernetes")
                .is_dir()
        })
        .expect("no provider for Kubernetes on PATH: eval \"$(tests/testbed/up)\"")
}

/// Runs a program that must succeed, and returns what it printed.
pub fn run(command: &mut Command, input: &str) -> String {
    let output = output(command, input);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn output(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Asks until there is an answer; the bound only ends a test that would hang.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(Duration::from_secs(180), what, ask)
}

/// The same with another bound.
pub fn until_within<T>(bound: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + bound;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        if Instant::now() > give_up {
            panic!("waited in vain: {what}");
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Makes a commit that sets these files on `main` of the served repository `name`, and returns it.
pub fn commit(testbed: &Testbed, name: &str, files: &[(&str, &str)]) -> String {
    change(testbed, name, |work| {
        for (path, content) in files {
            let file = work.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
    })
}

/// Commits what `make` makes of the files. Others may push to the same repository meanwhile.
pub fn change(testbed: &Testbed, name: &str, make: impl Fn(&Path)) -> String {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bare = testbed.git.join(format!("{name}.git"));
    let bare = bare.to_str().unwrap();
    if !Path::new(bare).exists() {
        git(
            Path::new("."),
            &["init", "--quiet", "--bare", "-b", "main", bare],
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    git(work, &["init", "--quiet", "-b", "main"]);
    git(work, &["remote", "add", "origin", bare]);
    until("a push", || {
        git(work, &["fetch", "--quiet", "origin"]);
        if !git(work, &["branch", "--remotes"]).is_empty() {
            git(work, &["reset", "--quiet", "--hard", "origin/main"]);
        }
        make(work);
        git(work, &["add", "--all"]);
        git(work, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
        let mut push = Command::new("git");
        push.args(["push", "--quiet", "origin", "main"])
            .current_dir(work);
        output(&mut push, "").status.success().then_some(())
    });
    git(work, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// Runs git in `folder`, and returns what it printed.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    run(
        Command::new("git")
            .args([
                "-c",
                "user.name=Example",
                "-c",
                "user.email=example@example.com",
            ])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null"),
        "",
    )
}
