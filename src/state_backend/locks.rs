//! Every lock that stands: read with as many requests for many as for one.

use jiff::Timestamp;

use crate::git::GitError;
use crate::git::tree::{Extent, Found, Kind, PartialClone};
use crate::names::{CommitSha, StateKey};

use super::lock::{Lock, LockDocumentError};

/// The namespace of the locks' branches.
pub const LOCKS: &str = "refs/heads/locks/";

/// A lock that stands.
#[derive(Debug)]
pub enum Held {
    /// Somebody works on this state.
    By {
        /// The state.
        key: StateKey,
        /// What the lock says.
        lock: Lock,
    },
    /// The branch of a lock, and no document in it that can be read.
    Unreadable {
        /// The state.
        key: StateKey,
        /// What is wrong with the document, where there is one.
        source: Option<LockDocumentError>,
    },
    /// The branch of a lock, under a name that is no state's key.
    Nameless {
        /// What stands behind `locks/`.
        name: String,
    },
}

impl Held {
    /// What the branch `locks/<name>` says whose file of [`document_of`] has this content.
    pub fn of(name: &str, document: Option<&[u8]>) -> Held {
        let Ok(key) = name.parse::<StateKey>() else {
            let name = name.to_owned();
            return Held::Nameless { name };
        };
        match document.map(Lock::parse) {
            Some(Ok(lock)) => Held::By { key, lock },
            Some(Err(error)) => Held::Unreadable {
                key,
                source: Some(error),
            },
            None => Held::Unreadable { key, source: None },
        }
    }
}

/// The file that holds the document of the lock `name`, in the commit that its branch leads to.
pub fn document_of(name: &str) -> String {
    format!("{name}.lock")
}

/// Reads the locks of these branches, each by what stands behind `locks/` and where it is; but for those that were given back since.
pub async fn read(
    clone: &mut PartialClone,
    branches: &[(String, CommitSha)],
) -> Result<Vec<Held>, GitError> {
    let commits: Vec<CommitSha> = branches.iter().map(|(_, sha)| sha.clone()).collect();
    clone.fetch_commits(&commits).await?;
    let mut files = Vec::new();
    for (name, sha) in branches {
        let commit = match clone.commit(sha, Extent::AllTrees).await {
            Ok(commit) => commit,
            Err(GitError::NoCommit { .. }) => continue,
            Err(error) => return Err(error),
        };
        let file = match clone.find(&commit, &document_of(name)).await? {
            Found::Entry(entry) if matches!(entry.kind, Kind::File { .. }) => Some(entry.id),
            _ => None,
        };
        files.push((name, file));
    }
    let ids: Vec<_> = files.iter().filter_map(|(_, file)| *file).collect();
    let contents = clone.blobs(&ids).await?;
    let read = files.into_iter().map(|(name, file)| {
        let content = file.and_then(|id| contents.get(&id));
        Held::of(name, content.map(Vec::as_slice))
    });
    Ok(read.collect())
}

/// How long ago `created` was, in its two largest units; nothing when it is no time, or still to come.
pub fn age(created: &str, now: Timestamp) -> Option<String> {
    let created: Timestamp = created.parse().ok()?;
    let seconds = now.duration_since(created).as_secs();
    if seconds < 0 {
        return None;
    }
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, name) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
    }
    parts.truncate(2);
    if parts.is_empty() {
        parts.push("0 s".to_owned());
    }
    Some(parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_two_largest_units() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        for (created, expected) in [
            ("2026-01-02T03:04:05Z", Some("0 s")),
            ("2026-01-02T03:03:00.5Z", Some("1 min 4 s")),
            ("2025-12-30T01:04:05Z", Some("3 d 2 h")),
            ("2026-01-02T03:04:06Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(age(created, now).as_deref(), expected, "{created}");
        }
    }
}
