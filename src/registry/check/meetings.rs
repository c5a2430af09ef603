//! Entries that meet where each should be alone: in a state, in a folder of states, in a name.

use std::collections::BTreeMap;
use std::error::Error as _;

use crate::findings::Finding;
use crate::layout::Layout;
use crate::registry::{App, Registry, Stage};

use super::{LONG_NAME, PATH_THROUGH_STAGE, SAME_NAME, SAME_STAGE, stages};

/// What of a repository's URL tells it from others.
fn repository(app: &App) -> String {
    app.repo.full_name().to_lowercase()
}

fn path(app: &App) -> &str {
    app.path.as_ref().map_or("", |path| path.as_str())
}

fn named(app: &App, stage: &Stage) -> String {
    format!("apps.{}.stages.{}", app.name, stage.name)
}

/// Stages that two entries deploy.
pub(super) fn same_stage(registry: &Registry) -> Vec<Finding> {
    let mut first: BTreeMap<_, Vec<(&App, &Stage)>> = BTreeMap::new();
    let mut findings = Vec::new();
    for (app, stage) in stages(registry) {
        let key = (repository(app), path(app), stage.name.as_str());
        let before = first.entry(key).or_default();
        let same = before
            .iter()
            .find(|(other, _)| other.repo.same_repository(&app.repo));
        if let Some((other, its)) = same {
            findings.push(SAME_STAGE.finding(
                stage.place,
                format!(
                    "{}: {} at {} deploys the same stage of the same path and repository, and would share its state; remove one of the two",
                    named(app, stage),
                    named(other, its),
                    its.place
                ),
            ));
        }
        before.push((app, stage));
    }
    findings
}

/// Apps whose path goes through the folder of another app's state.
pub(super) fn paths_through_stages(registry: &Registry) -> Vec<Finding> {
    let mut folders: BTreeMap<(String, String), (&App, &Stage)> = BTreeMap::new();
    for (app, stage) in stages(registry) {
        let folder = match path(app) {
            "" => stage.name.to_string(),
            path => format!("{path}/{}", stage.name),
        };
        folders.insert((repository(app), folder), (app, stage));
    }
    let mut findings = Vec::new();
    for app in registry.apps() {
        let path = path(app);
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        let met = ends
            .filter(|end| *end > 0)
            .find_map(|end| folders.get(&(repository(app), path[..end].to_owned())));
        if let Some((other, stage)) = met
            && other.repo.same_repository(&app.repo)
        {
            findings.push(PATH_THROUGH_STAGE.finding(
                app.place,
                format!(
                    "apps.{}: its path {path} goes through the folder where {} at {} has its state; give the app another path",
                    app.name,
                    named(other, stage),
                    stage.place
                ),
            ));
        }
    }
    findings
}

/// Names of namespaces and Applications that do not fit, or that two stages have.
pub(super) fn names(registry: &Registry, layout: &Layout) -> Vec<Finding> {
    let mut first: BTreeMap<String, (&App, &Stage)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (app, stage) in stages(registry) {
        let name = match layout.namespace(&app.name, &stage.name) {
            Ok(name) => name.to_string(),
            Err(error) => {
                let cause = error.source().map(ToString::to_string);
                let text = format!(
                    "{}: {}; choose a shorter key for the app or the stage",
                    named(app, stage),
                    cause.unwrap_or_else(|| error.to_string())
                );
                findings.push(LONG_NAME.finding(stage.place, text));
                continue;
            }
        };
        match first.get(&name) {
            // That they are one stage is told by the keys, which differ in one mapping.
            Some((other, its)) => findings.push(SAME_NAME.finding(
                stage.place,
                format!(
                    "{}: {} at {} is called {name} too, so both would be one Application and one namespace; choose another key",
                    named(app, stage),
                    named(other, its),
                    its.place
                ),
            )),
            None => {
                first.insert(name, (app, stage));
            }
        }
    }
    findings
}
