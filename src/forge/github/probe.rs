//! Every write of this forge, on a scratch branch that goes again, by a later probe where this one is killed: what a double cannot show about the real GitHub.

use http::{Method, StatusCode};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
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

/// How the name of a scratch branch begins; the time when it was made follows, and something that nothing else has.
const PREFIX: &str = "stagewright-write-probe-";
/// A scratch branch is another probe's that still runs, or one that was killed; after this time it is taken for the latter.
const LEFT: SignedDuration = SignedDuration::from_hours(1);

/// A probe that is about to be made.
pub struct Probe {
    repo: RepoName,
    /// The scratch branch.
    branch: BranchName,
    /// The head of the default branch, on which it is made.
    head: CommitSha,
}

/// What became of a scratch branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// It was there, and is gone.
    Removed,
    /// It is not there.
    NeverMade,
}

impl Probe {
    /// The scratch branch.
    pub fn branch(&self) -> &BranchName {
        &self.branch
    }
}

impl GitHubForge {
    /// Looks where a probe would begin, and removes the scratch branches that killed ones left; `say` hears of each.
    pub async fn prepare_probe(
        &self,
        repo: &RepoName,
        say: impl Fn(&str),
    ) -> Result<Probe, ForgeError> {
        let found = self.repository(repo).await.map_err(unread(repo))?;
        let default: BranchName = found.default_branch.parse().map_err(|_| {
            unread(repo)(GitHubError::NotProven {
                what: format!("the name {:?} of the default branch", found.default_branch),
            })
        })?;
        let head = self.head(repo, &default).await?;
        let now = Timestamp::now();
        let sweep = self.sweep(repo, now, &say);
        sweep.await.map_err(unwritten(repo))?;
        let branch = scratch_branch(now);
        let branch =
            branch.ok_or_else(|| unwritten(repo)(unproven("the name of a scratch branch")))?;
        Ok(Probe {
            repo: repo.clone(),
            branch,
            head,
        })
    }

    async fn sweep(
        &self,
        repo: &RepoName,
        now: Timestamp,
        say: &impl Fn(&str),
    ) -> Result<(), GitHubError> {
        let scratch = format!("refs/heads/{PREFIX}");
        for found in self.refs_that_begin(repo, &scratch).await?.keys() {
            let Some(name) = found.strip_prefix("refs/heads/") else {
                continue;
            };
            let made = made_at(name);
            match name.parse() {
                Ok(branch) if made.is_some_and(|made| now.duration_since(made) > LEFT) => {
                    self.remove_branch(repo, &branch).await?;
                    say(&format!(
                        "removed the branch {branch}, which another probe left"
                    ));
                }
                _ => say(&format!(
                    "there is a branch {name}, which another probe works on or has left: what is left for an hour goes with a later probe"
                )),
            }
        }
        Ok(())
    }

    /// Makes the scratch branch; adds a folder to it, replaces a file, removes a folder, and tries a move that GitHub must refuse.
    /// `say` hears what was done. The branch stays, for [`end_probe`](GitHubForge::end_probe).
    pub async fn write_probe(
        &self,
        probe: &Probe,
        author: &Author,
        say: impl Fn(&str),
    ) -> Result<(), ForgeError> {
        let Probe { repo, branch, head } = probe;
        let made = self.make_branch(repo, branch, head).await;
        made.map_err(unwritten(repo))?;
        say(&format!("made the branch {branch} at {head}"));
        let base = Base { repo, branch, head };
        self.try_writes(base, author, &say).await
    }

    /// Removes the scratch branch, if it was made.
    pub async fn end_probe(&self, probe: &Probe) -> Result<Scratch, ForgeError> {
        let Probe { repo, branch, .. } = probe;
        let removed = self.remove_branch(repo, branch).await;
        removed.map_err(unwritten(repo))
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

        let file = format!("{FOLDER}/within/kept.txt");
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

        // A folder within others, so that its removal lays a tree over the top one at some depth.
        let folder = format!("{FOLDER}/within/goes");
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

    async fn remove_branch(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<Scratch, GitHubError> {
        let name = format!("heads/{branch}");
        let path = self.path(repo, &format!("/git/refs/{}", encoded(&name)));
        let request = format!("DELETE {path}");
        let sent = self
            .api
            .write(Method::DELETE, path, None, Unsure::SendAgain);
        let answer = sent.await?;
        if answer.status.is_success() {
            return Ok(Scratch::Removed);
        }
        // What is not there needs not go, whatever else speaks against it.
        match self.reference(repo, &name).await? {
            None => Ok(Scratch::NeverMade),
            Some(_) => Err(answer.failure(&request, branch.as_str())),
        }
    }

    async fn add_folder(&self, base: Base<'_>, author: &Author) -> Result<CommitSha, GitHubError> {
        let body = json!({ "content": "made by a probe\n", "encoding": "utf-8" });
        let blob: Named = self.make(base.repo, "/git/blobs", &body).await?;
        let entries: Vec<_> = ["kept.txt", "within/kept.txt", "within/goes/a.txt"]
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

/// How a time stands in a name: `20260101T000000Z`.
const STAMP: &str = "%Y%m%dT%H%M%SZ";

/// A name that nothing else has. Where the system has no random numbers, GitHub refuses the second branch of that name.
fn scratch_branch(now: Timestamp) -> Option<BranchName> {
    let mut bytes = [0_u8; 4];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    tracing::debug!(drawn = drawn.is_ok(), "a name");
    let (stamp, number) = (now.strftime(STAMP), u32::from_le_bytes(bytes));
    format!("{PREFIX}{stamp}-{number:08x}").parse().ok()
}

/// When the scratch branch of this name was made; nothing where it is no name of ours.
fn made_at(name: &str) -> Option<Timestamp> {
    let (stamp, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let made = DateTime::strptime(STAMP, stamp).ok()?;
    Some(made.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_branch_tells_when_it_was_made() {
        let now: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
        let branch = scratch_branch(now).unwrap();
        let name = branch.as_str();
        assert!(
            name.starts_with("stagewright-write-probe-20260304T050607Z-"),
            "{name}"
        );
        assert_eq!(made_at(name), Some(now));
        for name in [
            "stagewright-write-probe-1",
            "stagewright-write-probe-x-y",
            "main",
        ] {
            assert_eq!(made_at(name), None, "{name}");
        }
    }
}
