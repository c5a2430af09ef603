//! A launch whose log is read: to its end, or until it is stopped.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::launch::Launched;
use crate::cluster::logs::{self, Event, Log};
use crate::cluster::verdict::{self, DeletedBy, End};
use crate::report::{self, Shown};
use crate::stop::{self, Stop, StopSignal};
use crate::transport::ended::Ended;
use crate::transport::summary::Summary;

use super::{AFTER_END, AFTER_GRACE, GRACE, RunError, remove, say_left, say_stop};

/// As much of a stopped run's log is kept for a reader that does not read.
const MOST_WAITING: usize = 16 * 1024 * 1024;

/// A launch whose log is read.
pub(super) struct Following<'a, F> {
    pub(super) launched: &'a Launched,
    pub(super) stop: &'a mut Stop,
    pub(super) shown: &'a Shown,
    pub(super) follow: F,
    pub(super) stopped: Option<(StopSignal, Instant)>,
    /// What the reader had no room for yet.
    pub(super) waiting: Vec<u8>,
    pub(super) gaps: u64,
    /// The image that runs, by its digest.
    pub(super) image: Option<String>,
    pub(super) not_shown: bool,
}

impl<F: FnMut(&[u8]) -> Vec<u8>> Following<'_, F> {
    /// Shows the log and judges the end; the launch is removed then.
    pub(super) async fn until_its_end(
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
