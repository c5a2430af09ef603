//! The state repository: `<prefix>/<repo>/[<path>/]<stage>/terraform.tfstate` on one branch, as terraform-backend-git
//! keeps it (<https://github.com/plumber-cd/terraform-backend-git>).
//!
//! A write is a commit on top of the head that was read, and is pushed only onto that head. When the branch has moved,
//! the write is made again on top of what is there now; after an unknown result it is looked for first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use git2::Oid;

use crate::git::tree::{Commit, Extent, Found, Kind, PartialClone};
use crate::git::write::{Author, Change, Pushed};
use crate::git::{GitError, Remote};
use crate::names::{BranchName, RepoUrl, StateKey};

use super::attempts::{Attempts, FAILURES, Round};
use super::recipients::Recipients;
use super::same::{self, Difference};
use super::seal::{self, Sealed};

pub mod around;
mod error;
pub mod retire;

pub use error::{Refusal, StoreError};

/// A state as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its content, opened where it is sealed.
    pub state: Vec<u8>,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Whether it is another than this run has read, and none of those that it has written since.
    pub unseen: bool,
    blob: Oid,
}

/// A write that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Numbers that are kept with another value, because sops cannot carry them.
    pub changed: Vec<Difference>,
}

/// The states on one branch of a repository.
pub struct Store {
    clone: PartialClone,
    /// For branches of their own, locks and rescues. In the other clone git would want to leave out of such a push what
    /// it knows of the states' branch, and most of that was never fetched.
    side: PartialClone,
    branch: BranchName,
    recipients: Option<Recipients>,
    author: Author,
    folder: PathBuf,
    /// The branch's head as last seen or made.
    known: Option<Commit>,
    /// What each state was when it was last read, and what it was to become since.
    seen: HashMap<StateKey, Vec<Oid>>,
}

impl Store {
    /// `folder` is made for the clone and what sops needs; it is best below a [`crate::scratch::Scratch`]. With
    /// `recipients` every write is sealed for them.
    pub fn open(
        remote: &Remote,
        branch: &BranchName,
        folder: &Path,
        author: Author,
        recipients: Option<Recipients>,
    ) -> Result<Store, StoreError> {
        Ok(Store {
            clone: PartialClone::init(remote.clone(), folder.to_owned())?,
            side: PartialClone::init(remote.clone(), folder.join("side.git"))?,
            branch: branch.clone(),
            recipients,
            author,
            folder: folder.to_owned(),
            known: None,
            seen: HashMap::new(),
        })
    }

    /// Where the states are.
    pub fn url(&self) -> &RepoUrl {
        self.clone.remote().url()
    }

    /// The clone for the locks, which lie in the same repository.
    pub(super) fn locks(&mut self) -> &mut PartialClone {
        &mut self.side
    }

    /// Who writes.
    pub fn author(&self) -> &Author {
        &self.author
    }

    /// Proves, where states are sealed, that the recipients can be sealed for and what is sealed can be opened again.
    pub async fn check_seal(&mut self, key: &StateKey) -> Result<(), StoreError> {
        self.sealed(key, b"{}").await.map(|_| ())
    }

    /// Refuses to put a plain state in the place of a sealed one.
    pub fn may_replace(&self, key: &StateKey, stored: &Stored) -> Result<(), StoreError> {
        if stored.sealed && self.recipients.is_none() {
            return Err(StoreError::WouldUnseal { key: key.clone() });
        }
        Ok(())
    }

    /// Reads the state at `key` with the branch's head. `None`: there is none. What is fetched does not depend on what else
    /// the repository holds.
    pub async fn read(&mut self, key: &StateKey) -> Result<Option<Stored>, StoreError> {
        let head = self.head().await?;
        let stored = self.stored(&head, key).await?;
        let seen = stored.iter().map(|stored| stored.blob).collect();
        self.seen.insert(key.clone(), seen);
        Ok(stored.map(|stored| Stored {
            unseen: false,
            ..stored
        }))
    }

