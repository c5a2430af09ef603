//! What every story reads first: the forge of the settings, the repositories that the settings name, the registry, a
//! cluster by its context, and what the state repository holds.

pub mod live;
pub mod states;

use std::path::PathBuf;

use crate::cluster::{Cluster, ClusterError, NotInPod, PodAccount};
use crate::forge::git::GitForge;
use crate::forge::github::{GitHubError, GitHubForge, Patience};
use crate::forge::{Forge, ForgeError};
use crate::git::{Credentials, CredentialsError};
use crate::names::RepoUrl;
use crate::registry::{Registry, RegistryError};
use crate::report::Outcome;
use crate::settings::{ForgeSettings, Settings, StateSource};

/// Why the estate of the settings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EstateError {
    /// The environment names credentials that cannot be read.
    #[error("the credentials for git could not be read")]
    Credentials(#[from] CredentialsError),
    /// GitHub cannot be asked at all.
    #[error("GitHub cannot be asked")]
    GitHub(#[from] GitHubError),
    /// The target's repository, or something in it.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// A repository that the settings name.
    #[error("{key} in {} names no repository that can be used", file.display())]
    SettingsName {
        /// The key that names it.
        key: &'static str,
        /// The settings file.
        file: PathBuf,
        /// Why it cannot be used.
        #[source]
        source: Box<ForgeError>,
    },
    /// The registry's file.
    #[error("the registry could not be read")]
    ReadRegistry(#[source] ForgeError),
    /// What is in it.
    #[error("the registry {place} is not valid")]
    Registry {
        /// File, repository and branch.
        place: String,
        /// What is wrong.
        #[source]
        source: RegistryError,
    },
    /// What is in it is no text.
    #[error("the registry {place} is not UTF-8 text")]
    RegistryEncoding {
        /// File, repository and branch.
        place: String,
    },
    /// A cluster is needed and none is named.
    #[error("{key} in {} names no context, and without one only a pod's own account is used: set {key}.context, or hand over --context", file.display())]
    NoCluster {
        /// The key that leads to a cluster.
        key: String,
        /// The settings file.
        file: PathBuf,
        /// Why there is no account.
        #[source]
        source: NotInPod,
    },
    /// The cluster cannot be used.
    #[error("the cluster could not be used")]
    Cluster(#[from] ClusterError),
}

impl EstateError {
    /// What it means for the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            EstateError::NoCluster { .. } | EstateError::Cluster(ClusterError::Context { .. }) => {
                Outcome::Usage
            }
            EstateError::Forge(error) | EstateError::ReadRegistry(error) if error.is_passing() => {
                Outcome::Later
            }
            EstateError::SettingsName { source, .. } if source.is_passing() => Outcome::Later,
            EstateError::Forge(error) => match error.is_about_the_question() {
                true => Outcome::Refused,
                false => Outcome::Failed,
            },
            EstateError::SettingsName { source, .. } => match source.is_about_the_question() {
                true => Outcome::Usage,
                false => Outcome::Failed,
            },
            EstateError::GitHub(GitHubError::Token(_)) => Outcome::Usage,
            EstateError::Cluster(error) => of_cluster(error),
            EstateError::Credentials(_)
            | EstateError::GitHub(_)
            | EstateError::ReadRegistry(_)
            | EstateError::Registry { .. }
            | EstateError::RegistryEncoding { .. } => Outcome::Failed,
        }
    }
}

/// What an error of a cluster means for the exit code: one that does not answer may do so later.
pub fn of_cluster(error: &ClusterError) -> Outcome {
    match error {
        ClusterError::TimedOut
        | ClusterError::Answer {
            code: 429 | 500.., ..
        } => Outcome::Later,
        _ => Outcome::Failed,
    }
}

/// The forge of the settings.
pub fn open_forge(settings: &Settings) -> Result<Forge, EstateError> {
    match &settings.forge {
        ForgeSettings::Git { root, known_as } => Ok(Forge::Git(GitForge::new(
            root.clone(),
            known_as.clone(),
            Credentials::from_environment()?,
        ))),
        ForgeSettings::GitHub {
            owner,
            url,
            api,
            access,
        } => {
            let forge = GitHubForge::new(owner.clone(), url, api, access, Patience::default());
            Ok(Forge::GitHub(Box::new(forge?)))
        }
    }
}

/// The cluster of a context of the kubeconfig; without one, that of the pod's own account. `key` is the key of the settings
/// that leads there.
pub async fn open_cluster(
    context: Option<&str>,
    key: &str,
    settings: &Settings,
) -> Result<Cluster, EstateError> {
    match (context, PodAccount::find()) {
        (Some(context), _) => Ok(Cluster::of_context(context).await?),
        (None, Ok(_)) => Ok(Cluster::of_pod()?),
        (None, Err(source)) => Err(EstateError::NoCluster {
            key: key.to_owned(),
            file: settings.file.clone(),
            source,
        }),
    }
}

/// Looks for the repositories that the settings name, so that a slip there is told as one.
pub async fn check_settings_names(forge: &Forge, settings: &Settings) -> Result<(), EstateError> {
    let registry = ("registry.repo", &settings.registry.repo);
    let state = match &settings.state.source {
        StateSource::Repo(repo) => Some(("state.repo", repo)),
        StateSource::Url(_) => None,
    };
    for (key, repo) in [registry].into_iter().chain(state) {
        forge
            .canonical_name(repo)
            .await
            .map_err(|source| EstateError::SettingsName {
                key,
                file: settings.file.clone(),
                source: Box::new(source),
            })?;
    }
    Ok(())
}

/// The registry at the head of its branch.
pub async fn read_registry(forge: &Forge, settings: &Settings) -> Result<Registry, EstateError> {
    let text = registry_text(forge, settings).await?;
    Registry::parse(&text, &settings.registry.file).map_err(|source| EstateError::Registry {
        place: registry_place(settings),
        source,
    })
}

/// The text of the registry at the head of its branch.
pub async fn registry_text(forge: &Forge, settings: &Settings) -> Result<String, EstateError> {
    let place = &settings.registry;
    let read = async {
        let head = forge.head(&place.repo, &place.branch).await?;
        forge.read(&place.repo, &head, &place.file).await
    };
    let bytes = read.await.map_err(EstateError::ReadRegistry)?;
    String::from_utf8(bytes).map_err(|_| EstateError::RegistryEncoding {
        place: registry_place(settings),
    })
}

/// Where the registry is, for people.
fn registry_place(settings: &Settings) -> String {
    let place = &settings.registry;
    format!("{} of {} on {}", place.file, place.repo, place.branch)
}

/// Where the states are, for presync.
pub fn state_url(forge: &Forge, settings: &Settings) -> RepoUrl {
    match &settings.state.source {
        StateSource::Repo(repo) => forge.fetch_url(repo),
        StateSource::Url(url) => url.clone(),
    }
}
