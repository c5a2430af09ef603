//! The judgement: what the repository holds in the end, beside what everybody said that they did.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use git2::{Commit, Repository, Sort};
use serde_json::Value;

use crate::ledger::Line;

/// Everything that is wrong.
pub type Faults = Vec<String>;

/// One state as one commit left it.
struct Version {
    lineage: String,
    serial: u64,
    operations: Vec<String>,
}

/// Whether every acknowledged write stands in the history of `main` once, every other at most once, and each state went
/// from one writer to the next without a break. The states that there are, and the faults.
pub fn history(repository: &Path, identity: &Path, lines: &[Line]) -> (Vec<String>, Faults) {
    let mut faults = Vec::new();
    let repository = Repository::open_bare(repository).unwrap();
    let mut walk = repository.revwalk().unwrap();
    walk.push_ref("refs/heads/main").unwrap();
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE).unwrap();
    let mut states: BTreeMap<String, Version> = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // The first commit holds no state.
    for id in walk.skip(1) {
        let commit = repository.find_commit(id.unwrap()).unwrap();
        let mut fault = |text: String| faults.push(format!("commit {}: {text}", commit.id()));
        let (key, document) = match change(&repository, &commit) {
            Ok(change) => change,
            Err(text) => {
                fault(text);
                continue;
            }
        };
        let version = match version(&document, identity) {
            Ok(version) => version,
            Err(text) => {
                fault(format!("{key} does not open: {text}"));
                continue;
            }
        };
        let message = commit.message().unwrap();
        let said = trailers(message);
        if !message.starts_with(&format!("Update {key}\n"))
            || said.get("Lineage") != Some(&version.lineage)
            || said.get("Serial") != Some(&version.serial.to_string())
        {
            fault(format!("its message tells of something else: {message:?}"));
        }
        let before = states.get(&key);
        let known = before.map_or(&[][..], |before| &before.operations);
        if let Some(before) = before {
            if before.lineage != version.lineage {
                fault(format!("{key} has become another state"));
            }
            if before.serial >= version.serial {
                fault(format!(
                    "the serial of {key} went from {} to {}",
                    before.serial, version.serial
                ));
            }
        }
        match version.operations.strip_prefix(known) {
            None => fault(format!(
                "an update of {key} is lost: {known:?} became {:?}",
                version.operations
            )),
            Some([]) => fault(format!("nothing was added to {key}")),
            Some(added) => {
                for operation in added {
                    *seen.entry(operation.clone()).or_default() += 1;
                }
                // A write that failed comes along with the next one of the same holder; nothing else does.
                if let [failed @ .., _] = added {
                    let all = failed
                        .iter()
                        .all(|operation| has(lines, &["failed", "refused"], operation));
                    if !all {
                        fault(format!("{added:?} were written to {key} at once"));
                    }
                }
            }
        }
        states.insert(key, version);
    }
    let of = |event: &str| -> BTreeSet<&str> {
        let lines = lines.iter().filter(|line| line[0] == event);
        lines.map(|line| line[1].as_str()).collect()
    };
    let intended = of("intent");
    for operation in of("written") {
        if !seen.contains_key(operation) {
            faults.push(format!("{operation} was acknowledged and is not there"));
        }
    }
    for (operation, times) in &seen {
        if *times != 1 || !intended.contains(operation.as_str()) {
            faults.push(format!("{operation} stands {times} times in the history"));
        }
    }
    (states.into_keys().collect(), faults)
}

fn has(lines: &[Line], events: &[&str], subject: &str) -> bool {
    lines
        .iter()
        .any(|line| line[1] == subject && events.contains(&line[0].as_str()))
}

/// The one file that the commit changes, and its content.
fn change(repository: &Repository, commit: &Commit<'_>) -> Result<(String, Vec<u8>), String> {
    if commit.parent_count() != 1 {
        return Err(format!("it has {} parents", commit.parent_count()));
    }
    let before = commit.parent(0).unwrap().tree().unwrap();
    let after = commit.tree().unwrap();
    let changed = repository
        .diff_tree_to_tree(Some(&before), Some(&after), None)
        .unwrap();
    let files: Vec<_> = changed.deltas().map(|delta| delta.new_file()).collect();
    let [file] = files.as_slice() else {
        return Err(format!("it changes {} files", files.len()));
    };
    let key = file.path().unwrap().to_str().unwrap().to_owned();
    match repository.find_blob(file.id()) {
        Ok(blob) => Ok((key, blob.content().to_vec())),
        Err(_) => Err(format!("it removes {key}")),
    }
}

fn trailers(message: &str) -> BTreeMap<String, String> {
    let trailers = git2::message_trailers_strs(message).unwrap();
    let pairs = trailers.iter();
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn version(document: &[u8], identity: &Path) -> Result<Version, String> {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|e| e.to_string());
    let mut state = read(document)?;
    if state.get("sops").is_some() {
        let file = identity.with_file_name("sealed.json");
        std::fs::write(&file, document).unwrap();
        let output = Command::new("sops")
            .args(["decrypt", "--input-type", "json", "--output-type", "json"])
            .arg(&file)
            .env("SOPS_AGE_KEY_FILE", identity)
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        state = read(&output.stdout)?;
    }
    let operations = state["outputs"]["operations"]["value"].as_array();
    let operations = operations.ok_or("it has no operations")?;
    Ok(Version {
        lineage: state["lineage"]
            .as_str()
            .ok_or("it has no lineage")?
            .to_owned(),
        serial: state["serial"].as_u64().ok_or("it has no serial")?,
        operations: operations
            .iter()
            .map(|operation| operation.as_str().unwrap_or_default().to_owned())
            .collect(),
    })
}

/// Whether no state ever had two holders: from the answer that gave the lock until it was asked to be given back, by the
/// holder itself or, where that was killed, for it.
pub fn holders(lines: &[Line]) -> Faults {
    let mut faults = Vec::new();
    let mut held: BTreeMap<&str, &str> = BTreeMap::new();
    for line in lines {
        match line.as_slice() {
            [event, id, key] if event == "locked" => {
                if let Some(other) = held.insert(key, id) {
                    faults.push(format!("{key} was given to {id} while {other} held it"));
                }
            }
            [event, id, key]
                if ["unlocking", "releasing"].contains(&event.as_str())
                    && held.get(key.as_str()) == Some(&id.as_str()) =>
            {
                held.remove(key.as_str());
            }
            [event, operation, key, ..] if event == "written" => {
                let id = operation.split('/').next();
                if held.get(key.as_str()).copied() != id {
                    faults.push(format!("{operation} was written to {key} without its lock"));
                }
            }
            _ => {}
        }
    }
    faults
}

/// Whether git itself finds the repository whole, and nothing is left in it but the states.
pub fn repository(repository: &Path) -> Faults {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(repository)
            .args(arguments)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let mut faults = Vec::new();
    let (clean, said) = git(&[
        "fsck",
        "--full",
        "--strict",
        "--no-dangling",
        "--no-progress",
    ]);
    if !clean || !said.is_empty() {
        faults.push(format!("git fsck: {said}"));
    }
    let (_, branches) = git(&["for-each-ref", "--format=%(refname)"]);
    if branches != "refs/heads/main\n" {
        faults.push(format!("these refs are left: {branches}"));
    }
    faults
}
