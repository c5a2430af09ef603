//! What an apply would do, read from `show -json` of a saved plan.
//! The format: <https://developer.hashicorp.com/terraform/internals/json-format>.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protect::Protected;

/// A plan that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// Not the JSON that is documented.
    #[error("the plan's JSON could not be read")]
    Json(#[source] serde_json::Error),
    /// Another major version of the format.
    #[error("the plan's JSON has format version {0}, of which this version reads only 1.x")]
    Format(String),
    /// Terraform says that the plan is not whole.
    #[error("Terraform marked the plan as errored: what it holds is not all that would change")]
    Errored,
}

/// Everything that an apply of one plan would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Changes to resources and data sources, in the plan's order.
    pub resources: Vec<Change>,
    /// Changes to outputs, by name.
    pub outputs: Vec<OutputChange>,
    /// Resources that the provider no longer finds, by address. Terraform shows them as drift alone; an apply drops
    /// them from the state, and also where it says "No changes".
    pub gone: Vec<Gone>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The resource's address.
    pub address: String,
    /// Set for an old object that a failed replacement left behind: its key.
    pub deposed: Option<String>,
    /// What is done.
    pub action: Action,
    /// The address that the state still knows it by.
    pub moved_from: Option<String>,
    /// Whether the apply takes it over from outside.
    pub import: bool,
    /// Terraform's own words for the action.
    pub actions: Vec<String>,
    /// Set by [`super::protected::judge`] where the change would destroy a protected resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Protected>,
}

/// What is done with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Made.
    Create,
    /// Changed in place.
    Update,
    /// Destroyed.
    Destroy,
    /// A data source read during the apply.
    Read,
    /// Destroyed, then made anew.
    DestroyThenCreate,
    /// Made anew, then the old one destroyed.
    CreateThenDestroy,
    /// Dropped from the state, left as it is.
    Forget,
    /// Made anew, the old one dropped from the state.
    CreateThenForget,
    /// Not changed; only moved or imported.
    Nothing,
    /// An action that this version does not know.
    Unknown,
}

impl Action {
    /// Every action, in the order in which they are counted.
    pub const ALL: [Action; 10] = [
        Action::Create,
        Action::Update,
        Action::Destroy,
        Action::Read,
        Action::DestroyThenCreate,
        Action::CreateThenDestroy,
        Action::Forget,
        Action::CreateThenForget,
        Action::Nothing,
        Action::Unknown,
    ];

    pub(super) fn of(actions: &[String]) -> Action {
        let words: Vec<&str> = actions.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["no-op"] => Action::Nothing,
            ["create"] => Action::Create,
            ["read"] => Action::Read,
            ["update"] => Action::Update,
            ["delete"] => Action::Destroy,
            ["delete", "create"] => Action::DestroyThenCreate,
            ["create", "delete"] => Action::CreateThenDestroy,
            ["forget"] => Action::Forget,
            ["create", "forget"] => Action::CreateThenForget,
            _ => Action::Unknown,
        }
    }

    /// Whether an object is destroyed, or may be, for all that this version knows.
    pub fn destroys(self) -> bool {
        match self {
            Action::Destroy
            | Action::DestroyThenCreate
            | Action::CreateThenDestroy
            | Action::Unknown => true,
            Action::Create
            | Action::Update
            | Action::Read
            | Action::Forget
            | Action::CreateThenForget
            | Action::Nothing => false,
        }
    }

    /// The word for it, as presync's lines and the job's summary have it.
    pub fn word(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Update => "update",
            Action::Destroy => "destroy",
            Action::Read => "read",
            Action::DestroyThenCreate => "replace (destroy then create)",
            Action::CreateThenDestroy => "replace (create then destroy)",
            Action::Forget => "forget",
            Action::CreateThenForget => "replace (create then forget)",
            Action::Nothing => "no change",
            Action::Unknown => "unknown",
        }
    }
}