    async fn head(&mut self) -> Result<Commit, StoreError> {
        let head = match self.clone.head(&self.branch, Extent::TopTree).await {
            Ok(commit) => commit,
            Err(GitError::NoBranch { url, branch, .. }) => {
                return Err(self.no_branch(url, branch).await);
            }
            Err(error) => return Err(error.into()),
        };
        self.known = Some(head.clone());
        Ok(head)
    }

    async fn no_branch(&mut self, url: RepoUrl, branch: BranchName) -> StoreError {
        let heads = match self.clone.remote().heads().await {
            Ok(heads) => heads,
            Err(error) => return error.into(),
        };
        // One of them is the run's own.
        let others = heads.into_keys().filter(|name| !name.starts_with("locks/"));
        let branches: Vec<String> = others.take(10).collect();
        // A server that answers with something else than git's protocol looks like this as well, and planning against
        // nothing would plan everything anew.
        if branches.is_empty() {
            return StoreError::Empty { url, branch };
        }
        GitError::NoBranch {
            url,
            branch,
            branches,
        }
        .into()
    }

    async fn stored(
        &mut self,
        head: &Commit,
        key: &StateKey,
    ) -> Result<Option<Stored>, StoreError> {
        let Some(blob) = self.blob_at(head, key).await? else {
            return Ok(None);
        };
        let document = self.clone.blob(blob).await?;
        let failed = |source| StoreError::Seal {
            key: key.clone(),
            source,
        };
        let sealed = seal::is_sealed(&document).map_err(failed)?;
        let state = if sealed {
            seal::open(&document).await.map_err(failed)?
        } else {
            document
        };
        let seen = self.seen.get(key);
        Ok(Some(Stored {
            state,
            sealed,
            unseen: seen.is_some_and(|seen| !seen.contains(&blob)),
            blob,
        }))
    }

    async fn blob_at(&mut self, head: &Commit, key: &StateKey) -> Result<Option<Oid>, StoreError> {
        let not_a_file = || StoreError::NotAFile { key: key.clone() };
        match self.clone.find(head, key.as_str()).await? {
            Found::Entry(entry) if matches!(entry.kind, Kind::File { .. }) => Ok(Some(entry.id)),
            Found::Entry(_) | Found::NotAFolder(_) => Err(not_a_file()),
            Found::Nothing => Ok(None),
            Found::OtherCase(other) => Err(StoreError::OtherCase {
                key: key.clone(),
                other,
            }),
        }
    }

    async fn sealed(&mut self, key: &StateKey, state: &[u8]) -> Result<Sealed, StoreError> {
        let Some(recipients) = &self.recipients else {
            return Ok(Sealed {
                document: state.to_vec(),
                opened: state.to_vec(),
                changed: Vec::new(),
            });
        };
        let sealed = seal::seal(state, recipients, &self.folder).await;
        sealed.map_err(|source| StoreError::NotSealed {
            key: key.clone(),
            source,
        })
    }

    /// Writes `state` to `key` in one commit, if `may_follow` says so of what is kept there. The same content again is
    /// nothing to write.
    pub async fn write(
        &mut self,
        key: &StateKey,
        state: &[u8],
        message: &str,
        may_follow: impl Fn(Option<&Stored>) -> Result<(), Refusal>,
    ) -> Result<Written, StoreError> {
        let sealed = self.sealed(key, state).await?;
        let blob = self.clone.keep_blob(&sealed.document)?;
        // Noted before it is tried: it may arrive when we have given it up.
        if let Some(seen) = self.seen.get_mut(key) {
            seen.push(blob);
        }
        let written = Written {
            changed: sealed.changed,
        };
        let mut judged: Option<Option<Oid>> = None;
        let mut attempts = Attempts::default();
        loop {
            let round = async {
                let head = self.base(attempts.fresh).await?;
                let there = self.blob_at(&head, key).await?;
                if there == Some(blob) {
                    return Ok(Round::Done);
                }
                if judged != Some(there) {
                    let stored = self.stored(&head, key).await?;
                    if let Some(stored) = &stored {
                        if says_the_same(&stored.state, &sealed.opened) {
                            return Ok(Round::Done);
                        }
                        self.may_replace(key, stored)?;
                    }
                    may_follow(stored.as_ref()).map_err(|source| StoreError::Refused {
                        key: key.clone(),
                        source,
                    })?;
                    judged = Some(there);
                }
                self.put(&head, key, Change::Put(blob), message).await
            };
            match round.await {
                Ok(Round::Done) => return Ok(written),
                other => attempts.after(other, key).await?,
            }
        }
    }

