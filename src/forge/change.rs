//! What is to be changed in a repository, and what became of it.

use crate::names::{BranchName, CommitSha, RepoName};

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

/// What became of the replacement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// This commit replaced it.
    Done(CommitSha),
    /// The branch is no longer what it was read as; nothing was done.
    Moved,
}

/// A file of a branch that is to get another content.
#[derive(Clone, Copy, Debug)]
pub struct FileToReplace<'a> {
    /// The repository.
    pub repo: &'a RepoName,
    /// The branch.
    pub branch: &'a BranchName,
    /// The branch's head when it was read and judged.
    pub base: &'a CommitSha,
    /// The file, which is there.
    pub file: &'a str,
}

/// A file that is edited where it is.
#[derive(Clone, Copy, Debug)]
pub struct FileToEdit<'a> {
    /// The repository.
    pub repo: &'a RepoName,
    /// The branch.
    pub branch: &'a BranchName,
    /// The file, which is there.
    pub file: &'a str,
}

/// What a judgement of a file comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It is as it should be.
    Nothing,
    /// It gets this content, by a commit with this message.
    Write {
        /// All of the file.
        content: Vec<u8>,
        /// The commit's message, with its trailers.
        message: String,
    },
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edited {
    /// This commit made it.
    Done(CommitSha),
    /// There was nothing to do at this head.
    Nothing(CommitSha),
    /// Others wrote to the branch every time.
    Contended,
}
