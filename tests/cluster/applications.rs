//! Real Application objects, listed as the jobs' own account, and the memory that it takes.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use stagewright::applications::Application;
use stagewright::cluster::Cluster;
use stagewright::cluster::applications::list;

use crate::testbed::{Testbed, until_within};
use crate::tools;

const NAMESPACE: &str = "many-applications";
/// Set for a process that does nothing but list.
const LISTS: &str = "STAGEWRIGHT_TEST_LISTS";

async fn config(kubeconfig: &Path) -> kube::Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap()
}

fn application(number: usize) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": { "name": format!("app-{number}"), "namespace": NAMESPACE },
        "spec": {
            "project": "default",
            "destination": { "server": "https://kubernetes.default.svc", "namespace": "x" },
            "source": {
                "repoURL": "https://github.com/example/FieldnotesDeploy.git", "path": "chart", "targetRevision": "main",
                "helm": { "parameters": [{ "name": "hook.stage", "value": "prd" }] },
            },
        },
        // Some 20 KB, as real ones have them.
        "status": { "resources": (0..130).map(resource).collect::<Vec<_>>() },
    })
}

fn resource(number: usize) -> Value {
    json!({
        "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "a-namespace-of-some-length",
        "name": format!("a-deployment-of-some-length-{number}"), "status": "Synced",
        "health": { "status": "Healthy" },
    })
}

async fn make(client: Client, count: usize) {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application");
    let resource = ApiResource::from_gvk_with_plural(&kind, "applications");
    let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &resource);
    let mut making = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let api = api.clone();
        making.spawn(async move {
            for number in (worker..count).step_by(8) {
                let object: DynamicObject = serde_json::from_value(application(number)).unwrap();
                api.create(&PostParams::default(), &object).await.unwrap();
            }
        });
    }
    while let Some(made) = making.join_next().await {
        made.unwrap();
    }
}

/// A line of `/proc/self/status`, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_process_that_only_lists_says_how_much_memory_that_took() {
    let Some(kubeconfig) = std::env::var_os(LISTS) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (found, grown) = runtime.block_on(async {
        let cluster = Cluster::from_config(config(Path::new(&kubeconfig)).await).unwrap();
        let namespace = [NAMESPACE.parse().unwrap()];
        let before = memory("VmRSS:");
        let found = list(&cluster, &namespace, 1, Application::read)
            .await
            .unwrap()
            .len();
        (found, memory("VmHWM:") - before)
    });
    println!("listed {found} grown {grown}");
}

#[test]
fn thousands_of_applications_are_listed_as_the_jobs_account_in_the_memory_of_a_page() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let count = if tools::is_on("STAGEWRIGHT_FULL") {
        5000
    } else {
        250
    };
    let admin = testbed.admin();
    let remove = || {
        admin.done(
            &[
                "delete",
                "namespace",
                NAMESPACE,
                "--ignore-not-found",
                "--wait=false",
            ],
            "",
        );
        until_within(Duration::from_secs(900), "the end of the namespace", || {
            let left = admin.ask(&["get", "namespace", NAMESPACE], &Value::Null);
            (!left.status.success()).then_some(())
        });
    };
    remove();
    admin.done(&["create", "namespace", NAMESPACE], "");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::try_from(config(admin.kubeconfig()).await).unwrap();
        make(client, count).await;
    });
    let jobs = testbed.account("stagewright");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("applications::a_process_that_only_lists_says_how_much_memory_that_took")
        .env(LISTS, jobs.kubeconfig())
        .output()
        .unwrap();
    remove();
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, said) = text.split_once("listed ").unwrap_or(("", &text));
    let numbers: Vec<usize> = said
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!(numbers.first(), Some(&count), "{text}");
    assert!(
        numbers.get(1).is_some_and(|grown| *grown < 40 * 1024),
        "{text}"
    );
}
