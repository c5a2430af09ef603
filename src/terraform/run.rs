//! Running it: with which environment, how it is stopped, and to which end.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
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
        let end_of_group = child::end_group(group, grace);
        tokio::pin!(end_of_group);
        let mut group_ended = false;
        loop {
            tokio::select! {
                read = output.read(&mut buffer) => match read.map_err(pipe_failed)? {
                    0 => break,
                    n => on_output(buffer.get(..n).unwrap_or_default()),
                },
                status = child.wait(), if ended.is_none() => {
                    ended = Some(status.map_err(pipe_failed)?);
                    if stopped.is_none() && !timed_out {
                        // What it started may hold the pipe open for ever; Terraform itself waits for its providers.
                        child::kill_strays(group);
                        group_ended = true;
                        // And what has left its group is not waited for.
                        deadline.as_mut().reset(tokio::time::Instant::now() + child::LINGER);
                    }
                }
                // A wrapper that does not pass the signal on ends before the Terraform that it started.
                () = &mut end_of_group, if ended.is_some() && !group_ended => {
                    group_ended = true;
                    deadline.as_mut().reset(tokio::time::Instant::now() + child::LINGER);
                }
                signal = stop.next(), if stopped.is_none() && ended.is_none() => {
                    stopped = Some(signal);
                    child::terminate(&child);
                    deadline.as_mut().reset(tokio::time::Instant::now() + grace);
                }
                () = &mut deadline, if ended.is_none() || group_ended => {
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

    /// Runs it with our own standard input, output and error, for as long as it takes. The first stop signal is passed on as
    /// one TERM; it then has `grace` to stop, and is killed after that. Its exit code; 128 and the signal when one ended it.
    pub async fn run_attached(
        &self,
        workdir: &Workdir,
        arguments: &[OsString],
        grace: Duration,
        stop: &mut Stop,
    ) -> Result<u8, TerraformError> {
        let verb = verb(arguments);
        let failed = |source| {
            child_error(
                &verb,
                ChildError::Start {
                    program: self.program.display().to_string(),
                    source,
                },
            )
        };
        let mut command = self.command(workdir, arguments);
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        // In a process group of its own it may not read from a terminal.
        if !io::stdin().is_terminal() {
            command.stdin(Stdio::inherit());
        }
        let mut child = command.spawn().map_err(failed)?;
        let group = child.id();
        let status = tokio::select! {
            status = child.wait() => status.map_err(failed)?,
            signal = stop.next() => {
                child::terminate(&child);
                let ended = tokio::time::timeout(grace, child.wait()).await;
                let status = match ended {
                    Ok(status) => status.map_err(failed)?,
                    Err(_elapsed) => {
                        child::kill(&child);
                        child.wait().await.map_err(failed)?
                    }
                };
                child::end_group(group, grace).await;
                let end = child::end_in_words(status);
                return Err(TerraformError::Stopped { signal, verb, end });
            }
        };
        child::kill_strays(group);
        let signal = || status.signal().map(|signal| 128 + signal);
        let code = status.code().or_else(signal).unwrap_or(1);
        Ok(u8::try_from(code).unwrap_or(1))
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
pub async fn lock_plugin_cache() -> Result<Option<File>, TerraformError> {
    let Some(folder) = std::env::var_os("TF_PLUGIN_CACHE_DIR").filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    lock_folder(&PathBuf::from(folder)).await.map(Some)
}

/// The lock is on the folder itself: nothing is written, so that the cache may be read-only, or hold what others put there.
async fn lock_folder(folder: &Path) -> Result<File, TerraformError> {
    let failed = |source| TerraformError::Cache {
        folder: folder.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let lock = rustix::fs::open(folder, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| failed(error.into()))?;
    let give_up = tokio::time::Instant::now() + CACHE_LOCK;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if tokio::time::Instant::now() < give_up => {
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

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn a_cache_is_locked_without_a_change_to_what_it_holds() {
        let parent = tempfile::tempdir().unwrap();
        let cache = parent.path().join("cache");
        let precious = parent.path().join("precious");
        std::fs::create_dir(&cache).unwrap();
        std::fs::write(&precious, "kept").unwrap();
        // Where a lock file would have been written.
        symlink(&precious, cache.join(".stagewright-lock")).unwrap();
        std::fs::set_permissions(&cache, Permissions::from_mode(0o500)).unwrap();
        let lock = lock_folder(&cache).await.unwrap();
        let other = File::open(&cache).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        other.try_lock().unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
        std::fs::set_permissions(&cache, Permissions::from_mode(0o700)).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_folder_is_no_cache() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let result = lock_folder(file.path()).await;
        assert!(matches!(result, Err(TerraformError::Cache { .. })));
    }
}
