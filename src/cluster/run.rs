//! One launch from its making to its removal: started, followed, judged, and gone when the job ends, however it ends.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::{self, Shown};
use crate::stop::{self, Stop, StopSignal};
use crate::transport::ended::Ended;
use crate::transport::summary::Summary;

use super::job::CONTAINER;
use super::job::{GRACE, Launch, Place};
use super::launch::{self, LaunchError, Launched, Left};
use super::logs::{self, Container, Event, Limits, Log};
use super::verdict::{self, End};
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
    #[error("the API server did not answer for {} s while the Job {job} was followed", waited.as_secs())]
    Unreachable {
        /// The Job.
        job: String,
        /// For how long.
        waited: Duration,
        /// Its last answer, or why there was none.
        #[source]
        source: ClusterError,
    },
    /// What it prints could not be handed on.
    #[error("the log could not be shown, so the run was stopped")]
    Show(#[source] io::Error),
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
    let mut stopped: Option<(StopSignal, Instant)> = None;
    // Never given up half-way: a Job that was made without our knowing would stay.
    let created = {
        let create = launch::create(cluster, launch, place);
        tokio::pin!(create);
        loop {
            tokio::select! {
                created = &mut create => break created,
                signal = stop.next() => { stopped.get_or_insert((signal, Instant::now())); }
            }
        }
    };
    let launched = match (created, stopped) {
        (Ok(launched), None) => launched,
        (Ok(launched), Some((signal, _))) => return Ok(stop_early(&launched, signal, stop).await),
        (Err(_), Some((signal, _))) => return Ok(ended_by(signal, None)),
        (Err(error), None) => return Err(error.into()),
    };
    let started = tokio::select! {
        started = launched.start(patience.start) => started,
        signal = stop.next() => return Ok(stop_early(&launched, signal, stop).await),
    };
    let pod = match started {
        Ok(pod) => pod,
        Err(error) => {
            remove(&launched, AFTER_END, stop).await;
            return Err(error.into());
        }
    };
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
        not_shown: false,
    }
    .until_its_end(log, patience.unreachable)
    .await
}

/// Deletes a launch whose log was not followed yet.
async fn stop_early(launched: &Launched, signal: StopSignal, stop: &mut Stop) -> Ended {
    say_stop(signal, launched);
    let left = remove(launched, GRACE + AFTER_GRACE, stop).await;
    ended_by(signal, left)
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
    }
}

/// Removes the launch; what is left of it, where it does not go in time or another signal ends the wait.
async fn remove(launched: &Launched, patience: Duration, stop: &mut Stop) -> Option<String> {
    let began = Instant::now();
    let removal = launched.remove(patience);
    tokio::pin!(removal);
    loop {
        tokio::select! {
            removed = &mut removal => {
                return removed.err().map(|Left(what)| what);
            }
            _ = stop.next() => {
                if stop::is_second(began, Instant::now()) {
                    return Some(format!("the Job {}, whose deletion was ordered", launched.full_name()));
                }
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
                        break Some(format!("the Job {}, whose deletion was ordered", launched.full_name()));
                    }
                    Some(_) => {}
                },
            }
        };
        self.conclude(end, left, unreachable).await
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

    async fn conclude(
        self,
        end: Option<logs::End>,
        left: Option<String>,
        unreachable: Duration,
    ) -> Result<Ended, RunError> {
        let stopped = self.stopped.map(|(signal, _)| signal);
        let judged = match end {
            None => None,
            Some(logs::End::GivenUp(source)) => match self.launched.pod().await {
                // The node is lost, and with it the log.
                Ok(Some(pod)) if verdict::is_over(&pod) => {
                    let job = self.launched.job().await.ok().flatten();
                    Some(verdict::judge(job.as_ref(), Some(&pod), None))
                }
                _ if stopped.is_some() => None,
                _ => {
                    // It is ordered to go all the same, in case the server comes back now.
                    remove(self.launched, AFTER_END, self.stop).await;
                    return Err(RunError::Unreachable {
                        job: self.launched.full_name(),
                        waited: unreachable,
                        source,
                    });
                }
            },
            Some(end) => {
                let terminated = match &end {
                    logs::End::Terminated(terminated) => Some(terminated),
                    _ => None,
                };
                let pod = self.launched.pod().await.ok().flatten();
                let job = self.launched.job().await.ok().flatten();
                Some(verdict::judge(job.as_ref(), pod.as_ref(), terminated))
            }
        };
        let left = match left {
            None => remove(self.launched, AFTER_END, self.stop).await,
            left => left,
        };
        if self.not_shown {
            return Err(RunError::Show(io::Error::other("its reader has gone")));
        }
        let (summary, end) = match &judged {
            Some(end @ End::Exited { message, .. }) => (Summary::parse(message), end.to_string()),
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
        })
    }
}

/// Orders the deletion while the log is still read: tried again until it is taken.
async fn delete(launched: &Launched) {
    while let Err(error) = launched.delete().await {
        tracing::debug!(%error, "the deletion is tried again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
