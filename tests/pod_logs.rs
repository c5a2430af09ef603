//! A container's log followed over an API server that cuts, hangs and fails.

#[path = "support/kubelet.rs"]
mod kubelet;
#[path = "pod_logs/long.rs"]
mod long;
#[path = "history/random.rs"]
mod random;
#[path = "pod_logs/server.rs"]
mod server;

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use kubelet::{EPOCH, Record, records};
use random::Random;
use server::{After, Fate, Server, came, limits, read, served};
use stagewright::cluster::logs::reassemble::Tail;
use stagewright::cluster::logs::{End, Limits};

fn lines(count: i64) -> Vec<Record> {
    let line = |n: i64| (EPOCH + n * 10_000_000, format!("line {n}\n").into_bytes());
    records(&(0..count).map(line).collect::<Vec<_>>(), 0)
}

/// Lines of all lengths, some equal, at times from the same moment to seconds apart.
fn any_lines(random: &mut Random) -> Vec<Record> {
    let mut time = EPOCH;
    let lines: Vec<_> = (0..1000)
        .map(|number: i64| {
            let step = [0, 1, 1_000_000, 30_000_000, 2_000_000_000][random.below(5)];
            time += step;
            let text = match random.below(40) {
                0 => "x".repeat(random.below(40_000)),
                1..8 => "the same".to_owned(),
                _ => format!("line {number}"),
            };
            (time, format!("{text}\n").into_bytes())
        })
        .collect();
    records(&lines, 1)
}

fn any_fate(random: &mut Random, bytes: usize) -> Fate {
    let count = random.below(bytes + 1);
    match random.below(8) {
        0..3 => Fate::Closed(count),
        3..6 => Fate::Reset(count),
        6 => Fate::Silent(count),
        _ => Fate::Refused(503),
    }
}

#[tokio::test]
async fn a_log_that_is_cut_at_any_bytes_comes_once_and_in_order() {
    let seed = match std::env::var("STAGEWRIGHT_LOG_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos())
        }
    };
    // Not eprintln!, which is shown for failed tests alone.
    writeln!(std::io::stderr(), "STAGEWRIGHT_LOG_SEED={seed}").ok();
    let runs = if std::env::var_os("STAGEWRIGHT_FULL").is_some() {
        200
    } else {
        20
    };
    let all = (0..runs).map(async |run: u64| {
        let mut random = Random(seed.wrapping_add(run));
        let records = any_lines(&mut random);
        let bytes = served(&records);
        let fates: Vec<Fate> = (0..=random.below(8))
            .map(|_| any_fate(&mut random, bytes))
            .collect();
        let mut server = Server::new(records.clone(), &fates, After::Ended);
        server.waiting = random.below(3);
        server.piece = 1 + random.below(20_000);
        let limits = Limits {
            reopen: Duration::from_secs(5),
            ..limits()
        };
        let read = read(server, limits).await;
        let ended = &read.ended;
        assert!(
            came(&read, &records),
            "seed {seed}, run {run}, {fates:?}: {ended:?}"
        );
        assert_eq!(ended.delivered.gaps, 0, "seed {seed}, run {run}");
        assert_eq!(ended.tail, Tail::Seen, "seed {seed}, run {run}");
        let End::Terminated(terminated) = &ended.end else {
            panic!("seed {seed}, run {run}: {ended:?}");
        };
        assert_eq!(
            (terminated.exit_code, terminated.message.as_deref()),
            (3, Some("m"))
        );
    });
    join_all(all).await;
}

#[tokio::test]
async fn a_pod_that_has_not_started_is_waited_for_and_the_reason_told() {
    let mut server = Server::new(lines(3), &[], After::Ended);
    server.waiting = 3;
    let read = read(server, limits()).await;
    assert_eq!(read.bytes, b"line 0\nline 1\nline 2\n");
    let why = "the container has not started yet: ContainerCreating".to_owned();
    assert_eq!(read.silences.first(), Some(&Some(why)));
}

#[tokio::test]
async fn an_api_server_that_fails_for_too_long_ends_it_with_what_had_come() {
    let fates = [Fate::Closed(40 * 10), Fate::Refused(503)];
    let server = Server::new(lines(100), &fates, After::TheSame);
    let limits = Limits {
        unreachable: Duration::from_millis(500),
        ..limits()
    };
    let read = read(server, limits).await;
    assert!(read.bytes.starts_with(b"line 0\nline 1\n"));
    let End::GivenUp(error) = &read.ended.end else {
        panic!("{:?}", read.ended);
    };
    assert_eq!(error.code(), Some(503));
    assert_eq!(read.ended.tail, Tail::NotSeen);
}

