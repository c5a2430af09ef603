//! The termination summary: what presync leaves behind beside its log (in a pod the container's termination message,
//! at most 4,096 bytes), so that a job knows the kind of the end and whether it has the whole log.

use serde::{Deserialize, Serialize};

/// How a run ended; decides the job's exit code. presync itself ends 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It did what was asked.
    Done,
    /// Something could not be read or written.
    Failed,
    /// The arguments, the settings or the root's form are wrong.
    Usage,
    /// A rule of ours forbids it.
    Refused,
    /// Terraform or what it runs failed.
    Terraform,
    /// What was confirmed is no longer so.
    Moved,
    /// Someone else holds the state's lock.
    Locked,
    /// A service did not answer; later it may.
    Later,
    /// A signal stopped it.
    Stopped,
}

/// The summary as JSON on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this shape: 1.
    pub presync: u32,
    /// How it ended.
    pub class: Class,
    /// Lines written to the log.
    pub lines: u64,
    /// Bytes written to the log.
    pub bytes: u64,
    /// The digest of the record in the log, where there is one.
    pub record: Option<String>,
}

impl Summary {
    /// The version that this program writes and reads.
    pub const VERSION: u32 = 1;

    /// One line of JSON, far below Kubernetes' limit for a termination message.
    pub fn to_line(&self) -> String {
        // A struct of numbers and short strings always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Summary::to_line`] wrote; anything else is `None`: a run that left no summary did not end by itself.
    pub fn parse(text: &str) -> Option<Summary> {
        let summary: Summary = serde_json::from_str(text.trim()).ok()?;
        (summary.presync == Summary::VERSION).then_some(summary)
    }
}
