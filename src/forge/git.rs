//! A forge that is nothing but git repositories: `<root>/<name>.git`, in a folder or below a URL.

use crate::git::history::{self, Located};
use crate::git::tree::{Found, Kind, PartialClone};
use crate::git::{Credentials, GitError, Remote};
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName, RepoUrl};
use crate::scratch::Scratch;

use super::{ForgeError, Listing};

/// How many names an error lists.
const NAMES: usize = 20;

/// The repositories below one root.
#[derive(Clone, Debug)]
pub struct GitForge {
    root: RepoUrl,
    known_as: Option<RepoUrl>,
    credentials: Option<Credentials>,
}

impl GitForge {
    /// `known_as` is the base URL by which others (the registry, Argo CD) know the repositories; the root when absent.
    pub fn new(
        root: RepoUrl,
        known_as: Option<RepoUrl>,
        credentials: Option<Credentials>,
    ) -> GitForge {
        GitForge {
            root,
            known_as,
            credentials,
        }
    }

    pub(super) fn fetch_url(&self, repo: &RepoName) -> RepoUrl {
        self.root.join(repo)
    }

    pub(super) fn known_url(&self, repo: &RepoName) -> RepoUrl {
        self.known_as.as_ref().unwrap_or(&self.root).join(repo)
    }

    /// A folder can be listed, so another case of a name is told from a missing one. Below a URL only the server knows:
    /// it either has the repository or not.
    pub(super) async fn canonical_name(&self, repo: &RepoName) -> Result<(), ForgeError> {
        let Some(folder) = self.root.folder() else {
            return self
                .remote(repo)
                .heads()
                .await
                .map(|_| ())
                .map_err(git(repo));
        };
        let place = folder.display().to_string();
        let names = names_in(&folder).map_err(|source| ForgeError::List {
            place: place.clone(),
            source,
        })?;
        if names.contains(repo) {
            return Ok(());
        }
        let given = repo.as_str().to_lowercase();
        match names
            .iter()
            .find(|name| name.as_str().to_lowercase() == given)
        {
            Some(canonical) => Err(ForgeError::OtherSpelling {
                place,
                given: repo.clone(),
                canonical: canonical.clone(),
            }),
            None => Err(ForgeError::NoRepository {
                place,
                repo: repo.clone(),
                names: names.into_iter().take(NAMES).collect(),
            }),
        }
    }

    pub(super) async fn head(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<CommitSha, ForgeError> {
        self.remote(repo).head(branch).await.map_err(git(repo))
    }

    pub(super) async fn locate(
        &self,
        repo: &RepoName,
        branch: &BranchName,
        prefix: &CommitPrefix,
    ) -> Result<Located, ForgeError> {
        let scratch = Scratch::new()?;
        let folder = scratch.path().join("commits.git");
        history::locate(&self.remote(repo), &folder, branch, prefix)
            .await
            .map_err(git(repo))
    }

    pub(super) async fn read(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        file: &str,
    ) -> Result<Option<Vec<u8>>, ForgeError> {
        let scratch = Scratch::new()?;
        let folder = scratch.path().join("clone.git");
        let remote = self.remote(repo);
        let read = async {
            let mut clone = PartialClone::init(&remote, &folder).await?;
            let commit = clone.commit(commit).await?;
            match clone.find(&commit, file).await? {
                Found::Entry(entry) if matches!(entry.kind, Kind::File { .. }) => {
                    clone.blob(&entry.id).await.map(Some)
                }
                _ => Ok(None),
            }
        };
        read.await.map_err(git(repo))
    }

    pub(super) async fn list(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folders: &[String],
    ) -> Result<Vec<Option<Listing>>, ForgeError> {
        let scratch = Scratch::new()?;
        let folder = scratch.path().join("clone.git");
        let remote = self.remote(repo);
        let list = async {
            let mut clone = PartialClone::init(&remote, &folder).await?;
            let commit = clone.commit(commit).await?;
            let mut listings = Vec::new();
            for wanted in folders {
                let entries = match clone.find(&commit, wanted).await? {
                    Found::Entry(entry) if entry.kind == Kind::Tree => {
                        clone.entries(&entry.id).await?
                    }
                    _ => {
                        listings.push(None);
                        continue;
                    }
                };
                let (trees, others): (Vec<_>, Vec<_>) =
                    entries.into_iter().partition(|e| e.kind == Kind::Tree);
                listings.push(Some(Listing {
                    folders: trees.into_iter().map(|e| e.name).collect(),
                    files: others.into_iter().map(|e| e.name).collect(),
                }));
            }
            Ok(listings)
        };
        list.await.map_err(git(repo))
    }

    fn remote(&self, repo: &RepoName) -> Remote {
        Remote::new(self.fetch_url(repo), self.credentials.clone())
    }
}

fn git(repo: &RepoName) -> impl FnOnce(GitError) -> ForgeError {
    let repo = repo.clone();
    |source| match source {
        GitError::NoBranch { .. } | GitError::NoCommit { .. } | GitError::Ambiguous { .. } => {
            ForgeError::Absent(source)
        }
        source => ForgeError::Git { repo, source },
    }
}

/// The repositories in a folder: its `<name>.git` folders whose names can be repository names.
fn names_in(folder: &std::path::Path) -> std::io::Result<Vec<RepoName>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".git"));
        names.extend(name.and_then(|name| name.parse().ok()));
    }
    names.sort();
    Ok(names)
}
