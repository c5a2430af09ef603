//! On which terms a stage is planned: its namespace and the branch that it tracks, from the registry or from the caller.

use crate::layout::{Layout, LayoutError};
use crate::names::{
    BranchName, CommitPrefix, CommitSha, NameError, Namespace, RepoName, RepoUrl, Target,
};
use crate::registry::{App, Fault, Registry, Stage};

/// The branch of a stage whose entry names none.
const DEFAULT_BRANCH: &str = "main";

/// What the caller gave instead of the registry's values.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--namespace`.
    pub namespace: Option<Namespace>,
    /// `--branch`.
    pub branch: Option<BranchName>,
}

/// What a stage tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// A branch, whose head is deployed.
    Branch(BranchName),
    /// One commit, which the registry pins.
    Commit(CommitSha),
}

/// The terms, each with where it came from in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What Terraform gets as `var.namespace`.
    pub namespace: Namespace,
    /// Its origin.
    pub namespace_from: String,
    /// What is planned when no revision is given, and from where one that is given must be reachable.
    pub tracked: Tracked,
    /// Its origin.
    pub tracked_from: String,
    /// What the caller should know besides.
    pub warnings: Vec<String>,
}

/// Terms that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// Not in the registry, and no namespace given.
    #[error(
        "{target} is not in the registry, so its namespace is not known: name a stage that it has{}, or give --namespace{faulty}",
        list_of(.registered, known_url)
    )]
    NotRegistered {
        /// The stage.
        target: String,
        /// The stages of the same repository that the registry has.
        registered: Vec<String>,
        /// The URL by which the repository was looked for.
        known_url: RepoUrl,
        /// The entries that could not be read, any of which may be the one.
        faulty: String,
    },
    /// The stage's own entry is faulty.
    #[error("the registry's entry of {target} is faulty: {fault}")]
    Faulty {
        /// The stage.
        target: String,
        /// Where and why.
        fault: String,
    },
    /// More than one entry deploys it.
    #[error("the registry deploys {target} more than once, by {}: give --namespace and --branch", entries.join(" and "))]
    Ambiguous {
        /// The stage.
        target: String,
        /// The entries.
        entries: Vec<String>,
    },
    /// The registry has another spelling, under which the hook files the state.
    #[error(
        "{entry} of the registry spells the repository {registered}, the forge {spelled}, and its hook files the state under the registry's spelling: mend repo in the registry"
    )]
    OtherSpelling {
        /// The entry.
        entry: String,
        /// Its spelling.
        registered: RepoName,
        /// The forge's.
        spelled: RepoName,
    },
    /// The layout makes no namespace of app and stage.
    #[error("the namespace of {target} cannot be made")]
    Namespace {
        /// The stage.
        target: String,
        /// Why.
        #[source]
        source: Box<LayoutError>,
    },
    /// The entry's `targetRevision` is no branch and no commit.
    #[error("the targetRevision {value:?} of {entry} is not understood: give --branch")]
    TargetRevision {
        /// The entry.
        entry: String,
        /// Its value.
        value: String,
        /// Why it is no branch.
        #[source]
        source: Box<NameError>,
    },
    /// A revision without a branch from which it has to be reachable.
    #[error(
        "the registry pins the stage to one commit, so there is no branch that {prefix} has to be on: give --branch with --revision"
    )]
    NoBranch {
        /// The revision that was given.
        prefix: CommitPrefix,
    },
}

fn list_of(targets: &[String], known_url: &RepoUrl) -> String {
    if targets.is_empty() {
        return format!(" (none of its entries has the repository {known_url})");
    }
    format!(" ({})", targets.join(", "))
}

