//! `stagewright-plan` with the Kubernetes runner: real pods, as the jobs' own account.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stagewright::sandbox::{Reset, Sandbox};

use crate::testbed::{IMAGE, NAMESPACE, Testbed, User, commit, run, until};
use crate::tools;

const SECRET: &str = "argocd-plan-credentials";
/// The namespace that Terraform is told for the stages of the test's own repository.
const STAGE_NAMESPACE: &str = "launch-test";

/// How a plan ended.
struct Plan {
    code: Option<i32>,
    log: String,
    said: String,
}

/// The estate of the sandbox, served to pods.
struct Launches {
    testbed: &'static Testbed,
    jobs: User,
    admin: User,
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Launches {
    /// One test at a time: they look for what is left in one namespace. `None` where there is no testbed.
    fn new() -> Option<Launches> {
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

    fn command(&self, more: &Value, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stagewright-plan"));
        command
            .args(arguments)
            .arg("--settings")
            .arg(self.settings(more))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.jobs.kubeconfig())
            .current_dir(&self.folder);
        command
    }

    fn plan(&self, more: &Value, arguments: &[&str]) -> Plan {
        let output = self.command(more, arguments).output().unwrap();
        let plan = Plan {
            code: output.status.code(),
            log: String::from_utf8_lossy(&output.stdout).into_owned(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert_eq!(
            self.left(),
            Vec::<String>::new(),
            "{}\n{}",
            plan.log,
            plan.said
        );
        plan
    }

    /// A plan of a stage of the test's own repository.
    fn own(&self, more: &Value, stage: &str) -> Plan {
        self.plan(more, &own(stage))
    }

    /// Starts one, and waits until its log shows that Terraform runs.
    fn start(&self, more: &Value, stage: &str) -> Child {
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
    fn left(&self) -> Vec<String> {
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

    fn kubectl(&self, arguments: &[&str]) {
        self.admin.done(arguments, "");
    }
}

fn own(stage: &str) -> [&str; 6] {
    [
        "--repo",
        "LaunchDeploy",
        "--stage",
        stage,
        "--namespace",
        STAGE_NAMESPACE,
    ]
}

fn finish(child: Child) -> Plan {
    let output = child.wait_with_output().unwrap();
    Plan {
        code: output.status.code(),
        log: String::from_utf8_lossy(&output.stdout).into_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
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
         resource \"terraform_data\" \"many\" {{\n  for_each = toset(flatten([for a in range(local.size) : [for b in range(100) : \"${{a}}-${{b}}\"]]))\n  input    = each.key\n}}\n"
    )
    .unwrap();
    let files: Vec<(String, String)> = ["quick", "slow", "huge", "long", "fails"]
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
fn make_secret(admin: &User, folder: &Path) {
    let key = std::fs::read_to_string(folder.join("sandbox/credentials/sandbox.agekey")).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": NAMESPACE },
        "stringData": { "SOPS_AGE_KEY": key },
    });
    admin.done(&["apply", "--filename=-"], &secret.to_string());
}

#[test]
fn stages_of_the_estate_are_planned_in_pods_with_the_log_and_the_code_of_a_local_plan() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let none = json!({});
    let same = launches.plan(&none, &["--repo", "FieldnotesDeploy", "--stage", "prd"]);
    assert_eq!(same.code, Some(0), "{}\n{}", same.log, same.said);
    assert!(
        same.log.contains("presync: the plan carries no changes\n"),
        "{}",
        same.log
    );
    let changes = launches.plan(
        &none,
        &[
            "--repo",
            "PlatformDeploy",
            "--app-path",
            "headlamp",
            "--stage",
            "prd",
        ],
    );
    assert_eq!(changes.code, Some(0), "{}\n{}", changes.log, changes.said);
    assert!(
        changes
            .log
            .contains("presync: the plan carries 7 change(s):\n"),
        "{}",
        changes.log
    );
    assert!(
        changes.said.contains("Planned: 7 changes"),
        "{}",
        changes.said
    );
    let sealed = launches.plan(
        &none,
        &[
            "--repo",
            "PlatformDeploy",
            "--app-path",
            "grafana",
            "--stage",
            "prd",
        ],
    );
    assert_eq!(sealed.code, Some(0), "{}\n{}", sealed.log, sealed.said);
    assert!(sealed.log.contains(": forget\n"), "{}", sealed.log);
    let failed = launches.own(&none, "fails");
    assert_eq!(failed.code, Some(4), "{}\n{}", failed.log, failed.said);
    assert!(failed.log.contains("the app says no"), "{}", failed.log);
}

#[test]
fn a_launch_that_cannot_start_is_told_in_the_words_of_the_cluster_and_leaves_nothing() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let never = |more: Value, words: &[&str]| {
        let plan = launches.own(&more, "quick");
        assert_eq!(plan.code, Some(7), "{more}: {}\n{}", plan.log, plan.said);
        for word in words {
            assert!(plan.said.contains(word), "{word}: {}", plan.said);
        }
    };
    never(
        json!({ "image": "registry.example.com/other:1", "start_deadline": 8 }),
        &["registry.example.com/other:1"],
    );
    never(
        json!({ "image": "registry.example.com/foreign:1" }),
        &["the image must be one of"],
    );
    never(
        json!({ "service_account": "default" }),
        &["the service account must be"],
    );
    never(
        json!({ "start_deadline": 5, "pod_template": { "spec": { "nodeSelector": { "disk": "none" } } } }),
        &["no node takes its pod", "node(s) didn't match"],
    );
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": { "name": "no-pods", "namespace": NAMESPACE },
        "spec": { "hard": { "pods": "0" } },
    });
    launches
        .admin
        .done(&["apply", "--filename=-"], &quota.to_string());
    until("the quota", || {
        let quota = launches
            .admin
            .read(&["resourcequota", "no-pods", "--namespace", NAMESPACE]);
        (quota["status"]["hard"]["pods"] == "0").then_some(())
    });
    let denied = launches.own(&json!({ "start_deadline": 6 }), "quick");
    launches.kubectl(&[
        "delete",
        "resourcequota",
        "no-pods",
        "--namespace",
        NAMESPACE,
    ]);
    assert_eq!(denied.code, Some(7), "{}", denied.said);
    assert!(
        denied.said.contains("exceeded quota: no-pods"),
        "{}",
        denied.said
    );

