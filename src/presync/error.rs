//! Why presync did not do what was asked, and which kind of end that is.

use crate::git::{CredentialsError, GitError};
use crate::layout::LayoutError;
use crate::names::{NameError, StageName, StateKey};
use crate::protect;
use crate::scratch::ScratchError;
use crate::state_backend::http::HttpError;
use crate::state_backend::lock::{LockError, LockId};
use crate::state_backend::recipients::RecipientsError;
use crate::state_backend::store::StoreError;
use crate::stop::StopSignal;
use crate::terraform::TerraformError;
use crate::terraform::changes::ChangesError;
use crate::terraform::reduction::ReductionError;
use crate::terraform::root::RootError;
use crate::terraform::state::StateError;
use crate::transport::record::RecordError;
use crate::transport::summary::Class;

use super::environment::EnvironmentError;
use super::kubeconfig::KubeconfigError;
use super::volumes::VolumesError;

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
    #[error(
        "the plan does more than destroy, so nothing of it is offered: {changes}; take out of the root what makes that"
    )]
    NotOnlyDestroys { changes: String },
    /// It is not what was confirmed.
    #[error("moved since the preview, so nothing was destroyed: {differences}; preview again")]
    Moved { differences: String },
    /// A destroy that did not get to its end.
    #[error(
        "the state still lists {addresses}: its folder stays; run the destroy again, which goes on with that"
    )]
    StillLists { addresses: String },
    /// Something of the state would stay.
    #[error(
        "the plan says nothing of {addresses}, which the state lists, so nothing of it is offered: look with presync backend {key} -- terraform state list, and destroy or remove it there by itself"
    )]
    Untold { key: StateKey, addresses: String },
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
    pub(super) fn class(&self) -> Class {
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
