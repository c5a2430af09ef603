//! Where the live Applications are.

use std::path::PathBuf;

use crate::names::Namespace;

use super::file;

/// Where the live Applications are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationsSettings {
    /// In a file of manifests.
    File(PathBuf),
    /// In these Argo CDs.
    Instances(Vec<InstanceSettings>),
}

/// One Argo CD, by its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceSettings {
    /// The context of the kubeconfig; without it only the pod's own account is used.
    pub context: Option<String>,
    /// The namespaces of its Applications; none means the whole cluster.
    pub namespaces: Vec<Namespace>,
    /// How many Applications it has at least; 1 when not set.
    pub minimum: usize,
}

impl From<file::Instance> for InstanceSettings {
    fn from(raw: file::Instance) -> InstanceSettings {
        InstanceSettings {
            context: raw.context,
            namespaces: raw.namespaces.unwrap_or_default(),
            minimum: raw.minimum.map_or(1, |minimum| minimum.0),
        }
    }
}
