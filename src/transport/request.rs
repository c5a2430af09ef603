//! What a job asks of presync: the arguments, and the environment beside the credentials.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::names::{AppPath, BranchName, CommitSha, Namespace, RepoUrl, StageName};
use crate::protect::Protection;

/// Where the state repository is, as presync reads it.
pub const STATE_URL: &str = "STAGEWRIGHT_STATE_URL";
/// The state repository's branch; `main` when unset.
pub const STATE_BRANCH: &str = "STAGEWRIGHT_STATE_BRANCH";
/// The first folder of every state key; `argocd` when unset, and none at all when it is [`NO_PREFIX`].
pub const STATE_PREFIX: &str = "STAGEWRIGHT_STATE_PREFIX";
/// The prefix of an estate whose keys have none. An empty variable counts as absent, so it cannot say that.
pub const NO_PREFIX: &str = "/";
/// The `layout:` section of the settings as JSON; the defaults when unset.
pub const LAYOUT: &str = "STAGEWRIGHT_LAYOUT";
/// The Terraform or OpenTofu program; `terraform` on PATH, else `tofu`, when unset.
pub const TERRAFORM: &str = "STAGEWRIGHT_TERRAFORM";
/// The `protect:` section of the settings as JSON, or its patterns with commas or white space between; none when unset.
pub const PROTECT: &str = "STAGEWRIGHT_PROTECT";
/// Further variables, by name and separated by commas, whose values are masked in the log.
pub const MASK: &str = "STAGEWRIGHT_MASK";
/// Where the termination summary is written; `/dev/termination-log` when unset and there.
pub const TERMINATION_FILE: &str = "STAGEWRIGHT_TERMINATION_FILE";
/// Who writes the states' commits, as `Name <address>`; `argocd-hook <argocd-hook@HOST>` when unset.
pub const STATE_AUTHOR: &str = "STAGEWRIGHT_STATE_AUTHOR";
/// For how many seconds an apply tries again to write a state that could not be written, before it goes to its rescue
/// branch; 60 when unset.
pub const SAVE_PATIENCE: &str = "STAGEWRIGHT_SAVE_PATIENCE";
/// The build that asked for this run.
pub const BUILD_URL: &str = "STAGEWRIGHT_BUILD_URL";
/// The UID of the Job whose pod this is; a pod does not know it by itself.
pub const JOB_UID: &str = "STAGEWRIGHT_JOB_UID";
/// The pod's name; the host's name when unset.
pub const POD_NAME: &str = "STAGEWRIGHT_POD_NAME";
/// The pod's namespace; that of its service account when unset.
pub const POD_NAMESPACE: &str = "STAGEWRIGHT_POD_NAMESPACE";
/// The process that presync must not outlive; set by the local runner.
pub const PARENT: &str = "STAGEWRIGHT_PARENT";

/// How long a launched plan may take in all, and each run of Terraform in it.
pub const DEADLINE: Duration = Duration::from_secs(1800);

/// The namespace of a stage that is destroyed, which has no place among the arguments there; unknown when unset.
pub const NAMESPACE: &str = "STAGEWRIGHT_NAMESPACE";

/// What was confirmed, compressed, in pieces: a string of a process's environment ends at 128 KiB.
pub const CONFIRMED: [&str; 8] = [
    "STAGEWRIGHT_CONFIRMED_1",
    "STAGEWRIGHT_CONFIRMED_2",
    "STAGEWRIGHT_CONFIRMED_3",
    "STAGEWRIGHT_CONFIRMED_4",
    "STAGEWRIGHT_CONFIRMED_5",
    "STAGEWRIGHT_CONFIRMED_6",
    "STAGEWRIGHT_CONFIRMED_7",
    "STAGEWRIGHT_CONFIRMED_8",
];
/// Who asked for a destroy, for the commit that ends it.
pub const REQUESTED_BY: &str = "STAGEWRIGHT_REQUESTED_BY";
/// Who approved it.
pub const APPROVED_BY: &str = "STAGEWRIGHT_APPROVED_BY";

/// One stage at one commit: what every run of presync is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageRequest {
    /// The deploy repository, as presync can reach it.
    pub url: RepoUrl,
    /// The commit.
    pub revision: CommitSha,
    /// The stage.
    pub stage: StageName,
    /// The app's folder in a monorepo.
    pub path: Option<AppPath>,
}

impl StageRequest {
    /// presync's arguments for a plan: `plan URL SHA STAGE NAMESPACE [PATH]`.
    pub fn plan_arguments(&self, namespace: &Namespace) -> Vec<String> {
        self.arguments(&["plan"], Some(namespace))
    }

    /// presync's arguments for a preview: `destroy --preview URL SHA STAGE [PATH]`.
    pub fn preview_arguments(&self) -> Vec<String> {
        self.arguments(&["destroy", "--preview"], None)
    }

    /// presync's arguments for the destroy of what was confirmed: `destroy --confirmed DIGEST URL SHA STAGE [PATH]`.
    pub fn destroy_arguments(&self, digest: &str) -> Vec<String> {
        self.arguments(&["destroy", "--confirmed", digest], None)
    }

    fn arguments(&self, verb: &[&str], namespace: Option<&Namespace>) -> Vec<String> {
        let mut arguments: Vec<String> = verb.iter().map(ToString::to_string).collect();
        arguments.push(self.url.to_string());
        arguments.push(self.revision.to_string());
        arguments.push(self.stage.to_string());
        arguments.extend(namespace.map(Namespace::to_string));
        arguments.extend(self.path.as_ref().map(AppPath::to_string));
        arguments
    }
}

/// What presync has to know beside its arguments and credentials.
#[derive(Clone, Debug)]
pub struct Estate {
    /// The state repository.
    pub state_url: RepoUrl,
    /// Its branch.
    pub state_branch: BranchName,
    /// The first folder of every key.
    pub state_prefix: String,
    /// The layout as JSON.
    pub layout: String,
    /// The Terraform program where the settings name one.
    pub terraform: Option<String>,
    /// What may not be destroyed.
    pub protect: Protection,
}

impl Estate {
    /// As environment variables.
    pub fn environment(&self) -> BTreeMap<&'static str, String> {
        let prefix = match self.state_prefix.as_str() {
            "" => NO_PREFIX,
            prefix => prefix,
        };
        let mut variables = BTreeMap::from([
            (STATE_URL, self.state_url.to_string()),
            (STATE_BRANCH, self.state_branch.to_string()),
            (STATE_PREFIX, prefix.to_owned()),
            (LAYOUT, self.layout.clone()),
            (PROTECT, self.protect.to_json()),
        ]);
        if let Some(program) = &self.terraform {
            variables.insert(TERRAFORM, program.clone());
        }
        variables
    }
}
