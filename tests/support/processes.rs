//! Processes that a test started, found again by the test's own folder, and signalled by their ids alone.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic here fails the test that waits for something"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: i32,
    /// Its arguments, joined by spaces; the first is the name that it was started by.
    pub command: String,
}

/// The processes that have `folder` in their arguments, environment or working folder. Ended ones that nobody has
/// waited for have none of these.
pub fn of(folder: &Path) -> Vec<Process> {
    let needle = folder.to_str().unwrap();
    let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(needle);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let command = read("cmdline");
        let working_folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if has(&command) || has(&read("environ")) || working_folder.starts_with(folder) {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(Process {
                id,
                command: command.trim_end().to_owned(),
            });
        }
    }
    found
}

/// Sends a signal to a process that the test has started.
pub fn send(id: i32, signal: Signal) {
    kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

/// Asks until there is an answer; the bound only ends a test that would hang.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        if Instant::now() > give_up {
            panic!("waited in vain: {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
