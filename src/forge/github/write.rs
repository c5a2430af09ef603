//! One commit that removes a folder or replaces a file: its trees are made from what was read, the ids that they must have are computed
//! here, and the branch is moved only on top of what it was when it was read.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::git::write::Author;
use crate::names::{BranchName, CommitSha, RepoName};

use super::answer::Meaning;
use super::api::Unsure;
use super::error::GitHubError;
use super::object::{
    EMPTY_TREE, Entry, GitCommit, Kind, Listing, Named, Reference, blob_id, proven, tree_id,
};
use super::{GitHubForge, encoded, segments, unread, unwritten};
use crate::forge::{FileToReplace, FolderToGo, ForgeError, Removal, Replacement};

/// How often it is looked whether a write has landed whose answer was lost.
const LOOKS: u32 = 6;

/// The folders on the way to what changes, from the top down.
struct Way {
    levels: Vec<Level>,
    /// What stands at the end.
    found: Entry,
}

struct Level {
    tree: String,
    entries: Arc<Vec<Entry>>,
    /// The entry of it that leads on.
    name: String,
}

/// What became of moving a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moving {
    Done,
    /// Somebody else has written to it.
    Lost,
}

/// A branch, and the commit to be built upon.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) repo: &'a RepoName,
    pub(super) branch: &'a BranchName,
    pub(super) head: &'a CommitSha,
}

impl GitHubForge {
    pub(in crate::forge) async fn remove_folder(
        &self,
        wanted: FolderToGo<'_>,
        message: &str,
        author: &Author,
    ) -> Result<Removal, ForgeError> {
        let (repo, branch) = (wanted.repo, wanted.branch);
        let head = self.head(repo, branch).await?;
        let way = self.way(repo, &head, wanted.folder).await;
        let Some(way) = way.map_err(unread(repo))? else {
            return Ok(Removal::Nothing);
        };
        match way.found.kind {
            Kind::Tree if way.found.sha == wanted.tree => {}
            Kind::Tree => return Ok(Removal::Changed),
            Kind::Blob | Kind::Commit => return Ok(Removal::Nothing),
        }
        let base = Base {
            repo,
            branch,
            head: &head,
        };
        let write = async {
            let tree = self.without(repo, &way.levels).await?;
            let commit = self.commit(base, &tree, message, author).await?;
            Ok(match self.advance(base, &commit).await? {
                Moving::Done => Removal::Done(commit),
                Moving::Lost => Removal::Moved,
            })
        };
        write.await.map_err(unwritten(repo))
    }

    pub(in crate::forge) async fn replace_file(
        &self,
        wanted: FileToReplace<'_>,
        content: &[u8],
        message: &str,
        author: &Author,
    ) -> Result<Replacement, ForgeError> {
        let (repo, branch, head) = (wanted.repo, wanted.branch, wanted.base);
        let way = self.way(repo, head, wanted.file).await;
        let Some(way) = way.map_err(unread(repo))?.filter(|way| way.found.is_file()) else {
            return Err(ForgeError::NoFile {
                repo: repo.clone(),
                commit: head.clone(),
                file: wanted.file.to_owned(),
            });
        };
        let base = Base { repo, branch, head };
        let write = async {
            let tree = self.with(repo, &way, wanted.file, content).await?;
            let commit = self.commit(base, &tree, message, author).await?;
            Ok(match self.advance(base, &commit).await? {
                Moving::Done => Replacement::Done(commit),
                Moving::Lost => Replacement::Moved,
            })
        };
        write.await.map_err(unwritten(repo))
    }

    /// The way to `path`; nothing where it leads to nothing. Each listing must be what its tree's id says: what is built upon it is
    /// all that remains.
    async fn way(
        &self,
        repo: &RepoName,
        head: &CommitSha,
        path: &str,
    ) -> Result<Option<Way>, GitHubError> {
        let mut tree = self.top(repo, head).await?;
        let mut levels = Vec::new();
        let mut walked = String::new();
        let mut found = None;
        for name in segments(path) {
            match found.take() {
                None if levels.is_empty() => {}
                Some(Entry {
                    kind: Kind::Tree,
                    sha,
                    ..
                }) => tree = sha,
                None | Some(_) => return Ok(None),
            }
            let entries = self.entries(repo, &tree, &walked).await?;
            let what = || format!("the listing of {repo}/{walked}");
            proven(what, &tree, tree_id(&entries).as_deref())?;
            found = entries.iter().find(|entry| entry.name == name).cloned();
            levels.push(Level {
                tree: tree.clone(),
                entries,
                name: name.to_owned(),
            });
            walked = format!("{walked}{name}/");
        }
        Ok(found.map(|found| Way { levels, found }))
    }