    launches.kubectl(&["delete", "secret", SECRET, "--namespace", NAMESPACE]);
    let no_secret = launches.own(&json!({ "start_deadline": 8 }), "quick");
    make_secret(&launches.admin, &launches.folder);
    assert_eq!(no_secret.code, Some(7), "{}", no_secret.said);
    assert!(
        no_secret
            .said
            .contains(&format!("secret \"{SECRET}\" not found")),
        "{}",
        no_secret.said
    );
}

#[test]
fn each_way_in_which_a_pod_can_end_has_its_own_sentence() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let memory = json!({ "pod_template": { "spec": { "containers": [
        { "name": "presync", "resources": { "limits": { "memory": "48Mi" } } }] } } });
    let out_of_memory = launches.own(&memory, "slow");
    assert_eq!(
        out_of_memory.code,
        Some(4),
        "{}\n{}",
        out_of_memory.log,
        out_of_memory.said
    );
    assert!(
        out_of_memory.said.contains("more memory than its limit")
            || out_of_memory.log.contains("signal 9"),
        "{}\n{}",
        out_of_memory.log,
        out_of_memory.said
    );
    let late = launches.own(&json!({ "deadline": 3 }), "slow");
    assert_eq!(late.code, Some(4), "{}\n{}", late.log, late.said);
    assert!(
        late.said.contains("took longer than the Job's deadline"),
        "{}",
        late.said
    );

    let small = json!({ "pod_template": { "spec": {
        "volumes": [{ "name": "tmp", "emptyDir": { "sizeLimit": "64Ki" } }],
        "containers": [{ "name": "presync", "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }] }],
    } } });
    let evicted = launches.own(&small, "huge");
    assert_eq!(evicted.code, Some(4), "{}\n{}", evicted.log, evicted.said);
    assert!(
        evicted.said.contains("was evicted from its node"),
        "{}",
        evicted.said
    );

    let child = launches.start(&json!({}), "slow");
    launches.kubectl(&[
        "delete",
        "jobs",
        "--namespace",
        NAMESPACE,
        "--selector",
        "app.kubernetes.io/managed-by=stagewright",
        "--wait=false",
    ]);
    let deleted = finish(child);
    assert_eq!(deleted.code, Some(4), "{}\n{}", deleted.log, deleted.said);
    assert!(
        deleted.said.contains("was deleted by someone else"),
        "{}",
        deleted.said
    );
    assert_eq!(launches.left(), Vec::<String>::new());
}

#[test]
fn a_second_plan_of_the_same_stage_is_refused_while_the_first_runs() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "slow");
    let output = launches.command(&json!({}), &own("slow")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("works on LaunchDeploy/slow already"),
        "{said}"
    );
    signal(&child, Signal::TERM);
    let first = finish(child);
    assert_eq!(first.code, Some(143), "{}\n{}", first.log, first.said);
    assert_eq!(launches.left(), Vec::<String>::new());
}

#[test]
fn an_abort_at_any_moment_leaves_no_job_and_no_pod() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let rounds: u64 = if tools::is_on("STAGEWRIGHT_FULL") {
        100
    } else {
        10
    };
    for round in 0..rounds {
        let child = launches
            .command(&json!({}), &own("long"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Over the whole life of a launch, in steps that share no divisor with its length.
        std::thread::sleep(Duration::from_millis((round * 617) % 5000));
        signal(
            &child,
            if round % 2 == 0 {
                Signal::TERM
            } else {
                Signal::INT
            },
        );
        let plan = finish(child);
        assert!(
            // None: before the job could catch a signal, and had made anything.
            matches!(plan.code, Some(130 | 143 | 0) | None),
            "{round}: {:?}\n{}\n{}",
            plan.code,
            plan.log,
            plan.said
        );
        assert_eq!(
            launches.left(),
            Vec::<String>::new(),
            "{round}: {}",
            plan.said
        );
    }
}

#[test]
fn a_kill_soon_after_a_term_leaves_nothing_since_the_deletion_was_ordered_first() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "slow");
    signal(&child, Signal::TERM);
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::KILL);
    let killed = finish(child);
    assert!(
        matches!(killed.code, None | Some(143)),
        "{}\n{}",
        killed.log,
        killed.said
    );
    until("the end of what was deleted", || {
        launches.left().is_empty().then_some(())
    });
}

#[test]
fn what_a_killed_job_left_is_removed_by_the_next_one_when_it_has_ended() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "long");
    signal(&child, Signal::KILL);
    finish(child);
    assert_ne!(launches.left(), Vec::<String>::new());
    until("a plan after the one that was left", || {
        let output = launches.command(&json!({}), &own("long")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => Some(()),
            Some(3) => {
                assert!(
                    said.contains("works on LaunchDeploy/long already"),
                    "{said}"
                );
                None
            }
            other => panic!("{other:?}: {said}"),
        }
    });
    assert_eq!(launches.left(), Vec::<String>::new());
}
