//! Trees of one commit, level by level, out of a partial clone: what is fetched does not depend on what lies beside it.
//!
//! The git program fetches; libgit2 reads what is here. git's own lazy fetch would ask for whole folders of blobs, and
//! libgit2 has none, so an object that was not asked for is never fetched by accident.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use git2::{ObjectType, Oid, Repository};
use tokio::process::Command;

use crate::names::{BranchName, CommitSha};

use super::{GitError, ORIGIN, Remote, init_bare, run};

/// A folder of a deploy repository that holds more is a mistake, or meant to keep us busy: a few trees that name one
/// another many times stand for any number of files.
const MOST_ENTRIES: usize = 200_000;

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file; `executable` is the only mode bit that git keeps.
    File {
        /// Whether it may be executed.
        executable: bool,
    },
    /// A folder.
    Tree,
    /// A symbolic link; its target is the blob's content.
    Link,
    /// A submodule: a commit of another repository.
    Submodule,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its object.
    pub id: Oid,
    /// Its name; of a whole listing its path below the listed tree.
    pub name: String,
}

/// A path was looked for in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Entry(Entry),
    /// It is not there.
    Nothing,
    /// It is not there: what stands at this path on the way to it is no folder.
    NotAFolder(String),
    /// It is not there, but this path is, which differs from it in case alone.
    OtherCase(String),
}

/// How much of a commit is fetched at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The commit and its top tree.
    TopTree,
    /// The commit and all its trees, no file.
    AllTrees,
}

impl Extent {
    fn filter(self) -> &'static str {
        match self {
            Extent::TopTree => "--filter=tree:1",
            Extent::AllTrees => "--filter=blob:none",
        }
    }
}

/// A bare partial clone in a private folder.
pub struct PartialClone {
    remote: Remote,
    folder: PathBuf,
    repository: Repository,
    /// The trees that are here with all trees below them.
    whole: HashSet<Oid>,
}

/// A commit whose trees can be read.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub sha: CommitSha,
    /// Its top tree.
    pub tree: Oid,
}

impl PartialClone {
    /// Makes an empty clone of `remote` in `folder`, which is made and is best below a [`crate::scratch::Scratch`].
    pub fn init(remote: Remote, folder: PathBuf) -> Result<PartialClone, GitError> {
        let repository = init_bare(&remote, &folder)?;
        Ok(PartialClone {
            remote,
            folder,
            repository,
            whole: HashSet::new(),
        })
    }

    /// Where it is a clone of.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(super) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// A git command in this clone.
    pub(super) fn git(&self) -> Result<Command, GitError> {
        self.remote.git(Some(&self.folder))
    }

    /// Fetches the head of a branch without its history.
    pub async fn head(&mut self, branch: &BranchName, extent: Extent) -> Result<Commit, GitError> {
        let act = format!("fetching the branch {branch} of {}", self.remote.url());
        let reference = format!("refs/heads/{branch}");
        let refspec = format!("+{reference}:{reference}");
        let fetched = self
            .fetch(&act, &["--depth=1", extent.filter()], &refspec)
            .await;
        if let Err(error) = fetched {
            // git's exit code is the same for a missing branch and for anything else; asking for the branches tells.
            self.remote.head(branch).await?;
            return Err(error);
        }
        let id = self.read(&act, |r| r.refname_to_id(&reference))?;
        self.commit_of(&act, id)
    }

    /// Fetches one commit without its history.
    pub async fn commit(&mut self, sha: &CommitSha, extent: Extent) -> Result<Commit, GitError> {
        let act = format!("fetching commit {sha} of {}", self.remote.url());
        let id = self.read(&act, |_| Oid::from_str(sha.as_str()))?;
        if !self.has(id) {
            let options = ["--depth=1", extent.filter()];
            if let Err(error) = self.fetch(&act, &options, sha.as_str()).await {
                // git's exit code does not tell a missing commit from a server that cannot be read: ask it for less.
                self.remote.heads().await?;
                tracing::debug!(%error, "the commit was not fetched");
                return Err(GitError::NoCommit {
                    url: self.remote.url().clone(),
                    commit: sha.to_string(),
                });
            }
        }
        self.commit_of(&act, id)
    }

