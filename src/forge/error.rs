//! What can go wrong with a forge.

use crate::git::GitError;
use crate::names::{BranchName, CommitSha, RepoName};
use crate::scratch::ScratchError;

use super::github::GitHubError;

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
    /// GitHub shows no such repository, which may be there all the same.
    #[error(
        "{place} has no repository {repo} that the token may see: name one that is there, or let the token use it"
    )]
    NotSeen {
        /// The account.
        place: String,
        /// The name that was given.
        repo: RepoName,
    },
    /// GitHub's answer.
    #[error("{repo} could not be {act}")]
    GitHub {
        /// The repository.
        repo: RepoName,
        /// `read` or `written`.
        act: &'static str,
        /// Why.
        #[source]
        source: Box<GitHubError>,
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

impl ForgeError {
    /// Whether the same may succeed later, with nothing changed.
    pub fn is_passing(&self) -> bool {
        matches!(self, ForgeError::GitHub { source, .. } if source.is_passing())
    }

    /// Whether the forge was read, and does not have what was asked for, has it under another name, or lets nobody write to it.
    pub fn is_about_the_question(&self) -> bool {
        match self {
            ForgeError::NoRepository { .. }
            | ForgeError::NotSeen { .. }
            | ForgeError::OtherSpelling { .. }
            | ForgeError::Absent(_)
            | ForgeError::NotReachable { .. } => true,
            ForgeError::GitHub { source, .. } => matches!(
                **source,
                GitHubError::Renamed { .. } | GitHubError::ReadOnly { .. }
            ),
            ForgeError::NoFile { .. }
            | ForgeError::Git { .. }
            | ForgeError::List { .. }
            | ForgeError::Write { .. }
            | ForgeError::Scratch(_) => false,
        }
    }
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
