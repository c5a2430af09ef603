//! Planning one stage: the facts are gathered (`gather.rs`), the plan's terms drawn from them ([`terms`]), presync
//! launched, its log followed, the outcome reported ([`result`]).

mod error;
mod gather;
pub mod result;
pub mod terms;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cluster;
use crate::cluster::job::{Launch, Place, Verb};
use crate::cluster::run::Patience;
use crate::local::{self, LocalError};
use crate::names::{BranchName, CommitPrefix, Namespace, Target};
use crate::presync::provenance::without_credentials;
use crate::report::{self, Failure, Outcome, Shown};
use crate::settings::Settings;
use crate::stop::{Stop, StopSignal};
use crate::transport::ended::Ended;
use crate::transport::follow::{Complete, Follower, LastLine};
use crate::transport::record::PlanRecord;
use crate::transport::verdict;

pub use error::PlanError;
use gather::{Gathered, Runner, gather};
pub use result::PlanReport;
use result::Progress;

/// How long the reader of a stopped run's log may take to read its end.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// What the caller asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The stage.
    pub target: Target,
    /// Instead of the registry's.
    pub namespace: Option<Namespace>,
    /// Instead of the registry's.
    pub branch: Option<BranchName>,
    /// Instead of the branch's head.
    pub revision: Option<CommitPrefix>,
    /// The build that asks for the plan.
    pub build: Option<String>,
    /// Where a copy of the log goes.
    pub log: Option<PathBuf>,
    /// What changes mean for the exit code.
    pub on_changes: OnChanges,
}

/// What changes mean for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChanges {
    /// A plan with changes is a success.
    Succeed,
    /// A plan with changes is refused (`--fail-on-changes`).
    Refuse,
}

/// Plans the stage: says on standard error what is planned and what came of it, shows the log on standard output.
/// The report holds as much as was known when it ended, however it ended.
pub async fn run(wanted: &Wanted, settings: &Settings, stop: &mut Stop) -> PlanReport {
    let started = Instant::now();
    let mut progress = Progress::default();
    let end = carry_out(wanted, settings, stop, &mut progress).await;
    PlanReport::new(wanted, progress, started.elapsed(), end)
}

async fn carry_out(
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let shown = Shown::open(wanted.log.as_deref()).map_err(PlanError::from)?;
    let gathered = tokio::select! {
        gathered = gather(wanted, settings, progress) => gathered?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    let mut follower = Follower::default();
    let mut last_line = LastLine::default();
    let follow = |piece: &[u8]| {
        let piece = follower.push(piece);
        last_line.push(&piece);
        piece
    };
    let ended = launch(wanted, gathered, stop, &shown, follow).await?;
    // Before anything else can go wrong.
    if let Some(left) = &ended.left {
        report::note(format_args!("left running: {left}"));
    }
    let (rest, followed) = follower.finish::<PlanRecord>();
    last_line.push(&rest);
    let rest = [ended.waiting.as_slice(), &rest].concat();
    if let Some(signal) = show_rest(shown, rest, ended.stopped, stop).await? {
        return Ok(Outcome::of_stop(signal));
    }
    progress.last_line = last_line.finish();
    let (complete, record) = match &ended.summary {
        Some(summary) => followed.against(summary),
        None => (Complete::No(format!("presync {}", ended.end)), None),
    };
    // What was marked as a gap may have been none: the counts tell.
    let complete = match complete {
        Complete::No(what) if ended.gaps > 0 => Complete::No(format!(
            "{what}; the log could not be read without a gap in {} place(s), marked there",
            ended.gaps
        )),
        complete => complete,
    };
    Ok(conclude(wanted, &ended, complete, record, progress))
}

/// Runs presync by the runner of the settings.
async fn launch(
    wanted: &Wanted,
    gathered: Gathered,
    stop: &mut Stop,
    shown: &Shown,
    follow: impl FnMut(&[u8]) -> Vec<u8>,
) -> Result<Ended, PlanError> {
    let arguments = gathered.request.plan_arguments(&gathered.namespace);
    let there = match gathered.runner {
        Runner::Local => {
            let environment = &gathered.environment;
            return Ok(local::run(&arguments, environment, stop, shown, follow).await?);
        }
        Runner::Kubernetes(there) => there,
    };
    let settings = there.settings;
    let launch = Launch {
        verb: Verb::Plan,
        name: Launch::plan_name(&gathered.namespace),
        target: wanted.target.to_string(),
        revision: gathered.request.revision.to_string(),
        build: wanted.build.as_deref().map(without_credentials),
        arguments,
        environment: gathered.environment,
        deadline: Some(settings.deadline),
    };
    let patience = Patience {
        start: settings.start_deadline,
        unreachable: settings.unreachable,
    };
    let place = Place::from(settings);
    let cluster = &there.cluster;
    Ok(cluster::run::run(cluster, &launch, &place, patience, stop, shown, follow).await?)
}

/// Shows what is left of the log and waits until all of it is written; a signal ends that wait. After a stop the reader
/// gets little time, and may be gone: a Ctrl-C ends it as well.
async fn show_rest(
    shown: Shown,
    mut rest: Vec<u8>,
    stopped: Option<StopSignal>,
    stop: &mut Stop,
) -> Result<Option<StopSignal>, PlanError> {
    let written = async {
        if !rest.is_empty() {
            // Where nothing can be shown any more, finish() says why.
            let _refused = shown.take(&mut rest).await;
        }
        shown.finish().await
    };
    if stopped.is_some() {
        let _late = tokio::time::timeout(AFTER_STOP, written).await;
        return Ok(None);
    }
    tokio::select! {
        written = written => match written {
            Ok(()) => Ok(None),
            Err(error) => Err(LocalError::Show(error).into()),
        },
        signal = stop.next() => Ok(Some(signal)),
    }
}

/// Judges a run that has ended.
fn conclude(
    wanted: &Wanted,
    ended: &Ended,
    complete: Complete,
    record: Option<PlanRecord>,
    progress: &mut Progress,
) -> Outcome {
    if !ended.complaints.is_empty() {
        report::note(&ended.complaints);
    }
    if let Some(record) = &record
        && record.state.position.is_none()
    {
        progress.warn(format!(
            "there is no state at {}, so everything is planned anew: for a stage that was ever applied, state.prefix, \
             state.branch or layout.state_key in the settings is wrong",
            record.state.key
        ));
    }
    let class = ended.summary.as_ref().map(|summary| summary.class);
    let outcome = verdict::of_run(class, &complete, ended.stopped);
    let has_changes = record.as_ref().is_some_and(|r| !r.changes.is_empty());
    progress.record = record;
    progress.complete = Some(complete);
    if outcome == Outcome::Done && has_changes && wanted.on_changes == OnChanges::Refuse {
        return Outcome::Refused;
    }
    outcome
}
