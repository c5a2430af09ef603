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
        "{target} is not in the registry, so its namespace is not known: give --namespace, or name a stage that it has{}{faulty}",
        list_of(.registered)
    )]
    NotRegistered {
        /// The stage.
        target: String,
        /// The stages of the same repository that the registry has.
        registered: Vec<String>,
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
        "{entry} of the registry spells the repository {registered}, and its hook files the state under that spelling: run with --repo {registered}, or mend the registry"
    )]
    OtherSpelling {
        /// The entry.
        entry: String,
        /// Its spelling.
        registered: RepoName,
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

fn list_of(targets: &[String]) -> String {
    if targets.is_empty() {
        return " (of this repository it has none)".to_owned();
    }
    format!(" (of this repository: {})", targets.join(", "))
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
                faulty,
            });
        }
    };
    warnings.extend(faults);
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
mod tests {
    use super::*;

    const REGISTRY: &str = "\
apps:
  fieldnotes:
    repo: https://forge.example/example/FieldnotesDeploy.git
    stages:
      dev: {targetRevision: next}
      pinned: {targetRevision: 0123456789abcdef0123456789abcdef01234567}
      prd: {}
  headlamp:
    repo: https://forge.example/example/PlatformDeploy.git
    path: headlamp
    stages:
      prd: {}
  twin:
    repo: https://forge.example/example/PlatformDeploy
    path: headlamp
    stages:
      dev: {}
  twin-again:
    repo: git@forge.example:example/PlatformDeploy.git
    path: headlamp
    stages:
      dev: {}
  zeta:
    stages: {prd: {}}
  zulu:
    repo: https://forge.example/example/ZuluDeploy.git
    stages:
      dev: {autoSync: maybe}
      prd: {}
";

    fn draw_for(
        repo: &str,
        path: Option<&str>,
        stage: &str,
        given: Given,
    ) -> Result<Terms, TermsError> {
        let registry = Registry::parse(REGISTRY, "releases/values.yaml").unwrap();
        let known: RepoUrl = format!("https://forge.example/example/{repo}")
            .parse()
            .unwrap();
        let target = Target {
            repo: repo.parse().unwrap(),
            path: path.map(|p| p.parse().unwrap()),
            stage: stage.parse().unwrap(),
        };
        draw(&registry, &known, &target, given, &Layout::default())
    }

    #[test]
    fn a_registered_stage_is_planned_in_its_namespace_from_the_branch_that_it_tracks() {
        let terms = draw_for("FieldnotesDeploy", None, "dev", Given::default()).unwrap();
        assert_eq!(terms.namespace.as_str(), "fieldnotes-dev");
        assert_eq!(terms.tracked, Tracked::Branch("next".parse().unwrap()));
        assert_eq!(
            terms.tracked_from,
            "the targetRevision of apps.fieldnotes.stages.dev"
        );
        let terms = draw_for("PlatformDeploy", Some("headlamp"), "prd", Given::default()).unwrap();
        assert_eq!(terms.namespace.as_str(), "headlamp-prd");
        assert_eq!(terms.tracked, Tracked::Branch("main".parse().unwrap()));
    }

    #[test]
    fn a_stage_that_the_registry_pins_to_a_commit_is_planned_there() {
        let terms = draw_for("FieldnotesDeploy", None, "pinned", Given::default()).unwrap();
        let pinned = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
        assert_eq!(terms.tracked, Tracked::Commit(pinned));
    }

    #[test]
    fn a_path_that_is_not_registered_needs_a_namespace_even_where_the_repository_is() {
        let error = draw_for("PlatformDeploy", None, "prd", Given::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(
                "PlatformDeploy/prd is not in the registry, so its namespace is not known: give --namespace, or name a \
                 stage that it has (of this repository: PlatformDeploy/headlamp/prd, PlatformDeploy/headlamp/dev, \
                 PlatformDeploy/headlamp/dev)"
            ),
            "{text}"
        );
        assert!(
            text.contains("releases/values.yaml:23"),
            "the faulty entry may be the one: {text}"
        );
        let given = Given {
            namespace: Some("try".parse().unwrap()),
            branch: None,
        };
        let terms = draw_for("PlatformDeploy", None, "prd", given).unwrap();
        assert_eq!(terms.namespace.as_str(), "try");
    }

    #[test]
    fn a_repository_that_the_registry_spells_in_another_case_is_refused() {
        let error = draw_for("fieldnotesdeploy", None, "prd", Given::default()).unwrap_err();
        assert!(
            matches!(&error, TermsError::OtherSpelling { .. }),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("run with --repo FieldnotesDeploy"),
            "{error}"
        );
    }

    #[test]
    fn a_stage_whose_own_entry_is_faulty_is_refused_and_its_neighbour_is_not() {
        let error = draw_for("ZuluDeploy", None, "dev", Given::default()).unwrap_err();
        assert!(
            error.to_string().starts_with(
                "the registry's entry of ZuluDeploy/dev is faulty: releases/values.yaml:28"
            ),
            "{error}"
        );
        assert!(draw_for("ZuluDeploy", None, "prd", Given::default()).is_ok());
    }

    #[test]
    fn another_apps_faulty_entry_is_a_warning() {
        let terms = draw_for("FieldnotesDeploy", None, "prd", Given::default()).unwrap();
        assert_eq!(terms.warnings.len(), 2);
        assert!(
            terms.warnings[0].starts_with("releases/values.yaml:23"),
            "{:?}",
            terms.warnings
        );
    }

    #[test]
    fn a_stage_that_two_entries_deploy_needs_both_terms() {
        let error =
            draw_for("PlatformDeploy", Some("headlamp"), "dev", Given::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("apps.twin.stages.dev and apps.twin-again.stages.dev")
        );
        let given = Given {
            namespace: Some("twin-dev".parse().unwrap()),
            branch: Some("main".parse().unwrap()),
        };
        assert!(draw_for("PlatformDeploy", Some("headlamp"), "dev", given).is_ok());
    }

    #[test]
    fn a_namespace_other_than_the_registered_one_is_used_with_a_warning() {
        let given = Given {
            namespace: Some("fieldnotes-prod".parse().unwrap()),
            branch: None,
        };
        let terms = draw_for("FieldnotesDeploy", None, "prd", given).unwrap();
        assert!(terms.warnings[0].starts_with("--namespace fieldnotes-prod is not fieldnotes-prd"));
    }
}
