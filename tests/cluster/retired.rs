//! The stage `shop/prd` of a monorepo: deployed by Argo CD, applied with Terraform's provider for Kubernetes, and
//! `stagewright-destroy-stage` on it as the jobs' own account.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::process::Command;

use serde_json::{Value, json};

use crate::launches::{Plan, program_as};
use crate::testbed::{IMAGE, NAMESPACE, Testbed, User, change, commit, git, providers, run, until};

/// Its namespace, and its Application.
pub const STAGE: &str = "retired-prd";
const STATES: &str = "argocd/RetiredDeploy";
/// Where Applications stand that no Argo CD looks at.
pub const ELSEWHERE: &str = "retired-applications";
/// What lets a preview see whether a namespace is gone.
const NAMESPACES: &str = "deploy/rbac/optional/namespaces.yaml";

const ROOT: &str = r#"terraform {
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "1.13.4"
    }
  }
}

variable "stage" {}
variable "namespace" {}
variable "size" {}

provider "kubernetes" {}

resource "kubernetes_secret" "token" {
  metadata {
    name      = "token"
    namespace = var.namespace
  }
  data = { token = "swordfish" }
}

resource "kubernetes_config_map" "settings" {
  metadata {
    name      = "settings"
    namespace = var.namespace
  }
  data = { stage = var.stage }
}

resource "kubernetes_persistent_volume" "data" {
  metadata {
    name = "retired-data"
  }
  spec {
    capacity                         = { storage = var.size }
    access_modes                     = ["ReadWriteOnce"]
    persistent_volume_reclaim_policy = "Retain"
    persistent_volume_source {
      host_path {
        path = "/tmp/stagewright-testbed-retired-data"
      }
    }
  }
}
"#;

/// What the chart deploys; the namespace goes with the Application.
const MANIFESTS: &str = r#"apiVersion: v1
kind: Namespace
metadata: { name: retired-prd }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: app, namespace: retired-prd }
"#;

/// Whose account and Secret the settings give to a destroy.
fn destroyer() -> Value {
    json!({ "service_account": "tf-presync", "secret": "argocd-hook-credentials" })
}

/// The stage `shop/prd` of a monorepo, with other Applications beside its own.
pub struct Retired {
    testbed: &'static Testbed,
    pub admin: User,
    jobs: User,
    folder: tempfile::TempDir,
}

