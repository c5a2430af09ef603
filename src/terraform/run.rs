//! Running it: with which environment, how it is stopped, and to which end.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::child::{self, ChildError};
use crate::stop::{Stop, StopSignal};

use super::{SHORT, Terraform, TerraformError, Workdir, child_error};

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

impl Terraform {
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

fn verb(arguments: &[OsString]) -> String {
    arguments
        .first()
        .map(|verb| verb.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Takes out of the environment what is ours, and sets what makes Terraform run without questions.
pub(super) fn scrub(command: &mut tokio::process::Command) {
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
