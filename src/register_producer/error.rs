//! Why a producer could not be registered, and what that means for the exit code.

use std::path::PathBuf;

use crate::estate::EstateError;
use crate::forge::ForgeError;
use crate::jenkins::JenkinsError;
use crate::names::ProducerId;
use crate::presync::environment::EnvironmentError;
use crate::producers::edit::EditError;
use crate::report::{Failure, Outcome};

/// Why a producer could not be registered.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there, or one sentence"
)]
pub enum RegisterError {
    #[error("{} does not say where producers are registered: set producers.repo", file.display())]
    NoProducers { file: PathBuf },
    #[error("{} does not say where Jenkins is: set jenkins.url", file.display())]
    NoJenkins { file: PathBuf },
    #[error("jenkins.folder in {} is for the sandbox alone, since a folder proves no build: set jenkins.url", file.display())]
    FolderOutsideSandbox { file: PathBuf },
    #[error(transparent)]
    Estate(#[from] EstateError),
    #[error(transparent)]
    Jenkins(#[from] JenkinsError),
    #[error("{file} is not UTF-8 text; save it as UTF-8")]
    Encoding { file: String },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("{id}: {faults} fault(s) speak against it, each told above")]
    Refused { id: ProducerId, faults: usize },
    #[error(
        "others wrote to the branch of the producers' file each time that it was to be edited: try again later"
    )]
    Contended,
    #[error("the author of the commit is wrong")]
    Author(#[source] EnvironmentError),
    #[error("the change could not be shown")]
    Show(#[source] std::io::Error),
}

impl RegisterError {
    /// What it means for the exit code.
    fn outcome(&self) -> Outcome {
        match self {
            RegisterError::NoProducers { .. }
            | RegisterError::NoJenkins { .. }
            | RegisterError::FolderOutsideSandbox { .. }
            | RegisterError::Author(_) => Outcome::Usage,
            RegisterError::Estate(error) => error.outcome(),
            RegisterError::Jenkins(error) if error.is_passing() => Outcome::Later,
            RegisterError::Jenkins(error) if error.is_about_the_settings() => Outcome::Usage,
            RegisterError::Edit(_) | RegisterError::Refused { .. } => Outcome::Refused,
            RegisterError::Contended => Outcome::Later,
            RegisterError::Jenkins(_) | RegisterError::Encoding { .. } | RegisterError::Show(_) => {
                Outcome::Failed
            }
        }
    }
}

impl From<ForgeError> for RegisterError {
    fn from(error: ForgeError) -> RegisterError {
        RegisterError::Estate(error.into())
    }
}

impl From<RegisterError> for Failure {
    fn from(error: RegisterError) -> Failure {
        Failure::new(error.outcome(), error)
    }
}
