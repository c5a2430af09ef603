//! Why a launch could not be made, or did not start.

use std::time::Duration;

use crate::cluster::ClusterError;
use crate::cluster::start::Hindrance;

/// Why a launch could not be made, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The API server could not be asked.
    #[error("{act} failed{}", remedy(.source))]
    Cluster {
        /// What was being done, to which object.
        act: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// The API server did not take it.
    #[error("the Job {namespace}/{name} could not be made{}", remedy(.source))]
    NotMade {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// In the server's words.
        #[source]
        source: ClusterError,
    },
    /// It may have been made, or not.
    #[error(
        "it is not known whether the Job {namespace}/{name} was made: look for it, and delete it"
    )]
    Uncertain {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What came instead of an answer.
        #[source]
        source: ClusterError,
    },
    /// The pod template of the settings does not fit.
    #[error("runner.kubernetes.pod_template in the settings makes no valid Job")]
    Template(#[source] serde_json::Error),
    /// Somebody else's Job has the name.
    #[error(
        "the Job {namespace}/{name} is not stagewright's: delete or rename it, so that the name is free"
    )]
    Foreign {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Another launch for the same target runs.
    #[error(
        "the Job {namespace}/{name} works on {target} already, since {since}{build}: wait for its end, or delete it"
    )]
    Running {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// For whom.
        target: String,
        /// Since when.
        since: String,
        /// By which build, in words.
        build: String,
    },
    /// An ended launch that we removed does not go.
    #[error("the Job of an earlier run does not go away: {what}; look at its finalizers and pods")]
    LeftoverStays {
        /// What is left, and why.
        what: String,
    },
    /// It did not start in time, or never will.
    #[error("the Job {namespace}/{name} did not start ({} s): {hindrance}", waited.as_secs())]
    NeverStarted {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// How long it was waited for.
        waited: Duration,
        /// What stood in the way.
        hindrance: Hindrance,
    },
    /// It went away while it was waited for.
    #[error("the Job {namespace}/{name} was deleted by someone else before it started")]
    Vanished {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

pub(in crate::cluster) fn remedy(error: &ClusterError) -> &'static str {
    match error.code() {
        Some(401) => ": the credentials are not valid (any more)",
        Some(403) => {
            ": the account lacks a right, or the admission policy forbids it; deploy/ has what is needed"
        }
        _ => "",
    }
}
