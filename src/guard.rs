//! The guard: whether a stage is deployed by nothing any more. Facts in, judgement out; only here a [`Cleared`] is made.
//!
//! It fails closed. A live Application that has to do with the target's repository is cleared by proof alone, and what hides an
//! entry of the registry ends the judgement.

mod application;
mod places;
mod reading;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::applications::{Application, Instance};
use crate::layout::Layout;
use crate::names::{ApplicationName, RepoUrl, StageName, Target, nearest};
use crate::registry::{Claim, Fault, Registry};

use application::Judged;
use places::Leads;

pub use words::Asker;

/// What is asked, and what is known beside the registry and the Applications.
pub struct Question<'a> {
    /// The stage that is to be destroyed.
    pub target: &'a Target,
    /// The addresses by which its repository is known.
    pub addresses: &'a [RepoUrl],
    /// The repository for people: `example/FieldnotesDeploy`.
    pub repo: &'a str,
    /// Where the registry is, for people: `ArgoCDDeploy's releases/values.yaml on main`.
    pub registry_place: &'a str,
    /// The estate's paths and names.
    pub layout: &'a Layout,
    /// What the deploy repository has in the folders of [`places_to_look`].
    pub looked: &'a BTreeMap<Look, Looked>,
    /// Applications of which the caller says that they do not deploy the target.
    pub not_deploying: &'a [ApplicationName],
    /// Who asks.
    pub asker: Asker,
}

impl Question<'_> {
    fn leads(&self, url: &str) -> Leads {
        places::leads(url, self.target, self.addresses)
    }
}

/// A folder of the target's repository at a revision as an Application names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Look {
    /// The branch, tag or commit; empty for the repository's own head.
    pub revision: String,
    /// The folder, with no slash at either end; empty for the root.
    pub folder: String,
}

/// What was found in such a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// The names of its files. A folder that is not there has none.
    Names(Vec<String>),
    /// It could not be looked into, for this reason.
    Unknown(String),
}

/// That the target is deployed by nothing that was looked at. Made by [`judge`] alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    target: Target,
    looked_at: LookedAt,
    lifted: Vec<Unproven>,
}

impl Cleared {
    /// The stage.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How much was looked at.
    pub fn looked_at(&self) -> LookedAt {
        self.looked_at
    }

    /// The Applications that were unproven, and of which the caller said that they do not deploy it.
    pub fn lifted(&self) -> &[Unproven] {
        &self.lifted
    }
}

/// How much was looked at, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookedAt {
    /// How many Argo CDs.
    pub instances: usize,
    /// How many Applications they have.
    pub applications: usize,
    /// How many of these deploy the target.
    pub matching: usize,
    /// Of how many it is not proven that they do not, those lifted by the caller left out.
    pub unproven: usize,
    /// How many were lifted by the caller.
    pub lifted: usize,
}

/// An Application in words, and in which Argo CD it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `<namespace>/<name>`.
    pub application: String,
    /// Its Argo CD, where several were looked at.
    pub instance: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// An Application of which nothing proves that it does not deploy the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// The Application.
    pub found: Found,
    /// Why, each to be read after "since".
    pub reasons: Vec<String>,
}

/// An entry of the registry that deploys the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `apps.<app>.stages.<stage>`.
    pub key: String,
    /// The repository's address, where it is another one of the same name.
    pub other_repo: Option<RepoUrl>,
}

/// Why a target is not cleared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is deployed, or may be.
    #[error("{}", words::deployed(.0))]
    Deployed(Box<Deployed>),
    /// An entry of the registry could not be read, so that it is not known what it deploys.
    #[error("{}", words::hidden(.faults, .place))]
    Hidden {
        /// What is wrong, each with its place.
        faults: Vec<Fault>,
        /// The registry.
        place: String,
    },
    /// The caller said of an Application that it does not deploy the target, and it is none that is unproven.
    #[error("{}", words::not_unproven(.application, .near))]
    NotUnproven {
        /// The Application.
        application: ApplicationName,
        /// Applications with a name like it.
        near: Vec<String>,
    },
}

/// What deploys a target, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// The stage.
    pub target: Target,
    /// The repository for people.
    pub repo: String,
    /// Where the registry is, for people.
    pub registry_place: String,
    /// Who asks.
    pub asker: Asker,
    /// The registry entries.
    pub entries: Vec<Entry>,
    /// The Applications that deploy it.
    pub matching: Vec<Found>,
    /// The Applications of which nothing proves that they do not.
    pub unproven: Vec<Unproven>,
    /// What the caller lifted, and what is lifted by nobody.
    pub not_lifted: Vec<String>,
    /// How much was looked at.
    pub looked_at: LookedAt,
}

