//! Commits out of a partial clone: trees that hold one file more, another, or one less, and pushes that only change a
//! branch which is still as it was read. Nothing is ever forced upon what somebody else has written.

use git2::{ObjectType, Oid, Repository, Signature, Time};

use crate::names::CommitSha;

use super::tree::{Commit, Entry, Kind, PartialClone};
use super::{GitError, ORIGIN, run};

/// Who writes a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch is as it was asked for.
    Done,
    /// It is not as it was expected, and was left as it is: at this commit, or not there at all.
    Moved(Option<CommitSha>),
}

/// What a file of a tree is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file with the content of this blob.
    Put(Oid),
    /// Gone, and with it the folders that hold nothing else.
    Remove,
    /// A folder that is gone with all that is in it, and with it the folders that hold nothing else.
    RemoveFolder,
}

impl PartialClone {
    /// Keeps `content` as a blob, to be used in a tree.
    pub fn keep_blob(&self, content: &[u8]) -> Result<Oid, GitError> {
        self.make("keeping a file", |r| r.blob(content))
    }

    /// The tree of `commit` (`None`: an empty one) with the file at `path` changed. Of the commit only the folders on the
    /// way to the file are read. What stands in the way of a file is an error.
    pub async fn tree_with(
        &mut self,
        commit: Option<&Commit>,
        path: &str,
        change: Change,
    ) -> Result<Oid, GitError> {
        let mut levels: Vec<(&str, Option<Oid>)> = Vec::new();
        let mut here = commit.map(|commit| commit.tree);
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        for (depth, segment) in segments.iter().enumerate() {
            levels.push((segment, here));
            let entries: Vec<Entry> = match here {
                Some(tree) => self.entries(tree).await?,
                None => Vec::new(),
            };
            let found = entries.into_iter().find(|entry| entry.name == *segment);
            let last = depth + 1 == segments.len();
            here = match found {
                Some(Entry {
                    kind: Kind::Tree,
                    id,
                    ..
                }) if !last => Some(id),
                Some(Entry {
                    kind: Kind::File { .. },
                    ..
                }) if last && change != Change::RemoveFolder => None,
                Some(Entry {
                    kind: Kind::Tree, ..
                }) if last && change == Change::RemoveFolder => None,
                None => None,
                Some(_) => {
                    return Err(GitError::Refused {
                        act: format!("writing {path} to {}", self.remote().url()),
                        text: format!("{segment:?} stands in its way: move it away"),
                    });
                }
            };
        }
        self.make("making a tree", |repository| {
            rebuilt(repository, &levels, change)
        })
    }

    /// A commit of `tree`, on top of `parent` where there is one.
    pub fn make_commit(
        &self,
        tree: Oid,
        parent: Option<&Commit>,
        message: &str,
        author: &Author,
    ) -> Result<Commit, GitError> {
        let seconds = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let time = Time::new(i64::try_from(seconds).unwrap_or_default(), 0);
        let id = self.make("making a commit", |repository| {
            let author = Signature::new(&author.name, &author.email, &time)?;
            let tree = repository.find_tree(tree)?;
            let parent = parent
                .map(|parent| repository.find_commit(Oid::from_str(parent.sha.as_str())?))
                .transpose()?;
            let parents: Vec<_> = parent.iter().collect();
            repository.commit(None, &author, &author, message, &tree, &parents)
        })?;
        let sha = super::parse_sha("making a commit", &id.to_string())?;
        Ok(Commit { sha, tree })
    }

    /// Moves `reference` (`refs/heads/…`) to `commit`, if it still is at `expected` (`None`: not there).
    pub async fn push(
        &mut self,
        reference: &str,
        expected: Option<&CommitSha>,
        commit: &Commit,
    ) -> Result<Pushed, GitError> {
        self.change_ref(reference, expected, Some(&commit.sha), None)
            .await
    }

    /// The same, and in the same push `other` comes to the same commit, from whatever it is at: both, or neither.
    pub async fn push_with(
        &mut self,
        reference: &str,
        expected: Option<&CommitSha>,
        commit: &Commit,
        other: &str,
    ) -> Result<Pushed, GitError> {
        let before = self.remote().reference(other).await?;
        let other = Some((other, before.as_ref()));
        self.change_ref(reference, expected, Some(&commit.sha), other)
            .await
    }

