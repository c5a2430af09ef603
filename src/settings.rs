//! `stagewright.yaml`: the estate that a job works on.

mod applications;
mod file;
mod jenkins;
mod producers;
mod runner;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::names::{BranchName, OwnerName, RepoName, RepoUrl};
use crate::protect::Protection;
use crate::registry::check::promise::ExpectedApplications;
use crate::yaml::{self, Node, Place, YamlError};

pub use applications::{ApplicationsSettings, InstanceSettings};
pub use jenkins::{JenkinsAccess, JenkinsSettings, TokenPlace};
pub use producers::ProducersSettings;
pub use runner::{DestroyingSettings, KubernetesSettings, RunnerSettings};

/// Bytes of the largest settings file that is read: a wrong name may lead to a device that never ends.
const LARGEST: u64 = 1024 * 1024;

/// The settings of one estate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file that they were read from, as it was given.
    pub file: PathBuf,
    /// How that file came to be used.
    pub origin: SettingsOrigin,
    /// Where repositories are.
    pub forge: ForgeSettings,
    /// Where the registry is.
    pub registry: RegistrySettings,
    /// Where Terraform's states are.
    pub state: StateSettings,
    /// What runs presync.
    pub runner: RunnerSettings,
    /// Where the live Applications are; a plan needs none.
    pub applications: Option<ApplicationsSettings>,
    /// What the registry's Applications have in common.
    pub expected: ExpectedApplications,
    /// Where producers of architecture are registered; only their registration needs it.
    pub producers: Option<ProducersSettings>,
    /// Where Jenkins is; only a registration needs it.
    pub jenkins: Option<JenkinsSettings>,
    /// Which Terraform is run.
    pub terraform: TerraformSettings,
    /// What a plan may do.
    pub plan: PlanSettings,
    /// What an apply may not destroy; nothing when not set.
    pub protect: Protection,
    /// The checks of the registry that are switched off, each with the reason.
    pub checks_off: BTreeMap<&'static str, String>,
    /// The estate's paths and names.
    pub layout: Layout,
}

/// Where repositories are found by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgeSettings {
    /// Bare repositories in one folder, or below one URL, reached by git alone.
    Git {
        /// The folder or URL below which `<name>.git` lies.
        root: RepoUrl,
        /// The URL by which the registry knows the same repositories, when it is another one.
        known_as: Option<RepoUrl>,
    },
    /// GitHub, or a GitHub Enterprise server.
    GitHub {
        /// The account that owns the repositories.
        owner: OwnerName,
        /// Where git reaches them; `https://github.com` when not set.
        url: RepoUrl,
        /// Where the REST API is; `https://api.github.com` when not set. It has no slash at its end.
        api: String,
        /// How GitHub lets us in; by the token in `GITHUB_TOKEN` when not set.
        access: GitHubAccess,
    },
}

/// How GitHub lets us in. No secret stands in the settings themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitHubAccess {
    /// By the token in this variable.
    TokenEnv(String),
    /// By the token in this file.
    TokenFile(PathBuf),
    /// As a GitHub App.
    App(GitHubApp),
}

/// A GitHub App that is installed in the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubApp {
    /// Its client id or its number.
    pub id: String,
    /// The number of its installation.
    pub installation: u64,
    /// Its private key, in PEM.
    pub private_key_file: PathBuf,
}

/// Where the registry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySettings {
    /// The repository.
    pub repo: RepoName,
    /// The file in it; `releases/values.yaml` when not set.
    pub file: String,
    /// The branch; `main` when not set.
    pub branch: BranchName,
}

/// Where Terraform's states are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSettings {
    /// The repository.
    pub source: StateSource,
    /// The branch; `main` when not set.
    pub branch: BranchName,
    /// The folder in it that holds the states, with no slash at either end; `argocd` when not set, and it may be empty.
    pub prefix: String,
}

/// How the state repository is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateSource {
    /// One of the forge's repositories.
    Repo(RepoName),
    /// A repository anywhere.
    Url(RepoUrl),
}

/// Which Terraform is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerraformSettings {
    /// The program; without it `terraform` or `tofu` is looked for on the PATH.
    pub program: Option<PathBuf>,
}

/// What a plan may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSettings {
    /// Whether a commit may be planned that the tracked branch does not hold; false when not set.
    pub allow_unmerged: bool,
}

