//! Why a plan could not be made, and what that means for the exit code.

use std::path::PathBuf;

use crate::cluster::launch::LaunchError;
use crate::cluster::run::RunError;
use crate::estate::{EstateError, of_cluster};
use crate::forge::ForgeError;
use crate::layout::LayoutError;
use crate::local::LocalError;
use crate::names::{CommitSha, StageName};
use crate::report::{Failure, Outcome, OutputError};

use super::terms::TermsError;

/// Why a plan could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there"
)]
pub enum PlanError {
    #[error(transparent)]
    Estate(#[from] EstateError),
    #[error("runner.local.sops_age_key_file in {} names {}, and there is no such file", file.display(), key_file.display())]
    NoKeyFile { key_file: PathBuf, file: PathBuf },
    #[error(transparent)]
    Run(Box<RunError>),
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
            PlanError::Estate(error) => error.outcome(),
            PlanError::Terms(_)
            | PlanError::StateKey { .. }
            | PlanError::NoKeyFile { .. }
            | PlanError::NoTerraform { .. }
            | PlanError::NoConfig { .. } => Outcome::Usage,
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
            PlanError::Local(_) | PlanError::Output(_) => Outcome::Failed,
        }
    }
}

impl From<ForgeError> for PlanError {
    fn from(error: ForgeError) -> PlanError {
        PlanError::Estate(error.into())
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