/// Draws the terms of `target`, whose repository the registry knows as `known_url`.
pub fn draw(
    registry: &Registry,
    known_url: &RepoUrl,
    target: &Target,
    given: Given,
    layout: &Layout,
) -> Result<Terms, TermsError> {
    let entries = registry.find(known_url, target.path.as_ref(), &target.stage);
    let mut warnings = Vec::new();
    let faults: Vec<String> = registry.faults().iter().map(ToString::to_string).collect();
    let entry = match entries.as_slice() {
        [] => None,
        [(app, stage)] => Some((*app, *stage)),
        [first, ..] if given.namespace.is_some() && given.branch.is_some() => Some(*first),
        several => {
            return Err(TermsError::Ambiguous {
                target: target.to_string(),
                entries: several
                    .iter()
                    .map(|(app, stage)| name(app, stage))
                    .collect(),
            });
        }
    };
    if entry.is_none()
        && let Some(fault) = fault_of_stage(registry, known_url, target)
    {
        return Err(TermsError::Faulty {
            target: target.to_string(),
            fault: fault.to_string(),
        });
    }
    if let Some((app, stage)) = entry
        && let Ok(registered) = app.repo.repo_name()
        && registered != target.repo
    {
        return Err(TermsError::OtherSpelling {
            entry: name(app, stage),
            registered,
            spelled: target.repo.clone(),
        });
    }
    let (namespace, namespace_from) = match (given.namespace, entry) {
        (Some(namespace), entry) => {
            if let Some((app, stage)) = entry
                && let Ok(registered) = layout.namespace(&app.name, &stage.name)
                && registered != namespace
            {
                warnings.push(format!(
                    "--namespace {namespace} is not {registered}, the namespace of {}: names derived from it are planned \
                     beside the live ones",
                    name(app, stage)
                ));
            }
            (namespace, "from --namespace".to_owned())
        }
        (None, Some((app, stage))) => {
            let namespace = layout.namespace(&app.name, &stage.name);
            let namespace = namespace.map_err(|source| TermsError::Namespace {
                target: target.to_string(),
                source: Box::new(source),
            })?;
            (namespace, format!("of the registry's {}", name(app, stage)))
        }
        (None, None) => {
            let faulty = match faults.as_slice() {
                [] => String::new(),
                faults => format!("; entries that could not be read: {}", faults.join("; ")),
            };
            return Err(TermsError::NotRegistered {
                target: target.to_string(),
                registered: stages_of(registry, known_url, target),
                known_url: known_url.clone(),
                faulty,
            });
        }
    };
    warnings.extend(faults);
    if let Some(branch) = &given.branch
        && let Some((app, stage)) = entry
    {
        let registered = stage.target_revision.as_deref().unwrap_or(DEFAULT_BRANCH);
        if registered != branch.as_str() {
            warnings.push(format!(
                "--branch {branch} is not {registered}, which {} tracks: no sync takes this plan's commit",
                name(app, stage)
            ));
        }
    }
    let (tracked, tracked_from) = track(given.branch, entry)?;
    Ok(Terms {
        namespace,
        namespace_from,
        tracked,
        tracked_from,
        warnings,
    })
}

/// Every stage that the registry deploys from the target's repository, as targets.
fn stages_of(registry: &Registry, known_url: &RepoUrl, target: &Target) -> Vec<String> {
    let apps = registry
        .apps()
        .filter(|app| app.repo.same_repository(known_url));
    apps.flat_map(|app| {
        app.stages.iter().map(|stage| {
            let target = Target {
                repo: target.repo.clone(),
                path: app.path.clone(),
                stage: stage.name.clone(),
            };
            target.to_string()
        })
    })
    .collect()
}

/// The fault that hides the very stage: its app is read, the stage is not.
fn fault_of_stage<'r>(
    registry: &'r Registry,
    known_url: &RepoUrl,
    target: &Target,
) -> Option<&'r Fault> {
    let deploys = |app: &&App| app.repo.same_repository(known_url) && app.path == target.path;
    registry.apps().filter(deploys).find_map(|app| {
        registry.faults().iter().find(|fault| {
            fault.app == app.name.as_str() && fault.stage.as_deref() == Some(target.stage.as_str())
        })
    })
}

fn track(
    given: Option<BranchName>,
    entry: Option<(&App, &Stage)>,
) -> Result<(Tracked, String), TermsError> {
    if let Some(branch) = given {
        return Ok((Tracked::Branch(branch), "from --branch".to_owned()));
    }
    let revision = entry.and_then(|(app, stage)| {
        let revision = stage.target_revision.as_deref()?;
        Some((name(app, stage), revision))
    });
    let (entry, text, from) = match revision {
        Some((entry, text)) => {
            let from = format!("the targetRevision of {entry}");
            (entry, text, from)
        }
        None => (
            String::new(),
            DEFAULT_BRANCH,
            "the branch where the registry names none".to_owned(),
        ),
    };
    if let Ok(commit) = text.parse::<CommitSha>() {
        return Ok((Tracked::Commit(commit), from));
    }
    match text.parse() {
        Ok(branch) => Ok((Tracked::Branch(branch), from)),
        Err(source) => Err(TermsError::TargetRevision {
            entry,
            value: text.to_owned(),
            source: Box::new(source),
        }),
    }
}

/// An entry as its path in the registry: `apps.<app>.stages.<stage>`.
fn name(app: &App, stage: &Stage) -> String {
    format!("apps.{}.stages.{}", app.name, stage.name)
}

#[cfg(test)]
mod tests;
