//! What became of a launch, judged from the Job and the pod as they were last seen: nothing here asks the cluster.

use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use crate::transport::summary::{Class, Summary};

use super::job::CONTAINER;

/// How presync's container ended, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It ran to its end.
    Exited {
        /// Its exit code.
        code: i32,
        /// What it left behind for whoever launched it; empty when it was killed.
        message: String,
    },
    /// The kernel killed it for its memory.
    OutOfMemory,
    /// The node had no room for it any more.
    Evicted {
        /// The kubelet's words.
        why: String,
    },
    /// It took longer than the Job's deadline.
    DeadlineExceeded,
    /// The Job or its pod was removed before its end was seen.
    Deleted(DeletedBy),
    /// The node does not answer, so nobody knows.
    NoNews {
        /// The node.
        node: String,
    },
    /// It ended and left no reason.
    Unknown {
        /// What the cluster says.
        why: String,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited { code, .. } => write!(f, "ended with exit code {code}"),
            End::OutOfMemory => f.write_str(
                "was killed because it used more memory than its limit: raise the limit in pod_template",
            ),
            End::Evicted { why } => write!(f, "was evicted from its node: {why}"),
            End::DeadlineExceeded => f.write_str("took longer than the Job's deadline and was stopped: raise runner.kubernetes.deadline"),
            End::Deleted(DeletedBy::Us) => f.write_str("was stopped, and its end was not seen"),
            End::Deleted(DeletedBy::Others) => {
                f.write_str("was deleted by someone else before it ended")
            }
            End::NoNews { node } => write!(
                f,
                "cannot be judged: its node {node} does not answer, and it may still be running there"
            ),
            End::Unknown { why } => write!(f, "ended in an unknown way: {why}"),
        }
    }
}

/// Who may have ordered the deletion of what is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedBy {
    /// This job, before.
    Us,
    /// Nobody, or somebody else.
    Others,
}

/// Judges by the container's own end alone, where nothing more can be seen.
pub fn of_terminated(terminated: &ContainerStateTerminated) -> End {
    of_container(terminated, false).unwrap_or_else(|| End::Unknown {
        why: "the cluster has lost sight of it".to_owned(),
    })
}

/// Judges a launch that has ended, or of which nothing more will come. `None` for what is not there any more; `terminated` is
/// the container's end, where it was seen before.
pub fn judge(
    job: Option<&Job>,
    pod: Option<&Pod>,
    terminated: Option<&ContainerStateTerminated>,
    deleted_by: DeletedBy,
) -> End {
    if job.is_some_and(|job| has_failed_for(job, "DeadlineExceeded")) {
        return End::DeadlineExceeded;
    }
    let being_deleted = deleted_by == DeletedBy::Others
        && (job.is_none_or(|job| job.metadata.deletion_timestamp.is_some())
            || pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some()));
    let Some(pod) = pod else {
        if let Some(terminated) = terminated {
            return of_container(terminated, being_deleted).unwrap_or(End::Deleted(deleted_by));
        }
        return End::Deleted(deleted_by);
    };
    let status = pod.status.clone().unwrap_or_default();
    let reason = status.reason.as_deref().unwrap_or_default();
    if reason == "Evicted" || is_disrupted(pod, "TerminationByKubelet") {
        return End::Evicted {
            why: status.message.unwrap_or_else(|| reason.to_owned()),
        };
    }
    let now = state_of(pod).and_then(|state| state.terminated);
    if let Some(terminated) = now.as_ref().or(terminated) {
        return of_container(terminated, being_deleted).unwrap_or_else(|| no_news(pod));
    }
    if node_is_given_up(pod) || reason == "NodeLost" || reason == "NodeShutdown" {
        return no_news(pod);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return End::Deleted(deleted_by);
    }
    End::Unknown {
        why: status
            .message
            .or_else(|| job.and_then(failure_of))
            .unwrap_or_else(|| format!("its pod is {}", status.phase.unwrap_or_default())),
    }
}

/// `None`: the runtime has lost sight of the container, and says so in place of its end.
fn of_container(terminated: &ContainerStateTerminated, being_deleted: bool) -> Option<End> {
    let message = terminated.message.clone().unwrap_or_default();
    match terminated.reason.as_deref() {
        Some("OOMKilled") => return Some(End::OutOfMemory),
        Some("ContainerStatusUnknown") => return None,
        _ => {}
    }
    // It was told to stop, and not by us: whoever stops a launch knows it.
    let stopped = Summary::parse(&message).is_none_or(|summary| summary.class == Class::Stopped);
    Some(if being_deleted && stopped {
        End::Deleted(DeletedBy::Others)
    } else {
        End::Exited {
            code: terminated.exit_code,
            message,
        }
    })
}

/// The verdict about a pod whose node does not answer.
pub fn no_news(pod: &Pod) -> End {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    End::NoNews {
        node: node.unwrap_or_default(),
    }
}

/// The state of presync's container.
pub fn state_of(pod: &Pod) -> Option<ContainerState> {
    container_of(pod)?.state.clone()
}

/// The image of presync's container by its digest, once the node has it.
pub fn image_of(pod: &Pod) -> Option<String> {
    let image = container_of(pod)?.image_id.clone();
    (!image.is_empty()).then_some(image)
}

/// Whether presync's container runs no more, as far as the cluster can know: it has ended, the pod has without it, or the
/// pod's node is given up.
pub fn is_over(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    state_of(pod).is_some_and(|state| state.terminated.is_some())
        || matches!(phase, Some("Failed" | "Succeeded"))
        || node_is_given_up(pod)
}

