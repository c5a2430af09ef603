//! GitHub, by its REST API: nothing is cloned. Commits, trees and files are read one by one, so that what is asked for does not grow
//! with the repository.

mod answer;
mod api;
mod below;
mod commits;
mod error;
mod limits;
mod object;
mod probe;
mod rights;
mod token;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, OnceCell};

use crate::names::{CommitSha, OwnerName, RepoName, RepoUrl};
use crate::settings::GitHubAccess;

use super::{ForgeError, Standing};
use answer::Answer;
use api::{Api, Form};
pub use error::GitHubError;
pub use limits::Patience;
use object::{Entry, GitCommit, Kind, Listing};
pub use probe::{Probe, Scratch};
use token::Access;

/// The repositories of one account on GitHub. What was read of a commit or a tree is kept: neither ever changes.
pub struct GitHubForge {
    owner: OwnerName,
    /// The account's address for git.
    account: RepoUrl,
    api: Api,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    commits: BTreeMap<(RepoName, CommitSha), String>,
    trees: BTreeMap<(RepoName, String), Arc<Vec<Entry>>>,
    /// The trees that were listed with everything below.
    listed: BTreeMap<(RepoName, String), Arc<OnceCell<()>>>,
}

/// A repository (the schema `full-repository`).
#[derive(Deserialize)]
struct Repository {
    name: String,
    full_name: String,
    default_branch: String,
    archived: bool,
    disabled: bool,
    permissions: Option<Permissions>,
}

impl Repository {
    /// Why nothing can be written to it, whoever wants to.
    fn read_only(&self) -> Option<&'static str> {
        match (self.archived, self.disabled) {
            (true, _) => Some("archived"),
            (false, true) => Some("disabled"),
            (false, false) => None,
        }
    }
}

#[derive(Deserialize)]
struct Permissions {
    push: bool,
}

/// What stands at a path of a commit.
enum At {
    Entry(Entry),
    /// The commit's top folder.
    Top(String),
    Nothing,
    /// Something on the way to it is no folder.
    NotAFolder,
}

impl GitHubForge {
    /// `url` is where git reaches GitHub, `api` where its REST API is.
    ///
    /// # Errors
    /// When there is no token where `access` says, or no client can be made.
    pub fn new(
        owner: OwnerName,
        url: &RepoUrl,
        api: &str,
        access: &GitHubAccess,
        patience: Patience,
    ) -> Result<GitHubForge, GitHubError> {
        Ok(GitHubForge {
            account: url.account(&owner),
            api: Api::new(api, Access::open(access)?, patience)?,
            owner,
            read: Mutex::default(),
        })
    }

    pub(super) fn url(&self, repo: &RepoName) -> RepoUrl {
        self.account.join(repo)
    }

    /// How long is waited before the try that follows so many lost races.
    pub(super) fn after_races(&self, races: u32) -> std::time::Duration {
        self.api.patience.step(races)
    }

    fn path(&self, repo: &RepoName, rest: &str) -> String {
        format!("/repos/{}/{repo}{rest}", self.owner)
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, GitHubError> {
        let request = format!("GET {path}");
        self.api.get(path, Form::Json).await?.content(&request)
    }

    /// What is not there is nothing.
    async fn look<T: DeserializeOwned>(&self, path: String) -> Result<Option<T>, GitHubError> {
        let request = format!("GET {path}");
        let answer = self.api.get(path, Form::Json).await?;
        match answer.status {
            // 409: the repository is empty. 422: no commit of that name.
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(None)
            }
            _ => answer.content(&request).map(Some),
        }
    }

    /// Where the repositories are, for people.
    pub(super) fn place(&self) -> String {
        self.account.to_string()
    }

    /// The repository is asked for first of all, so a name that has changed is told before anything is read or written.
    pub(super) async fn standing(&self, repo: &RepoName) -> Result<Standing, ForgeError> {
        let found = match self.repository(repo).await {
            Ok(found) => found,
            Err(GitHubError::NotFound(_)) => return Ok(Standing::Absent { names: Vec::new() }),
            Err(GitHubError::Renamed { to }) => return Ok(Standing::Renamed { to }),
            Err(source) => return Err(unread(repo)(source)),
        };
        if let Err(GitHubError::Renamed { to }) = self.same_name(repo, &found) {
            return Ok(Standing::Renamed { to });
        }
        if found.name != repo.as_str()
            && let Ok(canonical) = found.name.parse()
        {
            return Ok(Standing::OtherSpelling(canonical));
        }
        Ok(found
            .read_only()
            .map_or(Standing::Writable, |how| Standing::ReadOnly { how }))
    }

    async fn repository(&self, repo: &RepoName) -> Result<Repository, GitHubError> {
        self.get(self.path(repo, "")).await
    }

    /// Its owner and its name are ours, whatever their case.
    fn same_name(&self, repo: &RepoName, found: &Repository) -> Result<(), GitHubError> {
        let expected = format!("{}/{repo}", self.owner).to_lowercase();
        if found.full_name.to_lowercase() == expected {
            return Ok(());
        }
        Err(GitHubError::Renamed {
            to: found.full_name.clone(),
        })
    }

    /// The top tree of a commit.
    async fn top(&self, repo: &RepoName, commit: &CommitSha) -> Result<String, GitHubError> {
        let key = (repo.clone(), commit.clone());
        if let Some(tree) = self.read.lock().await.commits.get(&key) {
            return Ok(tree.clone());
        }
        let path = self.path(repo, &format!("/git/commits/{commit}"));
        let tree = self.get::<GitCommit>(path).await?.tree.sha;
        self.read.lock().await.commits.insert(key, tree.clone());
        Ok(tree)
    }

