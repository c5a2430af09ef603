//! The named checks of a registry that need nothing but its file.

mod addresses;
mod meetings;
mod order;
#[cfg(test)]
mod tests;

use crate::findings::{Finding, Severity};
use crate::layout::Layout;
use crate::yaml::Place;

use super::{App, Registry, RegistryError, Stage};

/// A check: what it is called, how much its findings weigh, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// How much its findings weigh.
    pub severity: Severity,
    /// What it looks at, and why, for people.
    pub explanation: &'static str,
}

/// The file is YAML that Helm and this program read alike.
pub const YAML: Check = Check {
    name: "yaml",
    severity: Severity::Error,
    explanation: "The file is YAML that Helm's parser and one of YAML 1.2 read alike: UTF-8, one document, no key twice in one mapping, no tags \
        or directives, merge keys above the keys they share.",
};
/// The file has apps.
pub const SHAPE: Check = Check {
    name: "shape",
    severity: Severity::Error,
    explanation: "The file has `apps:` with one key for each app. A registry without an app is an error: nothing would be checked, and Argo CD \
        would be asked to prune everything.",
};
/// Each entry has what it needs, and nothing else.
pub const ENTRY: Check = Check {
    name: "entry",
    severity: Severity::Error,
    explanation: "An entry has `repo` (a URL) and `stages` (a mapping with at least one stage), and may have `path` (plain segments), `upstream` \
        (`repo` and `chart`) and `syncOptions`; a stage may have `autoSync`, `targetRevision`, and `version` exactly where the app has \
        `upstream`. Another key is likely a slip. Names become names in Kubernetes, so they are DNS labels; a name that YAML 1.1 reads as a \
        number, a truth value or a date needs quotes.",
};
/// Apps and stages are in order.
pub const ORDER: Check = Check {
    name: "order",
    severity: Severity::Warning,
    explanation: "The apps stand in alphabetical order, so that an entry is found, and two people who add one meet in the same place.",
};
/// A path ends as the app is called.
pub const PATH_NAME: Check = Check {
    name: "path-name",
    severity: Severity::Warning,
    explanation: "The last segment of an app's `path` is the app's key: who reads a state key or a folder then knows the app.",
};
/// No two entries deploy the same stage.
pub const SAME_STAGE: Check = Check {
    name: "same-stage",
    severity: Severity::Error,
    explanation: "No two entries deploy the same stage of the same path of the same repository: they would share one Terraform state.",
};
/// No app's path goes through another app's stage.
pub const PATH_THROUGH_STAGE: Check = Check {
    name: "path-through-stage",
    severity: Severity::Error,
    explanation: "No app lies at the path that another app's stage has in the state repository: `a` with the stage `b`, and an app at `a/b`, \
        meet in the folder `a/b/`, and the stage could not be retired.",
};
/// Names fit where they go.
pub const LONG_NAME: Check = Check {
    name: "long-name",
    severity: Severity::Error,
    explanation: "`<app>-<stage>` is a namespace, which has at most 63 characters.",
};
/// Two entries name the same objects.
pub const SAME_NAME: Check = Check {
    name: "same-name",
    severity: Severity::Error,
    explanation: "No two stages have the same `<app>-<stage>`: `a-b` with `c`, and `a` with `b-c`, would be one Application and one namespace.",
};
/// A repository is written in one way.
pub const REPO_URL: Check = Check {
    name: "repo-url",
    severity: Severity::Warning,
    explanation: "A repository's URL is written in one way everywhere: https, the host in small letters, `.git` at the end and no `/` behind it, \
        and the same spelling in each entry. Argo CD compares loosely; the state repository's paths do not.",
};
/// A revision that is tracked.
pub const TARGET_REVISION: Check = Check {
    name: "target-revision",
    severity: Severity::Warning,
    explanation: "`targetRevision` names a branch. A commit or a tag does not move, so no push reaches the stage; `HEAD` hides which branch is \
        tracked; a full ref (`refs/heads/…`) and a pattern (`v1.*`) are read by Argo CD alone.",
};

/// All of them.
pub const CHECKS: [&Check; 11] = [
    &YAML,
    &SHAPE,
    &ENTRY,
    &ORDER,
    &PATH_NAME,
    &SAME_STAGE,
    &PATH_THROUGH_STAGE,
    &LONG_NAME,
    &SAME_NAME,
    &REPO_URL,
    &TARGET_REVISION,
];

/// What came of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What was found, in the order of the file.
    pub findings: Vec<Finding>,
    /// How many entries there are.
    pub apps: usize,
    /// How many stages they have, as far as they can be read.
    pub stages: usize,
}

impl Check {
    fn finding(&self, place: Place, message: String) -> Finding {
        Finding {
            check: self.name,
            severity: self.severity,
            place,
            message,
        }
    }
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
    findings.extend(order::apps(&registry));
    findings.extend(order::paths(&registry));
    findings.extend(meetings::same_stage(&registry));
    findings.extend(meetings::paths_through_stages(&registry));
    findings.extend(meetings::names(&registry, layout));
    findings.extend(addresses::urls(&registry));
    findings.extend(addresses::revisions(&registry));
    findings.sort_by(|a, b| (a.place, a.check).cmp(&(b.place, b.check)));
    Checked {
        findings,
        apps: registry.claims().len(),
        stages: registry
            .claims()
            .iter()
            .map(|claim| claim.stages.len())
            .sum(),
    }
}

/// Every stage that could be read, with its app.
fn stages(registry: &Registry) -> impl Iterator<Item = (&App, &Stage)> {
    registry
        .apps()
        .flat_map(|app| app.stages.iter().map(move |stage| (app, stage)))
}
