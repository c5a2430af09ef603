//! A forge that is nothing but git repositories: `<root>/<name>.git`, in a folder or below a URL.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::Mutex;

use crate::git::history::{self, Located};
use crate::git::tree::{Commit, Extent, Found, Kind, PartialClone};
use crate::git::write::{Author, Change, Pushed};
use crate::git::{Credentials, GitError, Remote};
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName, RepoUrl};
use crate::scratch::Scratch;

use super::{FolderToGo, ForgeError, Removal};

/// How many names an error lists.
const NAMES: usize = 20;

/// The repositories below one root. What was fetched of one is kept for as long as the forge is.
pub struct GitForge {
    root: RepoUrl,
    known_as: Option<RepoUrl>,
    credentials: Option<Credentials>,
    clones: Mutex<Clones>,
}

/// One clone a repository, in a private folder that is made with the first.
#[derive(Default)]
struct Clones {
    scratch: Option<Scratch>,
    clones: BTreeMap<RepoName, PartialClone>,
}

impl Clones {
    fn of(&mut self, forge: &GitForge, repo: &RepoName) -> Result<&mut PartialClone, ForgeError> {
        match self.clones.entry(repo.clone()) {
            Entry::Occupied(clone) => Ok(clone.into_mut()),
            Entry::Vacant(place) => {
                let scratch = match &mut self.scratch {
                    Some(scratch) => scratch,
                    none => none.insert(Scratch::new()?),
                };
                let folder = scratch.path().join(format!("{repo}.git"));
                let clone = PartialClone::init(forge.remote(repo), folder).map_err(git(repo))?;
                Ok(place.insert(clone))
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
        let read = async {
            let commit = clone.commit(commit, Extent::TopTree).await?;
            folder_at(clone, &commit, folder).await
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
        let read = async {
            let head = clone.head(branch, Extent::TopTree).await?;
            let found = folder_at(clone, &head, folder).await?;
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

    pub(super) async fn may_write(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(), ForgeError> {
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
        let mut clones = self.clones.lock().await;
        let clone = clones.of(self, repo)?;
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
mod tests {
    use git2::{Commit, Repository, Signature, Time};

    use super::*;

    fn signature() -> Signature<'static> {
        Signature::new("A", "a@example.com", &Time::new(1, 0)).unwrap()
    }

    /// A commit with `chart/.argocd-source.yaml` in it, a link, and a file at its top.
    fn commit<'r>(repository: &'r Repository, branch: &str, content: &str) -> Commit<'r> {
        let blob = repository.blob(content.as_bytes()).unwrap();
        let mut chart = repository.treebuilder(None).unwrap();
        chart
            .insert(".argocd-source.yaml", blob, 0o100_644)
            .unwrap();
        let templates = repository.treebuilder(None).unwrap().write().unwrap();
        chart.insert("templates", templates, 0o040_000).unwrap();
        let mut top = repository.treebuilder(None).unwrap();
        top.insert("chart", chart.write().unwrap(), 0o040_000)
            .unwrap();
        top.insert("link", blob, 0o120_000).unwrap();
        top.insert("file", blob, 0o100_644).unwrap();
        let tree = repository.find_tree(top.write().unwrap()).unwrap();
        let by = signature();
        let reference = format!("refs/heads/{branch}");
        let id = repository
            .commit(Some(&reference), &by, &by, "", &tree, &[])
            .unwrap();
        repository.find_commit(id).unwrap()
    }

    fn forge(folder: &std::path::Path) -> (GitForge, Repository) {
        let repository = Repository::init_bare(folder.join("It.git")).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        let root = folder.to_str().unwrap().parse().unwrap();
        (GitForge::new(root, None, None), repository)
    }

    #[tokio::test]
    async fn a_revision_is_told_as_a_branch_a_tag_a_commit_or_the_head() {
        let folder = tempfile::tempdir().unwrap();
        let (forge, repository) = forge(folder.path());
        let main = commit(&repository, "main", "a");
        let next = commit(&repository, "next", "b");
        commit(&repository, "twice", "c");
        let by = signature();
        let object = next.as_object();
        repository
            .tag("v1", object, &by, "annotated", false)
            .unwrap();
        repository.tag_lightweight("v2", object, false).unwrap();
        repository.tag_lightweight("twice", object, false).unwrap();
        let repo = "It".parse().unwrap();
        let sha = next.id().to_string();
        let [main, next] = [main, next].map(|commit| commit.id().to_string());
        for (revision, expected) in [
            ("", vec![&main]),
            ("HEAD", vec![&main]),
            ("main", vec![&main]),
            ("next", vec![&next]),
            ("refs/heads/next", vec![&next]),
            ("v1", vec![&next]),
            ("v2", vec![&next]),
            (&sha, vec![&next]),
            ("*", vec![]),
            ("1.x", vec![]),
            (&sha[..7], vec![]),
        ] {
            let found = forge.revision(&repo, revision).await.unwrap();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{revision}");
        }
        assert_eq!(forge.revision(&repo, "twice").await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn the_files_of_a_folder_are_told_from_none_and_from_what_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (forge, repository) = forge(folder.path());
        let id = commit(&repository, "main", "a").id().to_string();
        let (repo, id) = ("It".parse().unwrap(), id.parse().unwrap());
        for (path, expected) in [
            ("chart", Some(vec![".argocd-source.yaml"])),
            ("", Some(vec!["file", "link"])),
            ("chart/templates", Some(vec![])),
            ("other", Some(vec![])),
            ("Chart", Some(vec![])),
            ("link", None),
            ("link/chart", None),
            ("file", None),
        ] {
            let found = forge.files_in(&repo, &id, path).await.unwrap();
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(found, expected, "{path}");
        }
    }
}
