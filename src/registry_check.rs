//! Checking the registry: its file, and what the registry promises against what there is.

mod error;
mod page;

use std::path::PathBuf;

use crate::estate::{open_forge, registry_text};
use crate::findings::{Check, Colour, Finding, Format, Group, Report, Severity, Skipped};
use crate::layout::Layout;
use crate::registry::check::{CHECKS, Checked, check};
use crate::report::{self, Failure, Outcome};
use crate::settings::Settings;

pub use error::CheckError;

/// The program's name.
pub const PROGRAM: &str = "stagewright-registry-check";

/// Where the registry is.
pub enum Source {
    /// A file; with the settings, where there are any.
    File(PathBuf, Option<Box<Settings>>),
    /// The repository that the settings name.
    Repository(Box<Settings>),
}

/// Says what a check is about.
pub fn explain(name: &str) -> Result<Outcome, Failure> {
    let Some(check) = CHECKS.iter().find(|check| check.name == name) else {
        return Err(CheckError::NoCheck {
            name: name.to_owned(),
        }
        .into());
    };
    let text = format!(
        "{} ({}, in {})\n\n{}\n",
        check.name, check.severity, check.group, check.explanation
    );
    report::text(&text).map_err(CheckError::Show)?;
    Ok(Outcome::Done)
}

/// How a check ended.
pub struct CheckReport {
    outcome: Outcome,
    failure: Option<Failure>,
    /// What was checked, where it could be read.
    looked: Option<Looked>,
}

/// The registry, and everything that came of looking at it.
struct Looked {
    name: String,
    text: String,
    findings: Vec<Finding>,
    checks: Vec<&'static Check>,
    skipped: Vec<Skipped>,
    counts: Vec<(&'static str, usize)>,
}

impl Looked {
    fn report(&self) -> Report<'_> {
        Report {
            file: &self.name,
            source: &self.text,
            findings: &self.findings,
            checks: &self.checks,
            skipped: &self.skipped,
            counts: &self.counts,
        }
    }
}

/// Checks the registry and shows what was found on standard output in this format. Refused where a finding weighs as much as `fail_on`.
pub async fn run(
    source: Result<Source, Failure>,
    format: Format,
    fail_on: Severity,
) -> CheckReport {
    let looked = async { Ok::<_, Failure>(look(source?).await?) };
    let looked = match looked.await {
        Ok(looked) => looked,
        Err(failure) => {
            return CheckReport {
                outcome: failure.outcome(),
                failure: Some(failure),
                looked: None,
            };
        }
    };
    let colour = match report::text_is_coloured() {
        true => Colour::On,
        false => Colour::Off,
    };
    let shown = format.write(&looked.report(), colour);
    let failure: Option<Failure> = report::text(&shown)
        .err()
        .map(|error| CheckError::Show(error).into());
    let mut findings = looked.findings.iter();
    let fails = findings.any(|finding| finding.severity() >= fail_on);
    let outcome = match &failure {
        Some(failure) => failure.outcome(),
        None if fails => Outcome::Refused,
        None => Outcome::Done,
    };
    CheckReport {
        outcome,
        failure,
        looked: Some(looked),
    }
}

impl CheckReport {
    /// The outcome.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Says on standard error why it failed, how much was checked, and what is next.
    pub fn say(&self) {
        report::end(PROGRAM, self.failure.as_ref(), None, self.last_line());
    }

    fn last_line(&self) -> String {
        let Some(looked) = &self.looked else {
            return "Checked: nothing. Next: mend what is named above, and run it again."
                .to_owned();
        };
        let next = match looked.findings.first() {
            None => "nothing".to_owned(),
            Some(first) => format!(
                "mend what is named above; {PROGRAM} --explain {} says what that check is about",
                first.check.name
            ),
        };
        let alone = match looked.checks.iter().all(|check| check.group == Group::File) {
            true => " of the file alone",
            false => "",
        };
        format!(
            "Checked: {} in {} by {} checks{alone}: {}. Next: {next}.",
            looked.report().extent(),
            looked.name,
            looked.checks.len(),
            looked.report().sums()
        )
    }

    /// Why the exit code is not 0.
    fn error(&self) -> Option<String> {
        let failed = self.failure.as_ref().map(Failure::message);
        let found = || {
            let looked = self.looked.as_ref();
            let refused = looked.filter(|_| self.outcome == Outcome::Refused);
            refused.map(|looked| looked.report().sums())
        };
        failed.or_else(found)
    }

    /// The outcome as JSON: what `--format json` shows, with how it ended.
    pub fn result(&self) -> serde_json::Value {
        let mut result = match &self.looked {
            Some(looked) => looked.report().to_json(),
            None => serde_json::json!({ "version": 1 }),
        };
        if let Some(result) = result.as_object_mut() {
            result.insert("program".to_owned(), PROGRAM.into());
            result.insert("outcome".to_owned(), serde_json::json!(self.outcome));
            result.insert("exit_code".to_owned(), self.outcome.code().into());
            result.insert("error".to_owned(), self.error().into());
        }
        result
    }
}

async fn look(source: Source) -> Result<Looked, CheckError> {
    let (name, text, layout) = read(source).await?;
    let Checked {
        findings,
        apps,
        stages,
        ..
    } = check(&text, &layout);
    Ok(Looked {
        name,
        text,
        findings,
        checks: CHECKS.to_vec(),
        skipped: Vec::new(),
        counts: vec![("apps", apps), ("stages", stages)],
    })
}

/// The registry's name, its text, and how names are made of it.
async fn read(source: Source) -> Result<(String, String, Layout), CheckError> {
    match source {
        Source::File(file, settings) => {
            let failed = |source| CheckError::Read {
                file: file.clone(),
                source,
            };
            let text = tokio::fs::read_to_string(&file).await.map_err(failed)?;
            let layout = settings.map_or_else(Layout::default, |settings| settings.layout);
            Ok((file.display().to_string(), text, layout))
        }
        Source::Repository(settings) => {
            let forge = open_forge(&settings)?;
            let text = registry_text(&forge, &settings).await?;
            let place = &settings.registry;
            report::heading(
                "registry",
                format_args!("{}'s {} on {}", place.repo, place.file, place.branch),
            );
            Ok((place.file.clone(), text, settings.layout))
        }
    }
}
