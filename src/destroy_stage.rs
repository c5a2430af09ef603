//! Destroying what a retired stage left, step by step. The guard goes first: a stage that anything still deploys is refused.

mod check;
mod confirm;
mod destroy;
mod error;
mod next;
mod page;
mod preview;
mod record;
mod remove_config;
pub mod result;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::names::{ApplicationName, Namespace, Target};
use crate::presync::provenance;
use crate::preview::objections::{Allowance, Left, left};
use crate::report::{Failure, Outcome};
use crate::settings::Settings;
use crate::stop::Stop;

use check::check;
use confirm::Answer;
pub use error::DestroyError;
use record::Record;
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
    /// Destroy what the record of a preview confirms, and remove the state
    Destroy,
    /// Remove the stage's config folder, once the record says that it is destroyed
    RemoveConfig,
    /// All of it, one after the other, with the confirmation typed at the terminal
    All,
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
    /// Where the record of a preview goes, and where it is taken from.
    pub record: Option<PathBuf>,
    /// Who asks, where it is told.
    pub requested_by: Option<String>,
    /// Who approved the destroy.
    pub approved_by: Option<String>,
    /// The flags by which the settings were named.
    pub settings_words: Vec<String>,
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
        Step::Preview => {
            let previewed = preview::preview(wanted, settings, stop, progress).await?;
            Ok(previewed.map_or_else(|outcome| outcome, |_| Outcome::Done))
        }
        Step::Destroy => {
            let (file, mut record) = record_of(wanted, "destroy")?;
            let outcome = destroy::destroy(&mut record, wanted, settings, stop, progress).await?;
            if record.done.is_some() {
                record.write(file).map_err(DestroyError::from)?;
            }
            Ok(outcome)
        }
        Step::RemoveConfig => {
            let (_, record) = record_of(wanted, "remove-config")?;
            remove_config::remove_config(&record, wanted, settings, stop, progress).await
        }
        Step::All => all(wanted, settings, stop, progress).await,
    }
}

impl Wanted {
    /// Who asks: whoever was named, else the build, else the user at this host.
    fn requester(&self) -> String {
        provenance::requester(self.requested_by.as_deref(), self.through())
    }

    /// The build that asks, where one does.
    fn through(&self) -> Option<String> {
        let url = self.build_url.as_deref();
        url.map(provenance::without_credentials)
            .or_else(|| self.build.map(|number| format!("build #{number}")))
    }
}

/// The record that was handed over.
fn record_of<'a>(
    wanted: &'a Wanted,
    step: &'static str,
) -> Result<(&'a Path, Record), DestroyError> {
    let file = wanted.record.as_deref();
    let file = file.ok_or(DestroyError::NeedsRecord { step })?;
    Ok((file, Record::read(file)?))
}

/// Previews, asks at the terminal, destroys, and removes the config folder.
async fn all(
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let mut record = match preview::preview(wanted, settings, stop, progress).await? {
        Ok(record) => record,
        Err(outcome) => return Ok(outcome),
    };
    if left(&record.preview) == Left::Nothing {
        return Ok(Outcome::Done);
    }
    match confirm::ask(&record.target, stop).await {
        Answer::Yes => {}
        Answer::No => return Err(DestroyError::NotConfirmed.into()),
        Answer::Stopped(signal) => return Ok(Outcome::of_stop(signal)),
    }
    let outcome = destroy::destroy(&mut record, wanted, settings, stop, progress).await?;
    if outcome != Outcome::Done {
        return Ok(outcome);
    }
    if let Some(file) = &wanted.record {
        record.write(file).map_err(DestroyError::from)?;
    }
    remove_config::remove_config(&record, wanted, settings, stop, progress).await
}
