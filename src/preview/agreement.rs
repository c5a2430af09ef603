//! Whether what is there now is what was confirmed, or the rest of it.

use std::collections::BTreeSet;

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
    let further = match serials {
        (Some(before), Some(after)) if before.lineage != after.lineage => {
            differences.push(format!(
                "the state has the lineage {}, and {} was confirmed",
                after.lineage, before.lineage
            ));
            false
        }
        (Some(before), Some(after)) if after.serial < before.serial => {
            differences.push(format!(
                "the state has the serial {}, and {} was confirmed",
                after.serial, before.serial
            ));
            false
        }
        (Some(before), Some(after)) => after.serial > before.serial,
        (None, Some(_)) => {
            differences.push("there is a state now, and there was none".to_owned());
            false
        }
        (_, None) => true,
    };
    differences.extend(of_content(confirmed, now, further));
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

/// What may be less than what was confirmed, once a run has begun to take it away, and never more.
fn of_content(confirmed: &Bound, now: &Bound, further: bool) -> Vec<String> {
    let lines = |bound: &Bound| -> BTreeSet<String> {
        let changes = bound.changes.iter().map(ToString::to_string);
        let outputs = bound.outputs.iter().map(ToString::to_string);
        let gone = bound.gone.iter().map(ToString::to_string);
        let forgotten = bound.forgotten.iter().map(|f| format!("{f}: forgotten"));
        changes
            .chain(outputs)
            .chain(gone)
            .chain(forgotten)
            .collect()
    };
    let (before, after) = (lines(confirmed), lines(now));
    // What was to be destroyed may be gone by now: an earlier run destroyed it, and could not save that.
    let taken: BTreeSet<String> = confirmed
        .changes
        .iter()
        .filter(|change| change.action.destroys())
        .map(|change| change.address.clone())
        .collect();
    let is_known = |line: &&String| {
        before.contains(*line)
            || now
                .gone
                .iter()
                .any(|gone| gone.to_string() == **line && taken.contains(&gone.address))
    };
    let mut differences: Vec<String> = after
        .iter()
        .filter(|line| !is_known(line))
        .map(|line| format!("{line}, which was not confirmed"))
        .collect();
    if !further {
        let lost = before.difference(&after);
        differences.extend(lost.map(|line| format!("no longer {line}")));
    }
    differences
}
