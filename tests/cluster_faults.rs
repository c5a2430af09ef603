//! Programs of the cluster that stop while a launch runs. In a process of its own, so that nothing else is asked of them meanwhile.
#![expect(clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[path = "support/launches.rs"]
mod launches;
#[path = "support/pod_log.rs"]
mod pod_log;
#[path = "support/testbed.rs"]
mod testbed;
#[path = "support/tools.rs"]
mod tools;

use std::process::Command;

use launches::{Launches, finish};
use pod_log::{cluster, read, runtime, start};
use serde_json::{Value, json};
use stagewright::cluster::logs::End;
use testbed::{Testbed, run, until};

/// Each takes minutes, most of them spent in waiting.
fn wanted() -> Option<Launches> {
    if tools::is_on("STAGEWRIGHT_FULL") {
        Launches::new()
    } else {
        None
    }
}

/// Stops or starts one of the testbed's programs.
fn program(testbed: &Testbed, act: &str, name: &str) {
    let mut command = Command::new("tests/testbed/program");
    command.args([act, name]);
    run(command.env("STAGEWRIGHT_TESTBED", testbed.state()), "");
}

fn restart_the_api_server(testbed: &Testbed) {
    program(testbed, "stop", "apiserver");
    program(testbed, "start", "apiserver");
}

#[test]
fn a_log_comes_whole_and_once_through_a_restart_of_the_api_server() {
    let Some(launches) = wanted() else { return };
    let testbed = launches.testbed;
    let lines = 400;
    let script =
        format!("i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo \"line $i\"; sleep 0.1; done");
    let container = start(testbed, "restarted", &script);
    let read = runtime().block_on(async {
        let cluster = cluster(testbed).await;
        let mut restart = None;
        let read = read(&cluster, container, lines, |number| {
            if number == 30 {
                restart = Some(tokio::task::spawn_blocking(move || {
                    restart_the_api_server(testbed);
                }));
            }
        })
        .await;
        restart.unwrap().await.unwrap();
        read
    });
    assert!(matches!(read.ended, Some(End::Terminated(_))), "{read:?}");
    assert_eq!((read.wrong, read.missing, read.gaps), (0, 0, 0), "{read:?}");
}

#[test]
fn a_plan_is_followed_to_its_end_through_a_restart_of_the_api_server() {
    let Some(launches) = wanted() else { return };
    let child = launches.start(&json!({}), "long");
    restart_the_api_server(launches.testbed);
    let plan = finish(child);
    // presync's own count of lines and bytes: with one of them missing the code is 8.
    assert_eq!(plan.code, Some(0), "{}\n{}", plan.log, plan.said);
    assert!(plan.log.contains("presync: plan only: "), "{}", plan.said);
    until("the end of what was launched", || {
        launches.left().is_empty().then_some(())
    });
}

/// Stops the kubelet under a plan with these settings, and starts it again when the plan has ended.
fn without_its_node(launches: &Launches, settings: &Value, meanwhile: impl Fn()) {
    let admin = &launches.admin;
    let child = launches.start(settings, "huge");
    program(launches.testbed, "stop", "kubelet");
    meanwhile();
    let plan = finish(child);
    program(launches.testbed, "start", "kubelet");
    until("the end of what was launched", || {
        launches.left().is_empty().then_some(())
    });
    let lost = "node.kubernetes.io/unreachable:NoExecute-";
    admin.ask(&["taint", "node", "testbed", lost], &Value::Null);
    until("the node", || {
        let node = admin.read(&["node", "testbed"]);
        (is_ready(&node) && node["spec"]["taints"].is_null()).then_some(())
    });
    assert_eq!(plan.code, Some(4), "{}\n{}", plan.log, plan.said);
    let words = "its node testbed does not answer, and it may still be running there";
    assert!(plan.said.contains(words), "{}", plan.said);
    assert!(plan.said.contains("tf-plan-launch-test"), "{}", plan.said);
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let mut ready = conditions.into_iter().flatten();
    ready.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

#[test]
fn a_node_that_falls_silent_ends_the_job_with_its_own_sentence_and_leaves_nothing_when_it_is_back()
{
    let Some(launches) = wanted() else { return };
    without_its_node(&launches, &json!({ "unreachable": 20 }), || ());
}

#[test]
fn a_node_that_the_cluster_gives_up_as_well_ends_the_job_before_its_patience_does() {
    let Some(launches) = wanted() else { return };
    let settings = json!({ "unreachable": 7200 });
    without_its_node(&launches, &settings, || {
        // The cluster does not give up the last node that it has. So it is told to, once it has seen the silence.
        until("the silence of the node", || {
            let node = launches.admin.read(&["node", "testbed"]);
            (!is_ready(&node)).then_some(())
        });
        let lost = "node.kubernetes.io/unreachable:NoExecute";
        launches.admin.done(&["taint", "node", "testbed", lost], "");
    });
}
