//! git's objects as GitHub lists them, and their ids as git computes them: what GitHub made is only taken when its id is the one that
//! it must have.

use git2::{ObjectType, Oid};
use serde::{Deserialize, Serialize};

use crate::git::tree;
use crate::names::CommitSha;

use super::error::GitHubError;

/// The tree with nothing in it; git knows it without being told.
pub(super) const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A ref (the schema `git-ref`).
#[derive(Deserialize)]
pub(super) struct Reference {
    /// From `refs/` on.
    #[serde(default, rename = "ref")]
    pub(super) name: String,
    pub(super) object: Object,
}

/// What a ref or a tag leads to.
#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) sha: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A commit (the schema `git-commit`).
#[derive(Deserialize)]
pub(super) struct GitCommit {
    pub(super) sha: CommitSha,
    pub(super) tree: Named,
    pub(super) parents: Vec<Named>,
}

/// Anything that has an id.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) sha: String,
}

/// A tree (the schema `git-tree`).
#[derive(Deserialize)]
pub(super) struct Listing {
    pub(super) sha: String,
    pub(super) truncated: bool,
    pub(super) tree: Vec<Entry>,
}

/// One entry of a tree; what GitHub gets is what it gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "path")]
    pub(super) name: String,
    pub(super) mode: String,
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) sha: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Blob,
    Tree,
    Commit,
}

impl Entry {
    pub(super) fn folder(name: &str, sha: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            mode: "040000".to_owned(),
            kind: Kind::Tree,
            sha: sha.to_owned(),
        }
    }

    /// The same as git has it, under another name.
    pub(super) fn as_git(&self, name: String) -> Result<tree::Entry, GitHubError> {
        let kind = match (self.kind, self.mode.as_str()) {
            (Kind::Tree, _) => tree::Kind::Tree,
            (Kind::Commit, _) => tree::Kind::Submodule,
            (Kind::Blob, "120000") => tree::Kind::Link,
            (Kind::Blob, mode) => tree::Kind::File {
                executable: mode == "100755",
            },
        };
        match full_id(&self.sha) {
            Some(id) => Ok(tree::Entry { kind, id, name }),
            None => Err(GitHubError::NotProven {
                what: format!("the listing with {name}"),
            }),
        }
    }

    /// A file that is no symbolic link.
    pub(super) fn is_file(&self) -> bool {
        self.kind == Kind::Blob && self.mode != "120000"
    }
}

/// The id that a tree of these entries has (<https://git-scm.com/book/en/v2/Git-Internals-Git-Objects#_tree_objects>). `None`: one of them has no id.
pub(super) fn tree_id(entries: &[Entry]) -> Option<String> {
    let mut sorted: Vec<(Vec<u8>, &Entry)> = entries.iter().map(|e| (sorting(e), e)).collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut content = Vec::new();
    for (_, entry) in sorted {
        content.extend(entry.mode.trim_start_matches('0').bytes());
        content.push(b' ');
        content.extend(entry.name.bytes());
        content.push(0);
        content.extend(full_id(&entry.sha)?.as_bytes());
    }
    let id = Oid::hash_object(ObjectType::Tree, &content).ok()?;
    Some(id.to_string())
}

/// libgit2 would fill up a shorter one with zeros.
fn full_id(text: &str) -> Option<Oid> {
    (text.len() == 40).then(|| Oid::from_str(text).ok())?
}

/// git sorts a folder as if its name ended in a slash.
fn sorting(entry: &Entry) -> Vec<u8> {
    let mut name = entry.name.clone().into_bytes();
    if entry.kind == Kind::Tree {
        name.push(b'/');
    }
    name
}

/// The id that a file of this content has.
pub(super) fn blob_id(content: &[u8]) -> Option<String> {
    let id = Oid::hash_object(ObjectType::Blob, content).ok()?;
    Some(id.to_string())
}

/// `found` is what `expected` says that it must be.
pub(super) fn proven(
    what: impl FnOnce() -> String,
    found: &str,
    expected: Option<&str>,
) -> Result<(), GitHubError> {
    if Some(found) == expected {
        Ok(())
    } else {
        Err(GitHubError::NotProven { what: what() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_id_that_git_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(folder.path()).unwrap();
        let blob = repository.blob(b"x").unwrap();
        let empty = repository.treebuilder(None).unwrap().write().unwrap();
        assert_eq!(empty.to_string(), EMPTY_TREE);
        let mut builder = repository.treebuilder(None).unwrap();
        let mut entries = Vec::new();
        // A folder sorts behind `a.b` and before `a0`.
        for (name, mode, kind, id) in [
            ("a0", 0o100_644, Kind::Blob, blob),
            ("a", 0o040_000, Kind::Tree, empty),
            ("a.b", 0o100_755, Kind::Blob, blob),
            ("link", 0o120_000, Kind::Blob, blob),
            ("module", 0o160_000, Kind::Commit, blob),
        ] {
            builder.insert(name, id, mode).unwrap();
            entries.push(Entry {
                name: name.to_owned(),
                mode: format!("{mode:06o}"),
                kind,
                sha: id.to_string(),
            });
        }
        let id = builder.write().unwrap().to_string();
        assert_eq!(tree_id(&entries), Some(id));
        assert_eq!(tree_id(&[]).as_deref(), Some(EMPTY_TREE));
        assert_eq!(blob_id(b"x"), Some(blob.to_string()));
        entries[0].sha = "12".to_owned();
        assert_eq!(tree_id(&entries), None);
    }
}
