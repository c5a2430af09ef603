//! The story inside the cluster: what runs in a launch's pod, in Argo CD's PreSync hook, or under the local runner.
//! It writes one log to standard output, ends 0 or 1, and leaves the kind of its end in the termination summary.

pub mod apply;
pub mod backend;
pub mod destroy;
pub mod environment;
pub mod held;
pub mod kubeconfig;
pub mod locks;
pub mod log;
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
use crate::git::{CredentialsError, GitError};
use crate::layout::LayoutError;
use crate::names::{AppPath, CommitSha, NameError, Namespace, RepoUrl, StageName, StateKey};
use crate::protect;
use crate::scratch::ScratchError;
use crate::state_backend::http::HttpError;
use crate::state_backend::lock::{LockError, LockId};
use crate::state_backend::recipients::RecipientsError;
use crate::state_backend::session::Permits;
use crate::state_backend::store::StoreError;
use crate::stop::{Stop, StopSignal};
use crate::terraform::TerraformError;
use crate::terraform::changes::ChangesError;
use crate::terraform::reduction::ReductionError;
use crate::terraform::root::RootError;
use crate::terraform::state::StateError;
use crate::transport::record::{self, RecordError};
use crate::transport::request::{PARENT, StageRequest};
use crate::transport::summary::Class;

use destroy::confirmed::Confirmed;
use environment::{Environment, EnvironmentError};
use kubeconfig::KubeconfigError;
use log::Log;
use volumes::VolumesError;

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
    Protected(#[from] protect::Refused),
    #[error(
        "applied, and the state is saved, but the stage's volumes could not be reattached: run it again once that is mended"
    )]
    Volumes(#[from] VolumesError),
    #[error("the kubeconfig for Terraform's providers could not be made")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("the recipients of the encrypted states are wrong")]
    Recipients(#[from] RecipientsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Somebody else works on this state.
    #[error(
        "the state {key} is locked {holder}: wait for its end, or, when it is gone, release it with presync unlock {key} --lock-id {id}"
    )]
    Locked {
        key: StateKey,
        id: LockId,
        holder: String,
    },
    /// Our lock was taken from us.
    #[error(
        "the lock of {key} was released while this run held it, and is now held {holder}: look whether both worked on the state"
    )]
    LockLost { key: StateKey, holder: String },
    /// Nothing to release.
    #[error("the state {key} is not locked: there is nothing to release")]
    NotLocked { key: StateKey },
    /// Another lock than the one that is to be released.
    #[error("the lock {id} was not released: the state {key} is locked {holder}")]
    OtherLock {
        key: StateKey,
        id: LockId,
        holder: String,
    },
    /// The state is in another place than it should be.
    #[error(
        "the state of {key} is not in its place but on the branch {branch}: bring it back as the lines above say"
    )]
    Rescued { key: StateKey, branch: String },
    /// The state is nowhere but in the log.
    #[error(
        "the state of {key} is nowhere but in the lines above: keep this log, and bring the state back as they say"
    )]
    Printed { key: StateKey },
    /// The system gave no random bytes.
    #[error("no ID for a lock could be made")]
    Random(#[source] std::io::Error),
    /// Such a command takes a folder without files for a wish.
    #[error(
        "{verb} in a folder without configuration would plan to destroy everything that the state lists: go to the stage's root, or use terraform state …"
    )]
    NoConfiguration { verb: String },
    /// What follows `--` is no Terraform command.
    #[error(
        "{0:?} names no command: after -- write terraform or tofu and its arguments, such as terraform state list"
    )]
    Command(String),
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
    Reduction(#[from] ReductionError),
    /// A plan of the reduced root has nothing to make.
    #[error("the plan does more than destroy, so nothing of it is offered: {changes}")]
    NotOnlyDestroys { changes: String },
    /// It is not what was confirmed.
    #[error("moved since the preview, so nothing was destroyed: {differences}; preview again")]
    Moved { differences: String },
    /// A destroy that did not get to its end.
    #[error("the state still lists {addresses}: its folder stays")]
    StillLists { addresses: String },
    /// Something of the state would stay.
    #[error(
        "the plan says nothing of {addresses}, which the state lists: nothing of it is offered"
    )]
    Untold { addresses: String },
    /// Terraform does not say which providers it uses.
    #[error("terraform version -json was not understood")]
    Versions(#[source] serde_json::Error),
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
            PresyncError::Reduction(ReductionError::Read { .. } | ReductionError::Write { .. }) => {
                Class::Failed
            }
            PresyncError::Reduction(_) => Class::Usage,
            PresyncError::Moved { .. } => Class::Moved,
            PresyncError::StillLists { .. } => Class::Terraform,
            PresyncError::NotOnlyDestroys { .. } | PresyncError::Untold { .. } => Class::Refused,
            PresyncError::Root(_) | PresyncError::BackendInForce { .. } => Class::Usage,
            PresyncError::Recipients(_)
            | PresyncError::Command(_)
            | PresyncError::NoConfiguration { .. } => Class::Usage,
            PresyncError::Store(
                StoreError::OtherCase { .. }
                | StoreError::Refused { .. }
                | StoreError::WouldUnseal { .. },
            )
            | PresyncError::OtherLock { .. }
            | PresyncError::Protected(_) => Class::Refused,
            PresyncError::Locked { .. } => Class::Locked,
            PresyncError::Store(StoreError::Contended { .. })
            | PresyncError::Lock(LockError::Contended { .. }) => Class::Later,
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
            PresyncError::Versions(_) => Class::Terraform,
            PresyncError::Changes(_) => Class::Terraform,
            PresyncError::Credentials(_)
            | PresyncError::Scratch(_)
            | PresyncError::Git(_)
            | PresyncError::Clone(_)
            | PresyncError::Store(_)
            | PresyncError::State { .. }
            | PresyncError::Backend(_)
            | PresyncError::Volumes(_)
            | PresyncError::Kubeconfig(_)
            | PresyncError::Lock(_)
            | PresyncError::LockLost { .. }
            | PresyncError::NotLocked { .. }
            | PresyncError::Rescued { .. }
            | PresyncError::Printed { .. }
            | PresyncError::Random(_)
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