    /// The top tree without the last entry of the way, and without the folders that hold nothing else. Two trees are made, however deep it
    /// lies: the deepest that keeps something, and the top one with that laid over it.
    async fn without(&self, repo: &RepoName, levels: &[Level]) -> Result<String, GitHubError> {
        let keeps_something = |level: &Level| level.entries.len() > 1;
        let Some(at) = levels.iter().rposition(keeps_something) else {
            return Ok(EMPTY_TREE.to_owned());
        };
        let (above, below) = levels.split_at(at);
        let Some(level) = below.first() else {
            return Ok(EMPTY_TREE.to_owned());
        };
        // One entry less: GitHub documents no way to say so but to name all the others.
        let others = level.entries.iter().filter(|e| e.name != level.name);
        let entries: Vec<Entry> = others.cloned().collect();
        let body = json!({ "tree": entries });
        let tree = self.make_tree(repo, &body, tree_id(&entries)).await?;
        let Some(top) = above.first() else {
            return Ok(tree);
        };
        let names: Vec<&str> = above.iter().map(|level| level.name.as_str()).collect();
        let entry = Entry::folder(&names.join("/"), &tree);
        let body = json!({ "base_tree": top.tree, "tree": [entry] });
        self.make_tree(repo, &body, top_id(above, tree)).await
    }

    /// The top tree with another content of the file at the end of the way.
    async fn with(
        &self,
        repo: &RepoName,
        way: &Way,
        file: &str,
        content: &[u8],
    ) -> Result<String, GitHubError> {
        let body = json!({ "content": STANDARD.encode(content), "encoding": "base64" });
        let blob: Named = self.make(repo, "/git/blobs", &body).await?;
        let expected = blob_id(content);
        proven(
            || format!("{file} as GitHub took it"),
            &blob.sha,
            expected.as_deref(),
        )?;
        let mut sent = way.found.clone();
        sent.name = segments(file).collect::<Vec<_>>().join("/");
        sent.sha.clone_from(&blob.sha);
        let top = way.levels.first().map(|level| level.tree.as_str());
        let body = json!({ "base_tree": top, "tree": [sent] });
        let expected = top_id(&way.levels, blob.sha);
        self.make_tree(repo, &body, expected).await
    }

    /// Makes a tree, which must have the id that was computed: then every other path is what it was.
    async fn make_tree(
        &self,
        repo: &RepoName,
        body: &Value,
        expected: Option<String>,
    ) -> Result<String, GitHubError> {
        let made: Listing = self.make(repo, "/git/trees", body).await?;
        let what = || "the tree that GitHub made".to_owned();
        proven(what, &made.sha, expected.as_deref())?;
        Ok(made.sha)
    }