/// Whether the cluster has given up the pod's node, and the pod with it. The node may be alive all the same.
pub fn node_is_given_up(pod: &Pod) -> bool {
    is_disrupted(pod, "DeletionByTaintManager") || is_disrupted(pod, "DeletionByPodGC")
}

/// The status of presync's container.
pub fn container_of(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)
}

/// Whether the Job has ended, in its early conditions or its last ones
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/job/#terminal-job-conditions>).
pub fn has_ended(job: &Job) -> bool {
    ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"]
        .iter()
        .any(|kind| condition(job, kind).is_some())
}

/// Whether it works, or may still: its pods can outlive its end and its deletion.
pub fn is_running(job: &Job) -> bool {
    let status = job.status.as_ref();
    let pods = status.map_or(0, |status| {
        status.active.unwrap_or(0) + status.terminating.unwrap_or(0)
    });
    pods > 0 || (!has_ended(job) && job.metadata.deletion_timestamp.is_none())
}

/// Whether the Job is held back.
pub fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
}

fn has_failed_for(job: &Job, reason: &str) -> bool {
    ["Failed", "FailureTarget"]
        .iter()
        .filter_map(|kind| condition(job, kind))
        .any(|condition| condition.0.as_deref() == Some(reason))
}

fn failure_of(job: &Job) -> Option<String> {
    let (reason, message) = condition(job, "Failed").or_else(|| condition(job, "FailureTarget"))?;
    message.or(reason)
}

/// Reason and message of a condition that holds.
fn condition(job: &Job, kind: &str) -> Option<(Option<String>, Option<String>)> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == kind && condition.status == "True")
        .map(|condition| (condition.reason.clone(), condition.message.clone()))
}

/// Whether the cluster itself disrupted the pod, for this reason
/// (<https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions>).
fn is_disrupted(pod: &Pod, reason: &str) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition.type_ == "DisruptionTarget"
                && condition.status == "True"
                && condition.reason.as_deref() == Some(reason)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(value: Value) -> Job {
        serde_json::from_value(value).unwrap()
    }

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(
            json!({ "spec": { "nodeName": "n1", "containers": [] }, "status": status }),
        )
        .unwrap()
    }

    fn ended(terminated: &Value) -> Pod {
        pod(&json!({ "containerStatuses": [
            { "name": "proxy", "image": "", "imageID": "", "ready": false, "restartCount": 0,
              "state": { "terminated": { "exitCode": 7 } } },
            { "name": "presync", "image": "", "imageID": "", "ready": false, "restartCount": 0,
              "state": { "terminated": terminated } },
        ]}))
    }

    #[test]
    fn presyncs_own_container_decides() {
        let job = job(json!({}));
        let pod = ended(&json!({ "exitCode": 1, "reason": "Error", "message": "m" }));
        let end = judge(Some(&job), Some(&pod), None, DeletedBy::Others);
        assert_eq!(
            end,
            End::Exited {
                code: 1,
                message: "m".to_owned()
            }
        );
    }

    #[test]
    fn memory_eviction_deadline_and_a_lost_node_are_told_apart() {
        let running = job(json!({}));
        let oom = ended(&json!({ "exitCode": 137, "reason": "OOMKilled" }));
        assert_eq!(
            judge(Some(&running), Some(&oom), None, DeletedBy::Others),
            End::OutOfMemory
        );
        let evicted = pod(&json!({ "phase": "Failed", "reason": "Evicted", "message": "too big" }));
        assert_eq!(
            judge(Some(&running), Some(&evicted), None, DeletedBy::Others),
            End::Evicted {
                why: "too big".to_owned()
            }
        );
        let late = job(json!({ "status": { "conditions": [
            { "type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded" }] } }));
        assert_eq!(
            judge(Some(&late), None, None, DeletedBy::Others),
            End::DeadlineExceeded
        );
        for reason in ["DeletionByTaintManager", "DeletionByPodGC"] {
            let lost = pod(&json!({ "phase": "Running", "conditions": [
                { "type": "DisruptionTarget", "status": "True", "reason": reason }] }));
            let end = judge(Some(&running), Some(&lost), None, DeletedBy::Others);
            let node = "n1".to_owned();
            assert_eq!(end, End::NoNews { node });
        }
    }

    #[test]
    fn a_job_or_pod_that_is_gone_was_deleted_and_a_pod_that_wrote_its_summary_before_was_not() {
        assert_eq!(
            judge(None, None, None, DeletedBy::Others),
            End::Deleted(DeletedBy::Others)
        );
        let gone = job(json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
        assert_eq!(
            judge(Some(&gone), None, None, DeletedBy::Others),
            End::Deleted(DeletedBy::Others)
        );
        let killed = ended(&json!({ "exitCode": 137, "reason": "Error" }));
        assert_eq!(
            judge(Some(&gone), Some(&killed), None, DeletedBy::Others),
            End::Deleted(DeletedBy::Others)
        );
        let summary = r#"{"presync":1,"class":"failed","lines":1,"bytes":2,"record":null}"#;
        let told = ended(&json!({ "exitCode": 1, "message": summary }));
        assert!(matches!(
            judge(Some(&gone), Some(&told), None, DeletedBy::Others),
            End::Exited { .. }
        ));
    }

    #[test]
    fn a_job_has_ended_with_its_early_condition_and_not_with_a_false_one() {
        let with = |kind: &str, status: &str| {
            job(json!({ "status": { "conditions": [{ "type": kind, "status": status }] } }))
        };
        assert!(has_ended(&with("FailureTarget", "True")));
        assert!(has_ended(&with("Complete", "True")));
        assert!(!has_ended(&with("Failed", "False")));
        assert!(!has_ended(&with("Suspended", "True")));
    }
}