    /// Asks the server whether it would let this account write `reference`, by a push of what is there already that is given up before it
    /// is made. A rule of the server that judges the commit itself is not asked.
    pub async fn try_push(&mut self, reference: &str, head: &Commit) -> Result<(), GitError> {
        let act = format!("trying a push of {reference} to {}", self.remote().url());
        let mut git = self.git()?;
        git.args(["push", "--quiet", "--no-verify", "--dry-run", ORIGIN]);
        git.arg(format!("{}:{reference}", head.sha));
        run(git, &act, b"").await?;
        Ok(())
    }

    /// Removes `reference`, if it still is at `expected`.
    pub async fn delete(
        &mut self,
        reference: &str,
        expected: &CommitSha,
    ) -> Result<Pushed, GitError> {
        self.change_ref(reference, Some(expected), None, None).await
    }

    async fn change_ref(
        &mut self,
        reference: &str,
        expected: Option<&CommitSha>,
        wanted: Option<&CommitSha>,
        other: Option<(&str, Option<&CommitSha>)>,
    ) -> Result<Pushed, GitError> {
        let url = self.remote().url().clone();
        let act = format!("pushing {reference} to {url}");
        let text = |sha: Option<&CommitSha>| sha.map(CommitSha::to_string).unwrap_or_default();
        // An empty value of the lease means that the ref must not be there.
        let lease = format!("--force-with-lease={reference}:{}", text(expected));
        let refspec = format!("{}:{reference}", text(wanted));
        let mut git = self.git()?;
        // Without a window git looks for no delta base among objects that were never fetched.
        git.args(["-c", "pack.window=0", "push", "--quiet", "--no-verify"]);
        if let Some((other, before)) = other {
            git.arg("--atomic");
            git.arg(format!("--force-with-lease={other}:{}", text(before)));
        }
        git.args([lease.as_str(), ORIGIN, refspec.as_str()]);
        if let Some((other, _)) = other {
            git.arg(format!("{}:{other}", text(wanted)));
        }
        let Err(error) = run(git, &act, b"").await else {
            return Ok(Pushed::Done);
        };
        // The connection may have been cut after the server took it, and a lost race has many wordings: what the ref is
        // now tells.
        let now = self.remote().reference(reference).await?;
        if now.as_ref() == wanted {
            Ok(Pushed::Done)
        } else if now.as_ref() == expected {
            Err(error)
        } else {
            tracing::debug!(%error, "the branch has moved");
            Ok(Pushed::Moved(now))
        }
    }

    fn make<T>(
        &self,
        act: &str,
        make: impl FnOnce(&Repository) -> Result<T, git2::Error>,
    ) -> Result<T, GitError> {
        make(self.repository()).map_err(|source| GitError::Object {
            act: format!("{act} for {}", self.remote().url()),
            source,
        })
    }
}

/// The top tree after `change` at the end of `levels`: (name, the tree that holds it) from the top down.
fn rebuilt(
    repository: &Repository,
    levels: &[(&str, Option<Oid>)],
    change: Change,
) -> Result<Oid, git2::Error> {
    let mut put = match change {
        Change::Put(blob) => Some((blob, 0o100_644)),
        Change::Remove | Change::RemoveFolder => None,
    };
    for (depth, (name, tree)) in levels.iter().enumerate().rev() {
        let tree = tree.map(|id| repository.find_tree(id)).transpose()?;
        let mut builder = repository.treebuilder(tree.as_ref())?;
        match put {
            Some((id, mode)) => {
                // A folder of the tree need not be here: only its id is written down.
                builder.insert(name, id, mode)?;
            }
            None if builder.get(name)?.is_some() => builder.remove(name)?,
            None => {}
        }
        put = if builder.is_empty() && depth > 0 {
            None
        } else {
            Some((builder.write()?, 0o040_000))
        };
    }
    match put {
        Some((id, _)) => Ok(id),
        None => repository.odb()?.write(ObjectType::Tree, b""),
    }
}
