//! A forge that is nothing but git repositories: `<root>/<name>.git`, in a folder or below a URL.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use git2::Oid;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::git::history::{self, Located};
use crate::git::tree::{self, Commit, Extent, Found, Kind, PartialClone};
use crate::git::write::{Author, Change, Pushed};
use crate::git::{Credentials, GitError, Remote};
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName, RepoUrl};
use crate::scratch::Scratch;

use super::{FileToReplace, FolderToGo, ForgeError, Removal, Replacement, Standing};

/// How many names an error lists.
const NAMES: usize = 20;

/// The repositories below one root. What was fetched of one is kept for as long as the forge is.
pub struct GitForge {
    root: RepoUrl,
    known_as: Option<RepoUrl>,
    credentials: Option<Credentials>,
    clones: Mutex<Clones>,
}

/// One clone a repository, in a private folder that is made with the first. Who works in one keeps nobody from another.
#[derive(Default)]
struct Clones {
    scratch: Option<Scratch>,
    clones: BTreeMap<RepoName, Arc<Mutex<PartialClone>>>,
}

impl Clones {
    fn of(
        &mut self,
        forge: &GitForge,
        repo: &RepoName,
    ) -> Result<Arc<Mutex<PartialClone>>, ForgeError> {
        match self.clones.entry(repo.clone()) {
            Entry::Occupied(clone) => Ok(Arc::clone(clone.get())),
            Entry::Vacant(place) => {
                let scratch = match &mut self.scratch {
                    Some(scratch) => scratch,
                    none => none.insert(Scratch::new()?),
                };
                let folder = scratch.path().join(format!("{repo}.git"));
                let clone = PartialClone::init(forge.remote(repo), folder).map_err(git(repo))?;
                Ok(Arc::clone(place.insert(Arc::new(Mutex::new(clone)))))
            }
        }
    }
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
            clones: Mutex::default(),
        }
    }

    async fn clone_of(&self, repo: &RepoName) -> Result<OwnedMutexGuard<PartialClone>, ForgeError> {
        let clone = self.clones.lock().await.of(self, repo)?;
        Ok(clone.lock_owned().await)
    }

    pub(super) fn fetch_url(&self, repo: &RepoName) -> RepoUrl {
        self.root.join(repo)
    }

    pub(super) fn known_url(&self, repo: &RepoName) -> RepoUrl {
        self.known_as.as_ref().unwrap_or(&self.root).join(repo)
    }

    /// Where the repositories are, for people.
    pub(super) fn place(&self) -> String {
        match self.root.folder() {
            Some(folder) => folder.display().to_string(),
            None => self.root.to_string(),
        }
    }

    /// A folder can be listed, so another case of a name is told from a missing one. Below a URL only the server knows:
    /// it either has the repository or not.
    pub(super) async fn standing(&self, repo: &RepoName) -> Result<Standing, ForgeError> {
        let Some(folder) = self.root.folder() else {
            let heads = self.remote(repo).heads().await;
            return heads.map(|_| Standing::Writable).map_err(git(repo));
        };
        let names = names_in(&folder).map_err(|source| ForgeError::List {
            place: self.place(),
            source,
        })?;
        if names.contains(repo) {
            return Ok(Standing::Writable);
        }
        let given = repo.as_str().to_lowercase();
        let canonical = names
            .iter()
            .find(|name| name.as_str().to_lowercase() == given);
        Ok(match canonical {
            Some(canonical) => Standing::OtherSpelling(canonical.clone()),
            None => Standing::Absent {
                names: names.into_iter().take(NAMES).collect(),
            },
        })
    }

    pub(super) async fn head(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<CommitSha, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let head = clone.head(branch, Extent::TopTree).await;
        head.map(|commit| commit.sha).map_err(git(repo))
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
        let mut clone = self.clone_of(repo).await?;
        let read = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            match clone.find(&commit, file).await? {
                Found::Entry(entry) if matches!(entry.kind, Kind::File { .. }) => {
                    clone.blob(entry.id).await.map(Some)
                }
                _ => Ok(None),
            }
        };
        read.await.map_err(git(repo))
    }

    pub(super) async fn tree_of(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<String>, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let read = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            folder_at(&mut clone, &commit, folder).await
        };
        read.await.map_err(git(repo))
    }

    pub(super) async fn remove_folder(
        &self,
        wanted: FolderToGo<'_>,
        message: &str,
        author: &Author,
    ) -> Result<Removal, ForgeError> {
        let FolderToGo {
            repo,
            branch,
            folder,
            tree,
        } = wanted;
        let mut clone = self.clone_of(repo).await?;
        let read = async {
            let head = clone.head(branch, Extent::TopTree).await?;
            let found = folder_at(&mut clone, &head, folder).await?;
            Ok((head, found))
        };
        let (head, found) = read.await.map_err(git(repo))?;
        match found {
            None => return Ok(Removal::Nothing),
            Some(found) if found != tree => return Ok(Removal::Changed),
            Some(_) => {}
        }
        let write = async {
            let without = clone
                .tree_with(Some(&head), folder, Change::RemoveFolder)
                .await?;
            let commit = clone.make_commit(without, Some(&head), message, author)?;
            let reference = format!("refs/heads/{branch}");
            match clone.push(&reference, Some(&head.sha), &commit).await? {
                Pushed::Done => Ok(Removal::Done(commit.sha)),
                Pushed::Moved(_) => Ok(Removal::Moved),
            }
        };
        write.await.map_err(|source| ForgeError::Write {
            repo: repo.clone(),
            source,
        })
    }

    pub(super) async fn replace_file(
        &self,
        wanted: FileToReplace<'_>,
        content: &[u8],
        message: &str,
        author: &Author,
    ) -> Result<Replacement, ForgeError> {
        let FileToReplace {
            repo,
            branch,
            base,
            file,
        } = wanted;
        let mut clone = self.clone_of(repo).await?;
        let write = async {
            let base = clone.commit(base, Extent::TopTree).await?;
            let blob = clone.keep_blob(content)?;
            let with = clone
                .tree_with(Some(&base), file, Change::Put(blob))
                .await?;
            let commit = clone.make_commit(with, Some(&base), message, author)?;
            let reference = format!("refs/heads/{branch}");
            match clone.push(&reference, Some(&base.sha), &commit).await? {
                Pushed::Done => Ok(Replacement::Done(commit.sha)),
                Pushed::Moved(_) => Ok(Replacement::Moved),
            }
        };
        write.await.map_err(|source| ForgeError::Write {
            repo: repo.clone(),
            source,
        })
    }

    pub(super) async fn may_write(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(), ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let head = clone
            .head(branch, Extent::TopTree)
            .await
            .map_err(git(repo))?;
        let tried = clone.try_push(&format!("refs/heads/{branch}"), &head).await;
        tried.map_err(|source| ForgeError::Write {
            repo: repo.clone(),
            source,
        })
    }

    pub(super) async fn has_folder(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<bool, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let look = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            clone.is_folder(&commit, folder).await
        };
        look.await.map_err(git(repo))
    }

    pub(super) async fn folders_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<String>, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let list = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            let entries = match clone.find(&commit, folder).await? {
                Found::Entry(entry) if entry.kind == Kind::Tree => clone.entries(entry.id).await?,
                _ => Vec::new(),
            };
            let folders = entries.into_iter().filter(|e| e.kind == Kind::Tree);
            Ok(folders.map(|entry| entry.name).collect())
        };
        list.await.map_err(git(repo))
    }

    pub(super) async fn revision(
        &self,
        repo: &RepoName,
        revision: &str,
    ) -> Result<BTreeSet<CommitSha>, ForgeError> {
        let remote = self.remote(repo);
        remote.revision(revision).await.map_err(git(repo))
    }

    pub(super) async fn files_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<Vec<String>>, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let list = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            clone.fetch_below(commit.tree).await?;
            let tree = match clone.find(&commit, folder).await? {
                Found::Entry(entry) if entry.kind == Kind::Tree => entry.id,
                Found::Nothing | Found::OtherCase(_) => return Ok(Some(Vec::new())),
                Found::Entry(_) | Found::NotAFolder(_) => return Ok(None),
            };
            let entries = clone.entries(tree).await?;
            let files = entries.into_iter().filter(|e| e.kind != Kind::Tree);
            Ok(Some(files.map(|entry| entry.name).collect()))
        };
        list.await.map_err(git(repo))
    }

    pub(super) async fn everything_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<tree::Entry>, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        let list = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            clone.fetch_below(commit.tree).await?;
            match clone.find(&commit, folder).await? {
                Found::Entry(entry) if entry.kind == Kind::Tree => clone.below(entry.id).await,
                _ => Ok(Vec::new()),
            }
        };
        list.await.map_err(git(repo))
    }

    pub(super) async fn contents(
        &self,
        repo: &RepoName,
        ids: &[Oid],
    ) -> Result<HashMap<Oid, Vec<u8>>, ForgeError> {
        let mut clone = self.clone_of(repo).await?;
        clone.blobs(ids).await.map_err(git(repo))
    }

    pub(super) async fn refs_below(
        &self,
        repo: &RepoName,
        namespaces: &[&str],
    ) -> Result<BTreeMap<String, CommitSha>, ForgeError> {
        let refs = self.remote(repo).refs_below(namespaces).await;
        refs.map_err(git(repo))
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

/// The id of a folder's tree; nothing where there is none.
async fn folder_at(
    clone: &mut PartialClone,
    commit: &Commit,
    folder: &str,
) -> Result<Option<String>, GitError> {
    match clone.find(commit, folder).await? {
        Found::Entry(entry) if entry.kind == Kind::Tree => Ok(Some(entry.id.to_string())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
