//! The story inside the cluster: what runs in a launch's pod, in Argo CD's PreSync hook, or under the local runner.
//! It writes one log to standard output, ends 0 or 1, and leaves the kind of its end in the termination summary.

pub mod apply;
pub mod backend;
pub mod destroy;
pub mod environment;
mod error;
pub mod held;
pub mod kubeconfig;
pub mod locks;
pub mod log;
pub mod mask;
pub mod plan;
pub mod prepare;
pub mod provenance;
mod rescue;
pub mod source;
pub mod volumes;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::child;
use crate::names::{AppPath, CommitSha, NameError, Namespace, RepoUrl, StageName, StateKey};
use crate::state_backend::lock::LockId;
use crate::state_backend::session::Permits;
use crate::stop::Stop;
use crate::transport::record;
use crate::transport::request::{PARENT, StageRequest};
use crate::transport::summary::Class;

use destroy::confirmed::Confirmed;
use environment::Environment;
pub use error::PresyncError;
use log::Log;

/// The name under which the local runner starts our executable.
pub const NAME: &str = "presync";

/// Runs Terraform for one stage, as its sync does.
#[derive(Debug, Parser)]
#[command(name = "presync", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Plan what the sync's hook would apply; applies nothing and writes nothing to the state repository
    Plan(StageArguments),
    /// Apply the stage at a commit, as the sync's hook: show the plan, apply that plan, reattach the stage's volumes
    Apply(StageArguments),
    /// Show what a retired stage left and a destroy would take, or destroy what was confirmed of it
    Destroy {
        /// Only show it; writes nothing anywhere
        #[arg(
            long,
            required_unless_present = "confirmed",
            conflicts_with = "confirmed"
        )]
        preview: bool,
        /// Destroy what a preview showed, by its digest, if it is still the same
        #[arg(long, value_name = "DIGEST")]
        confirmed: Option<String>,
        #[command(flatten)]
        stage: DestroyArguments,
    },
    /// Run any Terraform command, in the current folder, against one state of the state repository
    Backend {
        /// The state's path in the state repository, such as argocd/PlatformDeploy/prd/terraform.tfstate
        key: StateKey,
        /// Let the command give back the lock with this ID (force-unlock, which names none over HTTP)
        #[arg(long, value_name = "ID")]
        allow_unlock: Option<LockId>,
        /// Let the command replace the state by one of another lineage or a lower serial (state push -force)
        #[arg(long)]
        allow_overwrite: bool,
        /// Terraform's or OpenTofu's program and its arguments
        #[arg(last = true, required = true, value_name = "terraform …")]
        command: Vec<OsString>,
    },
    /// List the locked states with their holders
    Locks,
    /// Release the lock of a state, by its exact ID: make sure first that its holder is gone
    Unlock {
        /// The state's path in the state repository
        key: StateKey,
        /// The lock's ID, as `presync locks` shows it
        #[arg(long, value_name = "ID")]
        lock_id: LockId,
    },
}

#[derive(Debug, clap::Args)]
struct StageArguments {
    /// The deploy repository
    url: RepoUrl,
    /// The commit, by its full SHA
    sha: CommitSha,
    /// The stage
    stage: StageName,
    /// What Terraform gets as var.namespace
    namespace: Namespace,
    /// The app's folder in a monorepo; empty or absent for a repository of one app
    #[arg(value_parser = parse_path)]
    path: Option<PathArgument>,
}

impl StageArguments {
    fn split(self) -> (StageRequest, Namespace) {
        let request = StageRequest {
            url: self.url,
            revision: self.sha,
            stage: self.stage,
            path: self.path.and_then(|path| path.0),
        };
        (request, self.namespace)
    }
}

#[derive(Debug, clap::Args)]
struct DestroyArguments {
    /// The deploy repository
    url: RepoUrl,
    /// The commit, by its full SHA
    sha: CommitSha,
    /// The stage
    stage: StageName,
    /// The app's folder in a monorepo; empty or absent for a repository of one app
    #[arg(value_parser = parse_path)]
    path: Option<PathArgument>,
}

