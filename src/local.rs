//! The local runner: presync as a child process of the job, from the same executable.
//!
//! presync's log is its standard output; its termination summary comes by standard error, which it uses for nothing else.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::child;
use crate::presync;
use crate::report::{self, Shown};
use crate::scratch;
use crate::stop::{self, Stop, StopSignal};
use crate::terraform::GRACE;
use crate::transport::ended::Ended;
use crate::transport::request::{PARENT, TERMINATION_FILE};
use crate::transport::summary::Summary;

/// What a stopped presync gets beyond Terraform's own grace period, to save and to clean up.
const AFTER_GRACE: Duration = Duration::from_secs(30);
/// How long what a killed presync left behind may take to end by itself.
const FOR_ORPHANS: Duration = Duration::from_secs(5);
/// As much of a stopped run's log is kept for a reader that does not read.
const MOST_WAITING: usize = 16 * 1024 * 1024;
/// As much of presync's standard error is kept: the summary stands at its end.
const MOST_COMPLAINTS: usize = 64 * 1024;

/// The local presync could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// It did not start.
    #[error("presync could not be started from this executable")]
    Start(#[source] io::Error),
    /// Its log could not be read.
    #[error("the log of the local presync could not be read")]
    Read(#[source] io::Error),
    /// What it prints could not be handed on.
    #[error("the log could not be shown, so the run was stopped")]
    Show(#[source] io::Error),
}

/// Runs presync with these arguments and variables, and without the hidden one, for at most `bound`, and shows its log as it comes, through `follow`. A stop is passed on once and
/// followed to its end; a second one, not at once after the first, ends the wait.
pub async fn run(
    arguments: &[String],
    (environment, hidden): (&BTreeMap<&'static str, String>, Option<&str>),
    bound: Duration,
    stop: &mut Stop,
    shown: &Shown,
    mut follow: impl FnMut(&[u8]) -> Vec<u8>,
) -> Result<Ended, LocalError> {
    let mut command = child::ourselves_as(presync::NAME);
    if let Some(hidden) = hidden {
        command.env_remove(hidden);
    }
    command
        .args(arguments)
        .envs(environment)
        .env(PARENT, std::process::id().to_string())
        .env(TERMINATION_FILE, "/dev/stderr")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    child::adopt_orphans();
    let mut child = command.spawn().map_err(LocalError::Start)?;
    let id = child.id();
    let (Some(mut log), Some(mut errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(LocalError::Start(io::Error::other("it has no output")));
    };
    let mut piece = vec![0; 64 * 1024];
    let mut waiting = Vec::new();
    let mut complaints = Vec::new();
    let mut error_piece = vec![0; 4096];
    let (mut log_open, mut errors_open) = (true, true);
    let mut stopped: Option<(StopSignal, Instant)> = None;
    let mut not_shown = false;
    let mut left = None;
    let mut overdue = false;
    let deadline = tokio::time::sleep(bound);
    tokio::pin!(deadline);
    while log_open || errors_open || (!waiting.is_empty() && stopped.is_none()) {
        tokio::select! {
            // Once stopped, presync must not wait for a reader that does not read: what it still writes is kept here.
            read = log.read(&mut piece), if log_open && (waiting.is_empty() || stopped.is_some()) => {
                let count = read.map_err(LocalError::Read)?;
                log_open = count > 0;
                let show = follow(piece.get(..count).unwrap_or_default());
                if !not_shown && waiting.len() < MOST_WAITING {
                    waiting.extend(show);
                }
            }
            taken = shown.take(&mut waiting), if !waiting.is_empty() => {
                if taken.is_err() {
                    waiting.clear();
                    not_shown = true;
                    child::terminate(&child);
                    deadline.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
                }
            }
            read = errors.read(&mut error_piece), if errors_open => {
                let count = read.map_err(LocalError::Read)?;
                errors_open = count > 0;
                keep_the_end(&mut complaints, error_piece.get(..count).unwrap_or_default());
            }
            signal = stop.next() => {
                if let Some((_, first)) = stopped {
                    if !stop::is_second(first, Instant::now()) {
                        continue;
                    }
                    left = id.map(|id| format!("presync, process {id}, and the Terraform that it runs"));
                    break;
                }
                stopped = Some((signal, Instant::now()));
                report::note(format_args!(
                    "{signal}: Terraform is told to stop, and is waited for; a second signal ends this job at once"
                ));
                child::terminate(&child);
                deadline.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
            }
            () = &mut deadline => {
                if overdue || stopped.is_some() || not_shown {
                    report::note("presync did not end in time and is killed");
                    child::kill(&child);
                    deadline.as_mut().reset(Instant::now() + AFTER_GRACE);
                } else {
                    overdue = true;
                    report::note(format_args!("the run has not ended within {} s and is stopped", bound.as_secs()));
                    child::terminate(&child);
                    deadline.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
                }
            }
        }
    }
    let stopped = stopped.map(|(signal, _)| signal);
    if left.is_none() {
        let status = child.wait().await.map_err(LocalError::Read)?;
        if status.code().is_none() {
            // A presync that was killed could not wait for its Terraform, nor remove its working folder.
            child::end_orphans(FOR_ORPHANS).await;
        }
        scratch::sweep();
        let (summary, complaints) = split_summary(&complaints);
        return Ok(Ended {
            summary,
            end: child::end_in_words(status),
            stopped,
            left,
            waiting,
            complaints,
            gaps: 0,
            image: None,
        });
    }
    Ok(Ended {
        summary: None,
        end: "was left running".to_owned(),
        stopped,
        left,
        waiting,
        complaints: String::new(),
        gaps: 0,
        image: None,
    })
}

/// Takes a piece of presync's standard error, and drops what is too much from its beginning.
fn keep_the_end(complaints: &mut Vec<u8>, piece: &[u8]) {
    complaints.extend_from_slice(piece);
    complaints.drain(..complaints.len().saturating_sub(MOST_COMPLAINTS));
}

/// The summary is the last line; whatever stands before it is a complaint.
fn split_summary(errors: &[u8]) -> (Option<Summary>, String) {
    let text = String::from_utf8_lossy(errors);
    let text = text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    match Summary::parse(last) {
        Some(summary) => (Some(summary), before.to_owned()),
        None => (None, text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_found_behind_a_flood_of_complaints_that_is_cut() {
        let mut complaints = Vec::new();
        for _ in 0..100_000 {
            keep_the_end(&mut complaints, b"thread 'main' panicked\n");
        }
        let summary = Summary {
            presync: 1,
            class: crate::transport::summary::Class::Failed,
            lines: 1,
            bytes: 2,
            record: None,
        };
        keep_the_end(
            &mut complaints,
            format!("{}\n", summary.to_line()).as_bytes(),
        );
        let (found, before) = split_summary(&complaints);
        assert_eq!(found, Some(summary));
        assert!(before.ends_with("thread 'main' panicked"));
        assert!(before.len() < 65_536, "{}", before.len());
    }
}
