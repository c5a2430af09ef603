//! How a launched run ended, whatever ran it.

use crate::stop::StopSignal;

use super::summary::Summary;

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// What presync left behind; `None` when it did not end by itself.
    pub summary: Option<Summary>,
    /// How it ended, in words that follow on `presync`.
    pub end: String,
    /// The signal that stopped the job, and with it the run.
    pub stopped: Option<StopSignal>,
    /// What is left when the job ends: a process, a Job, a pod.
    pub left: Option<String>,
    /// The end of the log of a stopped run, for which the reader had no room yet.
    pub waiting: Vec<u8>,
    /// What there is to say beside the log: the reason of an early end.
    pub complaints: String,
    /// In how many places lines of the log may be missing.
    pub gaps: u64,
    /// The image that ran, by its digest, where it was a container.
    pub image: Option<String>,
}
