//! Where the repositories live: their spelling, their branches, their files.

mod change;
mod error;
pub mod git;
pub mod github;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use git2::Oid;

use crate::git::history::{Located, Reach};
use crate::git::tree::Entry;
use crate::git::write::Author;
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName, RepoUrl};

pub use change::{Edit, Edited, FileToEdit, FileToReplace, FolderToGo, Removal, Replacement};
pub use error::ForgeError;
use git::GitForge;
use github::{GitHubError, GitHubForge};

/// A random number from 0.25 to 1; where the system has none, 1.
fn part() -> f64 {
    let mut byte = [u8::MAX];
    let drawn = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::empty());
    tracing::debug!(drawn = drawn.is_ok(), "a part of a wait");
    0.25 + 0.75 * f64::from(byte[0]) / f64::from(u8::MAX)
}

/// How a forge has a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Under this name, and nothing is known that keeps commits out of it.
    Writable,
    /// Under this name, and nothing can be written to it any more.
    ReadOnly {
        /// `archived` or `disabled`.
        how: &'static str,
    },
    /// Under this name, which differs in case.
    OtherSpelling(RepoName),
    /// Under a new name.
    Renamed {
        /// The new `owner/name`, or its address.
        to: String,
    },
    /// Not at all. GitHub says the same of one that it does not show.
    Absent {
        /// Names that are there, where the forge lists them.
        names: Vec<RepoName>,
    },
}

/// How often an edit is judged and tried again, when somebody else has written to the branch meanwhile.
const RACES: u32 = 40;

/// A forge.
pub enum Forge {
    /// A folder of git repositories, or a URL below which they lie.
    Git(GitForge),
    /// An account on GitHub.
    GitHub(Box<GitHubForge>),
}

impl Forge {
    /// How the forge has the repository, by one question.
    pub async fn standing(&self, repo: &RepoName) -> Result<Standing, ForgeError> {
        match self {
            Forge::Git(forge) => forge.standing(repo).await,
            Forge::GitHub(forge) => forge.standing(repo).await,
        }
    }

    /// Checks that the forge has the repository under exactly this spelling.
    pub async fn canonical_name(&self, repo: &RepoName) -> Result<(), ForgeError> {
        let place = match self {
            Forge::Git(forge) => forge.place(),
            Forge::GitHub(forge) => forge.place(),
        };
        let repo = repo.clone();
        Err(match (self.standing(&repo).await?, self) {
            (Standing::Writable | Standing::ReadOnly { .. }, _) => return Ok(()),
            (Standing::OtherSpelling(canonical), _) => ForgeError::OtherSpelling {
                place,
                given: repo,
                canonical,
            },
            (Standing::Renamed { to }, _) => ForgeError::GitHub {
                repo,
                act: "read",
                source: Box::new(GitHubError::Renamed { to }),
            },
            (Standing::Absent { names }, Forge::Git(_)) => {
                ForgeError::NoRepository { place, repo, names }
            }
            (Standing::Absent { .. }, Forge::GitHub(_)) => ForgeError::NotSeen { place, repo },
        })
    }

    /// Where the repository is fetched from.
    pub fn fetch_url(&self, repo: &RepoName) -> RepoUrl {
        match self {
            Forge::Git(forge) => forge.fetch_url(repo),
            Forge::GitHub(forge) => forge.url(repo),
        }
    }

    /// The URL by which the registry and the Applications know the repository.
    pub fn known_url(&self, repo: &RepoName) -> RepoUrl {
        match self {
            Forge::Git(forge) => forge.known_url(repo),
            Forge::GitHub(forge) => forge.url(repo),
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
            Forge::GitHub(forge) => forge.head(repo, branch).await,
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
            Forge::GitHub(forge) => forge.locate(repo, branch, prefix).await?,
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
            Forge::GitHub(forge) => forge.read(repo, commit, file).await?,
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
            Forge::GitHub(forge) => forge.tree_of(repo, commit, folder).await,
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
            Forge::GitHub(forge) => forge.remove_folder(folder, message, author).await,
        }
    }

    /// Replaces a file in one commit on top of `base`, if that is still the branch's head. The caller judges anew before it tries again.
    pub async fn replace_file(
        &self,
        file: FileToReplace<'_>,
        content: &[u8],
        message: &str,
        author: &Author,
    ) -> Result<Replacement, ForgeError> {
        match self {
            Forge::Git(forge) => forge.replace_file(file, content, message, author).await,
            Forge::GitHub(forge) => forge.replace_file(file, content, message, author).await,
        }
    }

