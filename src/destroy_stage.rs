//! Destroying what a retired stage left, step by step. The guard goes first: a stage that anything still deploys is refused.

mod check;
mod error;
pub mod result;

use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::names::{ApplicationName, Namespace, Target};
use crate::report::{Failure, Outcome};
use crate::settings::Settings;
use crate::stop::Stop;

use check::check;
pub use error::DestroyError;
pub use result::DestroyReport;
use result::Progress;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Look whether anything still deploys the stage; change nothing
    Check,
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
    }
}
