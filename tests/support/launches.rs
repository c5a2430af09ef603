//! `stagewright-plan` with the Kubernetes runner in the testbed: its settings, its account, and the estate that it plans.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic here fails the test that launches"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};

use serde_json::{Value, json};
use stagewright::sandbox::{Reset, Sandbox};

use crate::testbed::{IMAGE, NAMESPACE, Testbed, User, commit, run, until};

pub const SECRET: &str = "argocd-plan-credentials";
/// The namespace that Terraform is told for the stages of the test's own repository.
const STAGE_NAMESPACE: &str = "launch-test";

/// How a plan ended.
pub struct Plan {
    pub code: Option<i32>,
    pub log: String,
    pub said: String,
}

/// The estate of the sandbox, served to pods.
pub struct Launches {
    pub testbed: &'static Testbed,
    jobs: User,
    pub admin: User,
    pub folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Launches {
    /// One test at a time: they look for what is left in one namespace. `None` where there is no testbed.
    pub fn new() -> Option<Launches> {
        static ALONE: Mutex<()> = Mutex::new(());
        static READY: OnceLock<PathBuf> = OnceLock::new();
        let testbed = Testbed::find()?;
        let alone = ALONE
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let folder = READY.get_or_init(|| serve(testbed)).clone();
        Some(Launches {
            testbed,
            jobs: testbed.account("stagewright"),
            admin: testbed.admin(),
            folder,
            _alone: alone,
        })
    }

    /// Settings with these keys more below `runner.kubernetes`.
    fn settings(&self, more: &Value) -> PathBuf {
        let mut kubernetes = json!({
            "context": "testbed",
            "namespace": NAMESPACE,
            "image": IMAGE,
            "service_account": "tf-plan",
            "secret": SECRET,
            "start_deadline": 60,
        });
        let kubernetes_map = kubernetes.as_object_mut().unwrap();
        kubernetes_map.extend(more.as_object().unwrap().clone());
        let settings = json!({
            "forge": { "git": { "root": self.testbed.git_url, "known_as": "https://github.com/example" } },
            "registry": { "repo": "ArgoCDDeploy" },
            "state": { "repo": "TerraformState" },
            "runner": { "kubernetes": kubernetes },
        });
        let file = tempfile::Builder::new()
            .suffix(".yaml")
            .tempfile_in(&self.folder)
            .unwrap();
        std::fs::write(file.path(), settings.to_string()).unwrap();
        file.keep().unwrap().1
    }

    pub fn command(&self, more: &Value, arguments: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_stagewright-plan");
        let mut command = program_as(&self.jobs, program, &self.folder);
        command
            .args(arguments)
            .arg("--settings")
            .arg(self.settings(more));
        command
    }

    /// Starts one, and waits until its log shows that Terraform runs.
    pub fn start(&self, more: &Value, stage: &str) -> Child {
        let child = self
            .command(more, &own(stage))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("a running pod", || {
            let pods = self.admin.read(&[
                "pods",
                "--namespace",
                NAMESPACE,
                "--selector",
                "app.kubernetes.io/name=tf-plan",
            ]);
            let phase = pods["items"][0]["status"]["phase"].clone();
            (phase == "Running").then_some(())
        });
        child
    }

    /// Jobs and pods of ours.
    pub fn left(&self) -> Vec<String> {
        let list = self.admin.read(&[
            "jobs,pods",
            "--namespace",
            NAMESPACE,
            "--selector",
            "app.kubernetes.io/managed-by=stagewright",
        ]);
        let items = list["items"].as_array().unwrap();
        let name = |item: &Value| format!("{} {}", item["kind"], item["metadata"]["name"]);
        items.iter().map(name).collect()
    }
}

/// A program that asks the cluster as this user, in a folder and with nothing else.
pub fn program_as(user: &User, program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("KUBECONFIG", user.kubeconfig())
        .current_dir(folder);
    command
}

pub fn own(stage: &str) -> [&str; 6] {
    [
        "--repo",
        "LaunchDeploy",
        "--stage",
        stage,
        "--namespace",
        STAGE_NAMESPACE,
    ]
}

pub fn finish(child: Child) -> Plan {
    let output = child.wait_with_output().unwrap();
    Plan {
        code: output.status.code(),
        log: String::from_utf8_lossy(&output.stdout).into_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Puts the repositories of the sandbox where the testbed serves them, makes the Secret, and one repository more.
fn serve(testbed: &Testbed) -> PathBuf {
    let folder = tempfile::tempdir().unwrap().keep();
    let sandbox = folder.join("sandbox");
    Sandbox::open(&sandbox, Reset::Fresh).unwrap();
    for name in ["ArgoCDDeploy", "PlatformDeploy", "FieldnotesDeploy"] {
        let there = testbed.git.join(format!("{name}.git"));
        if !there.exists() {
            let bare = sandbox.join("git").join(format!("{name}.git"));
            run(Command::new("cp").arg("-r").arg(bare).arg(there), "");
        }
    }
    // The state repository is shared with other tests.
    let states = sandbox.join("git/TerraformState.git");
    let git = |arguments: &[&str]| {
        run(
            Command::new("git")
                .arg("--git-dir")
                .arg(&states)
                .args(arguments),
            "",
        )
    };
    let names = git(&["ls-tree", "-r", "--name-only", "main"]);
    let files: Vec<(String, String)> = names
        .lines()
        .map(|name| (name.to_owned(), git(&["show", &format!("main:{name}")])))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(n, c)| (n.as_str(), c.as_str()))
        .collect();
    commit(testbed, "TerraformState", &files);

    let variables = "variable \"stage\" {}\nvariable \"namespace\" {}\n";
    // A plan runs no provisioner: what takes its time is a great number of resources.
    let mut root = variables.to_owned();
    write!(
        root,
        "resource \"terraform_data\" \"fails\" {{\n  lifecycle {{\n    precondition {{\n      condition     = var.stage != \"fails\"\n      \
         error_message = \"the app says no\"\n    }}\n  }}\n}}\n\
         locals {{\n  size = var.stage == \"slow\" ? 80 : var.stage == \"huge\" ? 300 : var.stage == \"long\" ? 5 : 0\n}}\n\
         resource \"terraform_data\" \"wide\" {{\n  count = var.stage == \"wide\" ? 400 : 0\n  input = join(\"\", [for at in range(500) : \"0123456789\"])\n}}\n\
         resource \"terraform_data\" \"many\" {{\n  for_each = toset(flatten([for a in range(local.size) : [for b in range(100) : \"${{a}}-${{b}}\"]]))\n  input    = each.key\n}}\n"
    )
    .unwrap();
    let files: Vec<(String, String)> = ["quick", "slow", "huge", "long", "wide", "fails"]
        .iter()
        .map(|stage| (format!("config/{stage}/values.yaml"), "a: 1\n".to_owned()))
        .chain([("terraform/main.tf".to_owned(), root)])
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(n, c)| (n.as_str(), c.as_str()))
        .collect();
    commit(testbed, "LaunchDeploy", &files);

    make_secret(&testbed.admin(), &folder);
    folder
}

/// The Secret of a plan, with the key of the sandbox's sealed state.
pub fn make_secret(admin: &User, folder: &Path) {
    let key = std::fs::read_to_string(folder.join("sandbox/credentials/sandbox.agekey")).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": NAMESPACE },
        "stringData": { "SOPS_AGE_KEY": key },
    });
    admin.done(&["apply", "--filename=-"], &secret.to_string());
}