/// The folders that must be looked into before [`judge`] can clear anything.
pub fn places_to_look(question: &Question<'_>, instances: &[Instance]) -> BTreeSet<Look> {
    let applications = instances.iter().flat_map(|i| &i.applications);
    applications
        .filter(|application| application::relation(application, question) != Leads::Elsewhere)
        .flat_map(|application| application::rendered(application, question))
        .filter_map(|(_, look)| look)
        .collect()
}

/// Judges whether anything deploys the target.
///
/// # Errors
/// When a fault of the registry hides what an entry deploys, when the registry or a live Application deploys the target,
/// when it is not proven of a live Application that it does not, and when the caller lifts an Application that is not
/// unproven.
pub fn judge(
    question: &Question<'_>,
    registry: &Registry,
    instances: &[Instance],
) -> Result<Cleared, Refusal> {
    let hiding = registry.faults().iter().filter(|fault| fault.hides);
    let hiding: Vec<Fault> = hiding.cloned().collect();
    if !hiding.is_empty() {
        return Err(Refusal::Hidden {
            faults: hiding,
            place: question.registry_place.to_owned(),
        });
    }
    let entries: Vec<Entry> = registry
        .claims()
        .iter()
        .filter_map(|claim| entry(claim, question))
        .collect();
    let stages = stages_of_app(registry, question);
    let mut matching = Vec::new();
    let mut unproven = Vec::new();
    for (instance, application) in each(instances) {
        let found = || Found {
            application: application.full_name(),
            instance: (instances.len() > 1).then(|| instance.name.clone()),
            deleting: application.deleting,
        };
        match application::judge(application, question, &stages) {
            Judged::Cleared => {}
            Judged::Deploys => matching.push(found()),
            Judged::Unproven(reasons) => unproven.push(Unproven {
                found: found(),
                reasons,
            }),
        }
    }
    let named = |name: &ApplicationName, found: &Found| found.application == name.as_str();
    let stray: Vec<&ApplicationName> = question
        .not_deploying
        .iter()
        .filter(|name| !unproven.iter().any(|u| named(name, &u.found)))
        .collect();
    let (lifted, unproven): (Vec<Unproven>, Vec<Unproven>) = unproven
        .into_iter()
        .partition(|u| question.not_deploying.iter().any(|n| named(n, &u.found)));
    let looked_at = LookedAt {
        instances: instances.len(),
        applications: each(instances).count(),
        matching: matching.len(),
        unproven: unproven.len(),
        lifted: lifted.len(),
    };
    if !entries.is_empty() || !matching.is_empty() || !unproven.is_empty() {
        return Err(Refusal::Deployed(Box::new(Deployed {
            target: question.target.clone(),
            repo: question.repo.to_owned(),
            registry_place: question.registry_place.to_owned(),
            asker: question.asker,
            entries,
            matching,
            unproven,
            not_lifted: stray.iter().map(ToString::to_string).collect(),
            looked_at,
        })));
    }
    if let Some(application) = stray.first() {
        let all = each(instances).map(|(_, application)| application.full_name());
        return Err(Refusal::NotUnproven {
            application: (*application).clone(),
            near: nearest(application.as_str(), all),
        });
    }
    Ok(Cleared {
        target: question.target.clone(),
        looked_at,
        lifted,
    })
}

fn each(instances: &[Instance]) -> impl Iterator<Item = (&Instance, &Application)> {
    instances
        .iter()
        .flat_map(|instance| instance.applications.iter().map(move |a| (instance, a)))
}

/// The stages that the registry has of the target's app.
fn stages_of_app(registry: &Registry, question: &Question<'_>) -> BTreeSet<StageName> {
    let of_app = |claim: &&Claim| {
        let there = |repo: &RepoUrl| question.leads(repo.as_str()) == Leads::There;
        claim.path == question.target.path && claim.repo.as_ref().is_some_and(there)
    };
    let claims = registry.claims().iter().filter(of_app);
    claims
        .flat_map(|claim| claim.stages.iter().cloned())
        .collect()
}

/// The registry's entry, where it deploys the target. A repository of the same name elsewhere has its states at the same
/// place.
fn entry(claim: &Claim, question: &Question<'_>) -> Option<Entry> {
    let target = question.target;
    let repo = claim.repo.as_ref()?;
    let there = match question.leads(repo.as_str()) {
        Leads::Elsewhere => return None,
        Leads::Perhaps => false,
        Leads::There => true,
    };
    let deploys = claim.path == target.path && claim.stages.contains(&target.stage);
    deploys.then(|| Entry {
        key: format!("apps.{}.stages.{}", claim.app, target.stage),
        other_repo: (!there).then(|| repo.clone()),
    })
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
