//! What speaks against a destroy, and what lifts it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Preview;
use crate::names::StateKey;

/// What a person may take upon himself, by a flag each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowance {
    /// The provider finds nothing of what the state lists.
    AcceptGone,
    /// There is no state, and no proof that there was one.
    AcceptNoState,
    /// Destroy-time provisioners do not run.
    SkipDestroyProvisioners,
    /// Objects stay in a namespace that still lives.
    LeaveBehind,
}

/// The flag.
impl std::fmt::Display for Allowance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Allowance::AcceptGone => "--accept-gone",
            Allowance::AcceptNoState => "--accept-no-state",
            Allowance::SkipDestroyProvisioners => "--skip-destroy-provisioners",
            Allowance::LeaveBehind => "--leave-behind",
        })
    }
}

/// Whether a namespace is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespaced {
    /// It is gone.
    NotFound,
    /// It is there.
    Lives,
    /// It is there and being deleted.
    Ending,
    /// It could not be looked at, and why.
    Unknown(String),
}

/// Something that speaks against a destroy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What, and what to do about it.
    pub sentence: String,
    /// The flag that lifts it; nothing does where there is none.
    pub lifted_by: Option<Allowance>,
}

impl std::fmt::Display for Objection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// What there is left to do for a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    /// There is a state.
    State,
    /// The state is gone, the config folder is not.
    Config,
    /// Both are gone, by a destroy that is proved.
    Nothing,
}

/// What there is left to do.
pub fn left(preview: &Preview) -> Left {
    match (
        &preview.bound.state.position,
        preview.told.config.files.is_empty(),
    ) {
        (Some(_), _) => Left::State,
        (None, false) => Left::Config,
        (None, true) => Left::Nothing,
    }
}

/// Everything that speaks against a destroy, `namespaces` being those of the forgotten objects.
pub fn objections(preview: &Preview, namespaces: &[(String, Namespaced)]) -> Vec<Objection> {
    let mut objections = Vec::new();
    let mut object = |sentence: String, lifted_by: Option<Allowance>| {
        objections.push(Objection {
            sentence,
            lifted_by,
        });
    };
    let told = &preview.told;
    let folder = &told.state_folder;
    let target = preview.bound.target();
    let key = &preview.bound.state.key;
    let has_state = preview.bound.state.position.is_some();
    if has_state && !folder.beside.is_empty() {
        object(
            format!(
                "{}/ in the state repository holds more than the state of {target}: {}: move it away first, or find out whose it is",
                folder.path,
                folder.beside.join(", ")
            ),
            None,
        );
    }
    if !has_state && folder.proof.is_none() {
        let near: Vec<&str> = folder.near.iter().map(StateKey::as_str).collect();
        let near = match near.as_slice() {
            [] => "there is no state near it".to_owned(),
            near => format!("near it are {}", near.join(", ")),
        };
        if told.config.files.is_empty() {
            object(
                format!(
                    "there is nothing of {target} anywhere: no state at {key}, no {}/, and no proof of a destroy; {near}: name the repository, path and stage as they are spelled there",
                    told.config.path
                ),
                None,
            );
        } else {
            object(
                format!(
                    "NO STATE WAS FOUND AT {key}; {near}: if {target} never had one, {} goes on without",
                    Allowance::AcceptNoState
                ),
                Some(Allowance::AcceptNoState),
            );
        }
    }
    if !told.all_gone.is_empty() {
        object(
            format!(
                "of {} the provider finds nothing that the state lists, as it would in a wrong cluster or account: look whether it is the right one; {} takes it as gone",
                told.all_gone.join(", "),
                Allowance::AcceptGone
            ),
            Some(Allowance::AcceptGone),
        );
    }
    if !told.provisioners.is_empty() {
        let places: Vec<String> = told.provisioners.iter().map(ToString::to_string).collect();
        object(
            format!(
                "what destroy-time provisioners clean up would stay: {}: do it by hand, or go on without by {}",
                places.join(", "),
                Allowance::SkipDestroyProvisioners
            ),
            Some(Allowance::SkipDestroyProvisioners),
        );
    }
    let living = namespaces
        .iter()
        .filter(|(_, seen)| *seen == Namespaced::Lives);
    let living: Vec<&str> = living.map(|(name, _)| name.as_str()).collect();
    if !living.is_empty() {
        object(
            format!(
                "the namespace {} still lives, so the objects in it that the state forgets stay behind: remove it first, or leave them by {}",
                living.join(", "),
                Allowance::LeaveBehind
            ),
            Some(Allowance::LeaveBehind),
        );
    }
    objections
}

/// Those that an allowance lifts.
pub fn lifted(objections: &[Objection], allowed: &BTreeSet<Allowance>) -> Vec<Objection> {
    let objections = objections.iter();
    let lifted = objections.filter(|o| o.lifted_by.is_some_and(|by| allowed.contains(&by)));
    lifted.cloned().collect()
}

/// Those that no allowance lifts, and the allowances that were needed.
pub fn against(
    objections: Vec<Objection>,
    allowed: &BTreeSet<Allowance>,
) -> (Vec<Objection>, BTreeSet<Allowance>) {
    let is_lifted =
        |objection: &Objection| objection.lifted_by.is_some_and(|by| allowed.contains(&by));
    let (lifted, standing): (Vec<_>, Vec<_>) = objections.into_iter().partition(is_lifted);
    let used = lifted.iter().filter_map(|objection| objection.lifted_by);
    (standing, used.collect())
}
