//! Why a plan could not be made, and what that means for the exit code.

use std::path::PathBuf;

use crate::cluster::launch::LaunchError;
use crate::cluster::run::RunError;
use crate::cluster::{ClusterError, NotInPod};
use crate::forge::ForgeError;
use crate::git::CredentialsError;
use crate::layout::LayoutError;
use crate::local::LocalError;
use crate::names::{CommitSha, StageName};
use crate::registry::RegistryError;
use crate::report::{Failure, Outcome, OutputError};

use super::terms::TermsError;

/// Why a plan could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there"
)]
pub enum PlanError {
    #[error("{what} in {} is not supported by this version, which plans with {instead}", file.display())]
    NotSupported {
        what: &'static str,
        instead: &'static str,
        file: PathBuf,
    },
    #[error("the credentials for git could not be read")]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error("runner.local.sops_age_key_file in {} names {}, and there is no such file", file.display(), key_file.display())]
    NoKeyFile { key_file: PathBuf, file: PathBuf },
    #[error("runner.kubernetes in {} names no context, and without one only a pod's own account is used: set runner.kubernetes.context, or hand over --context", file.display())]
    NoCluster {
        file: PathBuf,
        #[source]
        source: NotInPod,
    },
    #[error("the cluster could not be used")]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Run(Box<RunError>),
    #[error("{key} in {} names no repository that can be used", file.display())]
    SettingsName {
        key: &'static str,
        file: PathBuf,
        #[source]
        source: Box<ForgeError>,
    },
    #[error("the registry could not be read")]
    ReadRegistry(#[source] ForgeError),
    #[error("the registry {place} is not valid")]
    Registry {
        place: String,
        #[source]
        source: RegistryError,
    },
    #[error("the registry {place} is not UTF-8 text")]
    RegistryEncoding { place: String },
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error("the state of {target} has no valid path")]
    StateKey {
        target: String,
        #[source]
        source: Box<LayoutError>,
    },
    #[error("{repo} has no {folder}/ at {commit}; {}", there_is("apps", .apps))]
    NoTerraform {
        repo: String,
        folder: String,
        commit: CommitSha,
        apps: Vec<String>,
    },
    #[error("{repo} has no {folder}/ at {commit}, so {stage} is no stage of it; {}", there_is("stages", .stages))]
    NoConfig {
        repo: String,
        folder: String,
        commit: CommitSha,
        stage: StageName,
        stages: Vec<String>,
    },
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

fn there_is(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("it has no {what} there")
    } else {
        format!("{what} that are there: {}", names.join(", "))
    }
}

impl PlanError {
    /// What it means for the exit code.
    fn outcome(&self) -> Outcome {
        match self {
            PlanError::Terms(TermsError::OtherSpelling { .. }) => Outcome::Refused,
            PlanError::NotSupported { .. }
            | PlanError::Terms(_)
            | PlanError::StateKey { .. }
            | PlanError::NoKeyFile { .. }
            | PlanError::NoCluster { .. }
            | PlanError::Cluster(ClusterError::Context { .. })
            | PlanError::NoTerraform { .. }
            | PlanError::NoConfig { .. } => Outcome::Usage,
            PlanError::Forge(error) => match error {
                ForgeError::NoRepository { .. }
                | ForgeError::OtherSpelling { .. }
                | ForgeError::Absent(_)
                | ForgeError::NotReachable { .. } => Outcome::Refused,
                ForgeError::NoFile { .. }
                | ForgeError::Git { .. }
                | ForgeError::List { .. }
                | ForgeError::Scratch(_) => Outcome::Failed,
            },
            PlanError::SettingsName { source, .. } => match **source {
                ForgeError::NoRepository { .. } | ForgeError::OtherSpelling { .. } => {
                    Outcome::Usage
                }
                _ => Outcome::Failed,
            },
            PlanError::Run(error) => match &**error {
                RunError::Launch(error) => match &**error {
                    LaunchError::Running { .. } | LaunchError::Foreign { .. } => Outcome::Refused,
                    LaunchError::Template(_) => Outcome::Usage,
                    LaunchError::NotMade { .. } | LaunchError::NeverStarted { .. } => {
                        Outcome::NeverStarted
                    }
                    LaunchError::Vanished { .. } => Outcome::RunFailed,
                    LaunchError::LeftoverStays { .. } => Outcome::Failed,
                    LaunchError::Cluster { source, .. } | LaunchError::Uncertain { source, .. } => {
                        of_cluster(source)
                    }
                },
                RunError::Unreachable { source, .. } => of_cluster(source),
            },
            PlanError::Cluster(error) => of_cluster(error),
            PlanError::Credentials(_)
            | PlanError::ReadRegistry(_)
            | PlanError::Registry { .. }
            | PlanError::RegistryEncoding { .. }
            | PlanError::Local(_)
            | PlanError::Output(_) => Outcome::Failed,
        }
    }
}

/// A cluster that does not answer may do so later.
fn of_cluster(error: &ClusterError) -> Outcome {
    match error {
        ClusterError::TimedOut
        | ClusterError::Answer {
            code: 429 | 500.., ..
        } => Outcome::Later,
        _ => Outcome::Failed,
    }
}

impl From<RunError> for PlanError {
    fn from(error: RunError) -> PlanError {
        PlanError::Run(Box::new(error))
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        Failure::new(error.outcome(), error)
    }
}
