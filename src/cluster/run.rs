//! One launch from its making to its removal: started, followed, judged, and gone when the job ends, however it ends.

use std::time::Duration;

use tokio::time::Instant;

use crate::report::{self, Shown};
use crate::stop::{self, Stop, StopSignal};
use crate::transport::ended::Ended;
use crate::transport::summary::Summary;

use super::job::{CONTAINER, GRACE, Launch, Place};
use super::launch::{self, LaunchError, Launched, Left, remedy};
use super::logs::{self, Container, Event, Limits, Log};
use super::verdict::{self, DeletedBy, End};
use super::{Cluster, ClusterError};

/// What a stopped launch gets beyond its pod's grace period, to go.
const AFTER_GRACE: Duration = Duration::from_secs(30);
/// How long a launch that has ended may take to go.
const AFTER_END: Duration = Duration::from_secs(60);
/// As much of a stopped run's log is kept for a reader that does not read.
const MOST_WAITING: usize = 16 * 1024 * 1024;

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
    let ready = tokio::select! {
        ready = launch::prepare(cluster, launch, place) => ready?,
        signal = stop.next() => return Ok(ended_by(signal, None)),
    };
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
                        return Ok(ended_by(first, Some(left)));
                    }
                    Some(_) => {}
                }
            }
        }
    };
    let launched = match (made, stopped) {
        (Ok(launched), None) => launched,
        (Ok(launched), Some(first)) => return Ok(stop_early(&launched, first, stop).await),
        (Err(LaunchError::Uncertain { .. }), Some((signal, _))) => {
            let left = format!("perhaps the Job {}", ready.full_name());
            return Ok(ended_by(signal, Some(left)));
        }
        (Err(_), Some((signal, _))) => return Ok(ended_by(signal, None)),
        (Err(error), None) => return Err(error.into()),
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

/// A launch whose log is read.
struct Following<'a, F> {
    launched: &'a Launched,
    stop: &'a mut Stop,
    shown: &'a Shown,
    follow: F,
    stopped: Option<(StopSignal, Instant)>,
    /// What the reader had no room for yet.
    waiting: Vec<u8>,
    gaps: u64,
    /// The image that runs, by its digest.
    image: Option<String>,
    not_shown: bool,
}

