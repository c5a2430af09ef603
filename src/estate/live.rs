//! The live Applications of every Argo CD of the settings, each list whole or none at all.

use std::path::PathBuf;

use crate::applications::{ApplicationError, Instance, ManifestsError, read_manifests};
use crate::cluster::applications::{ApplicationsError, list};
use crate::names::Namespace;
use crate::report::{self, Outcome};
use crate::settings::{ApplicationsSettings, InstanceSettings, Settings};

use super::{EstateError, of_cluster, open_cluster};

/// Why the live Applications are not known.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The settings do not say where they are.
    #[error("{} does not say where the live Applications are: set applications.instances", file.display())]
    NoApplications {
        /// The settings file.
        file: PathBuf,
    },
    /// A file stands for them where it may not.
    #[error("applications.file in {} is for the sandbox alone, since a file has no age and one that is cut off looks whole: set applications.instances", file.display())]
    FileOutsideSandbox {
        /// The settings file.
        file: PathBuf,
    },
    /// The file could not be read.
    #[error("the Applications in {} could not be read", file.display())]
    ReadFile {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What is in it is something else.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// It holds nothing.
    #[error("{} holds no Application at all, and an empty list is taken for one that could not be read", file.display())]
    EmptyFile {
        /// The file.
        file: PathBuf,
    },
    /// An Argo CD's could not be listed.
    #[error("the live Applications of {instance} could not be read")]
    Instance {
        /// Whose they are.
        instance: String,
        /// Why.
        #[source]
        source: Box<ApplicationsError>,
    },
    /// Its cluster could not be used.
    #[error(transparent)]
    Cluster(#[from] EstateError),
}

impl LiveError {
    /// What it means for the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            LiveError::NoApplications { .. } | LiveError::FileOutsideSandbox { .. } => {
                Outcome::Usage
            }
            LiveError::Cluster(error) => error.outcome(),
            LiveError::Instance { source, .. } => match &**source {
                ApplicationsError::List { source, .. } => of_cluster(source),
                _ => Outcome::Failed,
            },
            LiveError::ReadFile { .. } | LiveError::Manifests(_) | LiveError::EmptyFile { .. } => {
                Outcome::Failed
            }
        }
    }
}

/// Where the settings say that the live Applications are.
pub fn of(settings: &Settings) -> Result<&ApplicationsSettings, LiveError> {
    settings
        .applications
        .as_ref()
        .ok_or_else(|| LiveError::NoApplications {
            file: settings.file.clone(),
        })
}

/// The Applications of every Argo CD, each read by `read`, and says how many each has.
pub async fn read<T>(
    applications: &ApplicationsSettings,
    settings: &Settings,
    read: fn(&str) -> Result<T, ApplicationError>,
) -> Result<Vec<Instance<T>>, LiveError> {
    let instances = match applications {
        ApplicationsSettings::File(file) => {
            let failed = |source| LiveError::ReadFile {
                file: file.clone(),
                source,
            };
            let text = tokio::fs::read_to_string(file).await.map_err(failed)?;
            let name = file.display().to_string();
            let applications = read_manifests(&text, &name, read)?;
            if applications.is_empty() {
                return Err(LiveError::EmptyFile { file: file.clone() });
            }
            vec![Instance { name, applications }]
        }
        ApplicationsSettings::Instances(instances) => {
            let mut all = Vec::new();
            for (at, instance) in instances.iter().enumerate() {
                all.push(instance_of(instance, at, settings, read).await?);
            }
            all
        }
    };
    for Instance { name, applications } in &instances {
        let count = applications.len();
        report::heading("argo cd", format_args!("{name}: {count} Application(s)"));
    }
    Ok(instances)
}

async fn instance_of<T>(
    instance: &InstanceSettings,
    at: usize,
    settings: &Settings,
    read: fn(&str) -> Result<T, ApplicationError>,
) -> Result<Instance<T>, LiveError> {
    let context = instance.context.as_deref();
    let key = format!("applications.instances[{at}]");
    let cluster = open_cluster(context, &key, settings).await?;
    let whose = context.map_or_else(
        || "this pod's cluster".to_owned(),
        |context| format!("the context {context}"),
    );
    let namespaces: Vec<&str> = instance.namespaces.iter().map(Namespace::as_str).collect();
    let name = match namespaces.as_slice() {
        [] => whose,
        namespaces => format!("{whose}, {}", namespaces.join(" and ")),
    };
    let listed = list(&cluster, &instance.namespaces, instance.minimum, read).await;
    let applications = listed.map_err(|source| LiveError::Instance {
        instance: name.clone(),
        source: Box::new(source),
    })?;
    Ok(Instance { name, applications })
}
