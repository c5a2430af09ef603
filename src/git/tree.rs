//! Trees of one commit, level by level, out of a partial clone: what is fetched does not depend on what lies beside it.
//!
//! git's own lazy fetch would ask for whole folders of blobs, so nothing here lets git meet an object that is missing:
//! every object that is read was fetched by its id before.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::names::CommitSha;

use super::{GitError, Remote, plain_git, run, unexpected};

/// The id of a tree or blob, as git printed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(String);

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file; `executable` is the only mode bit that git keeps.
    File {
        /// Whether it may be executed.
        executable: bool,
    },
    /// A folder.
    Tree,
    /// A symbolic link; its target is the blob's content.
    Link,
    /// A submodule: a commit of another repository.
    Submodule,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its object.
    pub id: ObjectId,
    /// Its name; of a whole listing its path below the listed tree.
    pub name: String,
}

/// A path was looked for in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Entry(Entry),
    /// It is not there.
    Nothing,
    /// It is not there, but this path is, which differs from it in case alone.
    OtherCase(String),
}

/// A bare partial clone in a private folder.
pub struct PartialClone<'a> {
    remote: &'a Remote,
    folder: &'a Path,
    present: HashSet<String>,
}

/// A commit whose trees can be read.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub sha: CommitSha,
    /// Its top tree.
    pub tree: ObjectId,
}

impl<'a> PartialClone<'a> {
    /// Makes an empty clone of `remote` in `folder`, which is made and is best below a [`crate::scratch::Scratch`].
    pub async fn init(remote: &'a Remote, folder: &'a Path) -> Result<PartialClone<'a>, GitError> {
        let act = format!("preparing a clone of {}", remote.url());
        let mut git = plain_git(None)?;
        git.args(["init", "--quiet", "--bare", "--template=", "--"])
            .arg(folder);
        run(git, &act, b"").await?;
        let mut git = plain_git(Some(folder))?;
        git.args(["remote", "add", "--", "origin", remote.url().as_str()]);
        run(git, &act, b"").await?;
        Ok(PartialClone {
            remote,
            folder,
            present: HashSet::new(),
        })
    }

    /// Fetches one commit without its history.
    pub async fn commit(&mut self, sha: &CommitSha) -> Result<Commit, GitError> {
        let act = format!("fetching commit {sha} of {}", self.remote.url());
        self.fetch(
            &act,
            &["--depth=1", "--filter=tree:0"],
            [sha.as_str()].into_iter(),
        )
        .await?;
        let text = self.cat(&act, "commit", sha.as_str()).await?;
        let text = String::from_utf8_lossy(&text);
        let tree = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("tree "))
            .ok_or_else(|| unexpected(&act, &text))?;
        Ok(Commit {
            sha: sha.clone(),
            tree: ObjectId(tree.to_owned()),
        })
    }

    /// The entries of one tree.
    pub async fn entries(&mut self, tree: &ObjectId) -> Result<Vec<Entry>, GitError> {
        let act = format!("reading a folder of {}", self.remote.url());
        self.fetch(&act, &["--filter=tree:0"], [tree.0.as_str()].into_iter())
            .await?;
        self.list(&act, tree, &[]).await
    }

    /// Looks for `path` (segments joined by `/`; empty is the top tree), one level at a time.
    pub async fn find(&mut self, commit: &Commit, path: &str) -> Result<Found, GitError> {
        let mut here = Entry {
            kind: Kind::Tree,
            id: commit.tree.clone(),
            name: String::new(),
        };
        let mut walked: Vec<String> = Vec::new();
        for segment in path.split('/').filter(|s| !s.is_empty()) {
            if here.kind != Kind::Tree {
                return Ok(Found::Nothing);
            }
            let entries = self.entries(&here.id).await?;
            let other_case = entries
                .iter()
                .find(|e| e.name != segment && e.name.to_lowercase() == segment.to_lowercase())
                .map(|e| e.name.clone());
            match (entries.into_iter().find(|e| e.name == segment), other_case) {
                (Some(entry), _) => here = entry,
                (None, Some(other)) => {
                    walked.push(other);
                    return Ok(Found::OtherCase(walked.join("/")));
                }
                (None, None) => return Ok(Found::Nothing),
            }
            walked.push(segment.to_owned());
        }
        Ok(Found::Entry(here))
    }

    /// The content of one blob.
    pub async fn blob(&mut self, id: &ObjectId) -> Result<Vec<u8>, GitError> {
        let mut blobs = self.blobs(&[id]).await?;
        blobs
            .remove(id)
            .ok_or_else(|| unexpected("reading a file", &id.0))
    }

    /// The contents of many blobs, fetched with one request.
    pub async fn blobs(
        &mut self,
        ids: &[&ObjectId],
    ) -> Result<HashMap<ObjectId, Vec<u8>>, GitError> {
        let act = format!("reading {} file(s) of {}", ids.len(), self.remote.url());
        self.fetch(&act, &[], ids.iter().map(|id| id.0.as_str()))
            .await?;
        let mut git = plain_git(Some(self.folder))?;
        git.args(["cat-file", "--batch"]);
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let output = run(git, &act, input.as_bytes()).await?;
        parse_batch(&act, &output)
    }

    /// Every file and link below `tree`, with its path below it; the trees are fetched at once, no blob is.
    pub async fn below(&mut self, tree: &ObjectId) -> Result<Vec<Entry>, GitError> {
        let act = format!("reading the folders of {}", self.remote.url());
        // A tree that is here already would count as fetched whole, without the trees below it.
        if !self.present.contains(&tree.0) {
            self.fetch(&act, &["--filter=blob:none"], [tree.0.as_str()].into_iter())
                .await?;
            return self.list(&act, tree, &["-r"]).await;
        }
        let mut files = Vec::new();
        let mut level: Vec<(String, ObjectId)> = vec![(String::new(), tree.clone())];
        while !level.is_empty() {
            let wanted: Vec<&str> = level.iter().map(|(_, id)| id.0.as_str()).collect();
            self.fetch(&act, &["--filter=tree:0"], wanted.into_iter())
                .await?;
            let mut next = Vec::new();
            for (prefix, id) in level {
                for mut entry in self.list(&act, &id, &[]).await? {
                    entry.name = format!("{prefix}{}", entry.name);
                    if entry.kind == Kind::Tree {
                        next.push((format!("{}/", entry.name), entry.id));
                    } else {
                        files.push(entry);
                    }
                }
            }
            level = next;
        }
        Ok(files)
    }

    async fn fetch(
        &mut self,
        act: &str,
        options: &[&str],
        ids: impl Iterator<Item = &str>,
    ) -> Result<(), GitError> {
        let mut wanted: Vec<&str> = ids.filter(|id| !self.present.contains(*id)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut git = self.remote.git(Some(self.folder))?;
        git.args(["fetch", "--quiet"]);
        git.args([
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
        ]);
        git.args(options).args(["--stdin", "origin"]);
        run(git, act, wanted.join("\n").as_bytes()).await?;
        self.note_present(act).await
    }

    /// Asks the clone what it holds now: a server that knows no filters sends more than was asked for.
    async fn note_present(&mut self, act: &str) -> Result<(), GitError> {
        let mut git = plain_git(Some(self.folder))?;
        git.args(["cat-file", "--batch-all-objects", "--unordered"]);
        git.arg("--batch-check=%(objectname)");
        let output = run(git, act, b"").await?;
        self.present = String::from_utf8_lossy(&output)
            .lines()
            .map(str::to_owned)
            .collect();
        Ok(())
    }

    async fn cat(&self, act: &str, kind: &str, id: &str) -> Result<Vec<u8>, GitError> {
        let mut git = plain_git(Some(self.folder))?;
        git.args(["cat-file", kind, id]);
        run(git, act, b"").await
    }

    async fn list(
        &self,
        act: &str,
        tree: &ObjectId,
        options: &[&str],
    ) -> Result<Vec<Entry>, GitError> {
        let mut git = plain_git(Some(self.folder))?;
        git.args(["ls-tree", "-z", "--full-tree"]).args(options);
        git.arg(&tree.0);
        let output = run(git, act, b"").await?;
        output
            .split(|b| *b == 0)
            .filter(|line| !line.is_empty())
            .map(|line| parse_entry(act, line))
            .collect()
    }
}

