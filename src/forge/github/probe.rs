//! Every write of this forge, on a scratch branch that is removed again: what a double cannot show about the real GitHub.

use http::{Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::json;

use super::answer::Meaning;
use super::api::Unsure;
use super::error::GitHubError;
use super::object::Named;
use super::write::{Base, Moving};
use super::{GitHubForge, encoded, unread, unwritten};
use crate::forge::{FileToReplace, FolderToGo, ForgeError, Removal, Replacement};
use crate::git::write::Author;
use crate::names::{BranchName, CommitSha, RepoName};

/// The folder of the scratch branch in which all of it happens.
const FOLDER: &str = "stagewright-write-probe";

impl GitHubForge {
    /// Makes a branch at the head of the default one; adds a folder to it, replaces a file, removes a folder, and tries a move that
    /// GitHub must refuse; and removes the branch, however that ended. `say` hears what was done.
    pub async fn write_probe(
        &self,
        repo: &RepoName,
        author: &Author,
        say: impl Fn(&str),
    ) -> Result<(), ForgeError> {
        let found = self.repository(repo).await.map_err(unread(repo))?;
        let default: BranchName = found.default_branch.parse().map_err(|_| {
            unread(repo)(GitHubError::NotProven {
                what: format!("the name {:?} of the default branch", found.default_branch),
            })
        })?;
        let head = self.head(repo, &default).await?;
        let branch = scratch_branch();
        let branch =
            branch.ok_or_else(|| unwritten(repo)(unproven("the name of a scratch branch")))?;
        self.make_branch(repo, &branch, &head)
            .await
            .map_err(unwritten(repo))?;
        say(&format!("made the branch {branch} at {head}"));
        let base = Base {
            repo,
            branch: &branch,
            head: &head,
        };
        let tried = self.try_writes(base, author, &say).await;
        let removed = self.remove_branch(repo, &branch).await;
        match (tried, removed) {
            (Err(error), _) => Err(error),
            (Ok(()), Err(error)) => Err(unwritten(repo)(error)),
            (Ok(()), Ok(())) => {
                say(&format!("removed the branch {branch}"));
                Ok(())
            }
        }
    }

    async fn try_writes(
        &self,
        base: Base<'_>,
        author: &Author,
        say: &impl Fn(&str),
    ) -> Result<(), ForgeError> {
        let Base { repo, branch, head } = base;
        let added = self.add_folder(base, author).await;
        let added = added.map_err(unwritten(repo))?;
        say(&format!("added the folder {FOLDER}/: {added}"));

        let file = format!("{FOLDER}/kept.txt");
        let wanted = FileToReplace {
            repo,
            branch,
            base: &added,
            file: &file,
        };
        let replaced = self.replace_file(wanted, b"replaced\n", "Replace a file\n", author);
        let Replacement::Done(replaced) = replaced.await? else {
            return Err(unwritten(repo)(unproven("the replaced file")));
        };
        say(&format!("replaced {file}: {replaced}"));

        let folder = format!("{FOLDER}/goes");
        let tree = self.tree_of(repo, &replaced, &folder).await?;
        let wanted = FolderToGo {
            repo,
            branch,
            folder: &folder,
            tree: tree.as_deref().unwrap_or_default(),
        };
        // GitHub's read of the branch may be behind; then the removal finds nothing, or loses, and is tried again.
        let mut removed = Removal::Moved;
        for races in 0..5 {
            removed = self
                .remove_folder(wanted, "Remove a folder\n", author)
                .await?;
            if matches!(removed, Removal::Done(_)) {
                break;
            }
            tokio::time::sleep(self.after_races(races)).await;
        }
        let Removal::Done(removed) = removed else {
            return Err(unwritten(repo)(unproven("the removed folder")));
        };
        say(&format!("removed {folder}/: {removed}"));

        let content = self.read(repo, &removed, &file).await?;
        let gone = self.tree_of(repo, &removed, &folder).await?;
        if content.as_deref() != Some(b"replaced\n") || gone.is_some() {
            return Err(unwritten(repo)(unproven("what was read back")));
        }
        say("read both back");
        self.is_refused(base).await.map_err(unwritten(repo))?;
        say(&format!("was refused a move back to {head}"));
        Ok(())
    }

    async fn make_branch(
        &self,
        repo: &RepoName,
        branch: &BranchName,
        head: &CommitSha,
    ) -> Result<(), GitHubError> {
        let path = self.path(repo, "/git/refs");
        let request = format!("POST {path}");
        let body = json!({ "ref": format!("refs/heads/{branch}"), "sha": head });
        let sent = self
            .api
            .write(Method::POST, path, Some(&body), Unsure::Tell);
        let _: IgnoredAny = sent.await?.content(&request)?;
        Ok(())
    }

    async fn remove_branch(&self, repo: &RepoName, branch: &BranchName) -> Result<(), GitHubError> {
        let path = self.path(
            repo,
            &format!("/git/refs/heads/{}", encoded(branch.as_str())),
        );
        let request = format!("DELETE {path}");
        let sent = self
            .api
            .write(Method::DELETE, path, None, Unsure::SendAgain);
        let answer = sent.await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(answer.failure(&request, branch.as_str())),
        }
    }

    async fn add_folder(&self, base: Base<'_>, author: &Author) -> Result<CommitSha, GitHubError> {
        let body = json!({ "content": "made by a probe\n", "encoding": "utf-8" });
        let blob: Named = self.make(base.repo, "/git/blobs", &body).await?;
        let entries: Vec<_> = ["kept.txt", "goes/a.txt", "goes/b.txt"]
            .map(|name| {
                let path = format!("{FOLDER}/{name}");
                json!({ "path": path, "mode": "100644", "type": "blob", "sha": blob.sha })
            })
            .into();
        let top = self.top(base.repo, base.head).await?;
        let body = json!({ "base_tree": top, "tree": entries });
        let tree: Named = self.make(base.repo, "/git/trees", &body).await?;
        let message = "Add a folder\n";
        let commit = self.commit(base, &tree.sha, message, author).await?;
        match self.advance(base, &commit).await? {
            Moving::Done => Ok(commit),
            Moving::Lost => Err(unproven("the branch that was made")),
        }
    }

    /// A move back is no fast-forward; the words by which GitHub says so are those that we know.
    async fn is_refused(&self, base: Base<'_>) -> Result<(), GitHubError> {
        let name = encoded(base.branch.as_str());
        let path = self.path(base.repo, &format!("/git/refs/heads/{name}"));
        let request = format!("PATCH {path}");
        let body = json!({ "sha": base.head, "force": false });
        let sent = self
            .api
            .write(Method::PATCH, path, Some(&body), Unsure::Tell);
        let answer = sent.await?;
        let refused = answer.status == StatusCode::UNPROCESSABLE_ENTITY
            && answer.meaning() == Meaning::NotFastForward;
        match refused {
            true => Ok(()),
            false => Err(answer.failure(&request, base.branch.as_str())),
        }
    }
}

fn unproven(what: &str) -> GitHubError {
    GitHubError::NotProven {
        what: what.to_owned(),
    }
}

/// A name that nothing else has. Where the system has no random numbers, GitHub refuses the second branch of that name.
fn scratch_branch() -> Option<BranchName> {
    let mut bytes = [0_u8; 8];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    tracing::debug!(drawn = drawn.is_ok(), "a name");
    let name = format!("{FOLDER}-{:016x}", u64::from_le_bytes(bytes));
    name.parse().ok()
}
