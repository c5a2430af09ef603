//! One launch from its making to its removal: started, followed, judged, and gone when the job ends, however it ends.

mod following;

use std::time::Duration;

use tokio::time::Instant;

use crate::report::{self, Shown};
use crate::stop::{self, Stop, StopSignal};
use crate::transport::ended::Ended;

use super::job::{CONTAINER, GRACE, Launch, Place};
use super::launch::{self, LaunchError, Launched, Left, Prepared, Ready, remedy};
use super::logs::{Container, Limits, Log};
use super::{Cluster, ClusterError, verdict};
use following::Following;

/// What a stopped launch gets beyond its pod's grace period, to go.
const AFTER_GRACE: Duration = Duration::from_secs(30);
/// How long a launch that has ended may take to go.
const AFTER_END: Duration = Duration::from_secs(60);

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until the container starts.
    pub start: Duration,
    /// For an API server that does not answer.
    pub unreachable: Duration,
}

/// Why a launch came to no end that could be judged.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was not made, or did not start.
    #[error(transparent)]
    Launch(Box<LaunchError>),
    /// The API server was gone for too long. The launch may still be there.
    #[error("the Job {job} could not be followed any more: its log was not to be had for {} s{}", waited.as_secs(), remedy(.source))]
    Unreachable {
        /// The Job.
        job: String,
        /// For how long.
        waited: Duration,
        /// Its last answer, or why there was none.
        #[source]
        source: ClusterError,
    },
    /// The log may not be read.
    #[error(
        "the Job {job} could not be followed: the account lacks the right to {right} in its namespace; deploy/ has what is needed"
    )]
    Denied {
        /// The Job.
        job: String,
        /// What is lacking.
        right: &'static str,
        /// The API server's answer.
        #[source]
        source: ClusterError,
    },
}

impl From<LaunchError> for RunError {
    fn from(error: LaunchError) -> RunError {
        RunError::Launch(Box::new(error))
    }
}

/// Runs `launch` and shows its log as it comes, through `follow`. A stop deletes the Job at once, and is followed to the end of
/// its pod; a second one, not at once after the first, ends the wait.
pub async fn run(
    cluster: &Cluster,
    launch: &Launch,
    place: &Place,
    patience: Patience,
    stop: &mut Stop,
    shown: &Shown,
    follow: impl FnMut(&[u8]) -> Vec<u8>,
) -> Result<Ended, RunError> {
    let prepared = tokio::select! {
        prepared = launch::prepare(cluster, launch, place) => prepared?,
        signal = stop.next() => return Ok(ended_by(signal, None)),
    };
    let launched = match prepared {
        Prepared::Free(ready) => match make(&ready, stop).await? {
            Ok(launched) => launched,
            Err(ended) => return Ok(ended),
        },
        Prepared::Same(launched) => {
            report::note(format_args!(
                "the Job {} carries out this confirmation already: it is followed to its end",
                launched.full_name()
            ));
            *launched
        }
    };
    let started = tokio::select! {
        started = launched.start(patience.start) => started,
        signal = stop.next() => {
            return Ok(stop_early(&launched, (signal, Instant::now()), stop).await);
        }
    };
    let pod = match started {
        Ok(pod) => pod,
        Err(error) => {
            let mut stopped = None;
            let left = remove(&launched, AFTER_END, stop, &mut stopped).await;
            if let Some((signal, _)) = stopped {
                return Ok(ended_by(signal, left));
            }
            say_left(left.as_deref());
            return Err(error.into());
        }
    };
    let image = verdict::image_of(&pod);
    let container = Container {
        namespace: place.namespace.to_string(),
        pod: pod.metadata.name.unwrap_or_default(),
        uid: pod.metadata.uid.unwrap_or_default(),
        container: CONTAINER.to_owned(),
    };
    let limits = Limits {
        unreachable: patience.unreachable,
        ..Limits::default()
    };
    let log = Log::follow(cluster, container, limits);
    Following {
        launched: &launched,
        stop,
        shown,
        follow,
        stopped: None,
        waiting: Vec::new(),
        gaps: 0,
        image,
        not_shown: false,
    }
    .until_its_end(log, patience.unreachable)
    .await
}

/// Makes the Job. A stop meanwhile is heeded once it is known whether the Job was made; its end, then.
async fn make(ready: &Ready, stop: &mut Stop) -> Result<Result<Launched, Ended>, RunError> {
    let mut stopped = None;
    let made = {
        let make = ready.make();
        tokio::pin!(make);
        loop {
            tokio::select! {
                made = &mut make => break made,
                signal = stop.next() => match stopped {
                    None => stopped = Some((signal, Instant::now())),
                    Some((first, at)) if stop::is_second(at, Instant::now()) => {
                        let left = format!("perhaps the Job {}, which was just being made", ready.full_name());
                        return Ok(Err(ended_by(first, Some(left))));
                    }
                    Some(_) => {}
                }
            }
        }
    };
    match (made, stopped) {
        (Ok(launched), None) => Ok(Ok(launched)),
        (Ok(launched), Some(first)) => Ok(Err(stop_early(&launched, first, stop).await)),
        (Err(LaunchError::Uncertain { .. }), Some((signal, _))) => {
            let left = format!("perhaps the Job {}", ready.full_name());
            Ok(Err(ended_by(signal, Some(left))))
        }
        (Err(_), Some((signal, _))) => Ok(Err(ended_by(signal, None))),
        (Err(error), None) => Err(error.into()),
    }
}

/// Deletes a launch whose log was not followed yet.
async fn stop_early(launched: &Launched, first: (StopSignal, Instant), stop: &mut Stop) -> Ended {
    say_stop(first.0, launched);
    let left = remove(launched, GRACE + AFTER_GRACE, stop, &mut Some(first)).await;
    ended_by(first.0, left)
}

/// Names what stays, where an error is all that is returned.
fn say_left(left: Option<&str>) {
    if let Some(left) = left {
        report::note(format_args!("left running: {left}"));
    }
}

fn say_stop(signal: StopSignal, launched: &Launched) {
    report::note(format_args!(
        "{signal}: the Job {} is deleted, and its pod is waited for; a second signal ends this job at once",
        launched.full_name()
    ));
}

fn ended_by(signal: StopSignal, left: Option<String>) -> Ended {
    Ended {
        summary: None,
        end: format!("was stopped by {signal}"),
        stopped: Some(signal),
        left,
        waiting: Vec::new(),
        complaints: String::new(),
        gaps: 0,
        image: None,
    }
}

/// Removes the launch; what is left of it, where it does not go in time or a second signal ends the wait. A first one is
/// noted in `stopped`.
async fn remove(
    launched: &Launched,
    patience: Duration,
    stop: &mut Stop,
    stopped: &mut Option<(StopSignal, Instant)>,
) -> Option<String> {
    let removal = launched.remove(patience);
    tokio::pin!(removal);
    loop {
        tokio::select! {
            removed = &mut removal => {
                return removed.err().map(|Left(what)| what);
            }
            signal = stop.next() => match *stopped {
                None => {
                    *stopped = Some((signal, Instant::now()));
                    say_stop(signal, launched);
                }
                Some((_, first)) if stop::is_second(first, Instant::now()) => {
                    return Some(format!("the Job {}, if its deletion was not taken", launched.full_name()));
                }
                Some(_) => {}
            }
        }
    }
}