    /// Removes the state at `key`, and nothing else, in one commit. Whether there was one.
    pub async fn remove(&mut self, key: &StateKey, message: &str) -> Result<bool, StoreError> {
        let mut attempts = Attempts::default();
        let mut was_there = false;
        loop {
            let round = async {
                let head = self.base(attempts.fresh).await?;
                if self.blob_at(&head, key).await?.is_none() {
                    return Ok(Round::Done);
                }
                was_there = true;
                self.put(&head, key, Change::Remove, message).await
            };
            match round.await {
                Ok(Round::Done) => return Ok(was_there),
                other => attempts.after(other, key).await?,
            }
        }
    }

    /// Keeps `state` beside the branch, as `rescue/<key>/<serial>`: what could not be written and must not be lost. The
    /// branch that holds it now.
    pub async fn rescue(
        &mut self,
        key: &StateKey,
        state: &[u8],
        serial: u64,
        message: &str,
    ) -> Result<String, StoreError> {
        let document = self.as_kept(key, state).await?;
        let blob = self.side.keep_blob(&document)?;
        let tree = self
            .side
            .tree_with(None, key.as_str(), Change::Put(blob))
            .await?;
        let commit = self.side.make_commit(tree, None, message, &self.author)?;
        for attempt in 1..=FAILURES {
            let branch = match attempt {
                1 => format!("rescue/{key}/{serial}"),
                // Another run's rescue of the same serial stands there, and stays.
                _ => format!("rescue/{key}/{serial}-{attempt}"),
            };
            let reference = format!("refs/heads/{branch}");
            let pushed = self.side.push(&reference, None, &commit).await;
            match pushed.map_err(StoreError::Push)? {
                Pushed::Done => return Ok(branch),
                Pushed::Moved(_) => {}
            }
        }
        Err(StoreError::Contended { key: key.clone() })
    }

    /// The document as it would be kept: sealed where states are sealed.
    pub async fn as_kept(&mut self, key: &StateKey, state: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.sealed(key, state).await?.document)
    }

    /// Whether states are sealed when they are written.
    pub fn seals(&self) -> bool {
        self.recipients.is_some()
    }

    /// What a write builds on: the head as last seen, which the push checks, or what is there now.
    async fn base(&mut self, fresh: bool) -> Result<Commit, StoreError> {
        match self.known.clone() {
            Some(known) if !fresh => Ok(known),
            _ => self.head().await,
        }
    }

    async fn put(
        &mut self,
        head: &Commit,
        key: &StateKey,
        change: Change,
        message: &str,
    ) -> Result<Round, StoreError> {
        let commit = self.commit_with(head, key, change, message).await?;
        let reference = format!("refs/heads/{}", self.branch);
        let pushed = self.clone.push(&reference, Some(&head.sha), &commit).await;
        Ok(self.landed(&pushed.map_err(StoreError::Push)?, commit))
    }

    /// The commit on top of `head` in which the file at `key` is changed; it is not pushed yet.
    async fn commit_with(
        &mut self,
        head: &Commit,
        key: &StateKey,
        change: Change,
        message: &str,
    ) -> Result<Commit, StoreError> {
        let clone = &mut self.clone;
        let tree = clone.tree_with(Some(head), key.as_str(), change).await?;
        Ok(clone.make_commit(tree, Some(head), message, &self.author)?)
    }

    /// What a push of `commit` came to.
    fn landed(&mut self, pushed: &Pushed, commit: Commit) -> Round {
        match pushed {
            Pushed::Done => {
                self.known = Some(commit);
                Round::Done
            }
            Pushed::Moved(_) => Round::Moved,
        }
    }
}

/// Whether two states say the same; those that are no JSON must be the same bytes.
fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    match (serde_json::from_slice(one), serde_json::from_slice(other)) {
        (Ok(one), Ok(other)) => same::same(&one, &other),
        _ => false,
    }
}