    /// Edits a file in one commit: what it holds at the branch's head is judged, and after a lost race what it holds then, a bounded
    /// number of times.
    pub async fn edit_file<E: From<ForgeError>>(
        &self,
        place: FileToEdit<'_>,
        author: &Author,
        mut judge: impl FnMut(&CommitSha, &[u8]) -> Result<Edit, E>,
    ) -> Result<Edited, E> {
        let FileToEdit { repo, branch, file } = place;
        for races in 0..RACES {
            let head = self.head(repo, branch).await?;
            let before = self.read(repo, &head, file).await?;
            let (content, message) = match judge(&head, &before)? {
                Edit::Nothing => return Ok(Edited::Nothing(head)),
                Edit::Write { content, message } => (content, message),
            };
            let base = FileToReplace {
                repo,
                branch,
                base: &head,
                file,
            };
            match self.replace_file(base, &content, &message, author).await? {
                Replacement::Done(commit) => return Ok(Edited::Done(commit)),
                Replacement::Moved => self.after_lost_race(races).await,
            }
        }
        Ok(Edited::Contended)
    }

    /// Waits before what was lost to somebody else is read and judged again; `races` were lost before this one. The wait is a random part of one that
    /// grows: those who lost together do not meet again, and GitHub's reads catch up with its writes.
    pub async fn after_lost_race(&self, races: u32) {
        let longest = match self {
            Forge::Git(_) => Duration::from_millis(50) * 2_u32.pow(races.min(5)),
            Forge::GitHub(forge) => forge.after_races(races),
        };
        tokio::time::sleep(longest.mul_f64(part())).await;
    }

    /// Refuses a repository that the forge says nobody writes to any more, such as an archived one.
    pub async fn takes_commits(&self, repo: &RepoName) -> Result<(), ForgeError> {
        match self {
            Forge::Git(_) => Ok(()),
            Forge::GitHub(forge) => forge.takes_commits(repo).await,
        }
    }

    /// Finds out, as far as the forge tells, whether the branch would take a commit; writes nothing.
    pub async fn may_write(&self, repo: &RepoName, branch: &BranchName) -> Result<(), ForgeError> {
        match self {
            Forge::Git(forge) => forge.may_write(repo, branch).await,
            Forge::GitHub(forge) => forge.may_write(repo, branch).await,
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
            Forge::GitHub(forge) => Ok(forge.tree_of(repo, commit, folder).await?.is_some()),
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
            Forge::GitHub(forge) => forge.folders_in(repo, commit, folder).await,
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
            Forge::GitHub(forge) => forge.revision(repo, revision).await,
        }
    }

    /// Everything below a folder of the commit (empty: its top) that is no folder, each by its path below it, in the order of these; one
    /// that is not there has nothing. All of the commit's folders are read at once, for many such questions, and no file.
    pub async fn everything_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<Entry>, ForgeError> {
        let mut entries = match self {
            Forge::Git(forge) => forge.everything_in(repo, commit, folder).await?,
            Forge::GitHub(forge) => forge.everything_in(repo, commit, folder).await?,
        };
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// The contents of many files, by the ids that [`Forge::everything_in`] gave: of git repositories with one fetch.
    pub async fn contents(
        &self,
        repo: &RepoName,
        ids: &[Oid],
    ) -> Result<HashMap<Oid, Vec<u8>>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.contents(repo, ids).await,
            Forge::GitHub(forge) => forge.contents(repo, ids).await,
        }
    }

    /// The refs whose names begin with one of these, such as `refs/heads/locks/`, and where they are.
    pub async fn refs_below(
        &self,
        repo: &RepoName,
        namespaces: &[&str],
    ) -> Result<BTreeMap<String, CommitSha>, ForgeError> {
        match self {
            Forge::Git(forge) => forge.refs_below(repo, namespaces).await,
            Forge::GitHub(forge) => {
                let mut refs = BTreeMap::new();
                for namespace in namespaces {
                    refs.extend(forge.refs_below(repo, namespace).await?);
                }
                Ok(refs)
            }
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
            Forge::GitHub(forge) => forge.files_in(repo, commit, folder).await,
        }
    }
}
