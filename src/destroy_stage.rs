//! Destroying what a retired stage left, step by step. The guard goes first: a stage that anything still deploys is refused.

mod check;
mod error;
mod preview;
mod record;
pub mod result;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::names::{ApplicationName, Namespace, Target};
use crate::preview::objections::Allowance;
use crate::report::{Failure, Outcome};
use crate::settings::Settings;
use crate::stop::Stop;

use check::check;
pub use error::DestroyError;
pub use result::DestroyReport;
use result::Progress;

/// The program's name, as records and results have it.
pub const PROGRAM: &str = "stagewright-destroy-stage";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Look whether anything still deploys the stage; change nothing
    Check,
    /// Show what a destroy would take; change nothing
    Preview,
}

/// What the caller asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The stage.
    pub target: Target,
    /// What Terraform gets as `var.namespace`, where the root wants one.
    pub namespace: Option<Namespace>,
    /// Applications of which the caller says that they do not deploy the stage.
    pub not_deploying: Vec<ApplicationName>,
    /// The number of the build that asks.
    pub build: Option<u64>,
    /// Its address, for people.
    pub build_url: Option<String>,
    /// What the caller takes upon himself.
    pub allowed: BTreeSet<Allowance>,
    /// Where the record of a preview goes.
    pub record: Option<PathBuf>,
}

/// Carries out a step, and says on standard error what is worked on. The report holds as much as was known when it ended,
/// however it ended.
pub async fn run(
    step: Step,
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
) -> DestroyReport {
    let started = Instant::now();
    let mut progress = Progress::default();
    let end = carry_out(step, wanted, settings, stop, &mut progress).await;
    DestroyReport::new(step, wanted, progress, started.elapsed(), end)
}

async fn carry_out(
    step: Step,
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    match step {
        Step::Check => tokio::select! {
            checked = check(wanted, settings, progress) => {
                checked?;
                Ok(Outcome::Done)
            }
            signal = stop.next() => Ok(Outcome::of_stop(signal)),
        },
        Step::Preview => preview::preview(wanted, settings, stop, progress).await,
    }
}
