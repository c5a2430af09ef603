//! A case's changes to the sandbox's repositories: one commit for each branch that it names, the same everywhere.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{Index, IndexEntry, IndexTime, Oid, Repository, Signature, Time};

/// 2026-01-20T09:00:00Z: after everything in the sandbox.
const COMMITTED: i64 = 1_768_899_600;
/// Lists paths that the commit removes, one a line.
const REMOVED: &str = "removed";
/// Lists symbolic links that the commit makes, one a line: `<path> -> <target>`. As links in the fixtures they would lead
/// out of this repository.
const LINKS: &str = "links";
/// The commit's message, where it matters.
const MESSAGE: &str = "message";
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_000;

/// Commits `<folder>/<Repo>/<branch>/…` on top of those branches below `repositories`. A new branch starts from `main`.
/// What `filled` does to placeholders, it does to every file that is text.
pub fn commit_all(folder: &Path, repositories: &Path, filled: &dyn Fn(&str) -> String) {
    for repo in names(folder) {
        let repository = Repository::open_bare(repositories.join(format!("{repo}.git"))).unwrap();
        let mut branches = names(&folder.join(&repo));
        // main first, so that a new branch has what the case puts there.
        branches.sort_by_key(|branch| branch != "main");
        for branch in branches {
            let mut files = BTreeMap::new();
            read_folder(&folder.join(&repo).join(&branch), "", &mut files);
            for content in files.values_mut() {
                if let Ok(text) = std::str::from_utf8(content) {
                    *content = filled(text).into_bytes();
                }
            }
            commit(&repository, &branch, files);
        }
    }
}

/// The commit at the head of a branch; `None` where there is no such repository or branch.
pub fn head(repositories: &Path, repo: &str, branch: &str) -> Option<String> {
    let repository = Repository::open_bare(repositories.join(format!("{repo}.git"))).ok()?;
    let id = repository.refname_to_id(&format!("refs/heads/{branch}"));
    Some(id.ok()?.to_string())
}

fn commit(repository: &Repository, branch: &str, mut files: BTreeMap<String, Vec<u8>>) {
    let message = files.remove(MESSAGE);
    let message = message.map_or("The case's change\n".to_owned(), |m| {
        String::from_utf8(m).unwrap()
    });
    let reference = format!("refs/heads/{branch}");
    let parent = repository
        .refname_to_id(&reference)
        .or_else(|_| repository.refname_to_id("refs/heads/main"))
        .and_then(|id| repository.find_commit(id))
        .unwrap();
    let mut index = Index::new().unwrap();
    index.read_tree(&parent.tree().unwrap()).unwrap();
    for path in lines(&mut files, REMOVED) {
        index.remove_all([path.as_str()], None).unwrap();
    }
    for line in lines(&mut files, LINKS) {
        let (path, target) = line.split_once(" -> ").unwrap();
        let id = repository.blob(target.as_bytes()).unwrap();
        index.add(&entry(path, id, LINK)).unwrap();
    }
    for (path, content) in files {
        let id = repository.blob(&content).unwrap();
        index.add(&entry(&path, id, FILE)).unwrap();
    }
    let tree = index.write_tree_to(repository).unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let time = Time::new(COMMITTED, 0);
    let operator = Signature::new("Example Operator", "operator@example.com", &time).unwrap();
    let on_new_branch = repository.refname_to_id(&reference).is_err();
    let id = repository
        .commit(None, &operator, &operator, &message, &tree, &[&parent])
        .unwrap();
    repository
        .reference(&reference, id, !on_new_branch, "")
        .unwrap();
}

fn lines(files: &mut BTreeMap<String, Vec<u8>>, name: &str) -> Vec<String> {
    let text = String::from_utf8(files.remove(name).unwrap_or_default()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read_folder(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            read_folder(&path, &format!("{below}{name}/"), files);
        } else {
            files.insert(format!("{below}{name}"), std::fs::read(path).unwrap());
        }
    }
}

fn entry(path: &str, id: Oid, mode: u32) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}
