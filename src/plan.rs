//! Planning one stage: the facts are gathered (`gather.rs`), the plan's terms drawn from them ([`terms`]), presync
//! launched, its log followed, the outcome reported ([`result`]).

mod error;
mod gather;
mod page;
pub mod result;
pub mod terms;

use std::path::PathBuf;
use std::time::Instant;

use crate::cluster::job::{Launch, Verb};
use crate::names::{BranchName, CommitPrefix, Namespace, Target};
use crate::report::{Failure, Outcome, Shown};
use crate::runner::{Asked, Bound, Ran};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::transport::record::PlanRecord;

pub use error::PlanError;
use gather::{Gathered, gather};
pub use result::PlanReport;
use result::Progress;

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
    let Gathered {
        request,
        namespace,
        environment,
        runner,
    } = gathered;
    let asked = Asked {
        verb: Verb::Plan,
        name: Launch::plan_name(&namespace),
        target: &wanted.target,
        arguments: request.plan_arguments(&namespace),
        request: &request,
        environment,
        build: wanted.build.as_deref(),
        bound: Bound::Plan,
        confirmed: None,
    };
    let ran = runner.run::<PlanRecord>(&asked, shown, stop).await;
    Ok(conclude(wanted, ran.map_err(PlanError::from)?, progress))
}

/// Judges a run that has ended.
fn conclude(wanted: &Wanted, ran: Ran<PlanRecord>, progress: &mut Progress) -> Outcome {
    let outcome = ran.outcome();
    if ran.cut.is_some() {
        return outcome;
    }
    progress.last_line = ran.last_line;
    if let Some(record) = &ran.record
        && record.state.position.is_none()
    {
        progress.warn(format!(
            "there is no state at {}, so everything is planned anew: for a stage that was ever applied, state.prefix, \
             state.branch or layout.state_key in the settings is wrong",
            record.state.key
        ));
    }
    let has_changes = ran.record.as_ref().is_some_and(|r| !r.changes.is_empty());
    progress.record = ran.record;
    progress.complete = Some(ran.complete);
    if outcome == Outcome::Done && has_changes && wanted.on_changes == OnChanges::Refuse {
        return Outcome::Refused;
    }
    outcome
}