/// `<address>: <action>`, the action as it is printed, and behind it in brackets what protection means for it.
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(key) = &self.deposed {
            write!(f, " (deposed {key})")?;
        }
        let mut words = Vec::new();
        match self.action {
            Action::Nothing => {}
            Action::Unknown => words.push(format!(
                "{}, an action that this version does not know",
                self.actions.join(" and ")
            )),
            action => words.push(action.word().to_owned()),
        }
        words.extend(
            self.moved_from
                .as_ref()
                .map(|from| format!("move from {from}")),
        );
        words.extend(self.import.then(|| "import".to_owned()));
        write!(f, ": {}", words.join(", "))?;
        match &self.protected {
            Some(protected) => write!(f, " ({protected})"),
            None => Ok(()),
        }
    }
}

/// One change to an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputChange {
    /// The output's name.
    pub name: String,
    /// What is done.
    pub action: Action,
}

/// `output.<name>: <action>`.
impl std::fmt::Display for OutputChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "output.{}: {}", self.name, self.action.word())
    }
}

/// A resource that the provider no longer finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gone {
    /// Its address.
    pub address: String,
    /// Set for a deposed object: its key.
    pub deposed: Option<String>,
}

/// `<address>: already gone, says the provider`.
impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(key) = &self.deposed {
            write!(f, " (deposed {key})")?;
        }
        f.write_str(": already gone, says the provider")
    }
}

impl Changes {
    /// Reads `terraform show -json <plan>`.
    pub fn read(json: &[u8]) -> Result<Changes, ChangesError> {
        let plan: PlanJson = serde_json::from_slice(json).map_err(ChangesError::Json)?;
        if plan.format_version.split('.').next() != Some("1") {
            return Err(ChangesError::Format(plan.format_version));
        }
        if plan.errored {
            return Err(ChangesError::Errored);
        }
        let resources = plan
            .resource_changes
            .into_iter()
            .map(ResourceChangeJson::into_change)
            .filter(|c| c.action != Action::Nothing || c.moved_from.is_some() || c.import)
            .collect();
        let outputs = plan
            .output_changes
            .into_iter()
            .map(|(name, change)| OutputChange {
                name,
                action: Action::of(&change.actions),
            })
            .filter(|change| change.action != Action::Nothing)
            .collect();
        let gone = plan
            .resource_drift
            .into_iter()
            .filter(|drift| Action::of(&drift.change.actions) == Action::Destroy)
            .map(|drift| Gone {
                address: drift.address,
                deposed: drift.deposed,
            })
            .collect();
        Ok(Changes {
            resources,
            outputs,
            gone,
        })
    }

    /// Whether an apply would leave everything as it is, the state's outputs included.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.outputs.is_empty() && self.gone.is_empty()
    }

    /// How many changes an apply would refuse, and with them all others.
    pub fn refused(&self) -> usize {
        let refused = |change: &&Change| change.protected == Some(Protected::Refused);
        self.resources.iter().filter(refused).count()
    }

    /// How many resource changes there are of each action, those with none included.
    pub fn counts(&self) -> BTreeMap<Action, usize> {
        let mut counts: BTreeMap<Action, usize> = Action::ALL.map(|action| (action, 0)).into();
        for change in &self.resources {
            *counts.entry(change.action).or_insert(0) += 1;
        }
        counts
    }
}

#[derive(Deserialize)]
struct PlanJson {
    format_version: String,
    #[serde(default)]
    resource_changes: Vec<ResourceChangeJson>,
    #[serde(default)]
    resource_drift: Vec<ResourceChangeJson>,
    #[serde(default)]
    output_changes: BTreeMap<String, ChangeJson>,
    #[serde(default)]
    errored: bool,
}

#[derive(Deserialize)]
struct ResourceChangeJson {
    address: String,
    previous_address: Option<String>,
    deposed: Option<String>,
    change: ChangeJson,
}

#[derive(Deserialize)]
struct ChangeJson {
    actions: Vec<String>,
    importing: Option<serde::de::IgnoredAny>,
}

