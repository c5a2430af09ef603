//! Logs of real pods, longer than the kubelet keeps them in one file, and through a restart of the API server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use stagewright::cluster::Cluster;
use stagewright::cluster::logs::{Container, End, Event, Limits, Log};

use crate::testbed::{IMAGE, Testbed, until};
use crate::tools;

const NAMESPACE: &str = "default";

/// What was read of a log.
#[derive(Debug, Default)]
struct Read {
    /// The lines that came more than once, or behind a later one.
    wrong: u64,
    /// The lines that never came.
    missing: u64,
    gaps: u64,
    ended: Option<End>,
}

async fn cluster(testbed: &Testbed) -> Cluster {
    let kubeconfig = Kubeconfig::read_from(testbed.admin().kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Cluster::from_config(config).unwrap()
}

/// Starts a pod that prints so many numbered lines of some 200 bytes.
fn start(testbed: &Testbed, name: &str, lines: u64) -> Container {
    let admin = testbed.admin();
    admin.done(
        &[
            "delete",
            "pod",
            name,
            "--namespace",
            NAMESPACE,
            "--ignore-not-found",
            "--grace-period=1",
        ],
        "",
    );
    let filler = "x".repeat(180);
    let script =
        format!("i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo \"line $i {filler}\"; done");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "writer", "image": IMAGE, "command": ["sh", "-c", script] }],
        },
    });
    admin.done(&["create", "--filename=-"], &pod.to_string());
    let uid = until("the pod", || {
        let pod = admin.read(&["pod", name, "--namespace", NAMESPACE]);
        Some(pod["metadata"]["uid"].as_str()?.to_owned())
    });
    Container {
        namespace: NAMESPACE.to_owned(),
        pod: name.to_owned(),
        uid,
        container: "writer".to_owned(),
    }
}

/// Reads the log to its end and judges it by the numbers of its lines.
async fn read(cluster: &Cluster, container: Container, lines: u64) -> Read {
    let mut log = Log::follow(cluster, container, Limits::default());
    let mut read = Read::default();
    let mut line = Vec::new();
    let mut last = 0;
    loop {
        let event = tokio::time::timeout(Duration::from_secs(600), log.next())
            .await
            .unwrap();
        match event.unwrap() {
            Event::Bytes(bytes) => {
                for byte in bytes {
                    if byte != b'\n' {
                        line.push(byte);
                        continue;
                    }
                    let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
                    let number = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
                    match number {
                        Some(number) if number > last => {
                            read.missing += number - last - 1;
                            last = number;
                        }
                        _ => read.wrong += 1,
                    }
                }
            }
            Event::Gap(_) => read.gaps += 1,
            Event::Silent(..) => {}
            Event::Ended(ended) => {
                read.missing += lines - last;
                read.ended = Some(ended.end);
                return read;
            }
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn a_log_that_is_longer_than_the_kubelets_file_comes_whole_and_once() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let lines = if tools::is_on("STAGEWRIGHT_FULL") {
        1_000_000
    } else {
        100_000
    };
    let container = start(testbed, "long-log", lines);
    let read = runtime().block_on(async { read(&cluster(testbed).await, container, lines).await });
    assert!(matches!(read.ended, Some(End::Terminated(_))), "{read:?}");
    assert_eq!(read.wrong, 0, "{read:?}");
    // What the kubelet has thrown away cannot be had; then the place is marked.
    assert!(read.missing == 0 || read.gaps > 0, "{read:?}");
}

#[test]
fn a_pod_that_has_ended_before_its_log_was_asked_for_gives_all_of_it() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let container = start(testbed, "ended-log", 50);
    let admin = testbed.admin();
    until("the end of the pod", || {
        let pod = admin.read(&["pod", "ended-log", "--namespace", NAMESPACE]);
        (pod["status"]["phase"] == "Succeeded").then_some(())
    });
    let read = runtime().block_on(async { read(&cluster(testbed).await, container, 50).await });
    assert_eq!((read.wrong, read.missing, read.gaps), (0, 0, 0), "{read:?}");
}
