//! The estate's git repositories, written without the `git` program so that their commits are the same everywhere.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{
    Commit, ConfigLevel, Error, Index, IndexEntry, IndexTime, Oid, Repository,
    RepositoryInitOptions, Signature, Time,
};

/// The branch that holds a repository's whole tree; every other branch holds what differs from it.
const MAIN: &str = "main";

/// 2026-01-15T09:00:00Z, in seconds since 1970: when `main` was committed. Other branches are a day younger.
const COMMITTED: i64 = 1_768_467_600;
const DAY: i64 = 24 * 60 * 60;

/// git's mode of a file that is not executable. None in the estate is.
const FILE: u32 = 0o100_644;

type Content = Cow<'static, [u8]>;
type Files = BTreeMap<String, Content>;

/// The files of every repository, by repository and branch.
#[derive(Default)]
pub(super) struct Repositories(BTreeMap<String, BTreeMap<String, Files>>);

impl Repositories {
    /// Adds a file. A file of a branch other than `main` is added to what `main` holds, or takes its place.
    pub(super) fn add(&mut self, repo: &str, branch: &str, path: &str, content: Content) {
        self.0
            .entry(repo.to_owned())
            .or_default()
            .entry(branch.to_owned())
            .or_default()
            .insert(path.to_owned(), content);
    }

    /// Writes every repository as `<folder>/<repo>.git`; an error comes with the repository's path.
    pub(super) fn write_into(self, folder: &Path) -> Result<(), (PathBuf, Error)> {
        for (repo, branches) in self.0 {
            let path = folder.join(format!("{repo}.git"));
            write_repository(&path, &branches).map_err(|source| (path, source))?;
        }
        Ok(())
    }
}

fn write_repository(path: &Path, branches: &BTreeMap<String, Files>) -> Result<(), Error> {
    let repository = init(path)?;
    let mut index = Index::new()?;
    if let Some(files) = branches.get(MAIN) {
        stage(&repository, &mut index, files)?;
    }
    let message = "The example estate\n";
    let main = commit(&repository, &mut index, MAIN, COMMITTED, message, None)?;

    for (branch, files) in branches.iter().filter(|(branch, _)| *branch != MAIN) {
        let mut index = Index::new()?;
        index.read_tree(&main.tree()?)?;
        stage(&repository, &mut index, files)?;
        let message = format!("What is on {branch} alone\n");
        commit(
            &repository,
            &mut index,
            branch,
            COMMITTED + DAY,
            &message,
            Some(&main),
        )?;
    }
    Ok(())
}

/// An empty bare repository that serves partial and by-id fetches, as GitHub does.
fn init(path: &Path) -> Result<Repository, Error> {
    let mut options = RepositoryInitOptions::new();
    // The machine's own template could bring hooks along.
    options
        .bare(true)
        .mkpath(true)
        .no_reinit(true)
        .initial_head(MAIN)
        .external_template(false);
    let repository = Repository::init_opts(path, &options)?;
    let mut config = repository.config()?.open_level(ConfigLevel::Local)?;
    config.set_bool("uploadpack.allowFilter", true)?;
    config.set_bool("uploadpack.allowAnySHA1InWant", true)?;
    Ok(repository)
}

fn stage(repository: &Repository, index: &mut Index, files: &Files) -> Result<(), Error> {
    for (path, content) in files {
        let id = repository.blob(content)?;
        index.add(&entry(path, id))?;
    }
    Ok(())
}

/// An index entry that says nothing but the path and the blob: there is no work tree for the rest to be about.
fn entry(path: &str, id: Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: FILE,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

fn commit<'repo>(
    repository: &'repo Repository,
    index: &mut Index,
    branch: &str,
    seconds: i64,
    message: &str,
    parent: Option<&Commit<'repo>>,
) -> Result<Commit<'repo>, Error> {
    let tree = repository.find_tree(index.write_tree_to(repository)?)?;
    let operator = Signature::new(
        "Example Operator",
        "operator@example.com",
        &Time::new(seconds, 0),
    )?;
    let reference = format!("refs/heads/{branch}");
    let id = repository.commit(
        Some(&reference),
        &operator,
        &operator,
        message,
        &tree,
        parent.as_slice(),
    )?;
    repository.find_commit(id)
}