impl ResourceChangeJson {
    fn into_change(self) -> Change {
        Change {
            action: Action::of(&self.change.actions),
            moved_from: self.previous_address.filter(|from| *from != self.address),
            import: self.change.importing.is_some(),
            address: self.address,
            deposed: self.deposed,
            actions: self.change.actions,
            protected: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(plan: &str) -> Vec<String> {
        let changes = Changes::read(plan.as_bytes()).unwrap();
        let resources = changes.resources.iter().map(ToString::to_string);
        let outputs = changes.outputs.iter().map(ToString::to_string);
        let gone = changes.gone.iter().map(ToString::to_string);
        resources.chain(outputs).chain(gone).collect()
    }

    #[test]
    fn every_action_has_its_words() {
        let plan = r#"{"format_version": "1.2", "resource_changes": [
            {"address": "a.create", "change": {"actions": ["create"]}},
            {"address": "a.update", "change": {"actions": ["update"]}},
            {"address": "a.destroy", "change": {"actions": ["delete"]}},
            {"address": "data.a.read", "change": {"actions": ["read"]}},
            {"address": "a.dc", "change": {"actions": ["delete", "create"]}},
            {"address": "a.cd", "change": {"actions": ["create", "delete"]}},
            {"address": "a.forget", "change": {"actions": ["forget"]}},
            {"address": "a.cf", "change": {"actions": ["create", "forget"]}},
            {"address": "a.same", "change": {"actions": ["no-op"]}},
            {"address": "a.moved", "previous_address": "a.old", "change": {"actions": ["no-op"]}},
            {"address": "a.both", "previous_address": "a.old2", "change": {"actions": ["update"]}},
            {"address": "a.import", "change": {"actions": ["no-op"], "importing": {"id": "x"}}},
            {"address": "a.import2", "change": {"actions": ["update"], "importing": {"id": "x"}}},
            {"address": "a.all", "previous_address": "a.o", "change": {"actions": ["update"], "importing": {}}},
            {"address": "a.left", "deposed": "0a1b2c3d", "change": {"actions": ["delete"]}},
            {"address": "a.new", "change": {"actions": ["delete", "summon"]}}
        ]}"#;
        assert_eq!(
            lines(plan),
            [
                "a.create: create",
                "a.update: update",
                "a.destroy: destroy",
                "data.a.read: read",
                "a.dc: replace (destroy then create)",
                "a.cd: replace (create then destroy)",
                "a.forget: forget",
                "a.cf: replace (create then forget)",
                "a.moved: move from a.old",
                "a.both: update, move from a.old2",
                "a.import: import",
                "a.import2: update, import",
                "a.all: update, move from a.o, import",
                "a.left (deposed 0a1b2c3d): destroy",
                "a.new: delete and summon, an action that this version does not know",
            ]
        );
    }

    #[test]
    fn what_the_provider_no_longer_finds_is_told_though_nothing_else_changes() {
        let plan = r#"{"format_version": "1.2", "applyable": false, "resource_drift": [
            {"address": "a.gone", "change": {"actions": ["delete"], "before": {"id": 1}, "after": null}},
            {"address": "a.drifted", "change": {"actions": ["update"]}}
        ]}"#;
        assert_eq!(lines(plan), ["a.gone: already gone, says the provider"]);
        assert!(!Changes::read(plan.as_bytes()).unwrap().is_empty());
    }

    #[test]
    fn outputs_that_change_are_told_and_those_that_stay_are_not() {
        let plan = r#"{"format_version": "1.2", "output_changes": {
            "url": {"actions": ["update"]}, "host": {"actions": ["no-op"]}, "new": {"actions": ["create"]}}}"#;
        assert_eq!(lines(plan), ["output.new: create", "output.url: update"]);
    }

    #[test]
    fn a_plan_that_is_errored_or_of_another_format_is_not_read() {
        assert!(matches!(
            Changes::read(br#"{"format_version": "1.2", "errored": true}"#),
            Err(ChangesError::Errored)
        ));
        assert!(matches!(
            Changes::read(br#"{"format_version": "2.0"}"#),
            Err(ChangesError::Format(_))
        ));
        assert!(matches!(Changes::read(b"{}"), Err(ChangesError::Json(_))));
    }
}
