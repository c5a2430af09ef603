//! Planning one stage: the facts are gathered (`gather.rs`), the plan's terms drawn from them ([`terms`]), presync
//! launched, its log followed, the outcome reported ([`outcome`]).

mod error;
mod gather;
pub mod outcome;
pub mod terms;

use std::path::PathBuf;
use std::time::Instant;

use crate::local::{self, Ended, LocalError};
use crate::names::{BranchName, CommitPrefix, Namespace, Target};
use crate::report::{self, Failure, Outcome, Shown};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::transport::follow::{Complete, Follower, LastLine};
use crate::transport::record::PlanRecord;

pub use error::PlanError;
use gather::gather;
pub use outcome::PlanReport;
use outcome::Progress;

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
    let mut shown = Shown::open(wanted.log.as_deref()).map_err(PlanError::from)?;
    let gathered = tokio::select! {
        gathered = gather(wanted, settings, progress) => gathered?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    let mut follower = Follower::default();
    let mut last_line = LastLine::default();
    let ended = local::run(
        &gathered.request.arguments(),
        &gathered.environment,
        stop,
        |piece| {
            let piece = follower.push(piece);
            last_line.push(&piece);
            shown.write(&piece)
        },
    )
    .await
    .map_err(PlanError::from)?;
    let (rest, followed) = follower.finish::<PlanRecord>();
    if let Err(error) = shown.write(&rest)
        && ended.stopped.is_none()
    {
        return Err(PlanError::Local(LocalError::Show(error)).into());
    }
    last_line.push(&rest);
    progress.last_line = last_line.finish();
    let (complete, record) = match &ended.summary {
        Some(summary) => followed.against(summary),
        None => (Complete::No(format!("presync {}", ended.end)), None),
    };
    Ok(conclude(wanted, &ended, complete, record, progress))
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
    if let Some(left) = &ended.left {
        report::note(format_args!("left running: {left}"));
    }
    let class = ended.summary.as_ref().map(|summary| summary.class);
    let outcome = Outcome::of_run(class, &complete, ended.stopped);
    let has_changes = record.as_ref().is_some_and(|r| !r.changes.is_empty());
    progress.record = record;
    progress.complete = Some(complete);
    if outcome == Outcome::Done && has_changes && wanted.on_changes == OnChanges::Refuse {
        return Outcome::Refused;
    }
    outcome
}
