//! Whether what is there now is what was confirmed, or the rest of it.

use std::collections::{BTreeMap, BTreeSet};

use super::Bound;

/// What is there now, against what was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All of it, as it was.
    Whole,
    /// What an earlier run of the same confirmation left of it.
    Rest,
}

/// Compares what is there now with what was confirmed by its digest. `confirmed` is what that digest is of, where it is known: with
/// it a run that stopped half-way can be gone on with. The differences, where it is neither.
pub fn agreement(
    digest: &str,
    confirmed: Option<&Bound>,
    now: &Bound,
) -> Result<Agreement, Vec<String>> {
    if now.digest() == digest {
        return Ok(Agreement::Whole);
    }
    let Some(confirmed) = confirmed else {
        return Err(vec![format!("its digest is now {}", now.digest())]);
    };
    if confirmed.digest() != digest {
        return Err(vec![
            "the record does not fit the digest that was confirmed".to_owned(),
        ]);
    }
    let mut differences = of_ground(confirmed, now);
    let serials = (
        confirmed.state.position.as_ref(),
        now.state.position.as_ref(),
    );
    let Content {
        more,
        less,
        found_gone,
    } = Content::compare(confirmed, now);
    let took_nothing = less.is_empty() && !found_gone;
    differences.extend(more);
    match serials {
        (Some(before), Some(after)) if before.lineage != after.lineage => {
            differences.push(format!(
                "the state has the lineage {}, and {} was confirmed",
                after.lineage, before.lineage
            ));
        }
        // A run of ours writes what it has taken away: one that wrote, and took nothing, was another's.
        (Some(before), Some(after))
            if after.serial < before.serial || (after.serial > before.serial && took_nothing) =>
        {
            differences.push(format!(
                "the state has the serial {}, and {} was confirmed",
                after.serial, before.serial
            ));
        }
        // What is listed no more was not taken away by a run of ours.
        (Some(before), Some(after)) if after.serial == before.serial => differences.extend(less),
        (None, Some(_)) => {
            differences.push("there is a state now, and there was none".to_owned());
        }
        (Some(_), Some(_)) | (_, None) => {}
    }
    if differences.is_empty() {
        Ok(Agreement::Rest)
    } else {
        Err(differences)
    }
}

/// What must be the same in any case.
fn of_ground(confirmed: &Bound, now: &Bound) -> Vec<String> {
    let mut differences = Vec::new();
    if (confirmed.target(), &confirmed.state.key) != (now.target(), &now.state.key) {
        differences.push(format!(
            "{} was confirmed, and this is {}",
            confirmed.target(),
            now.target()
        ));
    }
    if confirmed.namespace != now.namespace {
        differences.push("the namespace is another one".to_owned());
    }
    let folders: BTreeSet<&String> = confirmed.trees.keys().chain(now.trees.keys()).collect();
    for folder in folders {
        if confirmed.trees.get(folder) != now.trees.get(folder) {
            differences.push(format!("the folder {folder} has changed"));
        }
    }
    if confirmed.versions.stagewright != now.versions.stagewright
        || confirmed.versions.terraform != now.versions.terraform
    {
        differences.push(format!(
            "stagewright {} with {} made the preview, and this is stagewright {} with {}",
            confirmed.versions.stagewright,
            confirmed.versions.terraform,
            now.versions.stagewright,
            now.versions.terraform
        ));
    }
    // Fewer of them where the rest of the state needs fewer.
    for (provider, version) in &now.versions.providers {
        if confirmed.versions.providers.get(provider) != Some(version) {
            differences.push(format!("{provider} has the version {version} now"));
        }
    }
    differences
}

/// What is there now against what was confirmed, line by line.
struct Content {
    /// What was not confirmed.
    more: Vec<String>,
    /// What was confirmed and is there no more, nor known as gone.
    less: Vec<String>,
    /// Whether something that was to be destroyed is gone by now: an earlier run destroyed it, and could not save that.
    found_gone: bool,
}

impl Content {
    fn compare(confirmed: &Bound, now: &Bound) -> Content {
        let (before, after) = (lines(confirmed), lines(now));
        let to_destroy: BTreeMap<&str, String> = confirmed
            .changes
            .iter()
            .filter(|change| change.action.destroys())
            .map(|change| (change.address.as_str(), change.to_string()))
            .collect();
        let mut found_gone: BTreeMap<String, &String> = BTreeMap::new();
        for gone in &now.gone {
            if let Some(change) = to_destroy.get(gone.address.as_str()) {
                found_gone.insert(gone.to_string(), change);
            }
        }
        let mut more = after.difference(&before).collect::<Vec<_>>();
        more.retain(|line| !found_gone.contains_key(*line));
        let mut less = before.difference(&after).collect::<Vec<_>>();
        less.retain(|line| !found_gone.values().any(|change| change == line));
        Content {
            more: more
                .iter()
                .map(|line| format!("{line}, which was not confirmed"))
                .collect(),
            less: less
                .iter()
                .map(|line| format!("no longer {line}"))
                .collect(),
            found_gone: !found_gone.is_empty(),
        }
    }
}

/// Everything that a destroy takes or drops.
fn lines(bound: &Bound) -> BTreeSet<String> {
    let changes = bound.changes.iter().map(ToString::to_string);
    let outputs = bound.outputs.iter().map(ToString::to_string);
    let gone = bound.gone.iter().map(ToString::to_string);
    let forgotten = bound.forgotten.iter().map(|f| format!("{f}: forgotten"));
    changes
        .chain(outputs)
        .chain(gone)
        .chain(forgotten)
        .collect()
}
