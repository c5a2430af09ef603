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
use crate::scratch;
use crate::stop::{Stop, StopSignal};
use crate::terraform::GRACE;
use crate::transport::request::{PARENT, TERMINATION_FILE};
use crate::transport::summary::Summary;

/// What a stopped presync gets beyond Terraform's own grace period, to save and to clean up.
const AFTER_GRACE: Duration = Duration::from_secs(30);
/// How long one run may take in all; a launch in the cluster has the same deadline.
const DEADLINE: Duration = Duration::from_secs(1800);

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

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// What presync left behind; `None` when it did not end by itself.
    pub summary: Option<Summary>,
    /// How the process ended, in words.
    pub end: String,
    /// The signal that stopped the job, and with it the run.
    pub stopped: Option<StopSignal>,
    /// What still ran when a second signal ended the wait.
    pub left: Option<String>,
    /// What presync wrote to standard error beside the summary: not its log, but the reason of an early end.
    pub complaints: String,
}

/// Runs presync with these arguments and gives its log to `show` as it comes. A stop is passed on once and followed
/// to its end; a second one ends the wait.
pub async fn run(
    arguments: &[String],
    environment: &BTreeMap<&'static str, String>,
    stop: &mut Stop,
    mut show: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Ended, LocalError> {
    let mut command = child::ourselves_as(presync::NAME);
    command
        .args(arguments)
        .envs(environment)
        .env(PARENT, std::process::id().to_string())
        .env(TERMINATION_FILE, "/dev/stderr")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(LocalError::Start)?;
    let id = child.id();
    let (Some(mut log), Some(mut errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(LocalError::Start(io::Error::other("it has no output")));
    };
    let mut piece = vec![0; 64 * 1024];
    let mut complaints = Vec::new();
    let mut error_piece = vec![0; 4096];
    let (mut log_open, mut errors_open) = (true, true);
    let mut stopped = None;
    let mut not_shown = None;
    let mut left = None;
    let deadline = tokio::time::sleep(DEADLINE);
    tokio::pin!(deadline);
    while log_open || errors_open {
        tokio::select! {
            read = log.read(&mut piece), if log_open => {
                let count = read.map_err(LocalError::Read)?;
                log_open = count > 0;
                if not_shown.is_none()
                    && let Err(error) = show(piece.get(..count).unwrap_or_default())
                {
                    not_shown = Some(error);
                    child::terminate(&child);
                }
            }
            read = errors.read(&mut error_piece), if errors_open => {
                let count = read.map_err(LocalError::Read)?;
                errors_open = count > 0;
                complaints.extend_from_slice(error_piece.get(..count).unwrap_or_default());
            }
            signal = stop.next() => {
                if stopped.replace(signal).is_some() {
                    left = id.map(|id| format!("presync, process {id}, and the Terraform that it runs"));
                    break;
                }
                child::terminate(&child);
                deadline.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
            }
            () = &mut deadline => {
                tracing::warn!("presync did not end in time and is killed");
                child::kill(&child);
                deadline.as_mut().reset(Instant::now() + AFTER_GRACE);
            }
        }
    }
    if left.is_none() {
        let status = child.wait().await.map_err(LocalError::Read)?;
        // A presync that was killed could not remove its working folder.
        scratch::sweep();
        if let Some(error) = not_shown {
            return Err(LocalError::Show(error));
        }
        let (summary, complaints) = split_summary(&complaints);
        return Ok(Ended {
            summary,
            end: child::end_in_words(status),
            stopped,
            left,
            complaints,
        });
    }
    Ok(Ended {
        summary: None,
        end: "was left running".to_owned(),
        stopped,
        left,
        complaints: String::new(),
    })
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
