//! The registry: which apps there are, where each is kept, and its stages.
//!
//! It is the values file of a Helm chart, so it is read as Helm reads it or not at all: see [`crate::yaml`].

pub mod check;
mod entry;

use std::fmt;

use crate::names::{AppName, AppPath, RepoUrl, StageName};
use crate::yaml::{self, Node, Place, Value, YamlError};

/// The apps of an estate. An entry that cannot be understood is no app here but a [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    apps: Vec<App>,
    claims: Vec<Claim>,
    faults: Vec<Fault>,
}

/// What an entry says of what it deploys, however faulty it is besides. What of it could not be read has a [`Fault`] that
/// hides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its key below `apps`, as written.
    pub app: String,
    /// The deploy repository; `None` where it is hidden.
    pub repo: Option<RepoUrl>,
    /// The app's directory in it; `None` for its root, and where it is hidden.
    pub path: Option<AppPath>,
    /// The stages, but for those that are hidden.
    pub stages: Vec<StageName>,
}

/// An app and where its deploy repository keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its key below `apps`.
    pub name: AppName,
    /// The deploy repository.
    pub repo: RepoUrl,
    /// The app's directory in it; `None` for its root.
    pub path: Option<AppPath>,
    /// Where the chart comes from, when it comes from a Helm repository.
    pub upstream: Option<Upstream>,
    /// The sync options of every stage's Application.
    pub sync_options: Vec<String>,
    /// The stages that could be understood, in the order of the file.
    pub stages: Vec<Stage>,
    /// Where the key stands.
    pub place: Place,
}

/// A chart in a Helm repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The Helm repository, as written.
    pub repo: String,
    /// The chart's name in it.
    pub chart: String,
}

/// One deployment of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its key below `stages`.
    pub name: StageName,
    /// Whether Argo CD syncs it by itself; true when not set.
    pub auto_sync: bool,
    /// The branch, tag or commit that it tracks, as written; the estate's default when `None`.
    pub target_revision: Option<String>,
    /// The version of the upstream chart; set exactly when the app has an upstream.
    pub version: Option<String>,
    /// Whether nothing stands behind the key, where `{}` could.
    pub is_null: bool,
    /// Where the key stands.
    pub place: Place,
}

/// What is wrong with one entry. Its Display is `file:line:column: sentence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The app's key as written.
    pub app: String,
    /// The stage's key as written, when the fault is one stage's and leaves the app usable.
    pub stage: Option<String>,
    /// The registry's file.
    pub file: String,
    /// Where it is.
    pub place: Place,
    /// The sentence.
    pub message: String,
    /// Whether a repository, a path or a stage could not be read because of it, so that what the entry deploys is not known.
    pub hides: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.place, self.message)
    }
}

/// Why a registry as a whole cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It is not YAML that Helm and we read alike.
    #[error("{file}:{}: {fault}", fault.place())]
    Yaml {
        /// The registry's file.
        file: String,
        /// What is wrong.
        fault: YamlError,
    },
    /// It is YAML of another shape.
    #[error(
        "{file}:{place}: {found}; a registry has `apps:` with one key for each app, and below it `repo:` and `stages:` with one key for each stage"
    )]
    Shape {
        /// The registry's file.
        file: String,
        /// Where it is.
        place: Place,
        /// What stands there.
        found: String,
    },
}

impl Registry {
    /// Reads a registry. `file` is its name, for errors.
    ///
    /// # Errors
    /// When the text is not readable YAML, or there is no mapping `apps` with at least one key. What is wrong within
    /// single entries is no error but a [`Fault`].
    pub fn parse(text: &str, file: &str) -> Result<Self, RegistryError> {
        let root = yaml::parse(text).map_err(|fault| RegistryError::Yaml {
            file: file.to_owned(),
            fault,
        })?;
        let shape = |place: Place, found: String| RegistryError::Shape {
            file: file.to_owned(),
            place,
            found,
        };
        if root.is_null() {
            return Err(shape(root.place(), "the registry is empty".to_owned()));
        }
        let Value::Mapping(keys) = root.value() else {
            return Err(shape(
                root.place(),
                format!("{} stands where a mapping is wanted", root.kind()),
            ));
        };
        let Some(apps) = root.get("apps") else {
            let misspelt =
                |(key, _): &&(Node, Node)| strsim::levenshtein(key.raw_text(), "apps") == 1;
            return Err(match keys.iter().find(misspelt) {
                Some((key, _)) => shape(
                    key.place(),
                    format!(
                        "the key \"apps\" is missing, and {:?} is here",
                        key.raw_text()
                    ),
                ),
                None => shape(root.place(), "the key \"apps\" is missing".to_owned()),
            });
        };
        match apps.value() {
            Value::Mapping(entries) if entries.is_empty() => {
                Err(shape(apps.place(), "\"apps\" has no app in it".to_owned()))
            }
            Value::Mapping(entries) => Ok(Self::from_entries(entries, file)),
            _ => Err(shape(
                apps.place(),
                format!("\"apps\" holds {} where a mapping is wanted", apps.kind()),
            )),
        }
    }

    fn from_entries(entries: &[(Node, Node)], file: &str) -> Self {
        let mut registry = Self {
            apps: Vec::new(),
            claims: Vec::new(),
            faults: Vec::new(),
        };
        for (key, value) in entries {
            let (app, claim, faults) = entry::read(key, value, file);
            registry.apps.extend(app);
            registry.claims.push(claim);
            registry.faults.extend(faults);
        }
        registry
    }

    /// The apps that could be understood, in the order of the file.
    pub fn apps(&self) -> impl Iterator<Item = &App> {
        self.apps.iter()
    }

    /// What every entry says of what it deploys, in the order of the file: also those that are not among
    /// [`Registry::apps`].
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// What is wrong with single entries, in the order of the file. An app or a stage with a fault is not among
    /// [`Registry::apps`], so who must know all of them must look here too.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The entries that deploy this stage of the app at this path of this repository. Repository URLs are compared by
    /// [`RepoUrl::same_repository`], paths exactly.
    pub fn find(
        &self,
        repo_url: &RepoUrl,
        path: Option<&AppPath>,
        stage: &StageName,
    ) -> Vec<(&App, &Stage)> {
        self.apps
            .iter()
            .filter(|app| app.repo.same_repository(repo_url) && app.path.as_ref() == path)
            .flat_map(|app| app.stages.iter().map(move |s| (app, s)))
            .filter(|(_, s)| s.name == *stage)
            .collect()
    }
}

#[cfg(test)]
mod tests;