/// How the settings file came to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsOrigin {
    /// By `--settings`.
    Flag,
    /// By `STAGEWRIGHT_SETTINGS`.
    Environment,
    /// It lay in the working folder. Such a file may have come with a repository, so it may not name programs to run.
    WorkingFolder,
    /// It belongs to the sandbox.
    Sandbox,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// There is no such file.
    #[error(
        "there is no settings file {file:?}; settings are read from the file given by --settings, else from the one named in STAGEWRIGHT_SETTINGS, else from stagewright.yaml in the working folder; --sandbox needs none"
    )]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be read.
    #[error("the settings file {file:?} cannot be read")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not the YAML that we read.
    #[error("{}:{}: {fault}", file.display(), fault.place())]
    Yaml {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        fault: YamlError,
    },
    /// A key or a value is wrong.
    #[error("{}:{place}: {sentence}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// Where it is.
        place: Place,
        /// The sentence, which names the key.
        sentence: String,
    },
}

impl Settings {
    /// Reads a settings file. Relative folders and files in it are taken from the folder that it lies in.
    ///
    /// # Errors
    /// When the file is missing, is no YAML, has an unknown or doubled key or a wrong value, or names a program to
    /// run although it was merely found in the working folder.
    pub fn load(file: &Path, origin: SettingsOrigin) -> Result<Self, SettingsError> {
        let unreadable = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => SettingsError::Missing {
                file: file.to_owned(),
            },
            _ => SettingsError::Unreadable {
                file: file.to_owned(),
                source,
            },
        };
        let mut bytes = Vec::new();
        std::fs::File::open(file)
            .and_then(|opened| opened.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST {
            let size = format!("it is larger than {LARGEST} bytes, so it is no settings file");
            return Err(unreadable(std::io::Error::other(size)));
        }
        let folder = std::path::absolute(file)
            .map(|path| path.parent().map(Path::to_owned).unwrap_or(path))
            .map_err(|source| SettingsError::Unreadable {
                file: file.to_owned(),
                source,
            })?;
        let yaml_error = |fault| SettingsError::Yaml {
            file: file.to_owned(),
            fault,
        };
        let text = yaml::utf8(&bytes).map_err(yaml_error)?;
        let tree = yaml::parse(text).map_err(yaml_error)?;
        Document {
            file,
            folder: &folder,
            tree: &tree,
        }
        .read(text, origin)
    }
}

/// A settings file that is known to be one sound YAML document.
struct Document<'a> {
    file: &'a Path,
    /// The folder it lies in, absolute.
    folder: &'a Path,
    tree: &'a Node,
}

