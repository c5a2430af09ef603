//! Where the repositories live: their spelling, their branches, their files.

pub mod git;

use std::collections::BTreeSet;

use crate::git::GitError;
use crate::git::history::{Located, Reach};
use crate::git::write::Author;
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName, RepoUrl};
use crate::scratch::ScratchError;

use git::GitForge;

/// Something of a forge that could not be read, or that it does not have.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// No such repository.
    #[error("{place} has no repository {repo}: name one that is there{}", spelled(.names))]
    NoRepository {
        /// Where it was looked for.
        place: String,
        /// The name that was given.
        repo: RepoName,
        /// Names that are there.
        names: Vec<RepoName>,
    },
    /// Another spelling of a repository that is there.
    #[error(
        "{place} spells {given} as {canonical}, the spelling that paths and states have: write it so"
    )]
    OtherSpelling {
        /// Where it lives.
        place: String,
        /// The name that was given.
        given: RepoName,
        /// The name that it has.
        canonical: RepoName,
    },
    /// A commit that the tracked branch does not hold.
    #[error("commit {commit} of {repo} is not reachable from {branch}, the branch that the stage tracks; it is on {}: merge it, or set plan.allow_unmerged in the settings", list(.branches))]
    NotReachable {
        /// The commit.
        commit: CommitSha,
        /// The repository.
        repo: RepoName,
        /// The tracked branch.
        branch: BranchName,
        /// The branches that hold it.
        branches: Vec<String>,
    },
    /// No such file.
    #[error("{repo} has no file {file} at {commit}")]
    NoFile {
        /// The repository.
        repo: RepoName,
        /// The commit that was read.
        commit: CommitSha,
        /// The file.
        file: String,
    },
    /// The repository was read, and has no such branch or commit.
    #[error(transparent)]
    Absent(GitError),
    /// git could not read it.
    #[error("{repo} could not be read")]
    Git {
        /// The repository.
        repo: RepoName,
        /// Why.
        #[source]
        source: GitError,
    },
    /// git could not write it.
    #[error("{repo} could not be written")]
    Write {
        /// The repository.
        repo: RepoName,
        /// Why.
        #[source]
        source: GitError,
    },
    /// The folder of repositories could not be listed.
    #[error("the repositories in {place} could not be listed")]
    List {
        /// The folder.
        place: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No private folder for a clone.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
}

fn spelled(names: &[RepoName]) -> String {
    match names {
        [] => String::new(),
        names => format!("; it has {}", list(names)),
    }
}

fn list<T: std::fmt::Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(T::to_string).collect();
    names.join(", ")
}

/// What became of the removal of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// This commit removed it.
    Done(CommitSha),
    /// The branch has no such folder.
    Nothing,
    /// The folder is another one than was expected; it stays.
    Changed,
    /// The branch was written while it was read; nothing was done.
    Moved,
}

/// A folder that is to go from a branch.
#[derive(Clone, Copy, Debug)]
pub struct FolderToGo<'a> {
    /// The repository.
    pub repo: &'a RepoName,
    /// The branch.
    pub branch: &'a BranchName,
    /// The folder.
    pub folder: &'a str,
    /// The id of its tree, as it was when it was decided.
    pub tree: &'a str,
}

/// A forge.
pub enum Forge {
    /// A folder of git repositories, or a URL below which they lie.
    Git(GitForge),
}

impl Forge {
    /// Checks that the forge has the repository under exactly this spelling.
    pub async fn canonical_name(&self, repo: &RepoName) -> Result<(), ForgeError> {
        match self {
            Forge::Git(forge) => forge.canonical_name(repo).await,
        }
    }

    /// Where the repository is fetched from.
    pub fn fetch_url(&self, repo: &RepoName) -> RepoUrl {
        match self {
            Forge::Git(forge) => forge.fetch_url(repo),
        }
    }

    /// The URL by which the registry and the Applications know the repository.
    pub fn known_url(&self, repo: &RepoName) -> RepoUrl {
        match self {
            Forge::Git(forge) => forge.known_url(repo),
        }
    }

    /// The head of a branch.
    pub async fn head(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<CommitSha, ForgeError> {
        match self {
            Forge::Git(forge) => forge.head(repo, branch).await,
        }
    }

    /// The commit whose id begins so, and where it is. It must be on `branch`, unless `reach` says otherwise.
    pub async fn commit(
        &self,
        repo: &RepoName,
        branch: &BranchName,
        prefix: &CommitPrefix,
        reach: Reach,
    ) -> Result<Located, ForgeError> {
        let located = match self {
            Forge::Git(forge) => forge.locate(repo, branch, prefix).await?,
        };
        match located {
            Located::Elsewhere(commit, branches) if reach == Reach::TrackedBranch => {
                Err(ForgeError::NotReachable {
                    commit,
                    repo: repo.clone(),
                    branch: branch.clone(),
                    branches,
                })
            }
            located => Ok(located),
        }
    }

    /// One file of a commit.
    pub async fn read(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        file: &str,
    ) -> Result<Vec<u8>, ForgeError> {
        let content = match self {
            Forge::Git(forge) => forge.read(repo, commit, file).await?,
        };
        content.ok_or_else(|| ForgeError::NoFile {
            repo: repo.clone(),
            commit: commit.clone(),
            file: file.to_owned(),
        })
    }

    /// The id of a folder's tree at a commit; nothing where it has no such folder.
    pub async fn tree_of(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<String>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.tree_of(repo, commit, folder).await,
        }
    }

    /// Removes a folder in one commit on top of the branch's head, if it is what it was. The caller judges anew before it tries again.
    pub async fn remove_folder(
        &self,
        folder: FolderToGo<'_>,
        message: &str,
        author: &Author,
    ) -> Result<Removal, ForgeError> {
        match self {
            Forge::Git(forge) => forge.remove_folder(folder, message, author).await,
        }
    }

    /// Finds out, as far as git can tell, whether the branch would take a commit; writes nothing.
    pub async fn may_write(&self, repo: &RepoName, branch: &BranchName) -> Result<(), ForgeError> {
        match self {
            Forge::Git(forge) => forge.may_write(repo, branch).await,
        }
    }

    /// Whether the commit has this folder.
    pub async fn has_folder(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<bool, ForgeError> {
        match self {
            Forge::Git(forge) => forge.has_folder(repo, commit, folder).await,
        }
    }

    /// The names of the folders in a folder of the commit (empty: its top); one that is not there has none.
    pub async fn folders_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<String>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.folders_in(repo, commit, folder).await,
        }
    }

    /// The commits that a revision as Argo CD takes it can mean: see [`Remote::revision`](crate::git::Remote::revision).
    pub async fn revision(
        &self,
        repo: &RepoName,
        revision: &str,
    ) -> Result<BTreeSet<CommitSha>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.revision(repo, revision).await,
        }
    }

    /// The names of everything in a folder of the commit that is no folder; one that is not there has none. `None`: what
    /// stands there, or on the way to it, is no folder. All of the commit's folders are fetched at once, for many such questions.
    pub async fn files_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<Vec<String>>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.files_in(repo, commit, folder).await,
        }
    }
}