    /// Makes an object, which nothing leads to yet: that it is made twice, or in vain, harms nothing.
    pub(super) async fn make<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        path: &str,
        body: &Value,
    ) -> Result<T, GitHubError> {
        let path = self.path(repo, path);
        let request = format!("POST {path}");
        let sent = self
            .api
            .write(Method::POST, path, Some(body), Unsure::SendAgain);
        sent.await?.content(&request)
    }

    pub(super) async fn commit(
        &self,
        base: Base<'_>,
        tree: &str,
        message: &str,
        author: &Author,
    ) -> Result<CommitSha, GitHubError> {
        let mut body = json!({ "message": message, "tree": tree, "parents": [base.head] });
        if !self.api.is_app() {
            // With a date of ours the commit that is made again, after a lost answer, is the same one.
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
            let who =
                json!({ "name": author.name, "email": author.email, "date": now.to_string() });
            body["committer"] = who.clone();
            body["author"] = who;
        }
        let made: GitCommit = self.make(base.repo, "/git/commits", &body).await?;
        let what = || "the commit that GitHub made".to_owned();
        proven(what, &made.tree.sha, Some(tree))?;
        let parents: Vec<&str> = made.parents.iter().map(|p| p.sha.as_str()).collect();
        proven(what, &parents.join(" "), Some(base.head.as_str()))?;
        Ok(made.sha)
    }

    /// Moves the branch to `commit`, if it is still where it was. An answer that is lost is made up for by looking: the commit was made for
    /// this one change, so where the branch holds it, it has landed.
    pub(super) async fn advance(
        &self,
        base: Base<'_>,
        commit: &CommitSha,
    ) -> Result<Moving, GitHubError> {
        let path = self.path(
            base.repo,
            &format!("/git/refs/heads/{}", encoded(base.branch.as_str())),
        );
        let body = json!({ "sha": commit, "force": false });
        let mut lost = None;
        for look in 0..LOOKS {
            let sent = self
                .api
                .write(Method::PATCH, path.clone(), Some(&body), Unsure::Tell);
            let answer = match sent.await {
                Ok(answer) => answer,
                Err(error @ GitHubError::Unanswered { .. }) => {
                    lost = Some(error);
                    tokio::time::sleep(self.api.patience.step(look)).await;
                    if self.has_landed(base, commit).await? {
                        return Ok(Moving::Done);
                    }
                    // Moving it to where it is already changes nothing, so it is asked for again.
                    continue;
                }
                Err(error) => return Err(error),
            };
            let request = format!("PATCH {path}");
            if answer.status.is_success() {
                let now: Reference = answer.content(&request)?;
                let what = || format!("{} after its update", base.branch);
                proven(what, &now.object.sha, Some(commit.as_str()))?;
                return Ok(Moving::Done);
            }
            let raced = match answer.meaning() {
                Meaning::NotFastForward => true,
                Meaning::Other if is_of_state(answer.status) => self.has_moved(base).await?,
                _ => false,
            };
            if !raced {
                return Err(answer.failure(&request, base.branch.as_str()));
            }
            return match &lost {
                None => Ok(Moving::Lost),
                // Ours may be below what others have written since, and GitHub's reads may not have it yet.
                Some(_) => self.landed_at_last(base, commit).await,
            };
        }
        Err(lost.unwrap_or_else(|| GitHubError::NotProven {
            what: format!("the branch {}", base.branch),
        }))
    }

    async fn landed_at_last(
        &self,
        base: Base<'_>,
        commit: &CommitSha,
    ) -> Result<Moving, GitHubError> {
        for look in 0..LOOKS {
            if self.has_landed(base, commit).await? {
                return Ok(Moving::Done);
            }
            tokio::time::sleep(self.api.patience.step(look)).await;
        }
        Ok(Moving::Lost)
    }

    async fn has_landed(&self, base: Base<'_>, commit: &CommitSha) -> Result<bool, GitHubError> {
        self.holds(base.repo, base.branch.as_str(), commit).await
    }

    /// Whether the branch is another than it was. A read may be behind the write that made it so, and is repeated.
    async fn has_moved(&self, base: Base<'_>) -> Result<bool, GitHubError> {
        let name = format!("heads/{}", base.branch);
        for look in 0..LOOKS {
            if self.reference(base.repo, &name).await?.as_ref() != Some(base.head) {
                return Ok(true);
            }
            tokio::time::sleep(self.api.patience.step(look)).await;
        }
        Ok(false)
    }
}

/// The id of the top tree when the entry at the end of the way has the id `below`. `None`: an entry has no id.
fn top_id(levels: &[Level], below: String) -> Option<String> {
    levels.iter().rev().try_fold(below, |id, level| {
        let mut entries = level.entries.to_vec();
        for entry in entries.iter_mut().filter(|e| e.name == level.name) {
            entry.sha.clone_from(&id);
        }
        tree_id(&entries)
    })
}

/// Whether a refusal can be about what the branch is.
fn is_of_state(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
    )
}
