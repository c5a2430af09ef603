//! Logs of real pods, longer than the kubelet keeps them in one file.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Write as _;

use stagewright::cluster::logs::End;

use crate::pod_log::{NAMESPACE, Read, cluster, read, runtime, start};
use crate::testbed::{Testbed, until};
use crate::tools;

/// Follows a pod that prints so many lines of some 200 bytes, and rests after each `burst` of them. Its log must have been rotated.
fn rotated(testbed: &Testbed, name: &str, lines: u64, burst: u64) -> Read {
    let filler = "x".repeat(180);
    // What is rotated away before anybody asks is gone, and nothing of it can be told: time to ask.
    let script = format!(
        "sleep 10; i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo \"line $i {filler}\"; [ $((i % {burst})) != 0 ] || sleep 0.02; done"
    );
    let container = start(testbed, name, &script);
    let uid = container.uid.clone();
    let read =
        runtime().block_on(async { read(&cluster(testbed).await, container, lines, |_| ()).await });
    writeln!(
        std::io::stderr(),
        "{name}, {lines} lines: {} missing, {} doubled or out of order, {} gaps marked",
        read.missing,
        read.wrong,
        read.gaps
    )
    .ok();
    let files = format!("pod-logs/{NAMESPACE}_{name}_{uid}/writer");
    let files = testbed.state().join(files).read_dir().unwrap();
    assert!(files.count() > 1, "nothing was rotated");
    assert!(matches!(read.ended, Some(End::Terminated(_))), "{read:?}");
    read
}

#[test]
fn a_log_that_is_rotated_while_it_is_followed_comes_whole_and_once() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let lines = if tools::is_on("STAGEWRIGHT_FULL") {
        1_000_000
    } else {
        50_000
    };
    let read = rotated(testbed, "long-log", lines, 100);
    assert_eq!((read.wrong, read.missing, read.gaps), (0, 0, 0), "{read:?}");
}

#[test]
fn a_log_that_comes_faster_than_it_can_be_read_comes_in_order_and_nothing_of_it_twice() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let lines = if tools::is_on("STAGEWRIGHT_FULL") {
        1_000_000
    } else {
        100_000
    };
    // The kubelet leaves out what it had not sent of a file when it begins the next one, and says nothing: no reader can tell. That
    // something is missing is told by presync's own count.
    let read = rotated(testbed, "flood", lines, lines);
    assert_eq!(read.wrong, 0, "{read:?}");
}

#[test]
fn a_pod_that_has_ended_before_its_log_was_asked_for_gives_all_of_it() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let script = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo \"line $i\"; done";
    let container = start(testbed, "ended-log", script);
    let admin = testbed.admin();
    until("the end of the pod", || {
        let pod = admin.read(&["pod", "ended-log", "--namespace", NAMESPACE]);
        (pod["status"]["phase"] == "Succeeded").then_some(())
    });
    let read =
        runtime().block_on(async { read(&cluster(testbed).await, container, 50, |_| ()).await });
    assert_eq!((read.wrong, read.missing, read.gaps), (0, 0, 0), "{read:?}");
}
