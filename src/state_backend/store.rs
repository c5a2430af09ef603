//! The state repository: `<prefix>/<repo>/[<path>/]<stage>/terraform.tfstate` on one branch, as terraform-backend-git
//! keeps it (<https://github.com/plumber-cd/terraform-backend-git>).

use std::path::Path;

use crate::git::tree::{Extent, Found, Kind, PartialClone};
use crate::git::{GitError, Remote};
use crate::names::{BranchName, RepoUrl, StateKey};

use super::seal::{self, SealError};

/// A state that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The repository could not be read.
    #[error("the state repository could not be read")]
    Git(#[from] GitError),
    /// It has no branch at all.
    #[error(
        "{url} has no branch at all, which cannot be told from a server that is not git's: push a first commit to {branch}, an empty one will do"
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
}

/// Reads the state at `key` with the branch's head, opened where it is sealed. `None`: there is none.
/// `folder` is made for the clone; what is fetched does not depend on what else the repository holds.
pub async fn read(
    remote: &Remote,
    branch: &BranchName,
    key: &StateKey,
    folder: &Path,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut clone = PartialClone::init(remote.clone(), folder.to_owned())?;
    let commit = match clone.head(branch, Extent::TopTree).await {
        Ok(commit) => commit,
        // A server that answers with something else than git's protocol looks like this as well, and planning against
        // nothing would plan everything anew.
        Err(GitError::NoBranch { branches, .. }) if branches.is_empty() => {
            return Err(StoreError::Empty {
                url: remote.url().clone(),
                branch: branch.clone(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let entry = match clone.find(&commit, key.as_str()).await? {
        Found::Entry(entry) => entry,
        Found::Nothing => return Ok(None),
        Found::NotAFolder(_) => return Err(StoreError::NotAFile { key: key.clone() }),
        Found::OtherCase(other) => {
            return Err(StoreError::OtherCase {
                key: key.clone(),
                other,
            });
        }
    };
    if !matches!(entry.kind, Kind::File { .. }) {
        return Err(StoreError::NotAFile { key: key.clone() });
    }
    let document = clone.blob(entry.id).await?;
    let failed = |source| StoreError::Seal {
        key: key.clone(),
        source,
    };
    if !seal::is_sealed(&document).map_err(failed)? {
        return Ok(Some(document));
    }
    seal::open(&document).await.map(Some).map_err(failed)
}
