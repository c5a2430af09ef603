//! Why a launch has not started yet, in the cluster's own words: judged from the Job, its pod and their events.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use tokio::time::Instant;

use super::verdict;

/// How far a launch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// presync's container runs, or has run.
    Yes,
    /// Not yet; waiting may help.
    NotYet(Hindrance),
    /// It never will.
    Never(Hindrance),
}

/// What stands in the way of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// The Job has no pod.
    NoPod {
        /// What its events say.
        events: Vec<String>,
    },
    /// The Job is suspended.
    Suspended,
    /// No node takes the pod.
    NotScheduled {
        /// The scheduler's words.
        why: String,
    },
    /// The container waits.
    Waiting {
        /// `ImagePullBackOff`, `CreateContainerConfigError`, …
        reason: String,
        /// The kubelet's words.
        why: String,
        /// What the pod's events say beside that.
        events: Vec<String>,
    },
    /// The pod is there, and nothing is known of its container.
    Pending {
        /// What its events say.
        events: Vec<String>,
    },
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |events: &[String]| match events {
            [] => "the cluster says no more (events may not be readable)".to_owned(),
            events => events.join("; "),
        };
        match self {
            Hindrance::NoPod { events } => write!(f, "its pod was not made: {}", said(events)),
            Hindrance::Suspended => {
                f.write_str("the Job is suspended: something in the cluster holds it back")
            }
            Hindrance::NotScheduled { why } => write!(f, "no node takes its pod: {why}"),
            Hindrance::Waiting {
                reason,
                why,
                events,
            } => {
                write!(f, "its container waits ({reason})")?;
                if !why.is_empty() {
                    write!(f, ": {why}")?;
                }
                match events.as_slice() {
                    [] => Ok(()),
                    events => write!(f, "; {}", events.join("; ")),
                }
            }
            Hindrance::Pending { events } => write!(f, "its pod is pending: {}", said(events)),
        }
    }
}

/// How long a start is waited for. The time in which the Job is suspended counts by itself, and that behind it anew: whatever
/// holds the Job back may do so for as long as a pod takes to start.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    since: Instant,
    suspended: bool,
}

impl Wait {
    /// Begins to wait.
    pub fn begin(now: Instant) -> Wait {
        Wait {
            since: now,
            suspended: false,
        }
    }

    /// Takes what stands in the way now. Tells whether the Job has just been found suspended.
    pub fn see(&mut self, hindrance: &Hindrance, now: Instant) -> bool {
        let suspended = *hindrance == Hindrance::Suspended;
        if suspended == self.suspended {
            return false;
        }
        *self = Wait {
            since: now,
            suspended,
        };
        suspended
    }

    /// For how long what stands in the way is waited for.
    pub fn lasts(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }
}

/// Judges. `events` are those of the Job and of its pod.
pub fn judge(job: &Job, pod: Option<&Pod>, events: &[Event]) -> Started {
    let warnings = warnings(events);
    let Some(pod) = pod else {
        if verdict::is_suspended(job) {
            return Started::NotYet(Hindrance::Suspended);
        }
        let hindrance = Hindrance::NoPod { events: warnings };
        return if verdict::has_ended(job) {
            Started::Never(hindrance)
        } else {
            Started::NotYet(hindrance)
        };
    };
    let status = pod.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_default();
    match verdict::state_of(pod) {
        Some(state) if state.running.is_some() || state.terminated.is_some() => {
            return Started::Yes;
        }
        // Evicted, or rejected by the kubelet, before a container was made.
        _ if phase == "Failed" || phase == "Succeeded" => return Started::Yes,
        Some(state) if state.waiting.is_some() => {
            let waiting = state.waiting.unwrap_or_default();
            let reason = waiting.reason.unwrap_or_default();
            let hopeless = matches!(reason.as_str(), "InvalidImageName" | "ErrImageNeverPull");
            let hindrance = if matches!(
                reason.as_str(),
                "ContainerCreating" | "PodInitializing" | ""
            ) {
                Hindrance::Pending { events: warnings }
            } else {
                Hindrance::Waiting {
                    reason,
                    why: waiting.message.unwrap_or_default(),
                    events: warnings,
                }
            };
            return if hopeless {
                Started::Never(hindrance)
            } else {
                Started::NotYet(hindrance)
            };
        }
        _ => {}
    }
    let unschedulable = status
        .conditions
        .unwrap_or_default()
        .into_iter()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    Started::NotYet(match unschedulable {
        Some(condition) => Hindrance::NotScheduled {
            why: condition.message.or(condition.reason).unwrap_or_default(),
        },
        None => Hindrance::Pending { events: warnings },
    })
}

