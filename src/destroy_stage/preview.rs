//! The step `preview`: what a destroy would take. presync finds it out where the stage's applies run, and what speaks against it
//! is judged here.

use crate::cluster::job::{Launch, Verb};
use crate::cluster::namespaces;
use crate::estate::state_url;
use crate::names::{BranchName, RepoUrl};
use crate::preview::Preview;
use crate::preview::objections::{Namespaced, Objection, against, left, lifted, objections};
use crate::preview::reading::{Context, Reading, reading};
use crate::registry::Registry;
use crate::report::{self, Failure, Outcome, Shown};
use crate::runner::{Asked, Bound, Runner, RunnerError};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::transport::request::{NAMESPACE, StageRequest};

use super::check::{Checked, check};
use super::record::{Made, NotInUse, Record};
use super::result::{Previewed, Progress, Reviewed};
use super::{DestroyError, PROGRAM, Wanted};

/// Has the guard judge, previews, and shows it in the order in which it is to be read. The record of it; the outcome of a run that
/// came to none.
pub(super) async fn preview(
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Result<Record, Outcome>, Failure> {
    let shown = Shown::open(None).map_err(DestroyError::from)?;
    if let Some(file) = &wanted.record {
        report::prepare_result(file).map_err(DestroyError::from)?;
    }
    let gathered = async {
        let runner = Runner::open(settings).await?;
        let checked = check(wanted, settings, progress).await?;
        let branch = BranchName::main();
        let forge = &checked.forge;
        let head = forge.head(&wanted.target.repo, &branch).await;
        let revision = head.map_err(DestroyError::from)?;
        Ok::<_, DestroyError>((runner, checked, revision, branch))
    };
    let (runner, checked, revision, branch) = tokio::select! {
        gathered = gathered => gathered?,
        signal = stop.next() => return Ok(Err(Outcome::of_stop(signal))),
    };
    report::heading(
        "revision",
        format_args!("{revision} (the head of {branch})"),
    );
    let target = &wanted.target;
    let request = StageRequest {
        url: checked.forge.fetch_url(&target.repo),
        revision,
        stage: target.stage.clone(),
        path: target.path.clone(),
    };
    let mut environment = runner.environment(settings, state_url(&checked.forge, settings));
    if let Some(namespace) = &wanted.namespace {
        environment.insert(NAMESPACE, namespace.to_string());
    }
    let asked = Asked {
        verb: Verb::Destroy,
        name: Launch::destroy_name(wanted.build, target),
        target,
        request: &request,
        arguments: request.preview_arguments(),
        environment,
        build: wanted.build_url.as_deref(),
        bound: Bound::Plan,
        confirmed: None,
    };
    runner.say(&asked.name);
    let ran = runner.run::<Preview>(&asked, shown, stop).await;
    let ran = ran.map_err(DestroyError::from)?;
    let outcome = ran.outcome();
    progress.last_line.clone_from(&ran.last_line);
    progress.complete = Some(ran.complete);
    let Some(mut preview) = ran.record.filter(|_| outcome == Outcome::Done) else {
        return match outcome {
            Outcome::Done => Err(DestroyError::NoRecord.into()),
            outcome => Ok(Err(outcome)),
        };
    };
    is_of(&preview, &request)?;
    // They are for a report; a record keeps none.
    let values = std::mem::take(&mut preview.values);
    let namespaces = tokio::select! {
        namespaces = namespaces_of(&preview, &runner) => namespaces,
        signal = stop.next() => return Ok(Err(Outcome::of_stop(signal))),
    };
    let reading = read(&preview, &checked, &runner, &namespaces, settings);
    report::text(&reading).map_err(DestroyError::Show)?;
    say_config(&preview, &checked.repo, &branch);
    let objections = objections(&preview, &namespaces);
    let lifted = lifted(&objections, &wanted.allowed);
    let (standing, allowed) = against(objections, &wanted.allowed);
    progress.reviewed = Some(Reviewed {
        reading,
        preview: Preview {
            values,
            ..preview.clone()
        },
        lifted,
    });
    let made = Made {
        requested_by: wanted.requester(),
        image: ran.ended.image,
        not_in_use: NotInUse::from(&checked.cleared),
        allowed,
        namespaces,
    };
    let record = Record::new(PROGRAM, preview, made, jiff::Timestamp::now());
    let objected: Vec<String> = standing.iter().map(ToString::to_string).collect();
    progress.preview = Some(Previewed::new(&record, left(&record.preview), objected));
    refuse(standing)?;
    if let Some(file) = &wanted.record {
        record.write(file).map_err(DestroyError::from)?;
    }
    Ok(Ok(record))
}

/// Refuses a record of another stage, commit or state than what was asked for.
fn is_of(preview: &Preview, request: &StageRequest) -> Result<(), DestroyError> {
    let bound = &preview.bound;
    let same = preview.version == crate::preview::VERSION
        && preview.revision == request.revision
        && bound.stage == request.stage
        && bound.path == request.path
        && request.url.repo_name().is_ok_and(|repo| repo == bound.repo);
    if same {
        Ok(())
    } else {
        Err(DestroyError::OtherRecord)
    }
}

/// The namespaces of the objects that are forgotten, looked for in the cluster where presync ran.
async fn namespaces_of(preview: &Preview, runner: &Runner) -> Vec<(String, Namespaced)> {
    let mut names: Vec<&str> = preview
        .bound
        .forgotten
        .iter()
        .map(|f| f.namespace.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut seen = Vec::new();
    for name in names {
        let looked = match (runner, name.parse()) {
            (Runner::Kubernetes(there), Ok(namespace)) => {
                namespaces::look(&there.cluster, &namespace).await
            }
            (Runner::Kubernetes(_), Err(error)) => Namespaced::Unknown(report::one_line(&error)),
            (Runner::Local { .. }, _) => {
                Namespaced::Unknown("no cluster is asked by the local runner".to_owned())
            }
        };
        seen.push((name.to_owned(), looked));
    }
    seen
}

pub(super) fn read(
    preview: &Preview,
    checked: &Checked,
    runner: &Runner,
    namespaces: &[(String, Namespaced)],
    settings: &Settings,
) -> Reading {
    let place = &settings.registry;
    let mut not_in_use = vec![
        checked.cleared.looked_at().to_string(),
        format!(
            "no entry in {}'s {} on {} deploys it",
            place.repo, place.file, place.branch
        ),
    ];
    not_in_use.extend(checked.cleared.lifted().iter().map(|unproven| {
        format!(
            "{} is vouched for by --not-deploying",
            unproven.found.application
        )
    }));
    let still = still_deployed(&checked.registry, &checked.addresses);
    let mut collateral = Vec::new();
    for webhook in &preview.told.webhooks {
        collateral.push(match still.as_slice() {
            [] => format!("{webhook}: the repository's webhook goes; nothing of {} is registered any more", checked.repo),
            still => format!(
                "{webhook}: the repository's webhook goes, while {} is still deployed by {}: where it is the only one, pushes reach Argo CD by its periodic refresh alone; give a surviving stage the webhook after the destroy, not before",
                checked.repo,
                still.join(", ")
            ),
        });
    }
    let context = Context {
        cluster: runner.place(),
        not_in_use,
        namespaces: namespaces.to_vec(),
        config_from: format!("{}'s {}", checked.repo, BranchName::main()),
        collateral,
    };
    reading(preview, &context)
}

/// The entries of the registry that deploy the repository, whatever their path and stage.
fn still_deployed(registry: &Registry, addresses: &[RepoUrl]) -> Vec<String> {
    let apps = registry.apps();
    let of_repository =
        apps.filter(|app| addresses.iter().any(|url| app.repo.same_repository(url)));
    of_repository
        .flat_map(|app| {
            app.stages
                .iter()
                .map(move |stage| format!("apps.{}.stages.{}", app.name, stage.name))
        })
        .collect()
}

fn say_config(preview: &Preview, repo: &str, branch: &BranchName) {
    let config = &preview.told.config;
    if config.files.is_empty() {
        report::note(format_args!(
            "{repo} has no {}/ on {branch}: nothing to remove",
            config.path
        ));
    } else {
        report::note(format_args!(
            "A destroy removes {}/ from {repo}'s {branch}",
            config.path
        ));
    }
}

fn refuse(standing: Vec<Objection>) -> Result<(), DestroyError> {
    if standing.is_empty() {
        return Ok(());
    }
    Err(DestroyError::Objected(standing))
}

impl From<RunnerError> for DestroyError {
    fn from(error: RunnerError) -> DestroyError {
        match error {
            RunnerError::Estate(error) => DestroyError::Estate(error),
            other => DestroyError::Runner(other),
        }
    }
}