    /// Fetches these commits with all their trees, no file, and without their history, by one request. It may be that one
    /// is not there any more; then none is fetched by it, and each that is asked for is fetched by itself.
    pub async fn fetch_commits(&mut self, commits: &[CommitSha]) -> Result<(), GitError> {
        let act = format!(
            "fetching {} commits of {}",
            commits.len(),
            self.remote.url()
        );
        let ids = commits.iter().map(|sha| Oid::from_str(sha.as_str()));
        let ids = ids.collect::<Result<Vec<Oid>, _>>();
        let ids = self.read(&act, |_| ids)?;
        let options = ["--depth=1", Extent::AllTrees.filter()];
        if let Err(error) = self.need(&act, &ids, &options).await {
            tracing::debug!(%error, "the commits were not fetched at once");
        }
        Ok(())
    }

    fn commit_of(&self, act: &str, id: Oid) -> Result<Commit, GitError> {
        let tree = self.read(act, |r| Ok(r.find_commit(id)?.tree_id()))?;
        let sha = super::parse_sha(act, &id.to_string())?;
        Ok(Commit { sha, tree })
    }

    /// The trailers of the commit's message, each with its key and its value.
    pub fn trailers(&self, commit: &Commit) -> Result<Vec<(String, String)>, GitError> {
        let act = format!("reading commit {} of {}", commit.sha, self.remote.url());
        let id = self.read(&act, |_| Oid::from_str(commit.sha.as_str()))?;
        self.read(&act, |r| {
            let found = r.find_commit(id)?;
            Ok(super::trailers::of_message(found.message_raw_bytes()))
        })
    }

    /// The entries of one tree.
    pub async fn entries(&mut self, tree: Oid) -> Result<Vec<Entry>, GitError> {
        let act = format!("reading a folder of {}", self.remote.url());
        self.need(&act, &[tree], &["--filter=tree:0"]).await?;
        self.list(&act, tree)
    }

    /// Looks for `path` (segments joined by `/`; empty is the top tree), one level at a time.
    pub async fn find(&mut self, commit: &Commit, path: &str) -> Result<Found, GitError> {
        let mut here = Entry {
            kind: Kind::Tree,
            id: commit.tree,
            name: String::new(),
        };
        let mut walked: Vec<String> = Vec::new();
        for segment in path.split('/').filter(|s| !s.is_empty()) {
            if here.kind != Kind::Tree {
                return Ok(Found::NotAFolder(walked.join("/")));
            }
            let entries = self.entries(here.id).await?;
            let other_case = entries
                .iter()
                .find(|e| e.name != segment && e.name.to_lowercase() == segment.to_lowercase())
                .map(|e| e.name.clone());
            match (entries.into_iter().find(|e| e.name == segment), other_case) {
                (Some(entry), _) => here = entry,
                (None, Some(other)) => {
                    walked.push(other);
                    return Ok(Found::OtherCase(walked.join("/")));
                }
                (None, None) => return Ok(Found::Nothing),
            }
            walked.push(segment.to_owned());
        }
        Ok(Found::Entry(here))
    }

    /// Whether `path` is a folder of the commit.
    pub async fn is_folder(&mut self, commit: &Commit, path: &str) -> Result<bool, GitError> {
        let found = self.find(commit, path).await?;
        Ok(matches!(found, Found::Entry(entry) if entry.kind == Kind::Tree))
    }

    /// The content of one blob.
    pub async fn blob(&mut self, id: Oid) -> Result<Vec<u8>, GitError> {
        let mut blobs = self.blobs(&[id]).await?;
        Ok(blobs.remove(&id).unwrap_or_default())
    }

    /// Fetches many blobs with one request, to be read later.
    pub async fn fetch_blobs(&mut self, ids: &[Oid]) -> Result<(), GitError> {
        let act = format!("reading {} file(s) of {}", ids.len(), self.remote.url());
        self.need(&act, ids, &[]).await
    }

    /// The contents of many blobs, fetched with one request.
    pub async fn blobs(&mut self, ids: &[Oid]) -> Result<HashMap<Oid, Vec<u8>>, GitError> {
        let act = format!("reading {} file(s) of {}", ids.len(), self.remote.url());
        self.need(&act, ids, &[]).await?;
        let content = |id: Oid| self.read(&act, |r| Ok(r.find_blob(id)?.content().to_vec()));
        ids.iter().map(|id| Ok((*id, content(*id)?))).collect()
    }

