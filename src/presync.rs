//! The story inside the cluster: what runs in a launch's pod, in Argo CD's PreSync hook, or under the local runner.
//! It writes one log to standard output, ends 0 or 1, and leaves the kind of its end in the termination summary.

pub mod environment;
pub mod log;
pub mod plan;
pub mod source;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::child;
use crate::git::{CredentialsError, GitError};
use crate::layout::LayoutError;
use crate::names::{AppPath, CommitSha, NameError, Namespace, RepoUrl, StageName};
use crate::scratch::ScratchError;
use crate::state_backend::http::HttpError;
use crate::state_backend::store::StoreError;
use crate::stop::{Stop, StopSignal};
use crate::terraform::TerraformError;
use crate::terraform::changes::ChangesError;
use crate::terraform::root::RootError;
use crate::terraform::state::StateError;
use crate::transport::record::RecordError;
use crate::transport::request::{PARENT, PlanRequest};
use crate::transport::summary::Class;

use environment::{Environment, EnvironmentError};
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
    Plan {
        /// The deploy repository
        url: RepoUrl,
        /// The commit to plan, by its full SHA
        sha: CommitSha,
        /// The stage
        stage: StageName,
        /// What Terraform gets as var.namespace
        namespace: Namespace,
        /// The app's folder in a monorepo; empty or absent for a repository of one app
        #[arg(value_parser = parse_path)]
        path: Option<PathArgument>,
    },
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

/// Why presync did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there"
)]
pub enum PresyncError {
    #[error("the environment is wrong")]
    Environment(#[from] EnvironmentError),
    #[error("the credentials for git could not be read")]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    #[error("the deploy repository could not be read")]
    Git(#[from] GitError),
    /// The state is filed under the repository's name.
    #[error("the deploy repository's URL does not end in a repository name")]
    RepoName(#[source] NameError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The commit has no such Terraform folder.
    #[error("the clone has no {folder}/ for the hook to apply")]
    NoTerraform { folder: String },
    /// The commit has no such config folder.
    #[error("the clone has no {folder}/, so {stage} is no stage of it")]
    NoConfig { folder: String, stage: StageName },
    /// Something that is named like a variable file is none.
    #[error(
        "{file} in the stage's config folder is named like a variable file and is no file that can be read: mend it, or rename it"
    )]
    Tfvars { file: String },
    /// A folder of the clone could not be read.
    #[error("the clone could not be read")]
    Clone(#[source] std::io::Error),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state is there and cannot be used.
    #[error("the state {key} cannot be used")]
    State {
        key: String,
        #[source]
        source: StateError,
    },
    #[error(transparent)]
    Backend(#[from] HttpError),
    #[error(transparent)]
    Terraform(#[from] TerraformError),
    /// Terraform does not work against our backend.
    #[error(
        "after init Terraform keeps its state in {found}, not in the stage's state: nothing was planned"
    )]
    BackendInForce { found: String },
    #[error(transparent)]
    Changes(#[from] ChangesError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A signal, while no Terraform was running.
    #[error("stopped by {0}")]
    Stopped(StopSignal),
    /// The job that started this presync is gone, or its end would not be noticed.
    #[error("the job that started this presync cannot be watched")]
    Parent(#[source] std::io::Error),
    /// INT and TERM could not be caught.
    #[error("the stop signals could not be caught")]
    Signals(#[source] std::io::Error),
}

impl PresyncError {
    /// The kind of this end, for the job's exit code.
    fn class(&self) -> Class {
        match self {
            PresyncError::Environment(_)
            | PresyncError::RepoName(_)
            | PresyncError::Layout(_)
            | PresyncError::Tfvars { .. }
            | PresyncError::NoTerraform { .. }
            | PresyncError::NoConfig { .. } => Class::Usage,
            PresyncError::Root(
                RootError::Read { .. } | RootError::Remove { .. } | RootError::Override { .. },
            ) => Class::Failed,
            PresyncError::Root(_) | PresyncError::BackendInForce { .. } => Class::Usage,
            PresyncError::Store(StoreError::OtherCase { .. }) => Class::Refused,
            PresyncError::Terraform(error) => match error {
                TerraformError::Failed { .. } | TerraformError::TimedOut { .. } => Class::Terraform,
                TerraformError::Stopped { .. } => Class::Stopped,
                TerraformError::NotFound { .. }
                | TerraformError::NoProgram { .. }
                | TerraformError::Unknown { .. }
                | TerraformError::TooOld { .. } => Class::Usage,
                TerraformError::Child { .. } | TerraformError::Cache { .. } => Class::Failed,
            },
            PresyncError::Stopped(_) => Class::Stopped,
            PresyncError::Changes(_) => Class::Terraform,
            PresyncError::Credentials(_)
            | PresyncError::Scratch(_)
            | PresyncError::Git(_)
            | PresyncError::Clone(_)
            | PresyncError::Store(_)
            | PresyncError::State { .. }
            | PresyncError::Backend(_)
            | PresyncError::Record(_)
            | PresyncError::Parent(_)
            | PresyncError::Signals(_) => Class::Failed,
        }
    }
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
    let mut log = Log::to_stdout();
    let end = crate::report::block_on(run(arguments, &mut log));
    let class = match end.map_err(PresyncError::Signals).flatten() {
        Ok(()) => Class::Done,
        Err(error) => {
            log.say(crate::report::one_line(&error));
            error.class()
        }
    };
    // The log is written already and the work is done: a summary that cannot be written makes the job call the log
    // incomplete, which is then true.
    if let Err(error) = environment::write_summary(&log.summary(class)) {
        tracing::warn!(%error, "the termination summary could not be written");
    }
    if class == Class::Done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn run(arguments: Arguments, log: &mut Log) -> Result<(), PresyncError> {
    let mut stop = Stop::listen().map_err(PresyncError::Signals)?;
    if let Some(parent) = std::env::var(PARENT).ok().and_then(|p| p.parse().ok()) {
        child::die_with_parent(parent).map_err(PresyncError::Parent)?;
    }
    let environment = Environment::read()?;
    log.mask(environment.secrets());
    match arguments.verb {
        Verb::Plan {
            url,
            sha,
            stage,
            namespace,
            path,
        } => {
            let request = PlanRequest {
                url,
                revision: sha,
                stage,
                namespace,
                path: path.and_then(|path| path.0),
            };
            plan::run(&request, &environment, log, &mut stop).await
        }
    }
}
