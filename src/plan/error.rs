//! Why a plan could not be made, and what that means for the exit code.

use crate::estate::EstateError;
use crate::forge::ForgeError;
use crate::layout::LayoutError;
use crate::names::{CommitSha, StageName};
use crate::report::{Failure, Outcome, OutputError};
use crate::runner::RunnerError;

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
    #[error(transparent)]
    Runner(#[from] RunnerError),
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
            | PlanError::NoTerraform { .. }
            | PlanError::NoConfig { .. } => Outcome::Usage,
            PlanError::Runner(error) => error.outcome(),
            PlanError::Output(_) => Outcome::Failed,
        }
    }
}

impl From<ForgeError> for PlanError {
    fn from(error: ForgeError) -> PlanError {
        PlanError::Estate(error.into())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        Failure::new(error.outcome(), error)
    }
}
