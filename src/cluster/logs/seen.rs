//! What a pod's status says of a container whose log is read.

use k8s_openapi::api::core::v1::Pod;

use super::End;
use crate::cluster::verdict;

/// What the pod's status says.
#[derive(Debug)]
pub(super) enum Seen {
    /// It has not started, and why.
    Waiting(String),
    Running,
    /// The cluster takes its node for lost. The node may be alive all the same, and tell more: only its silence is a proof.
    Doubtful,
    Ended(End),
}

/// Reads the status of the container of this name.
pub(super) fn seen(pod: &Pod, container: &str) -> Seen {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|s| s.container_statuses.as_ref());
    let state = statuses
        .and_then(|all| all.iter().find(|one| one.name == container))
        .and_then(|one| one.state.as_ref());
    if let Some(terminated) = state.and_then(|s| s.terminated.clone()) {
        return Seen::Ended(End::Terminated(terminated));
    }
    let phase = status.and_then(|s| s.phase.as_deref()).unwrap_or("Pending");
    if matches!(phase, "Failed" | "Succeeded") {
        let words = [
            status.and_then(|s| s.reason.as_deref()),
            status.and_then(|s| s.message.as_deref()),
        ];
        let words: Vec<&str> = [Some(phase)].into_iter().chain(words).flatten().collect();
        return Seen::Ended(End::PodEnded(words.join(": ")));
    }
    if verdict::node_is_given_up(pod) {
        return Seen::Doubtful;
    }
    if state.is_some_and(|s| s.running.is_some()) {
        return Seen::Running;
    }
    let waiting = state.and_then(|s| s.waiting.as_ref());
    let reason = waiting.and_then(|w| w.reason.as_deref()).unwrap_or(phase);
    Seen::Waiting(format!("the container has not started yet: {reason}"))
}
