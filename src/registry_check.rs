//! Checking the registry: its file, and what the registry promises against what there is.

mod error;
mod live;
mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::estate::{open_forge, registry_text};
use crate::findings::{Check, Colour, Finding, Format, Group, Report, Severity, Skipped};
use crate::forge::Forge;
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

/// How far a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Over the file, and no further.
    FileAlone,
    /// To all that the settings name.
    Estate,
}

/// How many questions are asked of a service at once.
const AT_ONCE: usize = 8;

/// What came of looking at a part of the estate.
#[derive(Default)]
struct Part {
    findings: Vec<Finding>,
    /// The checks that were made.
    checks: Vec<&'static Check>,
    skipped: Vec<Skipped>,
    counts: Vec<(&'static str, usize)>,
    /// More for programs, each with its name.
    details: Vec<(&'static str, serde_json::Value)>,
    /// Why something could not be read.
    failure: Option<Failure>,
}

impl Part {
    /// A part that could not be read. One that the settings say nothing of is no failure.
    fn unread<E: std::error::Error + 'static>(
        checks: &[&'static Check],
        error: E,
        outcome: impl FnOnce(&E) -> Outcome,
    ) -> Part {
        let skipped = Part::skipped(checks, &report::one_line(&error));
        let failure = match outcome(&error) {
            Outcome::Usage => None,
            outcome => Some(Failure::new(outcome, error)),
        };
        Part { failure, ..skipped }
    }

    /// A part that was not looked at.
    fn skipped(checks: &[&'static Check], reason: &str) -> Part {
        let skipped = checks.iter().map(|check| Skipped {
            check,
            reason: reason.to_owned(),
        });
        Part {
            skipped: skipped.collect(),
            ..Part::default()
        }
    }
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
    part: Part,
}

impl Looked {
    fn report(&self) -> Report<'_> {
        Report {
            file: &self.name,
            source: &self.text,
            findings: &self.part.findings,
            checks: &self.part.checks,
            skipped: &self.part.skipped,
            counts: &self.part.counts,
            details: &self.part.details,
        }
    }
}

/// Checks the registry and shows what was found on standard output in this format. Refused where a finding weighs as much as `fail_on`.
pub async fn run(
    source: Result<Source, Failure>,
    reach: Reach,
    format: Format,
    fail_on: Severity,
) -> CheckReport {
    let looked = async { look(source?, reach).await };
    let mut looked = match looked.await {
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
    let show = |error| Failure::from(CheckError::Show(error));
    let unshown = report::text(&shown).err().map(show);
    let failure = unshown.or(looked.part.failure.take());
    let mut findings = looked.part.findings.iter();
    let fails = findings.any(|finding| finding.severity() >= fail_on);
    let outcome = match &failure {
        _ if fails => Outcome::Refused,
        Some(failure) => failure.outcome(),
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
        let next = match looked.part.findings.first() {
            None => "nothing".to_owned(),
            Some(first) => format!(
                "mend what is named above; {PROGRAM} --explain {} says what that check is about",
                first.check.name
            ),
        };
        let alone = match looked
            .part
            .checks
            .iter()
            .all(|check| check.group == Group::File)
        {
            true => " of the file alone",
            false => "",
        };
        format!(
            "Checked: {} in {} by {} checks{alone}: {}. Next: {next}.",
            looked.report().extent(),
            looked.name,
            looked.part.checks.len(),
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

async fn look(source: Source, reach: Reach) -> Result<Looked, Failure> {
    let Read {
        name,
        text,
        settings,
        forge,
    } = read(source).await?;
    let layout = settings.as_ref().map(|settings| &settings.layout);
    let Checked {
        findings,
        registry,
        apps,
        stages,
    } = check(&text, layout.unwrap_or(&Layout::default()));
    let mut parts = vec![Part {
        findings,
        checks: checks(|group| group == Group::File),
        counts: vec![("apps", apps), ("stages", stages)],
        ..Part::default()
    }];
    match (&registry, &settings, reach) {
        (_, _, Reach::FileAlone) | (_, None, _) => {}
        (None, Some(_), Reach::Estate) => {
            let reason = "the registry could not be read";
            let beyond = checks(|group| group != Group::File);
            parts.push(Part::skipped(&beyond, reason));
        }
        (Some(registry), Some(settings), Reach::Estate) => {
            let forge = match forge {
                Some(forge) => forge,
                None => open_forge(settings).map_err(CheckError::from)?,
            };
            let (live, _) = live::look(registry, settings, &forge).await;
            parts.push(live);
        }
    }
    let off = settings.map(|settings| settings.checks_off);
    Ok(Looked {
        name,
        text,
        part: joined(parts, &off.unwrap_or_default()),
    })
}

/// The checks of these groups.
fn checks(wanted: impl Fn(Group) -> bool) -> Vec<&'static Check> {
    let checks = CHECKS.into_iter();
    checks.filter(|check| wanted(check.group)).collect()
}

/// All parts in one, without the checks that are switched off.
fn joined(parts: Vec<Part>, off: &BTreeMap<&'static str, String>) -> Part {
    let mut whole = Part::default();
    for part in parts {
        whole.findings.extend(part.findings);
        whole.checks.extend(part.checks);
        whole.skipped.extend(part.skipped);
        whole.counts.extend(part.counts);
        whole.details.extend(part.details);
        whole.failure = whole.failure.or(part.failure);
    }
    let on = |check: &&Check| !off.contains_key(check.name);
    whole.findings.retain(|finding| on(&finding.check));
    whole.checks.retain(on);
    whole.skipped.retain(|skipped| on(&skipped.check));
    let switched_off = CHECKS.iter().filter_map(|check| {
        let reason = off.get(check.name)?;
        Some(Skipped {
            check,
            reason: format!("switched off in the settings: {reason}"),
        })
    });
    whole.skipped.extend(switched_off);
    let findings = &mut whole.findings;
    findings.sort_by(|a, b| (&a.at, a.check.name).cmp(&(&b.at, b.check.name)));
    whole
}

/// The registry as it was read.
struct Read {
    name: String,
    text: String,
    settings: Option<Box<Settings>>,
    forge: Option<Forge>,
}

async fn read(source: Source) -> Result<Read, CheckError> {
    match source {
        Source::File(file, settings) => {
            let failed = |source| CheckError::Read {
                file: file.clone(),
                source,
            };
            Ok(Read {
                text: tokio::fs::read_to_string(&file).await.map_err(failed)?,
                name: file.display().to_string(),
                settings,
                forge: None,
            })
        }
        Source::Repository(settings) => {
            let forge = open_forge(&settings)?;
            let text = registry_text(&forge, &settings).await?;
            let place = &settings.registry;
            report::heading(
                "registry",
                format_args!("{}'s {} on {}", place.repo, place.file, place.branch),
            );
            Ok(Read {
                name: place.file.clone(),
                text,
                settings: Some(settings),
                forge: Some(forge),
            })
        }
    }
}
