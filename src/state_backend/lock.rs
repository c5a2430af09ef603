//! Locks: the branch `locks/<key>` with Terraform's lock document in `<key>.lock`, as terraform-backend-git keeps them.
//! A lock is taken by making the branch where there is none, and given back by removing exactly the commit that was read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::git::tree::{Commit, Extent, Found, Kind, PartialClone};
use crate::git::write::{Author, Change, Pushed};
use crate::git::{GitError, Remote};
use crate::names::{BranchName, CommitSha, NameError, StateKey};

/// How often a lock that vanishes while it is looked at is tried for again.
const ATTEMPTS: u32 = 5;
/// How often it is tried again after a failure whose result is unknown.
const FAILURES: u32 = 3;
/// A lock document that is longer is none of Terraform's.
const LONGEST: usize = 64 * 1024;

/// What can go wrong with a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The state repository could not be read or written.
    #[error("the locks of the state repository could not be read or changed")]
    Git(#[from] GitError),
    /// The key is no part of a branch's name.
    #[error("no lock can have the name of {key}")]
    Name {
        /// The state's path.
        key: StateKey,
        /// Why.
        #[source]
        source: NameError,
    },
    /// The branch is there and holds no lock document.
    #[error(
        "the branch locks/{key} of the state repository holds no lock that can be read: look at it with git, and delete it when nobody works on this state"
    )]
    Unreadable {
        /// The state's path.
        key: StateKey,
        /// What is wrong with the document, where there is one.
        #[source]
        source: Option<LockDocumentError>,
    },
    /// It came and went for as long as we tried.
    #[error(
        "the lock of {key} changed hands {ATTEMPTS} times while it was asked for: try again later"
    )]
    Contended {
        /// The state's path.
        key: StateKey,
    },
}

/// Not a lock document.
#[derive(Debug, thiserror::Error)]
pub enum LockDocumentError {
    /// Not JSON.
    #[error("it is not a JSON object")]
    NotJson(#[source] serde_json::Error),
    /// No ID.
    #[error("it has no ID of 1 to 200 printable characters")]
    NoId,
    /// Longer than a lock.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
}

/// The ID of a lock: whoever takes it makes one up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockId(String);

impl std::str::FromStr for LockId {
    type Err = LockDocumentError;

    fn from_str(text: &str) -> Result<LockId, LockDocumentError> {
        let printable = |c: char| !c.is_control() && !c.is_whitespace();
        if text.is_empty() || text.len() > 200 || !text.chars().all(printable) {
            return Err(LockDocumentError::NoId);
        }
        Ok(LockId(text.to_owned()))
    }
}

impl std::fmt::Display for LockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Terraform's lock document
/// (<https://github.com/hashicorp/terraform/blob/v1.11.4/internal/states/statemgr/locker.go>), kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    id: LockId,
    document: Map<String, Value>,
}

impl Lock {
    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Lock, LockDocumentError> {
        if bytes.len() > LONGEST {
            return Err(LockDocumentError::TooLong);
        }
        let document: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(LockDocumentError::NotJson)?;
        let id = document.get("ID").and_then(Value::as_str);
        let id = id.unwrap_or_default().parse()?;
        Ok(Lock { id, document })
    }

    /// A lock of our own. `created` is a time as RFC 3339 has it.
    pub fn new(id: LockId, operation: &str, who: &str, created: &str) -> Lock {
        let members = [
            ("ID", id.0.as_str()),
            ("Operation", operation),
            ("Info", ""),
            ("Who", who),
            ("Version", env!("CARGO_PKG_VERSION")),
            ("Created", created),
            ("Path", ""),
        ];
        let document = members
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .into_iter()
            .collect();
        Lock { id, document }
    }

    /// The same lock that also says `info`, after what it says already.
    pub fn with_info(mut self, info: &str) -> Lock {
        let said = self.text("Info").trim().to_owned();
        let both = match (said.is_empty(), info.is_empty()) {
            (_, true) => said,
            (true, false) => info.to_owned(),
            (false, false) => format!("{said}; {info}"),
        };
        self.document.insert("Info".to_owned(), both.into());
        self
    }

    /// Its ID.
    pub fn id(&self) -> &LockId {
        &self.id
    }

