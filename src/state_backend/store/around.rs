//! What is around a state: what else its folder holds, where others are, who wrote it last, and whether it was destroyed.

use crate::git::GitError;
use crate::git::history::{self, Written};
use crate::git::tree::{Commit, Found, Kind};
use crate::names::{CommitSha, StateKey};

use super::{Store, StoreError};

/// How many states near a missing one are named.
const NEAR: usize = 10;

/// What stands around a state's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// What its folder holds beside it, folders with a `/` at their end.
    pub beside: Vec<String>,
    /// Where there is none: other states, the nearest first.
    pub near: Vec<StateKey>,
    /// The commit that removed it as the end of a destroy.
    pub proof: Option<CommitSha>,
    /// The last commit that wrote it.
    pub written: Option<Written>,
}

/// The namespace of the refs that keep the commits by which destroys removed states, as their proofs.
pub const PROOFS: &str = "refs/stagewright/destroyed/";

/// The ref that keeps the commit by which a destroy removed the state, as its proof.
pub fn proof_reference(key: &StateKey) -> String {
    format!("{PROOFS}{key}")
}

impl Store {
    /// Looks around the place of a state that was read before.
    pub async fn around(&mut self, key: &StateKey) -> Result<Around, StoreError> {
        let head = match self.known.clone() {
            Some(head) => head,
            None => self.head().await?,
        };
        let (folder, file) = (key.folder(), key.file_name());
        let mut around = Around::default();
        let mut is_there = false;
        if let Found::Entry(entry) = self.clone.find(&head, folder).await?
            && entry.kind == Kind::Tree
        {
            for entry in self.clone.entries(entry.id).await? {
                match (entry.name == file, entry.kind) {
                    (true, _) => is_there = true,
                    (false, Kind::Tree) => around.beside.push(format!("{}/", entry.name)),
                    (false, _) => around.beside.push(entry.name),
                }
            }
        }
        let proof = self.clone.remote().reference(&proof_reference(key)).await;
        around.proof = proof?;
        if is_there {
            let subject = format!("Update {key}");
            around.written = self.last(|found| found == subject).await?;
        } else {
            around.near = self.near(&head, key).await?;
            if around.proof.is_none() {
                // A run that was killed after it had removed the state, and before it had kept the proof.
                let subject = format!("Remove {folder}/: ");
                let removed = self.last(|found| found.starts_with(&subject)).await?;
                around.proof = removed.map(|removed| removed.commit);
            }
        }
        Ok(around)
    }

    /// The last commit of the branch with such a first line. Both this program and terraform-backend-git name the state there.
    async fn last(&self, fits: impl Fn(&str) -> bool) -> Result<Option<Written>, GitError> {
        let folder = self.folder.join("history.git");
        history::last_with_subject(self.clone.remote(), &folder, &self.branch, fits).await
    }

    /// The states below the deepest folder on the way to `key` that there is; of a repository or prefix that is not there,
    /// those of the one with the nearest name.
    async fn near(&mut self, head: &Commit, key: &StateKey) -> Result<Vec<StateKey>, StoreError> {
        let segments: Vec<&str> = key.as_str().split('/').collect();
        let (file, folders) = match segments.split_last() {
            Some((file, folders)) => (*file, folders),
            None => return Ok(Vec::new()),
        };
        let mut here = String::new();
        let mut tree = head.tree;
        for (depth, segment) in folders.iter().enumerate() {
            let entries = self.clone.entries(tree).await?;
            let below = entries.into_iter().filter(|e| e.kind == Kind::Tree);
            let likeness =
                |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &segment.to_lowercase());
            let nearest =
                below.max_by(|one, other| likeness(&one.name).total_cmp(&likeness(&other.name)));
            let Some(nearest) = nearest else { break };
            if nearest.name != *segment && depth >= 2 {
                break;
            }
            here.push_str(&nearest.name);
            here.push('/');
            tree = nearest.id;
        }
        let mut keys: Vec<String> = Vec::new();
        for entry in self.clone.below(tree).await? {
            let name = format!("{here}{}", entry.name);
            if name.rsplit('/').next() == Some(file) {
                keys.push(name);
            }
        }
        let wanted = key.as_str();
        keys.sort_by(|one, other| {
            let likeness = |name: &str| strsim::jaro_winkler(name, wanted);
            likeness(other)
                .total_cmp(&likeness(one))
                .then_with(|| one.cmp(other))
        });
        let keys = keys.iter().filter_map(|name| name.parse().ok());
        Ok(keys.take(NEAR).collect())
    }
}
