//! What a destroy would take: found by presync, told to people in the order in which it matters ([`reading`]), objected to
//! ([`objections`]), asked about ([`question`]), and confirmed by its digest ([`agreement`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::{AppPath, CommitSha, Namespace, RepoName, StageName, StateKey, Target};
use crate::terraform::changes::{Action, Change, Gone, OutputChange};
use crate::terraform::forget::Forgotten;
use crate::terraform::values::Values;
use crate::transport::record::{StateSeen, digest};

pub mod agreement;
pub mod objections;
pub mod question;
pub mod reading;

/// The version of [`Preview`]'s shape.
pub const VERSION: u32 = 1;

/// What presync found; beside [`Preview::values`] no value that Terraform holds but names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// [`VERSION`].
    pub version: u32,
    /// The commit that was previewed.
    pub revision: CommitSha,
    /// What a confirmation binds.
    pub bound: Bound,
    /// What is told beside it.
    pub told: Told,
    /// What the attributes hold that go, for a report. No confirmation binds it, and no record keeps it.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub values: Values,
}

/// What a confirmation binds: the destroying run finds out the same again, and goes on only where all of it is equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The deploy repository, as the state has it.
    pub repo: RepoName,
    /// The app's folder in it.
    pub path: Option<AppPath>,
    /// The stage.
    pub stage: StageName,
    /// The stage's namespace, where it was given.
    pub namespace: Option<Namespace>,
    /// The ids of the folders that the plan was made from, by their paths: the root, the stage's config, local modules.
    pub trees: BTreeMap<String, String>,
    /// The state as it was first read.
    pub state: StateSeen,
    /// With which programs.
    pub versions: Versions,
    /// Every change of the plan, sorted.
    pub changes: Vec<Change>,
    /// Every output that goes, sorted.
    pub outputs: Vec<OutputChange>,
    /// Every object that the provider no longer finds, sorted.
    pub gone: Vec<Gone>,
    /// Every object that is dropped from the state and left as it is, sorted.
    pub forgotten: Vec<Forgotten>,
}

/// The programs that made a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// This program.
    pub stagewright: String,
    /// `Terraform 1.11.4`.
    pub terraform: String,
    /// The providers by their addresses.
    pub providers: BTreeMap<String, String>,
}

impl Bound {
    /// The digest of all of it.
    pub fn digest(&self) -> String {
        // Names, numbers and texts in a fixed order: such a struct always has a JSON form.
        digest(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// `PlatformDeploy/headlamp/prd`.
    pub fn target(&self) -> String {
        let target = Target {
            repo: self.repo.clone(),
            path: self.path.clone(),
            stage: self.stage.clone(),
        };
        target.to_string()
    }

    /// How many objects the plan destroys.
    pub fn destroyed(&self) -> usize {
        let destroyed = |change: &&Change| change.action.destroys();
        self.changes.iter().filter(destroyed).count()
    }

    /// How many objects are dropped from the state and left as they are, those included that the plan itself drops.
    pub fn dropped(&self) -> usize {
        let by_plan = |change: &&Change| change.action == Action::Forget;
        self.forgotten.len() + self.changes.iter().filter(by_plan).count()
    }
}

/// What a person needs to know beside the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The last commit that wrote the state.
    pub written: Option<Written>,
    /// What is destroyed and holds data.
    pub data: Vec<Data>,
    /// Webhooks that are destroyed.
    pub webhooks: Vec<String>,
    /// Protections that do not hold back a destroy, and declarations that are not heard.
    pub lifted: Vec<Note>,
    /// Destroy-time provisioners that will not run.
    pub provisioners: Vec<Note>,
    /// The providers that find nothing of what the state lists of them.
    pub all_gone: Vec<String>,
    /// Anything else that is odd.
    pub warnings: Vec<String>,
    /// The folder of the state.
    pub state_folder: StateFolder,
    /// The folder of the stage's variables.
    pub config: ConfigFolder,
    /// How many objects the state lists, those included that are forgotten.
    pub objects: usize,
    /// Variables without a value now that the stage's variable files are gone.
    pub without_value: Vec<String>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Its id.
    pub commit: CommitSha,
    /// Its author.
    pub by: String,
    /// When, as RFC 3339.
    pub at: String,
}

/// An object with data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Its address.
    pub address: String,
    /// `database`, `bucket`, …
    pub what: String,
    /// What it is called outside of Terraform: attribute and value.
    pub identity: Vec<(String, String)>,
}

/// Something at an address, and why it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The resource.
    pub address: String,
    /// What of it.
    pub what: String,
    /// Where it is written, file and line in the clone.
    pub place: Option<String>,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.address, self.what)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// What is in the state repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateFolder {
    /// The folder of the state, `argocd/PlatformDeploy/prd/`.
    pub path: String,
    /// What else is in it; a folder that holds anything else is not removed.
    pub beside: Vec<String>,
    /// The commit that proves that this stage's state was removed by a destroy.
    pub proof: Option<CommitSha>,
    /// States near it, where there is none at the key.
    pub near: Vec<StateKey>,
}

/// The stage's folder in the deploy repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFolder {
    /// Its path.
    pub path: String,
    /// Its files; none where it is gone.
    pub files: Vec<String>,
    /// The last commit that had it, where it is gone and was looked for.
    pub last_seen: Option<CommitSha>,
}

#[cfg(test)]
mod tests;
