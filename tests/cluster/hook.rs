//! `presync apply` as the PreSync hook of an Application, by the example include.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::testbed::{IMAGE, NAMESPACE, Testbed, User, change, commit, git, run, until};

const KEY: &str = "argocd/HookDeploy/prd/terraform.tfstate";
const STAGE: &str = "hook-prd";

/// A root with one resource, which refuses any stage but this one.
fn root(only: &str, input: &str) -> String {
    format!(
        r#"variable "stage" {{}}
variable "namespace" {{}}
resource "terraform_data" "one" {{
  input = "{input}"
  lifecycle {{
    precondition {{
      condition     = var.stage == "{only}"
      error_message = "the app says no"
    }}
  }}
}}
"#
    )
}

/// What the chart deploys: a claim of one certain volume, and how often the app was changed.
fn manifests(release: &str) -> String {
    format!(
        r#"apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{ name: data }}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: hook-data
  resources: {{ requests: {{ storage: 1Mi }} }}
---
apiVersion: v1
kind: ConfigMap
metadata: {{ name: release }}
data: {{ release: "{release}" }}
"#
    )
}

/// The stage `hook-prd` of a repository of its own, deployed by Argo CD.
struct Stage {
    testbed: &'static Testbed,
    admin: User,
}

impl Stage {
    fn new(testbed: &'static Testbed) -> Stage {
        let stage = Stage {
            testbed,
            admin: testbed.admin(),
        };
        stage.remove();
        commit(testbed, "TerraformState", &[("README", "states")]);
        let url = &testbed.git_url;
        let values = json!({ "presync": {
            "image": IMAGE,
            "namespace": NAMESPACE,
            "account": "tf-presync",
            "secret": "hook-test-credentials",
            "state": format!("{url}/TerraformState.git"),
        } });
        let include = std::fs::read_to_string("deploy/chart-include/_presync-hook.tpl").unwrap();
        let files = [
            (
                "chart/Chart.yaml",
                "{apiVersion: v2, name: hook, version: 0.1.0}",
            ),
            ("chart/values.yaml", &values.to_string()),
            ("chart/templates/_presync-hook.tpl", &include),
            (
                "chart/templates/presync.yaml",
                "{{ include \"stagewright.presync-hook\" . }}\n",
            ),
            ("config/prd/stage.tfvars", ""),
        ];
        commit(testbed, "HookDeploy", &files);

        let key = run(&mut Command::new("age-keygen"), "");
        let recipient = key
            .lines()
            .find_map(|line| line.strip_prefix("# public key: "));
        stage.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "hook-test-credentials", "namespace": NAMESPACE },
            "stringData": { "SOPS_AGE_KEY": key, "SOPS_AGE_RECIPIENTS": recipient.unwrap() },
        }));
        stage.apply(
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": STAGE } }),
        );
        stage.apply(&json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": "hook-data" },
            "spec": {
                "capacity": { "storage": "1Mi" },
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": { "path": "/tmp/stagewright-testbed-hook-data" },
            },
        }));
        let parameter =
            |name: &str, value: &str| json!({ "name": format!("hook.{name}"), "value": value });
        let repository = format!("{url}/HookDeploy.git");
        stage.apply(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": { "name": STAGE, "namespace": "argocd" },
            "spec": {
                "project": "default",
                "destination": { "server": "https://kubernetes.default.svc", "namespace": STAGE },
                "source": {
                    "repoURL": repository,
                    "targetRevision": "main",
                    "path": "chart",
                    "helm": { "parameters": [
                        parameter("repo", &repository),
                        parameter("revision", "$ARGOCD_APP_REVISION"),
                        parameter("stage", "prd"),
                        parameter("namespace", STAGE),
                    ] },
                },
            },
        }));
        stage
    }

    /// Takes away what an earlier run of this test left.
    fn remove(&self) {
        for (kind, name) in [
            (
                "application.argoproj.io",
                format!("--namespace=argocd {STAGE}"),
            ),
            ("namespace", STAGE.to_owned()),
            ("persistentvolume", "hook-data".to_owned()),
        ] {
            let mut arguments = vec!["delete", "--ignore-not-found", kind];
            arguments.extend(name.split(' '));
            self.admin.done(&arguments, "");
        }
        let folder = self.testbed.git.join("HookDeploy.git");
        if folder.exists() {
            std::fs::remove_dir_all(folder).unwrap();
        }
        // Other tests keep states there as well.
        commit_without(self.testbed, "TerraformState", KEY);
    }

    fn apply(&self, object: &Value) {
        self.admin
            .done(&["apply", "--filename=-"], &object.to_string());
    }

    /// Commits a root and what the chart deploys, syncs that commit, and returns how the sync ended and the hook's log.
    fn sync(&self, root: &str, release: &str) -> (String, String) {
        let files = [
            ("terraform/main.tf", root),
            ("chart/templates/app.yaml", &manifests(release)),
        ];
        let revision = commit(self.testbed, "HookDeploy", &files);
        // As Argo CD's own clients ask: without the removal it would go on with the results of the sync before.
        let operation = json!({
            "operation": { "sync": { "revision": revision } },
            "status": { "operationState": null },
        });
        let arguments = [
            "patch",
            "application.argoproj.io",
            STAGE,
            "--namespace=argocd",
        ];
        let patch = operation.to_string();
        let mut all = arguments.to_vec();
        all.extend(["--type=merge", "--patch", &patch]);
        self.admin.done(&all, "");
        let state = until("the end of the sync", || {
            let state = self.application()["status"]["operationState"].clone();
            let of_this = state["operation"]["sync"]["revision"] == revision.as_str();
            (of_this && state["phase"] != "Running").then_some(state)
        });
        let job = format!("job/tf-presync-{STAGE}");
        let log = self
            .admin
            .ask(&["logs", &job, "--namespace", NAMESPACE], &Value::Null);
        let said = format!(
            "{}\n{}",
            state["message"],
            String::from_utf8_lossy(&log.stdout)
        );
        (state["phase"].as_str().unwrap().to_owned(), said)
    }

    fn application(&self) -> Value {
        self.admin
            .read(&["application.argoproj.io", STAGE, "--namespace=argocd"])
    }

    fn release(&self) -> Value {
        let map = self
            .admin
            .read(&["configmap", "release", "--namespace", STAGE]);
        map["data"]["release"].clone()
    }

    fn states(&self) -> PathBuf {
        self.testbed.git.join("TerraformState.git")
    }

    fn volume(&self) -> Value {
        self.admin.read(&["persistentvolume", "hook-data"])
    }

    fn wait_for_volume(&self, phase: &str) {
        until(&format!("the volume to be {phase}"), || {
            (self.volume()["status"]["phase"] == phase).then_some(())
        });
    }
}