impl Retired {
    /// Deployed by Argo CD, and applied.
    pub fn new(testbed: &'static Testbed) -> Retired {
        let retired = Retired {
            testbed,
            admin: testbed.admin(),
            jobs: testbed.account("stagewright"),
            folder: tempfile::tempdir().unwrap(),
        };
        retired.remove();
        let revision = retired.commit();
        let key = run(&mut Command::new("age-keygen"), "");
        let recipient = key
            .lines()
            .find_map(|line| line.strip_prefix("# public key: "))
            .unwrap();
        retired.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "argocd-hook-credentials", "namespace": NAMESPACE },
            "stringData": { "SOPS_AGE_KEY": key, "SOPS_AGE_RECIPIENTS": recipient },
        }));
        retired.apply(
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": ELSEWHERE } }),
        );
        for application in retired.applications() {
            retired.apply(&application);
        }
        until("the namespace of the stage", || {
            retired.has_namespace().then_some(())
        });
        retired.apply_root(&revision, &key, recipient);
        retired
    }

    /// The repositories.
    fn commit(&self) -> String {
        self.register(&["dev", "prd"]);
        commit(self.testbed, "TerraformState", &[("README", "states")]);
        let chart = "{apiVersion: v2, name: shop, version: 0.1.0}";
        let files = [
            ("shop/chart/Chart.yaml", chart),
            ("shop/chart/templates/app.yaml", MANIFESTS),
            ("shop/terraform/main.tf", ROOT),
            ("shop/config/prd/stage.tfvars", "size = \"1Mi\"\n"),
            ("shop/config/dev/values.yaml", "a: 1\n"),
        ];
        commit(self.testbed, "RetiredDeploy", &files)
    }

    /// The registry, with these stages of the app.
    pub fn register(&self, stages: &[&str]) {
        let repo = "https://github.com/example/RetiredDeploy.git";
        let stages: Vec<(String, Value)> = stages
            .iter()
            .map(|stage| ((*stage).to_owned(), json!({})))
            .collect();
        let stages = Value::Object(stages.into_iter().collect());
        let registry = json!({ "apps": {
            "shop": { "repo": repo, "path": "shop", "stages": stages },
            "blog": { "repo": repo, "path": "blog", "stages": { "prd": {} } },
        } });
        let files = [("releases/values.yaml", &*registry.to_string())];
        commit(self.testbed, "RetiredRegistry", &files);
    }

    /// That of the stage, held by a finalizer of our own, and others that have to do with its repository or not.
    fn applications(&self) -> Vec<Value> {
        let deploy = format!("{}/RetiredDeploy.git", self.testbed.git_url);
        let application = |name: &str, namespace: &str, spec: Value| {
            let mut application = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": { "name": name, "namespace": namespace },
                "spec": {
                    "project": "default",
                    "destination": { "server": "https://kubernetes.default.svc", "namespace": STAGE },
                },
            });
            let into = application["spec"].as_object_mut().unwrap();
            into.extend(spec.as_object().unwrap().clone());
            application
        };
        let hook = |path: &str, stage: &str| {
            json!({ "source": {
                "repoURL": deploy, "targetRevision": "main", "path": format!("{path}/chart"),
                "helm": { "parameters": [
                    { "name": "hook.path", "value": path },
                    { "name": "hook.stage", "value": stage },
                ] },
            } })
        };
        let with_values = json!({ "sources": [
            { "repoURL": deploy, "targetRevision": "main", "ref": "deploy" },
            {
                "repoURL": format!("{}/HookDeploy.git", self.testbed.git_url), "targetRevision": "main", "path": "chart",
                "helm": { "valueFiles": ["$deploy/shop/config/dev/values.yaml"] },
            },
        ] });
        let whole =
            json!({ "source": { "repoURL": deploy, "targetRevision": "main", "path": "." } });
        let other = json!({ "source": {
            "repoURL": "https://github.com/example/FieldnotesDeploy.git", "targetRevision": "main", "path": "chart",
        } });
        let mut own = application(STAGE, "argocd", hook("shop", "prd"));
        let finalizers = [
            "resources-finalizer.argocd.argoproj.io",
            "stagewright.invalid/held",
        ];
        own["metadata"]["finalizers"] = json!(finalizers);
        own["operation"] = json!({ "sync": { "revision": "main" } });
        vec![
            own,
            application("retired-dev", "argocd", hook("shop", "dev")),
            application("retired-blog", "argocd", hook("blog", "prd")),
            application("retired-values", "argocd", with_values),
            application("retired-whole", "argocd", whole),
            application("retired-other", ELSEWHERE, other),
        ]
    }

    /// Applies the root as the administrator; the state is sealed.
    fn apply_root(&self, revision: &str, key: &str, recipient: &str) {
        let terraformrc = self.folder.path().join("terraformrc");
        let mirror = json!({ "provider_installation": [
            { "filesystem_mirror": [{ "path": providers() }] },
        ] });
        std::fs::write(&terraformrc, mirror.to_string()).unwrap();
        let url = &self.testbed.git_url;
        let presync = env!("CARGO_BIN_EXE_presync");
        let mut presync = program_as(&self.admin, presync, self.folder.path());
        presync
            .arg("apply")
            .arg(format!("{url}/RetiredDeploy.git"))
            .args([revision, "prd", STAGE, "shop"])
            .env("STAGEWRIGHT_STATE_URL", format!("{url}/TerraformState.git"))
            .env("SOPS_AGE_KEY", key)
            .env("SOPS_AGE_RECIPIENTS", recipient)
            .env("TF_CLI_CONFIG_FILE", terraformrc);
        let log = run(&mut presync, "");
        assert!(log.contains("presync: applied 3 change(s), "), "{log}");
    }

    pub fn apply(&self, object: &Value) {
        self.admin
            .done(&["apply", "--filename=-"], &object.to_string());
    }

    pub fn delete(&self, arguments: &[&str]) {
        let all = [&["delete", "--ignore-not-found"], arguments].concat();
        self.admin.done(&all, "");
    }

    pub fn has_namespace(&self) -> bool {
        let asked = ["get", "namespace", STAGE];
        self.admin.ask(&asked, &Value::Null).status.success()
    }

    /// Takes our finalizer off the stage's Application.
    pub fn release(&self) {
        self.admin.ask(
            &[
                "patch",
                "application.argoproj.io",
                STAGE,
                "--namespace=argocd",
                "--type=merge",
                "--patch={\"metadata\":{\"finalizers\":null}}",
            ],
            &Value::Null,
        );
    }

    /// Takes away what an earlier run of this test left.
    pub fn remove(&self) {
        self.delete(&["--filename", NAMESPACES]);
        self.release();
        for name in [
            STAGE,
            "retired-dev",
            "retired-blog",
            "retired-values",
            "retired-whole",
        ] {
            self.delete(&["application.argoproj.io", name, "--namespace=argocd"]);
        }
        self.delete(&["namespace", STAGE, ELSEWHERE]);
        self.delete(&["persistentvolume", "retired-data"]);
        change(self.testbed, "TerraformState", |work| {
            let states = work.join(STATES);
            if states.exists() {
                std::fs::remove_dir_all(states).unwrap();
            }
        });
    }

    /// Runs the program on the stage; `destroy` is that of the settings.
    pub fn run(&self, destroy: &Value, arguments: &[&str]) -> Plan {
        let output = self.command(destroy, arguments).output().unwrap();
        Plan {
            code: output.status.code(),
            log: String::from_utf8_lossy(&output.stdout).into_owned(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn command(&self, destroy: &Value, arguments: &[&str]) -> Command {
        let settings = json!({
            "forge": { "git": { "root": self.testbed.git_url, "known_as": "https://github.com/example" } },
            "registry": { "repo": "RetiredRegistry" },
            "state": { "repo": "TerraformState" },
            "applications": { "instances": [
                { "context": "testbed", "namespaces": ["argocd", ELSEWHERE], "minimum": 5 },
            ] },
            "runner": { "kubernetes": {
                "context": "testbed",
                "namespace": NAMESPACE,
                "image": IMAGE,
                "service_account": "tf-plan",
                "secret": "argocd-plan-credentials",
                "destroy": destroy,
                "start_deadline": 60,
            } },
        });
        let file = self.folder.path().join("stagewright.yaml");
        std::fs::write(&file, settings.to_string()).unwrap();
        let program = env!("CARGO_BIN_EXE_stagewright-destroy-stage");
        let mut command = program_as(&self.jobs, program, self.folder.path());
        command
            .args(arguments)
            .args([
                "--repo",
                "RetiredDeploy",
                "--app-path",
                "shop",
                "--stage",
                "prd",
            ])
            .args([
                "--namespace",
                STAGE,
                "--build",
                "41",
                "--result",
                "result.json",
            ]);
        command
    }

    pub fn check(&self, arguments: &[&str]) -> Plan {
        self.run(&json!({}), &[&["check"], arguments].concat())
    }

    pub fn preview(&self, arguments: &[&str]) -> Plan {
        self.step("preview", arguments)
    }

    /// A step as the account that may destroy, with the one Application vouched for that proves nothing.
    pub fn step(&self, step: &str, arguments: &[&str]) -> Plan {
        let vouched = [step, "--not-deploying", "argocd/retired-whole"];
        self.run(&destroyer(), &[&vouched[..], arguments].concat())
    }

    /// A destroy of what the record confirms, killed as soon as its Job is there. The image of that.
    pub fn killed_destroy(&self, record: &str) -> String {
        let destroy = [
            "destroy",
            "--not-deploying",
            "argocd/retired-whole",
            "--record",
            record,
        ];
        let mut job = self.command(&destroyer(), &destroy).spawn().unwrap();
        let image = until("the Job of the destroy", || {
            let there = [
                "get",
                "job",
                "destroy-stage-41",
                "--namespace",
                NAMESPACE,
                "--output=json",
            ];
            let answer = self.admin.ask(&there, &Value::Null);
            let there: Value = serde_json::from_slice(&answer.stdout).ok()?;
            let container = &there["spec"]["template"]["spec"]["containers"][0];
            Some(container["image"].as_str()?.to_owned())
        });
        job.kill().unwrap();
        job.wait().unwrap();
        image
    }

    /// The stage's volume, as its root has it.
    pub fn apply_volume(&self) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": "retired-data" },
            "spec": {
                "capacity": { "storage": "1Mi" },
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": { "path": "/tmp/stagewright-testbed-retired-data" },
            },
        }));
    }

    pub fn has_volume(&self) -> bool {
        let asked = ["get", "persistentvolume", "retired-data"];
        self.admin.ask(&asked, &Value::Null).status.success()
    }

    /// Whether `main` of a repository has a path.
    pub fn has(&self, repository: &str, path: &str) -> bool {
        let bare = self.testbed.git.join(format!("{repository}.git"));
        !git(&bare, &["ls-tree", "main", path]).is_empty()
    }

    /// The message of the last commit to `main` of a repository.
    pub fn last_message(&self, repository: &str) -> String {
        let bare = self.testbed.git.join(format!("{repository}.git"));
        git(&bare, &["log", "-1", "--format=%B", "main"])
    }

    /// A file that the program wrote.
    pub fn written(&self, name: &str) -> Value {
        let file = self.folder.path().join(name);
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    /// Every branch of the stage's repositories, and what concerns it in the one of the states.
    pub fn repositories(&self) -> String {
        let bare = |name: &str| self.testbed.git.join(format!("{name}.git"));
        let states = bare("TerraformState");
        [
            git(&bare("RetiredDeploy"), &["for-each-ref"]),
            git(&bare("RetiredRegistry"), &["for-each-ref"]),
            git(&states, &["rev-parse", &format!("main:{STATES}")]),
            git(&states, &["branch", "--list", "*RetiredDeploy*"]),
        ]
        .concat()
    }
}

