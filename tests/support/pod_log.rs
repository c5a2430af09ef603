//! Pods of the testbed that write numbered lines, and their logs as they are followed.
#![expect(
    clippy::unwrap_used,
    reason = "a panic here fails the test that follows"
)]

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use stagewright::cluster::Cluster;
use stagewright::cluster::logs::{Container, End, Event, Limits, Log};

use crate::testbed::{IMAGE, Testbed, until};

/// Where these pods run.
pub const NAMESPACE: &str = "default";

/// What was read of a log.
#[derive(Debug, Default)]
pub struct Read {
    /// The lines that came more than once, or behind a later one.
    pub wrong: u64,
    /// The lines that never came.
    pub missing: u64,
    pub gaps: u64,
    /// Where lines are missing: the line before, and how many.
    pub jumps: Vec<(u64, u64)>,
    pub ended: Option<End>,
}

impl Read {
    fn missing(&mut self, behind: u64, count: u64) {
        self.missing += count;
        if count > 0 {
            self.jumps.push((behind, count));
        }
    }
}

pub async fn cluster(testbed: &Testbed) -> Cluster {
    let kubeconfig = Kubeconfig::read_from(testbed.admin().kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Cluster::from_config(config).unwrap()
}

/// Starts a pod that runs this script of the shell, which may call `sleep`.
pub fn start(testbed: &Testbed, name: &str, script: &str) -> Container {
    let admin = testbed.admin();
    let there = [name, "--namespace", NAMESPACE, "--ignore-not-found"];
    let delete = [&["delete", "pod", "--grace-period=1"], &there[..]].concat();
    admin.done(&delete, "");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "writer", "image": IMAGE, "command": ["sh", "-c", script],
                "volumeMounts": [{ "name": "sleep", "mountPath": "/usr/bin/sleep", "readOnly": true }],
            }],
            "volumes": [{ "name": "sleep", "hostPath": { "path": "/usr/bin/sleep", "type": "File" } }],
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

/// Reads the log to its end and judges it by the numbers of its lines, which begin with `line <number>`. `came` is told the number
/// of each.
pub async fn read(
    cluster: &Cluster,
    container: Container,
    lines: u64,
    mut came: impl FnMut(u64),
) -> Read {
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
                            read.missing(last, number - last - 1);
                            last = number;
                            came(number);
                        }
                        _ => read.wrong += 1,
                    }
                }
            }
            Event::Gap(_) => read.gaps += 1,
            Event::Silent(..) => {}
            Event::Ended(ended) => {
                read.missing(last, lines - last);
                read.ended = Some(ended.end);
                return read;
            }
        }
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}
