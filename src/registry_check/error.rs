//! Why a check was not made.

use std::io;
use std::path::PathBuf;

use crate::estate::EstateError;
use crate::registry::check::CHECKS;
use crate::report::{Failure, Outcome};

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file could not be read.
    #[error("the registry {} could not be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The repository's could not.
    #[error(transparent)]
    Estate(#[from] EstateError),
    /// No check has this name.
    #[error("no check is called {name:?}; there are {}", names())]
    NoCheck {
        /// What was asked for.
        name: String,
    },
    /// What was found could not be shown.
    #[error("what was found could not be written to standard output")]
    Show(#[source] io::Error),
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        let outcome = match &error {
            CheckError::Estate(error) => error.outcome(),
            CheckError::NoCheck { .. } => Outcome::Usage,
            CheckError::Read { .. } | CheckError::Show(_) => Outcome::Failed,
        };
        Failure::new(outcome, error)
    }
}

/// The names of all checks.
fn names() -> String {
    CHECKS.map(|check| check.name).join(", ")
}
