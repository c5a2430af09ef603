//! Why a root cannot be reduced.

use std::io;
use std::path::PathBuf;

use super::MissingProvider;

/// A root that cannot be reduced.
#[derive(Debug, thiserror::Error)]
pub enum ReductionError {
    /// What of some file is to be kept cannot be told.
    #[error(
        "the root cannot be reduced to what a destroy keeps of it, since not all of it can be read: {}; write that in \
         Terraform's own syntax, in UTF-8",
        list(faults)
    )]
    Unread {
        /// Every such file.
        faults: Vec<Unread>,
    },
    /// What is kept needs what is dropped.
    #[error(
        "a destroy keeps neither resources nor modules of the root, so a value would be missing: {}; take it from a \
         variable or a data source instead",
        list(references)
    )]
    Dangling {
        /// Every such reference.
        references: Vec<Dangling>,
    },
    /// The state names providers that the reduced root lacks.
    #[error(
        "the state has resources of providers that the reduced root does not configure: {}; configure them in the root \
         itself and apply that once, so that the state names those",
        list(missing)
    )]
    Providers {
        /// Every such provider.
        missing: Vec<MissingProvider>,
    },
    /// A file of the root could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A reduced file could not be written.
    #[error("the reduced file could not be written to {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A place at which a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// File and line in the clone.
    pub place: String,
    /// What is wrong there.
    pub why: &'static str,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.place, self.why)
    }
}

/// A kept expression that refers to what is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// File and line of the reference in the clone.
    pub place: String,
    /// What holds the expression: `provider "kubernetes"`, `local.host`.
    pub owner: String,
    /// The dropped resource or module.
    pub refers_to: String,
    /// The block that is kept in any case and needs the owner, where that is another.
    pub needed_by: Option<String>,
}

impl std::fmt::Display for Dangling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dangling {
            place,
            owner,
            refers_to,
            needed_by,
        } = self;
        write!(f, "{owner} refers to {refers_to} at {place}")?;
        match needed_by {
            Some(needed_by) => write!(f, ", and {needed_by} needs {owner}"),
            None => Ok(()),
        }
    }
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(", ")
}