    /// Fetches `tree` and all trees below it, but no file.
    pub async fn fetch_below(&mut self, tree: Oid) -> Result<(), GitError> {
        let act = format!("reading the folders of {}", self.remote.url());
        loop {
            // A tree that came alone is here without those below it; asked for themselves, they bring theirs along.
            let (here, missing) = self.look_below(&act, tree)?;
            if missing.is_empty() {
                self.whole.extend(here);
                return Ok(());
            }
            self.need(&act, &missing, &["--filter=blob:none"]).await?;
        }
    }

    /// Every file and link below `tree`, with its path below it.
    pub async fn below(&mut self, tree: Oid) -> Result<Vec<Entry>, GitError> {
        let act = format!("reading the folders of {}", self.remote.url());
        self.fetch_below(tree).await?;
        let mut files = Vec::new();
        let mut folders = vec![(String::new(), tree)];
        let mut met = 0;
        while let Some((prefix, id)) = folders.pop() {
            for mut entry in self.list(&act, id)? {
                met += 1;
                if met > MOST_ENTRIES {
                    return Err(GitError::Refused {
                        act,
                        text: format!("there are more than {MOST_ENTRIES} files and folders in it"),
                    });
                }
                entry.name = format!("{prefix}{}", entry.name);
                if entry.kind == Kind::Tree {
                    folders.push((format!("{}/", entry.name), entry.id));
                } else {
                    files.push(entry);
                }
            }
            // A stop is heard between two folders.
            tokio::task::yield_now().await;
        }
        Ok(files)
    }

    /// The trees below `tree`, itself included, that are here and not yet known to be whole, and those that are missing.
    fn look_below(&self, act: &str, tree: Oid) -> Result<(HashSet<Oid>, Vec<Oid>), GitError> {
        let mut missing = Vec::new();
        let mut trees = vec![tree];
        let mut seen = HashSet::new();
        while let Some(id) = trees.pop() {
            if self.whole.contains(&id) || !seen.insert(id) {
                continue;
            }
            if !self.has(id) {
                missing.push(id);
                continue;
            }
            let entries = self.list(act, id)?;
            trees.extend(
                entries
                    .iter()
                    .filter(|e| e.kind == Kind::Tree)
                    .map(|e| e.id),
            );
        }
        Ok((seen, missing))
    }

    /// Fetches those of `ids` that are not here.
    async fn need(&mut self, act: &str, ids: &[Oid], options: &[&str]) -> Result<(), GitError> {
        let mut missing: Vec<Oid> = ids.iter().copied().filter(|id| !self.has(*id)).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            // With nothing on its standard input git would fetch the remote's head.
            return Ok(());
        }
        let wanted: Vec<String> = missing.iter().map(Oid::to_string).collect();
        self.fetch(act, options, &wanted.join("\n")).await
    }

    async fn fetch(&mut self, act: &str, options: &[&str], wanted: &str) -> Result<(), GitError> {
        let mut git = self.git()?;
        git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        git.arg("--no-auto-maintenance");
        git.args(options).args(["--stdin", ORIGIN]);
        run(git, act, wanted.as_bytes()).await?;
        Ok(())
    }

    fn has(&self, id: Oid) -> bool {
        self.repository
            .odb()
            .is_ok_and(|objects| objects.exists(id))
    }

    fn read<T>(
        &self,
        act: &str,
        read: impl FnOnce(&Repository) -> Result<T, git2::Error>,
    ) -> Result<T, GitError> {
        read(&self.repository).map_err(|source| GitError::Object {
            act: act.to_owned(),
            source,
        })
    }

    fn list(&self, act: &str, tree: Oid) -> Result<Vec<Entry>, GitError> {
        let tree = self.repository.find_tree(tree);
        let tree = tree.map_err(|source| GitError::Object {
            act: act.to_owned(),
            source,
        })?;
        let entry = |entry: git2::TreeEntry<'_>| {
            let name = String::from_utf8(entry.name_bytes().to_vec());
            let name = name.map_err(|error| GitError::Refused {
                act: act.to_owned(),
                text: format!(
                    "the name {:?} in it is not UTF-8: rename it",
                    String::from_utf8_lossy(error.as_bytes())
                ),
            })?;
            let kind = match (entry.kind(), entry.filemode()) {
                (Some(ObjectType::Tree), _) => Kind::Tree,
                (Some(ObjectType::Commit), _) => Kind::Submodule,
                (_, 0o120_000) => Kind::Link,
                (_, mode) => Kind::File {
                    executable: mode & 0o111 != 0,
                },
            };
            Ok(Entry {
                kind,
                id: entry.id(),
                name,
            })
        };
        tree.iter().map(entry).collect()
    }
}