/// The distinct messages of the warnings, the latest last.
fn warnings(events: &[Event]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for event in events {
        if event.type_.as_deref() != Some("Warning") {
            continue;
        }
        let message = event.message.clone().or_else(|| event.reason.clone());
        let message = message.unwrap_or_default();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        if !message.is_empty() && !messages.contains(&message) {
            messages.push(message);
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({ "status": status })).unwrap()
    }

    fn waiting(reason: &str, message: &str) -> Pod {
        pod(&json!({ "phase": "Pending", "containerStatuses": [
            { "name": "presync", "image": "", "imageID": "", "ready": false, "restartCount": 0,
              "state": { "waiting": { "reason": reason, "message": message } } }] }))
    }

    fn warning(message: &str) -> Event {
        serde_json::from_value(
            json!({ "metadata": {}, "involvedObject": {}, "type": "Warning", "message": message }),
        )
        .unwrap()
    }

    fn text(started: Started) -> String {
        match started {
            Started::Yes => "started".to_owned(),
            Started::NotYet(hindrance) => format!("not yet: {hindrance}"),
            Started::Never(hindrance) => format!("never: {hindrance}"),
        }
    }

    #[test]
    fn each_hindrance_is_told_in_the_clusters_own_words() {
        let job = Job::default();
        let quota = [
            warning("exceeded quota: pods"),
            warning("exceeded quota: pods"),
        ];
        assert_eq!(
            text(judge(&job, None, &quota)),
            "not yet: its pod was not made: exceeded quota: pods"
        );
        let unschedulable = pod(&json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "message": "0/1 nodes are available" }] }));
        assert_eq!(
            text(judge(&job, Some(&unschedulable), &[])),
            "not yet: no node takes its pod: 0/1 nodes are available"
        );
        assert_eq!(
            text(judge(
                &job,
                Some(&waiting("ImagePullBackOff", "Back-off pulling")),
                &[warning("not found")]
            )),
            "not yet: its container waits (ImagePullBackOff): Back-off pulling; not found"
        );
        assert_eq!(
            text(judge(&job, Some(&waiting("InvalidImageName", "bad")), &[])),
            "never: its container waits (InvalidImageName): bad"
        );
        assert_eq!(
            text(judge(
                &job,
                Some(&waiting("ContainerCreating", "")),
                &[warning("secret not found")]
            )),
            "not yet: its pod is pending: secret not found"
        );
        let suspended: Job =
            serde_json::from_value(json!({ "spec": { "suspend": true, "template": {} } })).unwrap();
        assert_eq!(
            text(judge(&suspended, None, &[])),
            "not yet: the Job is suspended: something in the cluster holds it back"
        );
    }

    #[test]
    fn the_time_in_which_a_job_is_suspended_counts_by_itself() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let no_pod = Hindrance::NoPod { events: Vec::new() };
        let mut wait = Wait::begin(at(0));
        assert!(!wait.see(&no_pod, at(5)));
        assert_eq!(wait.lasts(at(5)), Duration::from_secs(5));
        assert!(wait.see(&Hindrance::Suspended, at(6)));
        assert!(!wait.see(&Hindrance::Suspended, at(96)));
        assert_eq!(wait.lasts(at(96)), Duration::from_secs(90));
        assert!(!wait.see(&no_pod, at(100)));
        assert_eq!(wait.lasts(at(103)), Duration::from_secs(3));
    }

    #[test]
    fn a_container_that_runs_or_has_run_has_started() {
        let running = pod(&json!({ "phase": "Running", "containerStatuses": [
            { "name": "presync", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": { "running": {} } }] }));
        assert_eq!(judge(&Job::default(), Some(&running), &[]), Started::Yes);
        let evicted = pod(&json!({ "phase": "Failed", "reason": "Evicted" }));
        assert_eq!(judge(&Job::default(), Some(&evicted), &[]), Started::Yes);
    }
}
