//! The guard's sentences.

use crate::names::ApplicationName;
use crate::registry::Fault;

use super::{Deployed, Entry, Found, LookedAt, Unproven};

/// Who asks, for the sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A build of a pipeline.
    Build,
    /// A person.
    Person,
}

impl Asker {
    fn this(self) -> &'static str {
        match self {
            Asker::Build => "This build",
            Asker::Person => "This run",
        }
    }
}

impl std::fmt::Display for LookedAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LookedAt {
            instances,
            applications,
            matching,
            unproven,
            lifted,
        } = self;
        let applications = counted(*applications, "Application");
        let instances = counted(*instances, "instance");
        write!(
            f,
            "{applications} in {instances}, {matching} match, {unproven} unproven"
        )?;
        if *lifted > 0 {
            write!(f, ", {lifted} lifted by --not-deploying")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.application)?;
        if let Some(instance) = &self.instance {
            write!(f, " of {instance}")?;
        }
        if self.deleting {
            f.write_str(", which is being deleted")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.key)?;
        match &self.other_repo {
            Some(url) => write!(f, " (of {url}, whose states lie at the same place)"),
            None => Ok(()),
        }
    }
}

pub(super) fn deployed(found: &Deployed) -> String {
    let Deployed { target, repo, .. } = found;
    let repo = match &target.path {
        Some(path) => format!("{repo}/{path}"),
        None => repo.clone(),
    };
    let stage = &target.stage;
    let this = found.asker.this();
    let mut sentences = Vec::new();
    let mut by = Vec::new();
    if !found.entries.is_empty() {
        let word = plural(&found.entries, "entry", "entries");
        let entries = listed(&found.entries);
        let place = &found.registry_place;
        by.push(format!("the registry {word} {entries} in {place}"));
    }
    if !found.matching.is_empty() {
        let word = plural(&found.matching, "Application", "Applications");
        by.push(format!("the live {word} {}", listed(&found.matching)));
    }
    if by.is_empty() {
        sentences.push(format!("{stage} of {repo} may still be deployed."));
    } else {
        sentences.push(format!(
            "{stage} of {repo} is still deployed, by {}. {this} cleans up after an undeployed stage: delete its registry entry \
             and prune its Application first.",
            by.join(" and ")
        ));
    }
    sentences.extend(found.unproven.iter().map(unproven));
    if !found.not_lifted.is_empty() {
        sentences.push(format!(
            "--not-deploying lifts an unproven Application alone, and {} {} none.",
            found.not_lifted.join(" and "),
            plural(&found.not_lifted, "is", "are"),
        ));
    }
    sentences.join(" ")
}

fn unproven(unproven: &Unproven) -> String {
    let Unproven { found, reasons } = unproven;
    format!(
        "Nothing proves that the live Application {found} deploys something else, since {}: prune it, or add --not-deploying {} if \
         it has nothing to do with this stage.",
        reasons.join(" and "),
        found.application
    )
}

pub(super) fn hidden(faults: &[Fault], place: &str) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!(
        "{place} does not tell everything that it deploys, so nothing is destroyed until it does: {}",
        faults.join("; ")
    )
}

pub(super) fn not_unproven(application: &ApplicationName, near: &[String]) -> String {
    if near.iter().any(|name| name == application.as_str()) {
        return format!(
            "--not-deploying {application} is not needed, since that Application deploys something else: leave it out"
        );
    }
    let near = match near {
        [] => String::new(),
        near => format!("; names near it: {}", near.join(", ")),
    };
    format!(
        "--not-deploying {application} names no live Application: mend the name, or leave it out{near}"
    )
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn plural<'w, T>(items: &[T], one: &'w str, several: &'w str) -> &'w str {
    match items {
        [_] => one,
        _ => several,
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
