//! What can go wrong with the states on a branch.

use crate::git::GitError;
use crate::names::{BranchName, RepoUrl, StateKey};
use crate::state_backend::attempts::RACES;
use crate::state_backend::seal::SealError;

/// A state that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The repository could not be read.
    #[error("the state repository could not be read")]
    Git(#[from] GitError),
    /// The repository could not be written.
    #[error("the state repository could not be written")]
    Push(#[source] GitError),
    /// It has no branch at all, but for locks.
    #[error(
        "{url} has no branch that could hold states, which cannot be told from a server that is not git's: push a first commit to {branch}, an empty one will do"
    )]
    Empty {
        /// The repository.
        url: RepoUrl,
        /// The branch that states are kept on.
        branch: BranchName,
    },
    /// It is sealed and could not be opened.
    #[error("the state {key} could not be opened")]
    Seal {
        /// Its path.
        key: StateKey,
        /// Why.
        #[source]
        source: SealError,
    },
    /// It is to be sealed and could not be.
    #[error("the state {key} could not be encrypted")]
    NotSealed {
        /// Its path.
        key: StateKey,
        /// Why.
        #[source]
        source: SealError,
    },
    /// The same key in another case: one of the two spellings is wrong.
    #[error(
        "the state repository has no {key}, but it has {other}: one deployment must not have two states, so spell the repository, path and stage as the state has them"
    )]
    OtherCase {
        /// The path that was asked for.
        key: StateKey,
        /// The beginning of the path that is there.
        other: String,
    },
    /// Something else than a file is there.
    #[error(
        "{key} in the state repository is a folder or a link, or lies behind a file or a link, and a state is a file in folders: move away what stands there"
    )]
    NotAFile {
        /// Its path.
        key: StateKey,
    },
    /// It is sealed, and there is nobody to seal the new one for.
    #[error(
        "the state {key} is encrypted and no recipient is named, so it would be written in plain text: set SOPS_AGE_RECIPIENTS, or terraform-backend-git's variable for it"
    )]
    WouldUnseal {
        /// Its path.
        key: StateKey,
    },
    /// The branch moved under every attempt.
    #[error(
        "the state {key} could not be written: others wrote to the state repository {RACES} times while it was tried; try again later"
    )]
    Contended {
        /// Its path.
        key: StateKey,
    },
    /// Somebody else's files.
    #[error(
        "{folder}/ in the state repository holds more than the state, so the state is not removed: {others}: move it away first, or find out whose it is"
    )]
    Beside {
        /// The state's folder.
        folder: String,
        /// What else is in it.
        others: String,
    },
    /// The lock is gone.
    #[error("the lock of {key} is no longer this run's ({why}), so its state was not removed")]
    NotOurs {
        /// Its path.
        key: StateKey,
        /// What became of the lock.
        why: String,
    },
    /// Somebody else has written it.
    #[error(
        "the state {key} was written by somebody else since this run has read it, so it is not removed: preview again"
    )]
    Unseen {
        /// Its path.
        key: StateKey,
    },
    /// The rule for what may follow on what was not met.
    #[error("the state {key} was not written")]
    Refused {
        /// Its path.
        key: StateKey,
        /// Why.
        #[source]
        source: Refusal,
    },
}

/// A state that must not follow on the one that is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
