//! The end of a state whose stage was destroyed: its file goes in one commit, which is kept by a ref of its own as the proof.

use crate::git::tree::{Commit, Found, Kind};
use crate::git::write::Change;
use crate::names::{CommitSha, StateKey};

use super::around::proof_reference;
use super::{Attempts, Round, Store, StoreError};

/// What became of a state's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retired {
    /// This commit removed it.
    Removed(CommitSha),
    /// There was none.
    Nothing,
}

impl Store {
    /// The branch's head as last read.
    pub fn known_head(&self) -> Option<&CommitSha> {
        self.known.as_ref().map(|commit| &commit.sha)
    }

    /// What stands beside the state in its folder, and would keep it from being removed.
    pub async fn beside(&mut self, key: &StateKey) -> Result<Vec<String>, StoreError> {
        let head = self.base(false).await?;
        self.others(&head, key).await
    }

    /// Removes the file at `key`, and nothing else, if it is as this run has last read or written it and its folder holds
    /// nothing beside it, and keeps the commit as the proof.
    pub async fn retire(&mut self, key: &StateKey, message: &str) -> Result<Retired, StoreError> {
        let mut attempts = Attempts::default();
        loop {
            let round = async {
                let head = self.base(attempts.fresh).await?;
                let Some(blob) = self.blob_at(&head, key).await? else {
                    return Ok(None);
                };
                if self.seen.get(key).is_some_and(|seen| !seen.contains(&blob)) {
                    return Err(StoreError::Unseen { key: key.clone() });
                }
                self.alone(&head, key).await?;
                self.take_out(&head, key, message).await.map(Some)
            };
            match round.await {
                Ok(None) => return Ok(Retired::Nothing),
                Ok(Some(Round::Done)) => {
                    let commit = self.base(false).await?;
                    return Ok(Retired::Removed(commit.sha));
                }
                Ok(Some(round)) => attempts.after(Ok(round), key).await?,
                Err(error) => attempts.after(Err(error), key).await?,
            }
        }
    }

    /// The commit without the file, pushed to the branch and to the ref of the proof in one.
    async fn take_out(
        &mut self,
        head: &Commit,
        key: &StateKey,
        message: &str,
    ) -> Result<Round, StoreError> {
        let commit = self.commit_with(head, key, Change::Remove, message).await?;
        let reference = format!("refs/heads/{}", self.branch);
        let expected = Some(&head.sha);
        let proof = proof_reference(key);
        let both = self
            .clone
            .push_with(&reference, expected, &commit, &proof)
            .await;
        let pushed = match both {
            Ok(pushed) => pushed,
            // A server that takes no two refs at once, or not that one: the commit on the branch says it as well.
            Err(error) => {
                tracing::debug!(%error, "the proof has no ref of its own");
                let alone = self.clone.push(&reference, expected, &commit).await;
                alone.map_err(StoreError::Push)?
            }
        };
        Ok(self.landed(&pushed, commit))
    }

    /// Refuses a folder that holds anything beside the state: it belongs to somebody else.
    async fn alone(&mut self, head: &Commit, key: &StateKey) -> Result<(), StoreError> {
        let others = self.others(head, key).await?;
        if others.is_empty() {
            return Ok(());
        }
        Err(StoreError::Beside {
            folder: key.folder().to_owned(),
            others: others.join(", "),
        })
    }

    async fn others(&mut self, head: &Commit, key: &StateKey) -> Result<Vec<String>, StoreError> {
        let (folder, file) = (key.folder(), key.file_name());
        let Found::Entry(entry) = self.clone.find(head, folder).await? else {
            return Ok(Vec::new());
        };
        if entry.kind != Kind::Tree {
            return Ok(Vec::new());
        }
        let entries = self.clone.entries(entry.id).await?.into_iter();
        Ok(entries
            .map(|e| e.name)
            .filter(|name| name != file)
            .collect())
    }
}
