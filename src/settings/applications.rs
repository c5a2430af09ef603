//! Where the live Applications are.

use std::path::PathBuf;

use crate::names::Namespace;
use crate::registry::check::promise::{Destination, ExpectedApplications};

use super::{Document, SettingsError, file};

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

impl Document<'_> {
    /// Where the live Applications are, and what those of the registry have in common.
    pub(super) fn applications(
        &self,
        raw: file::Applications,
    ) -> Result<(ApplicationsSettings, ExpectedApplications), SettingsError> {
        let expected = self.expected(raw.expected)?;
        let place = self.applications_place(raw.file, raw.instances)?;
        Ok((place, expected))
    }

    fn expected(&self, raw: file::Expected) -> Result<ExpectedApplications, SettingsError> {
        let destination = match raw.destination.map(|it| (it.server, it.name)) {
            None => None,
            Some((Some(server), None)) => Some(Destination::Server(server)),
            Some((None, Some(name))) => Some(Destination::Name(name)),
            Some(_) => {
                return Err(self.wrong(
                    &["applications", "expected", "destination"],
                    "applications.expected.destination takes one of the keys server and name",
                ));
            }
        };
        Ok(ExpectedApplications {
            namespace: raw.namespace,
            parent: raw.parent,
            project: raw.project,
            destination,
            retry: raw.retry,
            parameters: raw.parameters,
        })
    }

    fn applications_place(
        &self,
        file: Option<PathBuf>,
        instances: Option<Vec<file::Instance>>,
    ) -> Result<ApplicationsSettings, SettingsError> {
        let keys = ["applications", "instances"];
        match (file, instances) {
            (Some(file), None) => Ok(ApplicationsSettings::File(self.folder.join(file))),
            (None, Some(instances)) if instances.is_empty() => Err(self.wrong(
                &keys,
                "applications.instances is empty; name every Argo CD that may deploy something, one an item",
            )),
            (None, Some(instances)) => {
                let none = |i: &file::Instance| i.namespaces.as_ref().is_some_and(Vec::is_empty);
                if instances.iter().any(none) {
                    return Err(self.wrong(
                        &keys,
                        "the namespaces of an instance are an empty list; name some, or leave the key out for the whole cluster",
                    ));
                }
                let instances = instances.into_iter().map(InstanceSettings::from);
                Ok(ApplicationsSettings::Instances(instances.collect()))
            }
            (None, None) => Err(self.wrong(
                &["applications"],
                "applications is empty; it takes one of the keys instances and file",
            )),
            (Some(_), Some(_)) => Err(self.wrong(
                &["applications"],
                "applications has both file and instances; keep one of them",
            )),
        }
    }
}