#[tokio::test]
async fn a_pod_that_goes_away_or_is_replaced_ends_its_log() {
    for after in [After::Gone, After::Replaced] {
        let server = Server::new(lines(100), &[Fate::Closed(1000)], after);
        let read = read(server, limits()).await;
        assert!(matches!(read.ended.end, End::PodGone), "{:?}", read.ended);
        assert!(read.bytes.starts_with(b"line 0\n"));
        assert_eq!(read.ended.tail, Tail::NotSeen);
    }
}

#[tokio::test]
async fn a_pod_that_ends_without_its_container_ends_its_log_in_the_kubelets_words() {
    let server = Server::new(lines(100), &[Fate::Closed(1000)], After::Evicted);
    let read = read(server, limits()).await;
    let End::PodEnded(why) = &read.ended.end else {
        panic!("{:?}", read.ended);
    };
    assert_eq!(why, "Failed: Evicted: no room");
    assert_eq!(read.ended.tail, Tail::NotSeen);
}

#[tokio::test]
async fn an_ended_log_that_comes_late_is_waited_for() {
    let records = lines(100);
    let mut server = Server::new(records.clone(), &[], After::Ended);
    server.late = limits().look * 2;
    let limits = Limits {
        reopen: Duration::from_secs(60),
        ..limits()
    };
    let read = read(server, limits).await;
    assert!(came(&read, &records), "{:?}", read.ended);
    assert_eq!(read.ended.tail, Tail::Seen);
}

#[tokio::test]
async fn the_end_of_a_log_that_never_comes_was_not_seen() {
    let mut server = Server::new(lines(100), &[Fate::Closed(1000)], After::Ended);
    server.late = Duration::from_secs(3600);
    let read = read(server, limits()).await;
    assert!(
        matches!(read.ended.end, End::Terminated(_)),
        "{:?}",
        read.ended
    );
    assert_eq!(read.ended.tail, Tail::NotSeen);
}

#[tokio::test]
async fn a_node_that_is_taken_for_lost_and_goes_on_is_followed_to_the_end() {
    let records = lines(2000);
    let fates = [
        Fate::Closed(9_000),
        Fate::Reset(20_000),
        Fate::Silent(50_000),
    ];
    let mut server = Server::new(records.clone(), &fates, After::Ended);
    server.doubtful = true;
    let read = read(server, limits()).await;
    assert!(came(&read, &records), "{:?}", read.ended);
    assert!(
        matches!(read.ended.end, End::Terminated(_)),
        "{:?}",
        read.ended
    );
}

#[tokio::test]
async fn a_node_that_is_taken_for_lost_and_does_not_answer_is_lost() {
    for fate in [Fate::Refused(502), Fate::Refused(503), Fate::Unanswered] {
        let fates = [Fate::Closed(1000), fate];
        let mut server = Server::new(lines(100), &fates, After::TheSame);
        server.doubtful = true;
        let read = read(server, limits()).await;
        let End::PodEnded(why) = &read.ended.end else {
            panic!("{fate:?}: {:?}", read.ended);
        };
        assert_eq!(why, "its node does not answer");
        assert!(read.bytes.starts_with(b"line 0\n"), "{fate:?}");
    }
}

#[tokio::test]
async fn a_right_that_is_lacking_is_named_and_not_waited_for() {
    let refused = [Fate::Refused(403)];
    let of_log = Server::new(lines(3), &refused, After::TheSame);
    let mut of_pod = Server::new(lines(3), &refused, After::TheSame);
    of_pod.denied = Some(403);
    for (server, expected) in [(of_log, "get pods/log"), (of_pod, "get pods")] {
        let read = read(server, limits()).await;
        let End::Denied { right, source } = &read.ended.end else {
            panic!("{:?}", read.ended);
        };
        assert_eq!(*right, expected);
        let words = "the Kubernetes API answered 403: the words of the server";
        assert_eq!(source.to_string(), words);
    }
}

#[tokio::test]
async fn a_refusal_by_a_server_that_gave_the_log_before_passes() {
    let records = lines(100);
    let fates = [Fate::Closed(1000), Fate::Refused(403), Fate::Refused(403)];
    let server = Server::new(records.clone(), &fates, After::Ended);
    let read = read(server, limits()).await;
    assert!(came(&read, &records), "{:?}", read.ended);
}