impl<F: FnMut(&[u8]) -> Vec<u8>> Following<'_, F> {
    async fn until_its_end(
        mut self,
        mut log: Log,
        unreachable: Duration,
    ) -> Result<Ended, RunError> {
        let launched = self.launched;
        let mut ordered = false;
        let mut deleted = false;
        let deletion = delete(launched);
        tokio::pin!(deletion);
        let overdue = tokio::time::sleep(GRACE + AFTER_GRACE);
        tokio::pin!(overdue);
        let mut end: Option<logs::End> = None;
        let left = loop {
            if end.is_some() && (self.waiting.is_empty() || self.stopped.is_some()) {
                break None;
            }
            tokio::select! {
                // Once stopped, nothing waits for a reader that does not read.
                event = log.next(), if end.is_none() && (self.waiting.is_empty() || self.stopped.is_some()) => match event {
                    Some(Event::Ended(ended)) => end = Some(ended.end),
                    Some(event) => self.take(event),
                    // Its task was ended from outside: the runtime goes down.
                    None => break None,
                },
                taken = self.shown.take(&mut self.waiting), if !self.waiting.is_empty() => {
                    if taken.is_err() {
                        self.waiting.clear();
                        self.not_shown = true;
                        ordered = true;
                        overdue.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
                    }
                }
                () = &mut deletion, if ordered && !deleted => deleted = true,
                () = &mut overdue, if ordered => break Some(format!("the Job {}", launched.full_name())),
                signal = self.stop.next() => match self.stopped {
                    None => {
                        self.stopped = Some((signal, Instant::now()));
                        say_stop(signal, launched);
                        ordered = true;
                        overdue.as_mut().reset(Instant::now() + GRACE + AFTER_GRACE);
                    }
                    Some((_, first)) if stop::is_second(first, Instant::now()) => {
                        let taken = if deleted { ", whose deletion was taken" } else { "" };
                        break Some(format!("the Job {}{taken}", launched.full_name()));
                    }
                    Some(_) => {}
                },
            }
        };
        let deleted_by = if ordered {
            DeletedBy::Us
        } else {
            DeletedBy::Others
        };
        self.conclude(end, left, unreachable, deleted_by).await
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Bytes(bytes) => {
                let shown = (self.follow)(&bytes);
                self.show(&shown);
            }
            Event::Gap(gap) => {
                let line_end = if gap.within_line { "\n" } else { "" };
                let marker = "[stagewright: lines of the log may be missing here]";
                self.show(format!("{line_end}{marker}\n").as_bytes());
                self.gaps += 1;
            }
            Event::Silent(duration, why) => report::note(format_args!(
                "the Job {} has printed nothing for {} s{}",
                self.launched.full_name(),
                duration.as_secs(),
                why.map(|why| format!(": {why}")).unwrap_or_default()
            )),
            Event::Ended(_) => {}
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        if !self.not_shown && self.waiting.len() < MOST_WAITING {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Judges by the Job and the pod as they are now; where they cannot be looked at for a while, by what the log's follower
    /// has seen.
    async fn judge(&mut self, end: &logs::End, deleted_by: DeletedBy) -> End {
        let terminated = match end {
            logs::End::Terminated(terminated) => Some(terminated),
            _ => None,
        };
        let give_up = Instant::now() + AFTER_END;
        loop {
            let seen = (self.launched.job().await, self.launched.pod().await);
            match (seen, terminated) {
                ((Ok(job), Ok(pod)), _) => {
                    return verdict::judge(job.as_ref(), pod.as_ref(), terminated, deleted_by);
                }
                ((Err(error), _) | (_, Err(error)), None) if Instant::now() >= give_up => {
                    return match end {
                        logs::End::PodEnded(why) => End::Unknown { why: why.clone() },
                        _ => End::Unknown {
                            why: report::one_line(&error),
                        },
                    };
                }
                (_, Some(terminated)) if Instant::now() >= give_up => {
                    return verdict::of_terminated(terminated);
                }
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Removes the launch, where an error is all that will be returned.
    async fn give_up(&mut self) {
        let left = remove(self.launched, AFTER_END, self.stop, &mut self.stopped).await;
        say_left(left.as_deref());
    }

    async fn conclude(
        mut self,
        end: Option<logs::End>,
        left: Option<String>,
        unreachable: Duration,
        deleted_by: DeletedBy,
    ) -> Result<Ended, RunError> {
        let judged = match end {
            None => None,
            Some(logs::End::GivenUp(source)) => match self.launched.pod().await {
                // The node is lost, and with it the log.
                Ok(Some(pod)) if verdict::is_over(&pod) => {
                    let job = self.launched.job().await.ok().flatten();
                    Some(verdict::judge(job.as_ref(), Some(&pod), None, deleted_by))
                }
                // The API server answers, and says that the kubelet does not.
                Ok(Some(pod)) if source.code().is_some_and(|code| code >= 500) => {
                    Some(verdict::no_news(&pod))
                }
                _ if self.stopped.is_some() => None,
                _ => {
                    // It is ordered to go all the same, in case the server comes back now.
                    self.give_up().await;
                    return Err(RunError::Unreachable {
                        job: self.launched.full_name(),
                        waited: unreachable,
                        source,
                    });
                }
            },
            Some(logs::End::Denied { .. }) if self.stopped.is_some() => None,
            Some(logs::End::Denied { right, source }) => {
                self.give_up().await;
                return Err(RunError::Denied {
                    job: self.launched.full_name(),
                    right,
                    source,
                });
            }
            Some(end) => Some(self.judge(&end, deleted_by).await),
        };
        let left = match left {
            None => remove(self.launched, AFTER_END, self.stop, &mut self.stopped).await,
            left => left,
        };
        let stopped = self.stopped.map(|(signal, _)| signal);
        let (summary, end) = match &judged {
            Some(end @ End::Exited { message, .. }) => match Summary::parse(message) {
                // A program that could not be started leaves the runtime's words there.
                None if !message.trim().is_empty() => {
                    (None, format!("{end}: {}", one_line(message)))
                }
                summary => (summary, end.to_string()),
            },
            Some(end) => (None, end.to_string()),
            None => (None, "was stopped".to_owned()),
        };
        Ok(Ended {
            summary,
            end,
            stopped,
            left,
            waiting: self.waiting,
            complaints: String::new(),
            gaps: self.gaps,
            image: self.image,
        })
    }
}

/// The beginning of a message of the runtime's.
fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").chars().take(300).collect()
}

/// Orders the deletion while the log is still read: tried again until it is taken.
async fn delete(launched: &Launched) {
    while let Err(error) = launched.delete().await {
        tracing::debug!(%error, "the deletion is tried again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
