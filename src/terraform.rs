//! Running Terraform or OpenTofu: which program, which version, with which environment, and to which end.

pub mod changes;
pub mod root;
pub mod state;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::child::{self, ChildError};
use crate::stop::{Stop, StopSignal};

use state::Version;

/// How long `version` and `show` may take.
const SHORT: Duration = Duration::from_secs(120);
/// How long Terraform may take to save its state and stop after a TERM: the grace period of a launch's pod.
pub const GRACE: Duration = Duration::from_secs(600);
/// How long a lock on the shared plugin cache is waited for.
const CACHE_LOCK: Duration = Duration::from_secs(600);

/// Variables that are ours (or would change what a run does) and that no child of Terraform may see.
/// `TF_VAR_…` and the providers' own variables pass through.
const NOT_FOR_TERRAFORM: &[&str] = &[
    "GIT_USERNAME",
    "GIT_USERNAME_FILE",
    "GIT_PASSWORD",
    "GIT_PASSWORD_FILE",
    "GITHUB_TOKEN",
    "GITHUB_TOKEN_FILE",
    "TF_WORKSPACE",
    "TF_DATA_DIR",
    "TF_LOG",
    "TF_LOG_CORE",
    "TF_LOG_PROVIDER",
    "TF_LOG_PATH",
    "TF_INPUT",
    "TF_IN_AUTOMATION",
];
/// The same, by the beginning of their names.
const NOT_FOR_TERRAFORM_PREFIXES: &[&str] = &[
    "STAGEWRIGHT_",
    "SOPS_",
    "TF_BACKEND_",
    "TF_HTTP_",
    "TF_CLI_ARGS",
];

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
        scrub(&mut command);
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

    /// Runs it and hands on what it prints, both streams in the order in which they were written. The first stop signal
    /// is passed on as one TERM; Terraform then has `grace` to stop, and is killed after that.
    pub async fn run(
        &self,
        workdir: &Workdir,
        arguments: &[OsString],
        bound: Duration,
        grace: Duration,
        stop: &mut Stop,
        mut on_output: impl FnMut(&[u8]),
    ) -> Result<(), TerraformError> {
        let verb = verb(arguments);
        let failed = |source| child_error(&verb, source);
        let pipe_failed = |source| {
            failed(ChildError::Pipe {
                program: self.program.display().to_string(),
                source,
            })
        };
        let (reader, writer) = io::pipe().map_err(pipe_failed)?;
        let mut command = self.command(workdir, arguments);
        command.stdout(Stdio::from(writer.try_clone().map_err(pipe_failed)?));
        command.stderr(Stdio::from(writer));
        tracing::debug!(?arguments, "terraform");
        let mut child = command.spawn().map_err(|source| {
            failed(ChildError::Start {
                program: self.program.display().to_string(),
                source,
            })
        })?;
        drop(command); // it holds our copies of the pipe's writing end
        let group = child.id();
        let mut output = pipe::Receiver::from_owned_fd(reader.into()).map_err(pipe_failed)?;
        let mut buffer = vec![0; 64 * 1024];
        let mut ended: Option<ExitStatus> = None;
        let mut stopped: Option<StopSignal> = None;
        let mut timed_out = false;
        let deadline = tokio::time::sleep(bound);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                read = output.read(&mut buffer) => match read.map_err(pipe_failed)? {
                    0 => break,
                    n => on_output(buffer.get(..n).unwrap_or_default()),
                },
                status = child.wait(), if ended.is_none() => {
                    ended = Some(status.map_err(pipe_failed)?);
                    // What it started may hold the pipe open for ever; Terraform itself waits for its providers.
                    child::kill_strays(group);
                    // And what has left its group is not waited for.
                    deadline.as_mut().reset(tokio::time::Instant::now() + child::LINGER);
                }
                signal = stop.next(), if stopped.is_none() && ended.is_none() => {
                    stopped = Some(signal);
                    child::terminate(&child);
                    deadline.as_mut().reset(tokio::time::Instant::now() + grace);
                }
                () = &mut deadline => {
                    if ended.is_some() {
                        break;
                    }
                    if timed_out || stopped.is_some() {
                        child::kill(&child);
                    } else {
                        timed_out = true;
                        child::terminate(&child);
                    }
                    deadline.as_mut().reset(tokio::time::Instant::now() + grace);
                }
            }
        }
        let status = match ended {
            Some(status) => status,
            None => child.wait().await.map_err(pipe_failed)?,
        };
        let end = child::end_in_words(status);
        if let Some(signal) = stopped {
            return Err(TerraformError::Stopped { signal, verb, end });
        }
        if timed_out {
            return Err(TerraformError::TimedOut { verb, bound });
        }
        if status.success() {
            Ok(())
        } else {
            Err(TerraformError::Failed { verb, end })
        }
    }

    /// Runs it and takes what it prints on standard output.
    pub async fn read(
        &self,
        workdir: &Workdir,
        arguments: &[OsString],
    ) -> Result<Vec<u8>, TerraformError> {
        let verb = verb(arguments);
        let command = self.command(workdir, arguments);
        let output = child::capture(command, &self.program.display().to_string(), b"", SHORT)
            .await
            .map_err(|source| child_error(&verb, source))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().map(str::trim).collect();
        Err(TerraformError::Failed {
            verb,
            end: format!(
                "{}: {}",
                child::end_in_words(output.status),
                said.join(" ").trim()
            ),
        })
    }

    fn command(&self, workdir: &Workdir, arguments: &[OsString]) -> tokio::process::Command {
        let mut command = child::command(&self.program);
        scrub(&mut command);
        command
            .args(arguments)
            .current_dir(&workdir.folder)
            .envs(workdir.variables.iter().map(|(k, v)| (k, v)));
        command
    }
}

/// Waits for the lock on the plugin cache that several runs share (Terraform's own installer is not safe for that:
/// <https://developer.hashicorp.com/terraform/cli/config/config-file#provider-plugin-cache>). No cache: no lock.
pub async fn lock_plugin_cache() -> Result<Option<std::fs::File>, TerraformError> {
    let Some(folder) = std::env::var_os("TF_PLUGIN_CACHE_DIR").filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    let folder = PathBuf::from(folder);
    let failed = |source| TerraformError::Cache {
        folder: folder.clone(),
        source,
    };
    let lock = std::fs::File::create(folder.join(".stagewright-lock")).map_err(failed)?;
    let give_up = tokio::time::Instant::now() + CACHE_LOCK;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Some(lock)),
            Err(std::fs::TryLockError::WouldBlock) if tokio::time::Instant::now() < give_up => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(failed(io::Error::other(error))),
        }
    }
}

fn child_error(verb: &str, source: ChildError) -> TerraformError {
    TerraformError::Child {
        verb: verb.to_owned(),
        source,
    }
}

fn verb(arguments: &[OsString]) -> String {
    arguments
        .first()
        .map(|verb| verb.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Takes out of the environment what is ours, and sets what makes Terraform run without questions.
fn scrub(command: &mut tokio::process::Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if NOT_FOR_TERRAFORM.contains(&text.as_ref())
            || NOT_FOR_TERRAFORM_PREFIXES
                .iter()
                .any(|p| text.starts_with(p))
        {
            command.env_remove(&name);
        }
    }
    command
        .env("TF_INPUT", "0")
        .env("TF_IN_AUTOMATION", "1")
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE", "1");
    // A file that is not there is worth a warning from Terraform on every call, and nothing else.
    if std::env::var_os("TF_CLI_CONFIG_FILE").is_some_and(|file| !Path::new(&file).exists()) {
        command.env_remove("TF_CLI_CONFIG_FILE");
    }
}
