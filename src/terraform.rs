//! Terraform or OpenTofu: which program and which version (`run.rs`: how it is run).

pub mod changes;
pub mod data_bearing;
pub mod forget;
pub mod inventory;
pub mod protected;
pub mod reduction;
pub mod root;
mod run;
pub mod state;
pub mod values;

pub use run::lock_plugin_cache;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::{self, ChildError};
use crate::stop::StopSignal;

use state::Version;

/// How long `version` and `show` may take.
const SHORT: Duration = Duration::from_secs(120);
/// How long Terraform may take to save its state and stop after a TERM: the grace period of a launch's pod.
pub const GRACE: Duration = Duration::from_secs(600);
/// The file in its working folder to which Terraform writes a state that it could not hand over
/// (<https://developer.hashicorp.com/terraform/language/state/backends#state-storage>).
pub const ERRORED: &str = "errored.tfstate";
/// What can go wrong with running Terraform.
#[derive(Debug, thiserror::Error)]
pub enum TerraformError {
    /// It is not there.
    #[error("there is no {names} on PATH: install Terraform {} or OpenTofu {} or newer, or name the program with terraform.program in the settings", Flavour::Terraform.oldest(), Flavour::OpenTofu.oldest())]
    NotFound {
        /// What was looked for.
        names: String,
    },
    /// It is named by a path where there is no program.
    #[error("there is no program {} that can be run: correct terraform.program in the settings, or leave it out to have Terraform looked for on PATH", program.display())]
    NoProgram {
        /// The path.
        program: PathBuf,
    },
    /// It does not say what it is.
    #[error("{} is neither Terraform nor OpenTofu: its version command {end} and printed {printed:?}", program.display())]
    Unknown {
        /// The program.
        program: PathBuf,
        /// How it ended.
        end: String,
        /// The first line on standard output, or, where that is empty, on standard error.
        printed: String,
    },
    /// It is too old.
    #[error("{} is {flavour} {version}, which is too old: {flavour} {} or newer is needed", program.display(), flavour.oldest())]
    TooOld {
        /// The program.
        program: PathBuf,
        /// Which of the two.
        flavour: Flavour,
        /// Its version.
        version: Version,
    },
    /// It could not be run to its end.
    #[error("running terraform {verb} failed")]
    Child {
        /// `init`, `plan`, …
        verb: String,
        /// Why.
        #[source]
        source: ChildError,
    },
    /// It ran and failed; its own error stands in the log.
    #[error("terraform {verb} {end}; its own message stands above")]
    Failed {
        /// `init`, `plan`, …
        verb: String,
        /// `ended with exit code 1`, …
        end: String,
    },
    /// A signal stopped us, and Terraform with us.
    #[error("stopped by {signal} during terraform {verb}, which {end}")]
    Stopped {
        /// The signal that we got.
        signal: StopSignal,
        /// `init`, `plan`, …
        verb: String,
        /// How Terraform ended then.
        end: String,
    },
    /// It took longer than it may.
    #[error("terraform {verb} did not end within {} s and was stopped", bound.as_secs())]
    TimedOut {
        /// `init`, `plan`, …
        verb: String,
        /// How long it was given.
        bound: Duration,
    },
    /// The plugin cache's lock could not be had.
    #[error("the plugin cache {} could not be locked", folder.display())]
    Cache {
        /// The folder that `TF_PLUGIN_CACHE_DIR` names.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Which of the two programs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// HashiCorp's.
    Terraform,
    /// The Linux Foundation's.
    OpenTofu,
}

impl Flavour {
    /// The oldest version that has all that we use (`removed` blocks: Terraform 1.7, OpenTofu 1.7).
    pub fn oldest(self) -> Version {
        Version::new(1, 7, 0)
    }
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flavour::Terraform => "Terraform",
            Flavour::OpenTofu => "OpenTofu",
        })
    }
}

/// The program, asked for its version.
#[derive(Clone, Debug)]
pub struct Terraform {
    program: PathBuf,
    flavour: Flavour,
    version: Version,
}

/// A folder in which Terraform runs, and the variables that it gets beside the inherited ones.
#[derive(Clone, Debug)]
pub struct Workdir {
    /// The root module's folder.
    pub folder: PathBuf,
    /// `TF_VAR_…` and the backend's address and credentials.
    pub variables: Vec<(String, OsString)>,
}

impl Terraform {
    /// Finds `program` (a path, or a name on PATH) and asks for its version; `terraform`, else `tofu`, when none is named.
    pub async fn find(program: Option<&Path>) -> Result<Terraform, TerraformError> {
        let names: Vec<&Path> = match program {
            Some(name) => vec![name],
            None => vec![Path::new("terraform"), Path::new("tofu")],
        };
        let found = names.iter().find_map(|name| child::find_program(name));
        let found = found.ok_or_else(|| {
            if let Some(path) = program.filter(|name| name.components().count() > 1) {
                let program = path.to_owned();
                return TerraformError::NoProgram { program };
            }
            let names: Vec<String> = names.iter().map(|n| n.display().to_string()).collect();
            TerraformError::NotFound {
                names: names.join(" and no "),
            }
        })?;
        let mut command = child::command(&found);
        run::scrub(&mut command);
        command.arg("version");
        let output = child::capture(command, &found.display().to_string(), b"", SHORT)
            .await
            .map_err(|source| child_error("version", source))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().unwrap_or_default();
        let unknown = || {
            // A version manager's wrapper that has chosen none says so there.
            let complaint = String::from_utf8_lossy(&output.stderr);
            let complaint = complaint.lines().next().unwrap_or_default();
            let printed = if first.is_empty() { complaint } else { first };
            TerraformError::Unknown {
                program: found.clone(),
                end: child::end_in_words(output.status),
                printed: printed.chars().take(80).collect(),
            }
        };
        let (flavour, version) = match first.split_once(" v") {
            Some(("Terraform", version)) => (Flavour::Terraform, version),
            Some(("OpenTofu", version)) => (Flavour::OpenTofu, version),
            _ => return Err(unknown()),
        };
        let version: Version = version.parse().map_err(|_| unknown())?;
        if version < flavour.oldest() {
            return Err(TerraformError::TooOld {
                program: found,
                flavour,
                version,
            });
        }
        Ok(Terraform {
            program: found,
            flavour,
            version,
        })
    }

    /// Which of the two programs it is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Where it was found.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

fn child_error(verb: &str, source: ChildError) -> TerraformError {
    TerraformError::Child {
        verb: verb.to_owned(),
        source,
    }
}
