//! What the registry promises of live Applications: that each stage has its own, set to what its entry says, and that there
//! are no others.

mod fields;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::applications::Instance;
use crate::applications::observed::Observed;
use crate::findings::{At, Difference, Finding};
use crate::layout::Layout;
use crate::names::{AppName, Namespace, RepoUrl};
use crate::registry::{App, Registry, Stage};

use super::{APPLICATION, PRUNING, UNKNOWN_APPLICATION, stages};
use fields::{found, wanted};

/// The branch that a stage tracks where its entry names none.
pub const DEFAULT_BRANCH: &str = "main";
/// The file in a stage's configuration folder that its chart takes values from.
pub const VALUES_FILE: &str = "values.yaml";

/// What the Applications of a registry have in common; what is `None` is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedApplications {
    /// Where they are.
    pub namespace: Option<Namespace>,
    /// The name of the Application that makes them all of the registry.
    pub parent: Option<String>,
    /// Their project.
    pub project: Option<String>,
    /// The cluster that they deploy to.
    pub destination: Option<Destination>,
    /// `spec.syncPolicy.retry` of a stage that Argo CD syncs by itself.
    pub retry: Option<Map<String, Value>>,
    /// Helm parameters beside those of the hook.
    pub parameters: BTreeMap<String, String>,
}

/// A cluster, as an Application names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// By its address.
    Server(String),
    /// By its name in Argo CD.
    Name(String),
}

impl ExpectedApplications {
    /// The fields that are not compared, since the settings say nothing of them.
    pub fn left_out(&self) -> Vec<&'static str> {
        let fields = [
            ("project", self.project.is_none()),
            ("destination", self.destination.is_none()),
            ("retry", self.retry.is_none()),
        ];
        let left_out = fields.into_iter().filter(|(_, missing)| *missing);
        left_out.map(|(field, _)| field).collect()
    }
}

/// The Applications that a registry promises, those that are there, and which is whose.
pub struct Matched<'a> {
    /// Each stage with its Application, in the order of the registry.
    pub stages: Vec<(&'a App, &'a Stage, &'a Observed)>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Compares what the registry promises with what there is.
pub fn compare<'a>(
    registry: &'a Registry,
    instances: &'a [Instance<Observed>],
    layout: &Layout,
    expected: &ExpectedApplications,
) -> Matched<'a> {
    let all = || instances.iter().flat_map(|instance| &instance.applications);
    let here = |observed: &&Observed| {
        let namespace = expected.namespace.as_ref().map(Namespace::as_str);
        namespace.is_none_or(|namespace| namespace == observed.application.namespace)
    };
    let mut by_name: BTreeMap<&str, Vec<&Observed>> = BTreeMap::new();
    for observed in all().filter(here) {
        let name = observed.application.name.as_str();
        by_name.entry(name).or_default().push(observed);
    }
    let parent = expected
        .parent
        .as_deref()
        .and_then(|parent| by_name.get(parent)?.first().copied());
    let mut matched = Matched {
        stages: Vec::new(),
        findings: Vec::new(),
    };
    let mut promised = BTreeSet::new();
    for (app, stage) in stages(registry) {
        let name = layout.application(&app.name, &stage.name);
        let found = by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        promised.insert(name.clone());
        match found {
            // Nothing can be called so.
            [] if layout.namespace(&app.name, &stage.name).is_err() => {}
            [] => matched.findings.push(missing(app, stage, &name, expected, parent)),
            [observed] => {
                matched.findings.extend(differs(app, stage, observed, layout, expected));
                matched.stages.push((app, stage, observed));
            }
            several => matched.findings.push(APPLICATION.finding(
                stage.place,
                format!(
                    "{}: several Applications are called so: {}; name the registry's namespace as applications.expected.namespace in the settings",
                    entry(app, stage),
                    names(several)
                ),
            )),
        }
    }
    // An entry that is faulty promises something, and nobody knows what.
    for claim in registry.claims() {
        if let Ok(app) = claim.app.parse::<AppName>() {
            let names = claim
                .stages
                .iter()
                .map(|stage| layout.application(&app, stage));
            promised.extend(names);
        }
    }
    promised.extend(expected.parent.clone());
    let unknown = all()
        .filter(|observed| !here(observed) || !promised.contains(&observed.application.name))
        .filter_map(|observed| unknown(observed, registry, expected, parent));
    matched.findings.extend(unknown);
    matched
}

fn entry(app: &App, stage: &Stage) -> String {
    format!("apps.{}.stages.{}", app.name, stage.name)
}

