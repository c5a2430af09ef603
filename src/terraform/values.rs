//! What the attributes of a plan's changes hold before and after, for people. Sensitive values are left out where the plan is
//! read; what is left is masked and bounded ([`PlanValues::bounded`]) before it goes anywhere.
//! The format: <https://developer.hashicorp.com/terraform/internals/json-format>.

mod bounded;
mod walk;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::changes::{Action, ChangesError};
use super::data_bearing;

pub use bounded::Masking;

/// Before and after of every change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// Of resources and data sources, in the plan's order.
    pub resources: Vec<ValuesOf>,
    /// Of outputs, by name.
    pub outputs: Vec<ValuesOf>,
    /// How many changes stand without their attributes because the bound was reached.
    pub left_out: usize,
}

/// Before and after of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuesOf {
    /// The resource's address, or the output's name.
    pub address: String,
    /// Set for a deposed object: its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// What it is known to hold where it is destroyed: `database`, `bucket`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// Attributes that change, those first that identify the object.
    pub attributes: Vec<Attribute>,
    /// How many stay as they are.
    pub same: usize,
    /// How many that change are left out because the bound was reached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// What is done, which decides what is kept first.
    #[serde(skip)]
    weight: Weight,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// `labels["app.example.com/name"]`, `rule[0].port`; empty for the whole value of an output.
    pub path: String,
    /// Before the apply.
    pub before: Side,
    /// After it.
    pub after: Side,
    /// Whether it is why the object is replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

/// What an attribute holds at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Nothing.
    Absent,
    /// A text.
    Text(Shown),
    /// A number, `true`, a list: as JSON.
    Json(Shown),
    /// It is sensitive.
    Hidden,
    /// It is known after the apply alone.
    Unknown,
}

/// A value to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// As much of it as is kept.
    pub text: String,
    /// How many characters more it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: usize,
}

impl Shown {
    fn whole(text: String) -> Shown {
        Shown { text, cut: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What is kept first where not everything can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Destroys,
    Changes,
    #[default]
    Other,
}

impl Weight {
    fn of(action: Action) -> Weight {
        match action {
            action if action.destroys() => Weight::Destroys,
            Action::Update => Weight::Changes,
            _ => Weight::Other,
        }
    }
}

/// The values of a plan as they were read: not yet masked, not yet bounded, never to be sent so.
pub struct PlanValues {
    /// All of them but the sensitive ones.
    values: Values,
    /// The texts within the sensitive ones: a provider may repeat one in an attribute that is not marked.
    pub hidden: Vec<String>,
}

impl PlanValues {
    /// Reads `terraform show -json <plan>`.
    pub fn read(json: &[u8]) -> Result<PlanValues, ChangesError> {
        let plan: PlanJson = serde_json::from_slice(json).map_err(ChangesError::Json)?;
        let mut hidden = Vec::new();
        let declared = plan.configuration.root_module.variables;
        for (name, variable) in &plan.variables {
            if declared
                .get(name)
                .is_some_and(|declared| declared.sensitive)
            {
                walk::texts(&variable.value, &mut hidden);
            }
        }
        for drift in &plan.resource_drift {
            walk::values_of(&drift.change, &mut hidden);
        }
        let mut values = Values::default();
        for resource in plan.resource_changes {
            let (mut attributes, same) = walk::values_of(&resource.change, &mut hidden);
            let action = Action::of(&resource.change.actions);
            if action == Action::Nothing {
                continue;
            }
            identifying_first(&mut attributes, &resource.kind);
            let holds = data_bearing::held_by(&resource.kind).filter(|_| action.destroys());
            values.resources.push(ValuesOf {
                address: resource.address,
                deposed: resource.deposed,
                holds: holds.map(str::to_owned),
                attributes,
                same,
                left_out: 0,
                weight: Weight::of(action),
            });
        }
        for (name, change) in plan.output_changes {
            let (attributes, same) = walk::values_of(&change, &mut hidden);
            if Action::of(&change.actions) != Action::Nothing {
                values.outputs.push(ValuesOf {
                    address: name,
                    deposed: None,
                    holds: None,
                    attributes,
                    same,
                    left_out: 0,
                    weight: Weight::Other,
                });
            }
        }
        hidden.sort_unstable();
        hidden.dedup();
        Ok(PlanValues { values, hidden })
    }
}

impl Values {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.outputs.is_empty()
    }

    /// Those of resources by address and the key of a deposed object.
    pub fn by_address(&self) -> HashMap<(&str, Option<&str>), &ValuesOf> {
        let resources = self.resources.iter();
        resources
            .map(|of| ((of.address.as_str(), of.deposed.as_deref()), of))
            .collect()
    }
}

/// Puts what tells one object from another in front.
fn identifying_first(attributes: &mut [Attribute], kind: &str) {
    let by_kind = data_bearing::identifying(kind);
    let rank = |attribute: &Attribute| {
        let dotted = attribute.path.replace('[', ".").replace(']', "");
        let usual = ["id", "name", "arn"];
        let mut names = by_kind.iter().chain(&usual);
        names.position(|name| *name == dotted).unwrap_or(usize::MAX)
    };
    attributes.sort_by_cached_key(rank);
}

#[derive(Deserialize)]
struct PlanJson {
    #[serde(default)]
    resource_changes: Vec<ResourceJson>,
    #[serde(default)]
    resource_drift: Vec<ResourceJson>,
    #[serde(default)]
    output_changes: BTreeMap<String, ChangeJson>,
    #[serde(default)]
    variables: BTreeMap<String, VariableJson>,
    #[serde(default)]
    configuration: ConfigurationJson,
}

#[derive(Deserialize)]
struct ResourceJson {
    address: String,
    #[serde(default, rename = "type")]
    kind: String,
    deposed: Option<String>,
    change: ChangeJson,
}

/// A plan that says nothing of what is sensitive has told nothing that may be shown.
#[derive(Deserialize)]
struct ChangeJson {
    actions: Vec<String>,
    #[serde(default)]
    before: Value,
    #[serde(default)]
    after: Value,
    #[serde(default = "all")]
    before_sensitive: Value,
    #[serde(default = "all")]
    after_sensitive: Value,
    #[serde(default)]
    after_unknown: Value,
    #[serde(default)]
    replace_paths: Vec<Vec<Value>>,
}

fn all() -> Value {
    Value::Bool(true)
}

#[derive(Deserialize)]
struct VariableJson {
    #[serde(default)]
    value: Value,
}

#[derive(Default, Deserialize)]
struct ConfigurationJson {
    #[serde(default)]
    root_module: RootModuleJson,
}

#[derive(Default, Deserialize)]
struct RootModuleJson {
    #[serde(default)]
    variables: BTreeMap<String, DeclaredJson>,
}

#[derive(Deserialize)]
struct DeclaredJson {
    #[serde(default)]
    sensitive: bool,
}

#[cfg(test)]
mod tests;