/// `<object> SP <type> SP <size> LF <content> LF` for each object, as `git cat-file --batch` documents it.
fn parse_batch(act: &str, mut output: &[u8]) -> Result<HashMap<ObjectId, Vec<u8>>, GitError> {
    let mut blobs = HashMap::new();
    while !output.is_empty() {
        let end = output
            .iter()
            .position(|b| *b == b'\n')
            .unwrap_or(output.len());
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let odd = || unexpected(act, &head);
        let mut words = head.split(' ');
        let (id, _kind, size) = (words.next(), words.next(), words.next());
        let size: usize = size.and_then(|s| s.parse().ok()).ok_or_else(odd)?;
        let content = output.get(end + 1..end + 1 + size).ok_or_else(odd)?;
        blobs.insert(ObjectId(id.ok_or_else(odd)?.to_owned()), content.to_vec());
        output = output.get(end + 1 + size + 1..).ok_or_else(odd)?;
    }
    Ok(blobs)
}

/// `<mode> SP <type> SP <object> TAB <name>`, as `git ls-tree` documents it.
fn parse_entry(act: &str, line: &[u8]) -> Result<Entry, GitError> {
    let text =
        std::str::from_utf8(line).map_err(|_| unexpected(act, &String::from_utf8_lossy(line)))?;
    let odd = || unexpected(act, text);
    let (head, name) = text.split_once('\t').ok_or_else(odd)?;
    let mut words = head.split(' ');
    let (mode, _kind, id) = (words.next(), words.next(), words.next());
    let kind = match mode.ok_or_else(odd)? {
        "040000" => Kind::Tree,
        "100644" | "100664" => Kind::File { executable: false },
        "100755" => Kind::File { executable: true },
        "120000" => Kind::Link,
        "160000" => Kind::Submodule,
        _ => return Err(odd()),
    };
    Ok(Entry {
        kind,
        id: ObjectId(id.ok_or_else(odd)?.to_owned()),
        name: name.to_owned(),
    })
}