fn names(applications: &[&Observed]) -> String {
    let names: Vec<String> = applications
        .iter()
        .map(|observed| observed.application.full_name())
        .collect();
    names.join(", ")
}

fn missing(
    app: &App,
    stage: &Stage,
    name: &str,
    expected: &ExpectedApplications,
    parent: Option<&Observed>,
) -> Finding {
    let at = match &expected.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    let why = match parent {
        Some(parent) => format!(
            "; {} makes it when it is synced{}",
            parent.application.full_name(),
            trouble(parent)
        ),
        None => "; it comes when the registry's own Application is synced".to_owned(),
    };
    let message = format!("{}: there is no Application {at}{why}", entry(app, stage));
    APPLICATION.finding(stage.place, message)
}

/// What an Application complains of, as the end of a sentence.
fn trouble(observed: &Observed) -> String {
    let status = &observed.status;
    let mut troubles: Vec<String> = status
        .conditions
        .iter()
        .map(|condition| format!("{}: {}", condition.kind, condition.message))
        .collect();
    if let Some(operation) = &status.operation
        && matches!(operation.phase.as_str(), "Failed" | "Error")
    {
        troubles.push(format!(
            "its last sync ended as {}: {}",
            operation.phase, operation.message
        ));
    }
    match troubles.as_slice() {
        [] => String::new(),
        troubles => format!(" ({})", troubles.join("; ")),
    }
}

fn unknown(
    observed: &Observed,
    registry: &Registry,
    expected: &ExpectedApplications,
    parent: Option<&Observed>,
) -> Option<Finding> {
    let application = &observed.application;
    let at = At::Object(format!("the Application {}", application.full_name()));
    let child = parent.and_then(|parent| {
        let mut children = parent.status.children.iter();
        children.find(|child| {
            child.name == application.name && child.namespace == application.namespace
        })
    });
    if let (Some(child), Some(parent)) = (child, parent) {
        let parent = parent.application.full_name();
        let message = match child.waits_for_pruning {
            true => format!(
                "it has no entry in the registry any more and waits for pruning: sync {parent} with Prune, or put the entry back"
            ),
            false => format!(
                "it has no entry in the registry, and {parent} has not noticed yet: refresh {parent}, then sync it with Prune"
            ),
        };
        return Some(PRUNING.finding(at, message));
    }
    let of_project = expected.project.as_ref() == Some(&observed.project);
    let deploys = registry.claims().iter().find(|claim| {
        let repo = claim.repo.as_ref();
        repo.is_some_and(|repo| sources(observed, repo))
    });
    let why = match (of_project, deploys) {
        (_, Some(claim)) => format!("it deploys from the repository of apps.{}", claim.app),
        (true, None) => format!("it is in the project {}", observed.project),
        (false, None) => return None,
    };
    Some(UNKNOWN_APPLICATION.finding(
        at,
        format!("no entry of the registry promises it, and {why}: delete it if nobody needs it, or give it an entry"),
    ))
}

/// Whether an Application has a source in this repository.
fn sources(observed: &Observed, repo: &RepoUrl) -> bool {
    let mut sources = observed.application.sources.iter();
    sources.any(|source| {
        let url: Option<RepoUrl> = source.repo_url.parse().ok();
        url.is_some_and(|url| url.same_repository(repo))
    })
}

/// What of a stage's Application is not as the entry promises.
fn differs(
    app: &App,
    stage: &Stage,
    observed: &Observed,
    layout: &Layout,
    expected: &ExpectedApplications,
) -> Option<Finding> {
    let name = observed.application.full_name();
    if observed.application.deleting {
        let message = format!(
            "{}: the Application {name} is being deleted; wait until it is gone, then sync the registry's Application, which makes it anew",
            entry(app, stage)
        );
        return Some(APPLICATION.finding(stage.place, message));
    }
    let wanted = wanted(app, stage, layout, expected);
    let found = found(observed, expected);
    let differences: Vec<Difference> = wanted
        .keys()
        .chain(found.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|field| wanted.get(*field) != found.get(*field))
        .map(|field| Difference {
            field: field.clone(),
            wanted: wanted.get(field).cloned(),
            found: found.get(field).cloned(),
        })
        .collect();
    if differences.is_empty() {
        return None;
    }
    let fields = match differences.len() {
        1 => "1 field".to_owned(),
        many => format!("{many} fields"),
    };
    let mut finding = APPLICATION.finding(
        stage.place,
        format!(
            "{}: the Application {name} is not what this entry promises, in {fields}; sync the registry's Application, or change the entry",
            entry(app, stage)
        ),
    );
    finding.differences = differences;
    Some(finding)
}

#[cfg(test)]
mod tests;