    /// The entries of one tree; `folder` is its name for people.
    async fn entries(
        &self,
        repo: &RepoName,
        tree: &str,
        folder: &str,
    ) -> Result<Arc<Vec<Entry>>, GitHubError> {
        let key = (repo.clone(), tree.to_owned());
        if let Some(entries) = self.read.lock().await.trees.get(&key) {
            return Ok(Arc::clone(entries));
        }
        let path = self.path(repo, &format!("/git/trees/{}", encoded(tree)));
        let listing: Listing = self.get(path).await?;
        if listing.truncated {
            return Err(GitHubError::Truncated {
                folder: format!("{repo}/{folder}"),
            });
        }
        let entries = Arc::new(listing.tree);
        let mut read = self.read.lock().await;
        read.trees.insert(key, Arc::clone(&entries));
        Ok(entries)
    }

    async fn at(&self, repo: &RepoName, commit: &CommitSha, path: &str) -> Result<At, GitHubError> {
        let mut here = At::Top(self.top(repo, commit).await?);
        let mut walked = String::new();
        for segment in segments(path) {
            let tree = match &here {
                At::Top(tree) => tree,
                At::Entry(entry) if entry.kind == Kind::Tree => &entry.sha,
                At::Entry(_) | At::NotAFolder => return Ok(At::NotAFolder),
                At::Nothing => return Ok(At::Nothing),
            };
            let entries = self.entries(repo, tree, &walked).await?;
            here = match entries.iter().find(|entry| entry.name == segment) {
                Some(entry) => At::Entry(entry.clone()),
                None => At::Nothing,
            };
            walked = format!("{walked}{segment}/");
        }
        Ok(here)
    }

    pub(super) async fn read(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        file: &str,
    ) -> Result<Option<Vec<u8>>, ForgeError> {
        let read = async {
            match self.at(repo, commit, file).await? {
                At::Entry(entry) if entry.is_file() => self.blob(repo, &entry.sha).await.map(Some),
                _ => Ok(None),
            }
        };
        read.await.map_err(unread(repo))
    }

    /// Files of up to 100 MB are handed out so, and GitHub takes no larger ones
    /// (<https://docs.github.com/en/rest/git/blobs#get-a-blob>).
    async fn blob(&self, repo: &RepoName, id: &str) -> Result<Vec<u8>, GitHubError> {
        let path = self.path(repo, &format!("/git/blobs/{}", encoded(id)));
        let answer: Answer = self.api.get(path.clone(), Form::Raw).await?;
        if !answer.status.is_success() {
            return Err(answer.failure(&format!("GET {path}"), ""));
        }
        let content = answer.body.to_vec();
        let expected = object::blob_id(&content);
        object::proven(|| format!("the file {id}"), id, expected.as_deref())?;
        Ok(content)
    }

    /// The id of a folder's tree; nothing where there is none.
    pub(super) async fn tree_of(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<String>, ForgeError> {
        let at = self.at(repo, commit, folder).await.map_err(unread(repo))?;
        Ok(match at {
            At::Top(tree) => Some(tree),
            At::Entry(entry) if entry.kind == Kind::Tree => Some(entry.sha),
            At::Entry(_) | At::Nothing | At::NotAFolder => None,
        })
    }

    pub(super) async fn folders_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Vec<String>, ForgeError> {
        let Some(tree) = self.tree_of(repo, commit, folder).await? else {
            return Ok(Vec::new());
        };
        let entries = self.entries(repo, &tree, folder).await;
        let entries = entries.map_err(unread(repo))?;
        let folders = entries.iter().filter(|e| e.kind == Kind::Tree);
        Ok(folders.map(|entry| entry.name.clone()).collect())
    }

    /// The names of everything in a folder that is no folder; `None` where what stands there, or on the way, is none.
    pub(super) async fn files_in(
        &self,
        repo: &RepoName,
        commit: &CommitSha,
        folder: &str,
    ) -> Result<Option<Vec<String>>, ForgeError> {
        let list = async {
            let tree = match self.at(repo, commit, folder).await? {
                At::Top(tree) => tree,
                At::Entry(entry) if entry.kind == Kind::Tree => entry.sha,
                At::Nothing => return Ok(Some(Vec::new())),
                At::Entry(_) | At::NotAFolder => return Ok(None),
            };
            let entries = self.entries(repo, &tree, folder).await?;
            let files = entries.iter().filter(|e| e.kind != Kind::Tree);
            Ok(Some(files.map(|entry| entry.name.clone()).collect()))
        };
        list.await.map_err(unread(repo))
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Each segment of a path, fit for a URL.
fn encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(encoded_whole).collect();
    segments.join("/")
}

/// One segment, a slash in it included.
fn encoded_whole(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn unread(repo: &RepoName) -> impl FnOnce(GitHubError) -> ForgeError {
    let repo = repo.clone();
    |source| ForgeError::GitHub {
        repo,
        act: "read",
        source: Box::new(source),
    }
}

fn unwritten(repo: &RepoName) -> impl FnOnce(GitHubError) -> ForgeError {
    let repo = repo.clone();
    |source| ForgeError::GitHub {
        repo,
        act: "written",
        source: Box::new(source),
    }
}