impl From<DestroyArguments> for StageRequest {
    fn from(arguments: DestroyArguments) -> StageRequest {
        StageRequest {
            url: arguments.url,
            revision: arguments.sha,
            stage: arguments.stage,
            path: arguments.path.and_then(|path| path.0),
        }
    }
}

/// A hook hands over every parameter, so an empty path is an absent one.
#[derive(Clone, Debug)]
struct PathArgument(Option<AppPath>);

fn parse_path(text: &str) -> Result<PathArgument, NameError> {
    if text.is_empty() {
        return Ok(PathArgument(None));
    }
    text.parse().map(|path| PathArgument(Some(path)))
}

/// Whether this process was started under the name [`NAME`], whatever the executable's own name.
pub fn is_called() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new(NAME)))
}

/// The whole program: reads the arguments and the environment, runs, writes the log's last line and the summary.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return crate::report::arguments(&error),
    };
    child::hide_from_children();
    // What `backend` runs has standard output for itself.
    let mut log = match arguments.verb {
        Verb::Backend { .. } => Log::to_stderr(),
        _ => Log::to_stdout(),
    };
    let end = crate::report::block_on(run(arguments, &mut log));
    let (class, code) = match end.map_err(PresyncError::Signals).flatten() {
        Ok(None) => (Class::Done, ExitCode::SUCCESS),
        // The command's own exit code is what its caller waits for.
        Ok(Some(0)) => (Class::Done, ExitCode::SUCCESS),
        Ok(Some(code)) => (Class::Terraform, ExitCode::from(code)),
        Err(error) => {
            log.say(crate::report::one_line(&error));
            (error.class(), ExitCode::FAILURE)
        }
    };
    // The log is written already and the work is done: a summary that cannot be written makes the job call the log
    // incomplete, which is then true.
    if let Err(error) = environment::write_summary(&log.summary(class)) {
        tracing::warn!(%error, "the termination summary could not be written");
    }
    code
}

/// The exit code of a command that was run for the caller; nothing for everything else.
async fn run(arguments: Arguments, log: &mut Log) -> Result<Option<u8>, PresyncError> {
    let mut stop = Stop::listen().map_err(PresyncError::Signals)?;
    if let Some(parent) = std::env::var(PARENT).ok().and_then(|p| p.parse().ok()) {
        child::die_with_parent(parent).map_err(PresyncError::Parent)?;
    }
    let environment = Environment::read()?;
    log.mask(environment.secrets());
    match arguments.verb {
        Verb::Plan(stage) => {
            let (request, namespace) = stage.split();
            plan::run(&request, &namespace, &environment, log, &mut stop).await?;
        }
        Verb::Apply(stage) => {
            let (request, namespace) = stage.split();
            apply::run(&request, &namespace, &environment, log, &mut stop).await?;
        }
        Verb::Destroy {
            stage,
            confirmed: None,
            ..
        } => destroy::preview(&stage.into(), &environment, log, &mut stop).await?,
        Verb::Destroy {
            stage,
            confirmed: Some(digest),
            ..
        } => {
            let packed = environment.confirmed.as_deref();
            let bound = packed.map(record::unpack).transpose()?;
            let confirmed = Confirmed { digest, bound };
            destroy::confirmed::destroy(&stage.into(), &confirmed, &environment, log, &mut stop)
                .await?;
        }
        Verb::Backend {
            key,
            allow_unlock,
            allow_overwrite,
            command,
        } => {
            let permits = Permits {
                unlock: allow_unlock,
                overwrite: allow_overwrite,
            };
            let code = backend::run(key, permits, &command, &environment, log, &mut stop).await?;
            return Ok(Some(code));
        }
        Verb::Locks => locks::list(&environment, log).await?,
        Verb::Unlock { key, lock_id } => locks::unlock(&key, &lock_id, &environment, log).await?,
    }
    Ok(None)
}
