//! The live Applications against what the registry promises, and whether each stage is ready.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};

use crate::applications::Instance;
use crate::applications::observed::Observed;
use crate::estate::live::{self, LiveError};
use crate::findings::{Check, Skipped};
use crate::forge::Forge;
use crate::names::{CommitPrefix, CommitSha, RepoName, RepoUrl};
use crate::registry::Registry;
use crate::registry::check::promise::compare;
use crate::registry::check::readiness::{
    self, Comparison, Deployed, Heads, Readiness, branch, judge, questions,
};
use crate::registry::check::{APPLICATION, PRUNING, READINESS, UNKNOWN_APPLICATION};
use crate::report;
use crate::settings::Settings;

use super::{AT_ONCE, Part};

/// The checks of this part.
const OWN: [&Check; 4] = [&APPLICATION, &UNKNOWN_APPLICATION, &PRUNING, &READINESS];

/// How a stage is, for programs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct StageState {
    app: String,
    stage: String,
    application: String,
    /// Nothing where it is not known.
    ready: Option<bool>,
    reasons: Vec<String>,
}

/// Reads the live Applications and judges them. What cannot be read is told as a failure, and its checks are skipped.
pub(super) async fn look(
    registry: &Registry,
    settings: &Settings,
    forge: &Forge,
) -> (Part, Vec<Instance<Observed>>) {
    let instances = match read(settings).await {
        Ok(instances) => instances,
        Err(error) => return (Part::unread(&OWN, error, LiveError::outcome), Vec::new()),
    };
    let mut part = Part::default();
    let expected = &settings.expected;
    part.checks.extend([&APPLICATION, &UNKNOWN_APPLICATION]);
    let all = instances.iter().map(|instance| instance.applications.len());
    part.counts.push(("Applications", all.sum()));
    match &expected.parent {
        Some(_) => part.checks.push(&PRUNING),
        None => part.skipped.push(Skipped {
            check: &PRUNING,
            reason: "it is not known which Application makes those of the registry: set applications.expected.parent".to_owned(),
        }),
    }
    let left_out = expected.left_out();
    if !left_out.is_empty() {
        part.skipped.push(Skipped {
            check: &APPLICATION,
            reason: format!(
                "{} not compared: set applications.expected.{}",
                match left_out.as_slice() {
                    [one] => format!("{one} is"),
                    several => format!("{} are", several.join(", ")),
                },
                left_out.join(" and applications.expected.")
            ),
        });
    }
    let matched = compare(registry, &instances, &settings.layout, expected);
    part.findings.extend(matched.findings);
    ready(&mut part, &matched.stages, forge, settings).await;
    (part, instances)
}

async fn read(settings: &Settings) -> Result<Vec<Instance<Observed>>, LiveError> {
    live::read(live::of(settings)?, settings, Observed::read).await
}

/// Judges whether each stage is ready, by the heads of the deploy repositories.
async fn ready(part: &mut Part, deployed: &[Deployed<'_>], forge: &Forge, settings: &Settings) {
    let mut heads = heads(deployed, forge).await;
    heads.same = same(questions(deployed, &heads, &settings.layout), forge, &heads).await;
    let mut count = 0;
    let mut unknown = BTreeSet::new();
    let mut states = Vec::new();
    for one in deployed {
        let (app, stage, observed) = one;
        let (ready, reasons) = match judge(*one, &heads, &settings.layout) {
            Readiness::Ready => (Some(true), Vec::new()),
            Readiness::NotReady(reasons) => {
                part.findings.push(readiness::finding(*one, &reasons));
                (Some(false), reasons)
            }
            Readiness::Unknown(why) => {
                unknown.insert(why.clone());
                (None, vec![why])
            }
        };
        count += usize::from(ready == Some(true));
        states.push(StageState {
            app: app.name.to_string(),
            stage: stage.name.to_string(),
            application: observed.application.full_name(),
            ready,
            reasons,
        });
    }
    part.checks.push(&READINESS);
    let skipped = unknown.into_iter().map(|why| Skipped {
        check: &READINESS,
        reason: format!("of some stages nothing can be said: {why}"),
    });
    part.skipped.extend(skipped);
    report::heading(
        "ready",
        format_args!("{count} of {} stage(s) with an Application", deployed.len()),
    );
    part.details.push(("readiness", serde_json::json!(states)));
}

/// The heads of all branches that the stages track.
async fn heads(deployed: &[Deployed<'_>], forge: &Forge) -> Heads {
    let branches: BTreeSet<(&RepoUrl, &str)> = deployed
        .iter()
        .map(|(app, stage, _)| (&app.repo, branch(stage)))
        .collect();
    let asked = branches.into_iter().map(|(url, branch)| async move {
        let key = (url.to_string(), branch.to_owned());
        (key, head(forge, url, branch).await)
    });
    let heads: BTreeMap<_, _> = stream::iter(asked)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    Heads {
        heads,
        same: BTreeMap::new(),
    }
}

/// The repository of the forge that an entry's URL leads to.
fn of_forge(forge: &Forge, url: &RepoUrl) -> Result<RepoName, String> {
    let repo = url.repo_name().map_err(|error| report::one_line(&error))?;
    match forge.known_url(&repo).same_repository(url) {
        true => Ok(repo),
        false => Err(format!("{url} is not on the forge of the settings")),
    }
}

async fn head(forge: &Forge, url: &RepoUrl, branch: &str) -> Result<String, String> {
    let repo = of_forge(forge, url)?;
    let commits = forge.revision(&repo, branch).await;
    let commits = commits.map_err(|error| report::one_line(&error))?;
    let mut commits = commits.into_iter();
    match (commits.next(), commits.next()) {
        (Some(commit), None) => Ok(commit.to_string()),
        (None, _) => Err(format!("{repo} has no branch, tag or commit {branch}")),
        (Some(_), Some(_)) => Err(format!("{branch} of {repo} can mean several commits")),
    }
}

/// Whether two commits have the same in some folders, for each question.
async fn same(
    questions: Vec<Comparison>,
    forge: &Forge,
    heads: &Heads,
) -> BTreeMap<Comparison, bool> {
    let asked = questions.into_iter().map(|question| async move {
        let same = is_same(&question, forge, heads).await;
        (question, same == Some(true))
    });
    stream::iter(asked)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Nothing where it cannot be found out: the stage is then told as not ready, with the commits.
async fn is_same(question: &Comparison, forge: &Forge, heads: &Heads) -> Option<bool> {
    let url: RepoUrl = question.repo.parse().ok()?;
    let repo = of_forge(forge, &url).ok()?;
    let head = heads
        .heads
        .get(&(question.repo.clone(), question.branch.clone()))?;
    let head: CommitSha = head.as_ref().ok()?.parse().ok()?;
    let commit: CommitPrefix = question.commit.parse().ok()?;
    let commit = commit.full()?;
    for folder in &question.folders {
        let there = forge.tree_of(&repo, &head, folder).await.ok()?;
        let then = forge.tree_of(&repo, &commit, folder).await.ok()?;
        if there != then {
            return Some(false);
        }
    }
    Some(true)
}