impl Document<'_> {
    fn read(&self, text: &str, origin: SettingsOrigin) -> Result<Settings, SettingsError> {
        if self.tree.is_null() {
            return Err(self.wrong(
                &[],
                "the file is empty; it needs the keys forge, registry, state and runner",
            ));
        }
        let raw: file::Settings =
            serde_yaml::from_str(text).map_err(|error| self.unreadable(&error))?;
        if self.tree.get("protect").is_some_and(Node::is_null) {
            return Err(self.wrong(
                &["protect"],
                "protect holds nothing; list what is to be protected, or write [] for nothing",
            ));
        }
        let program = raw.terraform.program;
        if program.is_some() && origin == SettingsOrigin::WorkingFolder {
            return Err(self.wrong(
                &["terraform", "program"],
                "terraform.program names a program to run, and this file was merely found in the working folder; hand it over by --settings",
            ));
        }
        let (applications, expected) = match raw.applications {
            Some(raw) => {
                let (applications, expected) = self.applications(raw)?;
                (Some(applications), expected)
            }
            None => (None, ExpectedApplications::default()),
        };
        let off = raw.checks.off.into_iter();
        Ok(Settings {
            file: self.file.to_owned(),
            origin,
            forge: self.forge(raw.forge)?,
            registry: RegistrySettings {
                repo: raw.registry.repo,
                file: raw.registry.file,
                branch: raw.registry.branch,
            },
            state: StateSettings {
                source: self.state_source(raw.state.repo, raw.state.url)?,
                branch: raw.state.branch,
                prefix: raw.state.prefix,
            },
            runner: self.runner(raw.runner),
            applications,
            expected,
            producers: raw.producers.map(ProducersSettings::from),
            jenkins: raw
                .jenkins
                .map(|jenkins| self.jenkins(jenkins))
                .transpose()?,
            terraform: TerraformSettings {
                program: program.map(|program| self.program(program)),
            },
            plan: PlanSettings {
                allow_unmerged: raw.plan.allow_unmerged,
            },
            protect: raw.protect,
            checks_off: off.map(|(check, reason)| (check.0, reason.0)).collect(),
            layout: raw.layout,
        })
    }

    fn forge(&self, raw: file::Forge) -> Result<ForgeSettings, SettingsError> {
        match (raw.git, raw.github) {
            (Some(git), None) => Ok(ForgeSettings::Git {
                root: self.root(&git.root)?,
                known_as: git.known_as,
            }),
            (None, Some(github)) => Ok(ForgeSettings::GitHub {
                access: self.access(&github)?,
                owner: github.owner,
                url: github.url,
                api: github.api,
            }),
            (None, None) => Err(self.wrong(
                &["forge"],
                "forge is empty; it takes one of the keys git and github",
            )),
            (Some(_), Some(_)) => Err(self.wrong(
                &["forge"],
                "forge has both git and github; keep one of them",
            )),
        }
    }

    fn access(&self, raw: &file::GitHubForge) -> Result<GitHubAccess, SettingsError> {
        match (&raw.token_env, &raw.token_file, &raw.app) {
            (None, None, None) => Ok(GitHubAccess::TokenEnv("GITHUB_TOKEN".to_owned())),
            (Some(variable), None, None) => Ok(GitHubAccess::TokenEnv(variable.clone())),
            (None, Some(path), None) => Ok(GitHubAccess::TokenFile(self.folder.join(path))),
            (None, None, Some(app)) => Ok(GitHubAccess::App(GitHubApp {
                id: app.id.clone(),
                installation: app.installation,
                private_key_file: self.folder.join(&app.private_key_file),
            })),
            _ => Err(self.wrong(
                &["forge", "github"],
                "forge.github takes one of the keys token_env, token_file and app",
            )),
        }
    }

    fn state_source(
        &self,
        repo: Option<RepoName>,
        url: Option<RepoUrl>,
    ) -> Result<StateSource, SettingsError> {
        match (repo, url) {
            (Some(repo), None) => Ok(StateSource::Repo(repo)),
            (None, Some(url)) => Ok(StateSource::Url(url)),
            (None, None) => Err(self.wrong(
                &["state"],
                "state names no repository; it takes one of the keys repo (a name on the forge) and url",
            )),
            (Some(_), Some(_)) => Err(self.wrong(
                &["state"],
                "state has both repo and url; keep one of them",
            )),
        }
    }

    fn runner(&self, raw: file::Runner) -> RunnerSettings {
        match raw {
            file::Runner::Local(local) => RunnerSettings::Local {
                sops_age_key_file: local.sops_age_key_file.map(|path| self.folder.join(path)),
            },
            file::Runner::Kubernetes(kubernetes) => {
                RunnerSettings::Kubernetes((*kubernetes).into())
            }
        }
    }

    /// A bare name is looked for on the PATH when it is run; a path is taken from the settings' folder.
    fn program(&self, program: PathBuf) -> PathBuf {
        if program.components().count() > 1 {
            self.folder.join(program).components().collect()
        } else {
            program
        }
    }

    /// A URL as it is, a folder as an absolute one. A colon before the first slash makes a URL, as git has it.
    fn root(&self, text: &str) -> Result<RepoUrl, SettingsError> {
        let first = text.split('/').next().unwrap_or_default();
        let parsed = if first.contains(':') {
            text.parse()
        } else {
            let folder = file::without_dots(&self.folder.join(text));
            match folder.to_str() {
                Some(folder) => folder.parse(),
                None => {
                    return Err(self.wrong(
                        &["forge", "git", "root"],
                        "the folder forge.git.root has a name that is not UTF-8; rename it",
                    ));
                }
            }
        };
        parsed.map_err(|error: crate::names::NameError| {
            self.wrong(
                &["forge", "git", "root"],
                &format!("forge.git.root: {error}"),
            )
        })
    }

    /// An error at the deepest of the keys that the file has.
    fn wrong(&self, keys: &[&str], sentence: &str) -> SettingsError {
        let mut node = self.tree;
        for key in keys {
            node = node.get(key).unwrap_or(node);
        }
        SettingsError::Value {
            file: self.file.to_owned(),
            place: node.place(),
            sentence: sentence.to_owned(),
        }
    }

    /// The place goes before the sentence, as in every other error about a file; the parser has it at the end.
    fn unreadable(&self, error: &serde_yaml::Error) -> SettingsError {
        let text = error.to_string();
        let (place, sentence) = match error.location() {
            Some(at) => {
                let end = format!(" at line {} column {}", at.line(), at.column());
                let place = Place {
                    line: at.line(),
                    column: at.column(),
                };
                (place, text.strip_suffix(&end).unwrap_or(&text))
            }
            None => (Place::START, text.as_str()),
        };
        SettingsError::Value {
            file: self.file.to_owned(),
            place,
            sentence: sentence.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