    /// A member that is text (`Who`, `Operation`, `Created`, `Info`); empty when it is absent or something else.
    pub fn text(&self, member: &str) -> &str {
        let value = self.document.get(member).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// As JSON, which is what Terraform wants to see of a lock in its way.
    pub fn to_json(&self) -> String {
        Value::Object(self.document.clone()).to_string()
    }
}

/// A lock in the repository, and the commit by which it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it says.
    pub lock: Lock,
    /// The head of its branch.
    pub commit: CommitSha,
}

/// What came of asking for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours, and stands so.
    Ours(Standing),
    /// This one stands already.
    Others(Lock),
}

/// What came of giving a lock back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// It is gone.
    Done,
    /// There was none.
    NotLocked,
    /// Another one stands there, and still does.
    Others(Lock),
}

/// The ref of the lock's branch.
pub(super) fn reference(key: &StateKey) -> String {
    format!("refs/heads/locks/{key}")
}

fn branch_of(key: &StateKey) -> Result<BranchName, LockError> {
    format!("locks/{key}")
        .parse()
        .map_err(|source| LockError::Name {
            key: key.clone(),
            source,
        })
}

/// The lock of `key`, where one stands.
pub async fn read(clone: &mut PartialClone, key: &StateKey) -> Result<Option<Standing>, LockError> {
    let branch = branch_of(key)?;
    if clone.remote().reference(&reference(key)).await?.is_none() {
        return Ok(None);
    }
    let commit = match clone.head(&branch, Extent::TopTree).await {
        Ok(commit) => commit,
        // Given back between the two questions.
        Err(GitError::NoBranch { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let lock = document(clone, key, &commit).await?;
    Ok(Some(Standing {
        lock,
        commit: commit.sha,
    }))
}

async fn document(
    clone: &mut PartialClone,
    key: &StateKey,
    commit: &Commit,
) -> Result<Lock, LockError> {
    let unreadable = |source| LockError::Unreadable {
        key: key.clone(),
        source,
    };
    let file = format!("{key}.lock");
    let Found::Entry(entry) = clone.find(commit, &file).await? else {
        return Err(unreadable(None));
    };
    if !matches!(entry.kind, Kind::File { .. }) {
        return Err(unreadable(None));
    }
    let bytes = clone.blob(entry.id).await?;
    Lock::parse(&bytes).map_err(|source| unreadable(Some(source)))
}

/// Takes the lock of `key`. A lock of the same ID that stands already is ours: a request that was sent twice. One with the ID
/// `over` is taken over, in one step: at no time is the state without a lock.
pub async fn take(
    clone: &mut PartialClone,
    key: &StateKey,
    lock: &Lock,
    author: &Author,
    over: Option<&LockId>,
) -> Result<Taken, LockError> {
    let blob = clone.keep_blob(lock.to_json().as_bytes())?;
    let file = format!("{key}.lock");
    let tree = clone.tree_with(None, &file, Change::Put(blob)).await?;
    // Without a parent: whoever reads the lock needs nothing of the states' history.
    let commit = clone.make_commit(tree, None, &format!("Lock {key}"), author)?;
    let mut patience = Patience::default();
    for _ in 0..ATTEMPTS {
        match put(clone, key, lock, &commit, over).await {
            Ok(Some(taken)) => return Ok(taken),
            Ok(None) => {}
            Err(error) => patience.after(error).await?,
        }
    }
    Err(LockError::Contended { key: key.clone() })
}

/// `None`: what stood in the way was gone when it was looked at.
async fn put(
    clone: &mut PartialClone,
    key: &StateKey,
    lock: &Lock,
    commit: &Commit,
    over: Option<&LockId>,
) -> Result<Option<Taken>, LockError> {
    let reference = reference(key);
    let ours = || {
        Some(Taken::Ours(Standing {
            lock: lock.clone(),
            commit: commit.sha.clone(),
        }))
    };
    if clone.push(&reference, None, commit).await? == Pushed::Done {
        return Ok(ours());
    }
    let Some(standing) = read(clone, key).await? else {
        return Ok(None);
    };
    if standing.lock.id == lock.id {
        return Ok(Some(Taken::Ours(standing)));
    }
    if over == Some(&standing.lock.id) {
        let pushed = clone
            .push(&reference, Some(&standing.commit), commit)
            .await?;
        return Ok((pushed == Pushed::Done).then(ours).flatten());
    }
    Ok(Some(Taken::Others(standing.lock)))
}

/// Gives back the lock of `key` with this ID, and no other. `standing` is where it stood when it was last seen, if it was.
pub async fn give_back(
    clone: &mut PartialClone,
    key: &StateKey,
    id: &LockId,
    standing: Option<&Standing>,
) -> Result<GivenBack, LockError> {
    let mut seen = standing.cloned();
    let mut patience = Patience::default();
    for _ in 0..ATTEMPTS {
        match remove(clone, key, id, &mut seen).await {
            Ok(Some(given_back)) => return Ok(given_back),
            Ok(None) => {}
            Err(error) => patience.after(error).await?,
        }
    }
    Err(LockError::Contended { key: key.clone() })
}

/// `None`: another hand was faster, and what stands there now is not known.
async fn remove(
    clone: &mut PartialClone,
    key: &StateKey,
    id: &LockId,
    seen: &mut Option<Standing>,
) -> Result<Option<GivenBack>, LockError> {
    if seen.is_none() {
        *seen = read(clone, key).await?;
    }
    let Some(standing) = seen.as_ref() else {
        return Ok(Some(GivenBack::NotLocked));
    };
    if standing.lock.id != *id {
        return Ok(Some(GivenBack::Others(standing.lock.clone())));
    }
    match clone.delete(&reference(key), &standing.commit).await? {
        Pushed::Done => Ok(Some(GivenBack::Done)),
        Pushed::Moved(_) => {
            *seen = None;
            Ok(None)
        }
    }
}

/// What is left of the tries after failures: a lock that is not given back keeps every later run out.
#[derive(Default)]
struct Patience {
    failures: u32,
}

impl Patience {
    /// Waits before the next try, or ends with the error of this one.
    async fn after(&mut self, error: LockError) -> Result<(), LockError> {
        let passing = matches!(
            error,
            LockError::Git(GitError::Failed { .. } | GitError::Child { .. })
        );
        self.failures += 1;
        if !passing || self.failures > FAILURES {
            return Err(error);
        }
        tracing::debug!(%error, "the lock is tried for again");
        tokio::time::sleep(Duration::from_millis(250 << self.failures)).await;
        Ok(())
    }
}

/// The names of all states that are locked, as their lock branches have them.
pub async fn names(remote: &Remote) -> Result<BTreeMap<String, CommitSha>, GitError> {
    let heads = remote.heads_below("locks/").await?;
    Ok(heads
        .into_iter()
        .filter_map(|(branch, sha)| Some((branch.strip_prefix("locks/")?.to_owned(), sha)))
        .collect())
}

/// A lock on one line: who, doing what, since when, and what else it says.
pub fn describe(lock: &Lock) -> String {
    let or = |member: &str, unknown: &str| match lock.text(member) {
        "" => unknown.to_owned(),
        text => text.to_owned(),
    };
    let mut line = format!(
        "by {}, {}, since {}, ID {}",
        or("Who", "somebody"),
        or("Operation", "an unknown operation"),
        or("Created", "an unknown time"),
        lock.id()
    );
    if !lock.text("Info").is_empty() {
        line.push_str(&format!(" ({})", lock.text("Info")));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_terraforms_is_kept_with_all_that_it_says() {
        let text = r#"{"ID":"ab-1","Operation":"OperationTypeApply","Info":"","Who":"me@host","Version":"1.11.4","Created":"2026-01-02T03:04:05.678Z","Path":"","New":[1]}"#;
        let lock = Lock::parse(text.as_bytes()).unwrap();
        assert_eq!(lock.id().to_string(), "ab-1");
        assert_eq!(lock.to_json(), text);
        let lock = lock.with_info("pod: a/b");
        assert_eq!(lock.text("Info"), "pod: a/b");
        assert_eq!(
            lock.with_info("build: c").text("Info"),
            "pod: a/b; build: c"
        );
    }

    #[test]
    fn what_has_no_usable_id_is_no_lock() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"ID":""}"#,
            r#"{"ID":7}"#,
            r#"{"ID":"a b"}"#,
            "{\"ID\":\"a\\u001b\"}",
        ] {
            assert!(Lock::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