/// Lets presync's account delete volumes, until it is dropped.
pub struct DeletesVolumes<'a>(&'a Retired);

const DELETES_VOLUMES: &str = "stagewright-testbed-deletes-volumes";

impl DeletesVolumes<'_> {
    pub fn grant(retired: &Retired) -> DeletesVolumes<'_> {
        let group = "rbac.authorization.k8s.io";
        retired.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": DELETES_VOLUMES },
                "rules": [{ "apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["delete"] }],
            },
            {
                "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": DELETES_VOLUMES },
                "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": DELETES_VOLUMES },
                "subjects": [{ "kind": "ServiceAccount", "name": "tf-presync", "namespace": NAMESPACE }],
            },
        ] }));
        DeletesVolumes(retired)
    }
}

impl Drop for DeletesVolumes<'_> {
    fn drop(&mut self) {
        let DeletesVolumes(retired) = self;
        for kind in ["clusterrolebinding", "clusterrole"] {
            let delete = ["delete", "--ignore-not-found", kind, DELETES_VOLUMES];
            retired.admin.ask(&delete, &Value::Null);
        }
    }
}

/// Lets the jobs' account see namespaces, until it is dropped.
pub struct SeesNamespaces<'a>(&'a Retired);

impl SeesNamespaces<'_> {
    pub fn grant(retired: &Retired) -> SeesNamespaces<'_> {
        let granted = SeesNamespaces(retired);
        retired.admin.done(&["apply", "--filename", NAMESPACES], "");
        until("the right to see namespaces", || {
            let asked = ["auth", "can-i", "get", "namespaces"];
            let answer = retired.jobs.ask(&asked, &Value::Null);
            answer.status.success().then_some(())
        });
        granted
    }
}

impl Drop for SeesNamespaces<'_> {
    fn drop(&mut self) {
        let SeesNamespaces(retired) = self;
        let delete = ["delete", "--filename", NAMESPACES];
        retired.admin.ask(&delete, &Value::Null);
    }
}
