//! The deploy repository at one commit: the app's folder, its Terraform and config folders, and the local modules that
//! lie outside of them. Nothing else of the repository is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::git::checkout::{LeftOut, check_out};
use crate::git::tree::{Commit, Extent, Found, Kind, PartialClone};
use crate::git::{GitError, Remote};
use crate::layout::Layout;
use crate::names::{AppPath, CommitSha, RepoName, StageName};
use crate::protect::Allowed;
use crate::terraform::root::module_sources;

use super::PresyncError;

/// Whose files are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The repository's name, as the state has it.
    pub repo: &'a RepoName,
    /// The app's folder.
    pub path: Option<&'a AppPath>,
    /// The stage.
    pub stage: &'a StageName,
    /// Whether the stage must have a config folder.
    pub config: ConfigFolder,
}

/// Whether a stage without a config folder is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFolder {
    /// It is not: a sync would fail.
    Required,
    /// It may be gone: a destroy goes on where another one stopped.
    MayBeGone,
}

/// The files on disk.
#[derive(Debug)]
pub struct Source {
    /// Where the clone's files are.
    pub root: PathBuf,
    /// The Terraform folder, as a path in the clone.
    pub terraform: String,
    /// The stage's config folder, as a path in the clone.
    pub config: String,
    /// Which of its files are variable files.
    pub tfvars_pattern: String,
    /// The stage's tfvars files, sorted, as paths on disk.
    pub tfvars: Vec<PathBuf>,
    /// What was not written, and why.
    pub left_out: Vec<LeftOut>,
    /// What the commit's message allows to be destroyed.
    pub allowed: Allowed,
    /// The ids of the folders that a plan is made from, by their paths.
    pub trees: BTreeMap<String, String>,
    /// The files of the stage's config folder, as paths in it; nothing where it is gone.
    pub config_files: Option<Vec<String>>,
}

/// Fetches the commit and writes out what the hook needs of it, into `files` (made here).
pub async fn fetch(
    remote: &Remote,
    revision: &CommitSha,
    wanted: Wanted<'_>,
    layout: &Layout,
    objects: &Path,
    files: &Path,
) -> Result<Source, PresyncError> {
    let terraform = layout.terraform_dir(wanted.repo, wanted.path);
    let config = layout.config_dir(wanted.repo, wanted.path, wanted.stage);
    let mut clone = PartialClone::init(remote.clone(), objects.to_owned())?;
    let app = wanted.path.map(AppPath::as_str).unwrap_or_default();
    // An app that is its whole repository needs all its trees; of a monorepo those beside the app are not fetched.
    let extent = if app.is_empty() {
        Extent::AllTrees
    } else {
        Extent::TopTree
    };
    let commit = clone.commit(revision, extent).await?;
    if let Found::Entry(entry) = clone.find(&commit, app).await?
        && entry.kind == Kind::Tree
    {
        clone.fetch_below(entry.id).await?;
    }
    if !clone.is_folder(&commit, &terraform).await? {
        return Err(PresyncError::NoTerraform { folder: terraform });
    }
    let config_files = match clone.find(&commit, &config).await? {
        Found::Entry(entry) if entry.kind == Kind::Tree => {
            let files = clone.below(entry.id).await?;
            Some(files.into_iter().map(|file| file.name).collect())
        }
        _ if wanted.config == ConfigFolder::MayBeGone => None,
        _ => {
            return Err(PresyncError::NoConfig {
                folder: config,
                stage: wanted.stage.clone(),
            });
        }
    };
    let allowed = Allowed::from_trailers(clone.trailers(&commit)?);
    std::fs::create_dir_all(files).map_err(PresyncError::Clone)?;
    let mut tree = Checkout {
        clone,
        commit,
        files,
        written: BTreeSet::new(),
        left_out: Vec::new(),
        trees: BTreeMap::new(),
    };
    // The app's whole folder: a root may read its chart or its config with file().
    tree.write(app).await?;
    tree.write(&terraform).await?;
    tree.write(&config).await?;
    tree.note(&config).await?;
    let mut folders = BTreeSet::from([terraform.clone()]);
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop_first() {
        if !seen.insert(folder.clone()) {
            continue;
        }
        tree.write(&folder).await?;
        tree.note(&folder).await?;
        folders.extend(module_sources(&read_files(&files.join(&folder))?, &folder));
    }
    let tfvars = match &config_files {
        Some(_) => tfvars(layout, &files.join(&config))?,
        None => Vec::new(),
    };
    Ok(Source {
        root: files.to_owned(),
        terraform,
        config,
        tfvars_pattern: layout.tfvars().to_owned(),
        tfvars,
        left_out: tree.left_out,
        allowed,
        trees: tree.trees,
        config_files,
    })
}

struct Checkout<'a> {
    clone: PartialClone,
    commit: Commit,
    files: &'a Path,
    written: BTreeSet<String>,
    left_out: Vec<LeftOut>,
    trees: BTreeMap<String, String>,
}

impl Checkout<'_> {
    /// Keeps the id of a folder that a plan is made from.
    async fn note(&mut self, folder: &str) -> Result<(), GitError> {
        if let Found::Entry(entry) = self.clone.find(&self.commit, folder).await? {
            self.trees.insert(folder.to_owned(), entry.id.to_string());
        }
        Ok(())
    }

    /// Writes one folder of the commit, unless it or one above it was written before, and whatever its links lead to.
    /// A folder that is not there is nothing to write: Terraform says what it misses.
    async fn write(&mut self, folder: &str) -> Result<(), GitError> {
        let above = |done: &String| {
            done.is_empty() || folder == done || folder.starts_with(&format!("{done}/"))
        };
        if self.written.iter().any(above) {
            return Ok(());
        }
        let Found::Entry(entry) = self.clone.find(&self.commit, folder).await? else {
            return Ok(());
        };
        let mut done = check_out(&mut self.clone, entry, folder, self.files).await?;
        self.written.insert(folder.to_owned());
        self.left_out.append(&mut done.left_out);
        let mut followed = BTreeSet::new();
        while let Some((end, link)) = done.wanted.pop() {
            if !followed.insert(end.clone()) {
                continue;
            }
            let Found::Entry(entry) = self.clone.find(&self.commit, &end).await? else {
                self.left_out.push(LeftOut::LinkToNothing(link));
                continue;
            };
            let further = check_out(&mut self.clone, entry, &end, self.files).await?;
            self.left_out.extend(further.left_out);
            done.wanted.extend(further.wanted);
        }
        Ok(())
    }
}

/// The files of one folder with their contents; a folder that is not there has none.
fn read_files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, PresyncError> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(PresyncError::Clone)?;
        if entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).map_err(PresyncError::Clone)?;
            files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
        }
    }
    Ok(files)
}

fn tfvars(layout: &Layout, folder: &Path) -> Result<Vec<PathBuf>, PresyncError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(PresyncError::Clone)? {
        let entry = entry.map_err(PresyncError::Clone)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| layout.is_tfvars(name)) {
            if !entry.path().is_file() {
                return Err(PresyncError::Tfvars {
                    file: name.to_string_lossy().into_owned(),
                });
            }
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
