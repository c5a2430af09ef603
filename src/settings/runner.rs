//! What runs presync, and where.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::names::Namespace;

use super::file;

/// What runs presync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerSettings {
    /// A child process on this machine.
    Local {
        /// The age key with which `sops` opens sealed states.
        sops_age_key_file: Option<PathBuf>,
    },
    /// A Job in a Kubernetes cluster.
    Kubernetes(Box<KubernetesSettings>),
}

/// How Jobs are made in a Kubernetes cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesSettings {
    /// The context of the kubeconfig; without it only the pod's own account is used.
    pub context: Option<String>,
    /// The namespace of the Job.
    pub namespace: Namespace,
    /// The image that holds presync.
    pub image: String,
    /// When the image is pulled; the cluster's default when not set.
    pub pull_policy: Option<String>,
    /// The Job's service account.
    pub service_account: String,
    /// The Secret with the credentials, handed to the Job as environment.
    pub secret: String,
    /// How long a plan may run; 1800 s when not set.
    pub deadline: Duration,
    /// How long a Job may take to start; 120 s when not set.
    pub start_deadline: Duration,
    /// How long an API server that does not answer is waited for; 300 s when not set.
    pub unreachable: Duration,
    /// How long the cluster keeps an ended Job that could not be removed; 4 h when not set.
    pub keep: Duration,
    /// A pod template beneath what stagewright sets.
    pub pod_template: Map<String, Value>,
    /// As what a stage is destroyed and previewed; as what it is planned where nothing else is set.
    pub destroy: DestroyingSettings,
}

/// What Jobs that destroy run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestroyingSettings {
    /// The image that holds presync.
    pub image: String,
    /// The Job's service account.
    pub service_account: String,
    /// The Secret with the credentials.
    pub secret: String,
}

impl KubernetesSettings {
    /// The settings for Jobs that destroy.
    pub fn for_destroy(&self) -> KubernetesSettings {
        let DestroyingSettings {
            image,
            service_account,
            secret,
        } = self.destroy.clone();
        KubernetesSettings {
            image,
            service_account,
            secret,
            ..self.clone()
        }
    }
}

impl From<file::Kubernetes> for Box<KubernetesSettings> {
    fn from(raw: file::Kubernetes) -> Box<KubernetesSettings> {
        let seconds = |given: Option<file::Seconds>, default| {
            Duration::from_secs(given.map_or(default, |seconds| seconds.0))
        };
        let destroy = DestroyingSettings {
            image: raw.destroy.image.unwrap_or_else(|| raw.image.clone()),
            service_account: raw
                .destroy
                .service_account
                .unwrap_or_else(|| raw.service_account.clone()),
            secret: raw.destroy.secret.unwrap_or_else(|| raw.secret.clone()),
        };
        Box::new(KubernetesSettings {
            destroy,
            context: raw.context,
            namespace: raw.namespace,
            image: raw.image,
            pull_policy: raw.pull_policy,
            service_account: raw.service_account,
            secret: raw.secret,
            deadline: seconds(raw.deadline, 1800),
            start_deadline: seconds(raw.start_deadline, 120),
            unreachable: seconds(raw.unreachable, 300),
            keep: Duration::from_secs(raw.keep.map_or(4 * 3600, |keep| keep.0)),
            pod_template: raw.pod_template,
        })
    }
}
