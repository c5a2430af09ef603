//! A log that is longer than anything that may be kept of it.
#![expect(
    clippy::unwrap_used,
    clippy::unreachable,
    reason = "a panic is how a test fails"
)]

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use futures_util::{StreamExt as _, stream};
use stagewright::cluster::logs::{Event, Limits};

use crate::kubelet::{EPOCH, stamp};
use crate::server::{follow, running, since, terminated};

/// Set for a process that does nothing but follow a long log.
const FOLLOWS: &str = "STAGEWRIGHT_TEST_FOLLOWS";
const MIB: usize = 1024 * 1024;
/// Lines of 100 bytes, 10,000 of them in each second.
const LINES: i64 = 500_000;

#[derive(Default)]
struct Long {
    /// Bytes that were handed to a connection.
    given: AtomicUsize,
    whole: AtomicBool,
    dropped: AtomicBool,
}

/// Says when the stream that holds it is dropped.
struct Dropped(Arc<Long>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::SeqCst);
    }
}

async fn answer(State(long): State<Arc<Long>>, request: Request) -> Response<Body> {
    if !request.uri().path().ends_with("/log") {
        return if long.whole.load(Ordering::SeqCst) {
            terminated()
        } else {
            running()
        };
    }
    let since = since(request.uri().query().unwrap()).unwrap_or(0) * 1_000_000_000;
    let guard = Dropped(long);
    let pieces = (0..LINES / 100).map(move |piece| {
        let mut bytes = Vec::new();
        for number in piece * 100..(piece + 1) * 100 {
            let time = EPOCH + number * 100_000;
            if time >= since {
                writeln!(bytes, "{}line {number:094}", stamp(time)).unwrap();
            }
        }
        if piece == LINES / 100 - 1 {
            guard.0.whole.store(true, Ordering::SeqCst);
        }
        guard.0.given.fetch_add(bytes.len(), Ordering::SeqCst);
        Ok::<_, std::io::Error>(bytes)
    });
    // One after the other, as a real log comes: the server's own queue is not what is measured.
    let pieces = stream::iter(pieces).then(async |piece| {
        tokio::task::yield_now().await;
        piece
    });
    Response::new(Body::from_stream(pieces))
}

fn router(long: &Arc<Long>) -> Router {
    Router::new().fallback(answer).with_state(Arc::clone(long))
}

/// Waits until the server gives no more, since nobody takes it.
async fn standstill(long: &Long) -> usize {
    let mut given = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = long.given.load(Ordering::SeqCst);
        if now == given && now > 0 {
            return now;
        }
        given = now;
    }
}

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn a_process_that_only_follows_a_long_log_says_what_that_took() {
    if std::env::var_os(FOLLOWS).is_none() {
        return;
    }
    let long = Arc::new(Long::default());
    let before = peak();
    let mut log = follow(router(&long), Limits::default()).await;
    let unread = standstill(&long).await;
    let mut ends = 0;
    let delivered = loop {
        match log.next().await.unwrap() {
            Event::Bytes(bytes) => ends += bytes.iter().filter(|byte| **byte == b'\n').count(),
            Event::Gap(_) | Event::Silent(..) => {}
            Event::Ended(ended) => break ended.delivered,
        }
    };
    let grown = peak() - before;
    println!(
        "followed {ends} gaps {} unread {unread} grown {grown}",
        delivered.gaps
    );
}

#[test]
fn a_long_log_takes_little_memory_and_is_not_fetched_ahead_of_its_reader() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("long::a_process_that_only_follows_a_long_log_says_what_that_took")
        .env(FOLLOWS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, said) = text.split_once("followed ").unwrap_or(("", &text));
    let numbers: Vec<usize> = said
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [lines, gaps, unread, grown, ..] = numbers[..] else {
        unreachable!("{text}");
    };
    assert_eq!((lines, gaps), (500_000, 0), "{text}");
    // What the connection itself holds is the kernel's affair: some MiB of the 65.
    assert!(unread < 24 * MIB, "{text}");
    assert!(grown < 24 * MIB, "{text}");
}

#[tokio::test]
async fn a_log_that_nobody_wants_any_more_is_not_read_on() {
    let long = Arc::new(Long::default());
    let log = follow(router(&long), Limits::default()).await;
    standstill(&long).await;
    drop(log);
    let gone = async {
        while !long.dropped.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .unwrap();
    assert!(!long.whole.load(Ordering::SeqCst));
}