#[test]
fn a_sync_applies_the_root_first_and_a_root_that_fails_stops_it() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let stage = Stage::new(testbed);

    let (phase, log) = stage.sync(&root("prd", "first"), "1");
    assert_eq!(phase, "Succeeded", "{log}");
    assert!(
        log.contains("\npresync: terraform_data.one: create\n"),
        "{log}"
    );
    assert!(
        log.contains("\npresync: applied 1 change(s), the state is saved at serial "),
        "{log}"
    );
    let states = stage.states();
    let state = git(&states, &["show", &format!("main:{KEY}")]);
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(
        state["resources"][0]["type"].as_str().map(|t| &t[..4]),
        Some("ENC[")
    );
    assert!(state["sops"]["age"].is_array());
    assert_eq!(git(&states, &["branch", "--list", "locks/*"]), "");
    assert_eq!(stage.release(), "1");
    stage.wait_for_volume("Bound");

    // A claim that is deleted leaves its volume Released; the next sync makes the claim anew, and gets the same volume.
    let claim = [
        "delete",
        "persistentvolumeclaim",
        "data",
        "--namespace",
        STAGE,
    ];
    stage.admin.done(&claim, "");
    stage.wait_for_volume("Released");
    let (phase, log) = stage.sync(&root("prd", "first"), "2");
    assert_eq!(phase, "Succeeded", "{log}");
    assert!(log.contains("hook-data"), "{log}");
    stage.wait_for_volume("Bound");
    let claim = until("the claim to be Bound", || {
        let arguments = ["persistentvolumeclaim", "data", "--namespace", STAGE];
        let claim = stage.admin.read(&arguments);
        (claim["status"]["phase"] == "Bound").then_some(claim)
    });
    assert_eq!(
        stage.volume()["spec"]["claimRef"]["uid"],
        claim["metadata"]["uid"]
    );

    let kept = format!("main:{KEY}");
    let before = git(&states, &["rev-parse", &kept]);
    let (phase, log) = stage.sync(&root("dev", "second"), "3");
    assert_eq!(phase, "Failed", "{log}");
    assert!(log.contains("the app says no"), "{log}");
    assert_eq!(
        git(&states, &["rev-parse", &kept]),
        before,
        "{log}{}",
        git(&states, &["log", "--format=%aI %H %s%n%b", "main"])
    );
    assert_eq!(stage.release(), "2");
    stage.remove();
}

/// Makes a commit without this file, whether it was there or not.
fn commit_without(testbed: &Testbed, name: &str, path: &str) {
    change(testbed, name, |work| {
        if work.join(path).exists() {
            std::fs::remove_file(work.join(path)).unwrap();
        }
    });
}
