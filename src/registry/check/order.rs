//! Where entries stand, and what their paths are called.

use crate::findings::Finding;
use crate::registry::{App, Registry};

use super::{ORDER, PATH_NAME};

/// The entries that stand in the wrong place: those which have to move so that the others are in order, as few as can be.
pub(super) fn apps(registry: &Registry) -> Vec<Finding> {
    let apps: Vec<&App> = registry.apps().collect();
    let stay = longest_ordered(&apps);
    let mut findings = Vec::new();
    for (at, app) in apps.iter().enumerate() {
        let Err(passed) = stay.binary_search(&at) else {
            continue;
        };
        let belongs = stay.partition_point(|other| apps[*other].name < app.name);
        let named = |position: usize| &apps[stay[position]].name;
        let text = if belongs < passed {
            format!(
                "apps.{} stands after apps.{}; it belongs before apps.{}",
                app.name,
                named(passed - 1),
                named(belongs)
            )
        } else {
            format!(
                "apps.{} stands before apps.{}; it belongs after apps.{}",
                app.name,
                named(passed),
                named(belongs - 1)
            )
        };
        findings.push(ORDER.finding(app.place, text));
    }
    findings
}

/// The positions of a longest run of apps that are in order, not necessarily next to each other.
fn longest_ordered(apps: &[&App]) -> Vec<usize> {
    // The last app of the best run of each length, and each app's predecessor in its run.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(apps.len());
    for (at, app) in apps.iter().enumerate() {
        let length = ends.partition_point(|end| apps[*end].name < app.name);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        run.push(at);
        next = before[at];
    }
    run.reverse();
    run
}

/// Paths that do not end as their app is called.
pub(super) fn paths(registry: &Registry) -> Vec<Finding> {
    let other = |app: &&App| {
        let path = app.path.as_ref().map_or("", |path| path.as_str());
        let last = path.rsplit('/').next().unwrap_or_default();
        !path.is_empty() && last != app.name.as_str()
    };
    let said = |app: &App| {
        let path = app.path.as_ref().map_or("", |path| path.as_str());
        PATH_NAME.finding(
            app.place,
            format!(
                "apps.{0}: its path is {path}; name the folder {0}, or the app after its folder",
                app.name
            ),
        )
    };
    registry.apps().filter(other).map(said).collect()
}
