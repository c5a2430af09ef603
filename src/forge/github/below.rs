//! Everything below a folder, and the content of many files: by as few requests as GitHub's limits leave.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use git2::Oid;

use super::error::GitHubError;
use super::object::{Entry, Kind, Listing, tree_id};
use super::{At, GitHubForge, encoded, unread};
use crate::forge::ForgeError;
use crate::git::tree;
use crate::names::{CommitSha, RepoName};

/// How many requests are under way at once. GitHub counts many at once as an abuse
/// (<https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api>).
const AT_ONCE: usize = 8;
/// How many listings one question may take: an hour has 5,000 requests.
const MOST_LISTINGS: usize = 1_000;
/// A few trees that name one another many times stand for any number of files.
const MOST_ENTRIES: usize = 200_000;

/// A folder that is walked.
struct Folder {
    /// Its path with a slash at its end; of the first one nothing.
    prefix: String,
    tree: String,
}

impl GitHubForge {
    /// The whole repository is listed with the first question, so that those for its other folders take no request; where that
    /// is too much for one listing, the folder is, and where that is as well, one level of it and each folder below.
    pub(in crate::forge) async fn everything_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<tree::Entry>, ForgeError> {
        let list = async {
            let top = self.top(repo, commit).await?;
            self.list_below(repo, &top).await?;
            match self.at(repo, commit, folder).await? {
                At::Top(tree) => self.walk(repo, tree, folder).await,
                At::Entry(entry) if entry.kind == Kind::Tree => {
                    self.walk(repo, entry.sha, folder).await
                }
                At::Entry(_) | At::Nothing | At::NotAFolder => Ok(Vec::new()),
            }
        };
        list.await.map_err(unread(repo))
    }

    async fn walk(
        &self,
        repo: &RepoName,
        tree: String,
        folder: &str,
    ) -> Result<Vec<tree::Entry>, GitHubError> {
        let prefix = String::new();
        let mut folders = vec![Folder { prefix, tree }];
        let mut files = Vec::new();
        let mut listings = 0;
        loop {
            folders = self.of_kept(repo, folders, &mut files).await?;
            if folders.is_empty() {
                return Ok(files);
            }
            let missing: BTreeMap<&str, &str> = folders
                .iter()
                .map(|folder| (folder.tree.as_str(), folder.prefix.as_str()))
                .collect();
            listings += missing.len();
            if listings > MOST_LISTINGS {
                return Err(GitHubError::TooLarge {
                    what: format!("the folder {folder:?}"),
                    holds: "folders that take a request each",
                    most: MOST_LISTINGS,
                });
            }
            let listed = missing.into_iter().map(|(tree, below)| async move {
                self.list_below(repo, tree).await?;
                let name = format!("{folder}/{below}");
                self.entries(repo, tree, name.trim_matches('/')).await
            });
            stream::iter(listed)
                .buffer_unordered(AT_ONCE)
                .try_for_each(async |_| Ok(()))
                .await?;
        }
    }

    /// What the kept listings have of these folders is put to `files`; the folders that none is kept of come back.
    async fn of_kept(
        &self,
        repo: &RepoName,
        mut folders: Vec<Folder>,
        files: &mut Vec<tree::Entry>,
    ) -> Result<Vec<Folder>, GitHubError> {
        let read = self.read.lock().await;
        let mut missing = Vec::new();
        // Of this round alone: the bound is not meant to be exact.
        let mut met = files.len();
        while let Some(folder) = folders.pop() {
            let key = (repo.clone(), folder.tree);
            let Some(entries) = read.trees.get(&key) else {
                let (prefix, (_, tree)) = (folder.prefix, key);
                missing.push(Folder { prefix, tree });
                continue;
            };
            for entry in entries.iter() {
                met += 1;
                let path = format!("{}{}", folder.prefix, entry.name);
                if entry.kind == Kind::Tree {
                    folders.push(Folder {
                        prefix: format!("{path}/"),
                        tree: entry.sha.clone(),
                    });
                } else {
                    files.push(entry.as_git(path)?);
                }
            }
            if met > MOST_ENTRIES {
                return Err(GitHubError::TooLarge {
                    what: "the folder".to_owned(),
                    holds: "files and folders",
                    most: MOST_ENTRIES,
                });
            }
        }
        Ok(missing)
    }

    /// Lists a tree with all that is below it, once, and keeps every listing in it that is whole. One that was cut off is of use
    /// up to where it ends: what an id proves is whole.
    async fn list_below(&self, repo: &RepoName, tree: &str) -> Result<(), GitHubError> {
        let key = (repo.clone(), tree.to_owned());
        let once = {
            let mut read = self.read.lock().await;
            Arc::clone(read.listed.entry(key).or_default())
        };
        let list = || async {
            let path = self.path(repo, &format!("/git/trees/{}?recursive=1", encoded(tree)));
            let listing: Listing = self.get(path).await?;
            let mut read = self.read.lock().await;
            for (id, entries) in by_folder(tree, listing.tree) {
                if tree_id(&entries).as_deref() == Some(id.as_str()) {
                    read.trees.insert((repo.clone(), id), Arc::new(entries));
                }
            }
            Ok(())
        };
        once.get_or_try_init(list).await.copied()
    }

    /// The contents of many blobs.
    pub(in crate::forge) async fn contents(
        &self,
        repo: &RepoName,
        ids: &[Oid],
    ) -> Result<HashMap<Oid, Vec<u8>>, ForgeError> {
        let mut wanted = ids.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let read = wanted.into_iter().map(|id| async move {
            let content = self.blob(repo, &id.to_string()).await?;
            Ok((id, content))
        });
        let read = stream::iter(read).buffer_unordered(AT_ONCE);
        read.try_collect().await.map_err(unread(repo))
    }
}

/// A listing of everything below a tree, as a listing of each tree in it.
fn by_folder(top: &str, listing: Vec<Entry>) -> Vec<(String, Vec<Entry>)> {
    let mut folders = HashMap::from([(String::new(), (top.to_owned(), Vec::new()))]);
    for entry in listing.iter().filter(|entry| entry.kind == Kind::Tree) {
        folders.insert(entry.name.clone(), (entry.sha.clone(), Vec::new()));
    }
    for mut entry in listing {
        let (folder, name) = entry.name.rsplit_once('/').unwrap_or(("", &entry.name));
        if let Some((_, entries)) = folders.get_mut(folder) {
            entry.name = name.to_owned();
            entries.push(entry);
        }
    }
    folders.into_values().collect()
}
