//! The named checks of a registry that need nothing but its file.

mod addresses;
mod meetings;
mod order;
pub mod promise;
pub mod readiness;
mod table;
#[cfg(test)]
mod tests;

use crate::findings::Finding;
use crate::layout::Layout;

use super::{App, Registry, RegistryError, Stage};

pub use table::*;

/// What came of the checks of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What was found, in the order of the file.
    pub findings: Vec<Finding>,
    /// The registry, where it could be read.
    pub registry: Option<Registry>,
    /// How many entries there are.
    pub apps: usize,
    /// How many stages they have, as far as they can be read.
    pub stages: usize,
}

/// Checks the text of a registry. What cannot be read at all is the only finding then.
pub fn check(text: &str, layout: &Layout) -> Checked {
    let registry = match Registry::parse(text, "") {
        Ok(registry) => registry,
        Err(error) => {
            let finding = match error {
                RegistryError::Yaml { fault, .. } => YAML.finding(fault.place(), fault.to_string()),
                RegistryError::Shape { place, found, .. } => SHAPE.finding(
                    place,
                    format!("{found}; a registry has `apps:` with one key for each app"),
                ),
            };
            return Checked {
                findings: vec![finding],
                registry: None,
                apps: 0,
                stages: 0,
            };
        }
    };
    let mut findings: Vec<Finding> = registry
        .faults()
        .iter()
        .map(|fault| ENTRY.finding(fault.place, fault.message.clone()))
        .collect();
    findings.extend(null_stages(&registry));
    findings.extend(order::apps(&registry));
    findings.extend(order::paths(&registry));
    findings.extend(meetings::same_stage(&registry));
    findings.extend(meetings::paths_through_stages(&registry));
    findings.extend(meetings::names(&registry, layout));
    findings.extend(addresses::urls(&registry));
    findings.extend(addresses::revisions(&registry));
    findings.sort_by(|a, b| (&a.at, a.check.name).cmp(&(&b.at, b.check.name)));
    let claims = registry.claims();
    Checked {
        findings,
        apps: claims.len(),
        stages: claims.iter().map(|claim| claim.stages.len()).sum(),
        registry: Some(registry),
    }
}

/// Stages whose key holds nothing.
fn null_stages(registry: &Registry) -> Vec<Finding> {
    let nulls = stages(registry).filter(|(_, stage)| stage.is_null);
    let said = |(app, stage): (&App, &Stage)| {
        let text = format!(
            "apps.{}.stages.{}: nothing stands behind the key, and Helm leaves such a key out where the file is given by --values; write {{}}",
            app.name, stage.name
        );
        NULL_STAGE.finding(stage.place, text)
    };
    nulls.map(said).collect()
}

/// Every stage that could be read, with its app.
fn stages(registry: &Registry) -> impl Iterator<Item = (&App, &Stage)> {
    registry
        .apps()
        .flat_map(|app| app.stages.iter().map(move |stage| (app, stage)))
}
