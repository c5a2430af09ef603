//! Checking the registry: its file alone, from disk or out of its repository.

use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use crate::estate::{EstateError, open_forge, registry_text};
use crate::findings::{Format, Report, Severity};
use crate::layout::Layout;
use crate::page::{self, Body, Page, Part, Tone, Verdict};
use crate::registry::check::{CHECKS, Checked, check};
use crate::report::{self, Failure, Outcome};
use crate::settings::Settings;

/// The program's name.
pub const PROGRAM: &str = "stagewright-registry-check";

/// Where the registry is.
pub enum Source {
    /// A file; with the settings, where there are any.
    File(PathBuf, Option<Box<Settings>>),
    /// The repository that the settings name.
    Repository(Box<Settings>),
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file could not be read.
    #[error("the registry {} could not be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The repository's could not.
    #[error(transparent)]
    Estate(#[from] EstateError),
    /// No check has this name.
    #[error("no check is called {name:?}; there are {}", NAMES.join(", "))]
    NoCheck {
        /// What was asked for.
        name: String,
    },
    /// What was found could not be shown.
    #[error("what was found could not be written to standard output")]
    Show(#[source] io::Error),
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        let outcome = match &error {
            CheckError::Estate(error) => error.outcome(),
            CheckError::NoCheck { .. } => Outcome::Usage,
            CheckError::Read { .. } | CheckError::Show(_) => Outcome::Failed,
        };
        Failure::new(outcome, error)
    }
}

/// The checks' names.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| CHECKS.iter().map(|check| check.name).collect());

/// Says what a check is about.
pub fn explain(name: &str) -> Result<Outcome, Failure> {
    let Some(check) = CHECKS.iter().find(|check| check.name == name) else {
        return Err(CheckError::NoCheck {
            name: name.to_owned(),
        }
        .into());
    };
    let text = format!(
        "{} ({})\n\n{}\n",
        check.name, check.severity, check.explanation
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

struct Looked {
    name: String,
    text: String,
    checked: Checked,
}

impl Looked {
    fn report(&self) -> Report<'_> {
        Report {
            file: &self.name,
            source: &self.text,
            findings: &self.checked.findings,
            checks: &NAMES,
            counts: [("apps", self.checked.apps), ("stages", self.checked.stages)],
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
    let shown = format.write(&looked.report());
    let failure: Option<Failure> = report::text(&shown)
        .err()
        .map(|error| CheckError::Show(error).into());
    let mut findings = looked.checked.findings.iter();
    let fails = findings.any(|finding| finding.severity >= fail_on);
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
        let Checked {
            apps,
            stages,
            findings,
        } = &looked.checked;
        let next = match findings.first() {
            None => "nothing".to_owned(),
            Some(first) => format!(
                "mend what is named above; {PROGRAM} --explain {} says what that check is about",
                first.check
            ),
        };
        format!(
            "Checked: {apps} app(s) with {stages} stage(s) in {} by {} checks of the file alone: {}. Next: {next}.",
            looked.name,
            NAMES.len(),
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

    /// The report for people.
    pub fn page(&self) -> Page {
        let findings = self
            .looked
            .iter()
            .flat_map(|looked| &looked.checked.findings);
        let worst = findings.clone().map(|finding| finding.severity).max();
        let (tone, word) = match (&self.failure, worst) {
            (Some(_), _) => (Tone::Grave, self.outcome.word()),
            (None, Some(Severity::Error)) => (Tone::Grave, "Errors"),
            (None, Some(Severity::Warning)) => (Tone::Notice, "Warnings"),
            (None, None) => (Tone::Calm, "Nothing found"),
        };
        let rows: Vec<Vec<String>> = findings
            .map(|finding| {
                vec![
                    finding.place.to_string(),
                    finding.severity.to_string(),
                    finding.message.clone(),
                    finding.check.to_owned(),
                ]
            })
            .collect();
        let head = ["Place", "Severity", "Finding", "Check"].map(str::to_owned);
        let found = Part {
            heading: "Findings".to_owned(),
            tone,
            body: Body::Table {
                head: head.to_vec(),
                rows,
            },
        };
        let looked = NAMES.iter().zip(CHECKS);
        let looked =
            looked.map(|(name, check)| vec![(*name).to_owned(), check.explanation.to_owned()]);
        let checks = Part {
            heading: "What was looked at".to_owned(),
            tone: Tone::Calm,
            body: Body::Table {
                head: ["Check", "What it is about"].map(str::to_owned).to_vec(),
                rows: looked.collect(),
            },
        };
        let name = self
            .looked
            .as_ref()
            .map_or("the registry", |looked| &looked.name);
        Page {
            kind: "Check of a registry".to_owned(),
            target: name.to_owned(),
            verdict: Verdict {
                tone,
                word: word.to_owned(),
                error: self.failure.as_ref().map(Failure::message),
                last_line: self.last_line(),
            },
            warnings: Vec::new(),
            facts: Vec::new(),
            parts: match worst {
                Some(_) => vec![found, checks],
                None => vec![checks],
            },
            made: page::made(PROGRAM, jiff::Timestamp::now()),
        }
    }
}

async fn look(source: Source) -> Result<Looked, CheckError> {
    let (name, text, layout) = read(source).await?;
    let checked = check(&text, &layout);
    Ok(Looked {
        name,
        text,
        checked,
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
