//! What came of a step: the last line on standard error, and the result file.

use std::time::Duration;

use serde::Serialize;

use crate::guard::{Cleared, Found, LookedAt, Refusal, Unproven};
use crate::names::{AppPath, Namespace, RepoName, StageName};
use crate::report::{self, Failure, Outcome};

use super::{Step, Wanted};

/// What was known when a step ended.
#[derive(Debug, Default)]
pub struct Progress {
    /// What the caller was warned of.
    pub warnings: Vec<String>,
    /// Each Argo CD that was read whole.
    pub instances: Vec<CheckedInstance>,
    /// What the guard found; none before it judged.
    pub check: Option<Check>,
}

/// One Argo CD that was read whole.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedInstance {
    /// Whose, in words.
    pub name: String,
    /// How many Applications it has.
    pub applications: usize,
}

/// What the guard found.
#[derive(Clone, Debug, Default)]
pub struct Check {
    cleared: bool,
    looked_at: LookedAt,
    entries: Vec<String>,
    matching: Vec<String>,
    unproven: Vec<Unproven>,
    lifted: Vec<Unproven>,
}

impl Progress {
    /// Says a warning on standard error, and keeps it for the result.
    pub fn warn(&mut self, warning: String) {
        report::note(format_args!("warning: {warning}"));
        self.warnings.push(warning);
    }

    pub(super) fn judged(&mut self, judged: &Result<Cleared, Refusal>) {
        self.check = match judged {
            Ok(cleared) => Some(Check {
                cleared: true,
                looked_at: cleared.looked_at(),
                lifted: cleared.lifted().to_vec(),
                ..Check::default()
            }),
            Err(Refusal::Deployed(found)) => Some(Check {
                cleared: false,
                looked_at: found.looked_at,
                entries: found
                    .entries
                    .iter()
                    .map(|entry| entry.key.clone())
                    .collect(),
                matching: found.matching.iter().map(name).collect(),
                unproven: found.unproven.clone(),
                lifted: Vec::new(),
            }),
            Err(Refusal::Hidden { .. } | Refusal::NotUnproven { .. }) => None,
        };
    }
}

fn name(found: &Found) -> String {
    found.application.clone()
}

/// How a step ended.
#[derive(Debug)]
pub struct DestroyReport {
    step: Step,
    outcome: Outcome,
    failure: Option<Failure>,
    progress: Progress,
    wanted: Wanted,
    took: Duration,
}

/// The result file; its shape is documented in the README and in `schemas/destroy-result.v1.schema.json`.
#[derive(Debug, Serialize)]
struct ResultFile<'a> {
    version: u32,
    program: &'static str,
    step: Step,
    outcome: Outcome,
    exit_code: u8,
    error: Option<String>,
    warnings: &'a [String],
    target: String,
    repo: &'a RepoName,
    app_path: Option<&'a AppPath>,
    stage: &'a StageName,
    namespace: Option<&'a Namespace>,
    build: Option<u64>,
    build_url: Option<&'a str>,
    check: Option<CheckInResult<'a>>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct CheckInResult<'a> {
    cleared: bool,
    instances: &'a [CheckedInstance],
    applications: usize,
    registry_entries: &'a [String],
    matching: &'a [String],
    unproven: Vec<UnprovenInResult<'a>>,
    lifted: Vec<UnprovenInResult<'a>>,
}

#[derive(Debug, Serialize)]
struct UnprovenInResult<'a> {
    application: &'a str,
    reasons: &'a [String],
}

fn in_result(unproven: &[Unproven]) -> Vec<UnprovenInResult<'_>> {
    let mut shown = Vec::new();
    for Unproven { found, reasons } in unproven {
        shown.push(UnprovenInResult {
            application: &found.application,
            reasons,
        });
    }
    shown
}

impl DestroyReport {
    /// Takes what the step came to.
    pub(super) fn new(
        step: Step,
        wanted: &Wanted,
        progress: Progress,
        took: Duration,
        end: Result<Outcome, Failure>,
    ) -> DestroyReport {
        let (outcome, failure) = match end {
            Ok(outcome) => (outcome, None),
            Err(failure) => (failure.outcome(), Some(failure)),
        };
        DestroyReport {
            step,
            outcome,
            failure,
            progress,
            wanted: wanted.clone(),
            took,
        }
    }

    /// A step that ended before anything was read.
    pub fn failed(step: Step, wanted: &Wanted, failure: Failure) -> DestroyReport {
        DestroyReport::new(
            step,
            wanted,
            Progress::default(),
            Duration::ZERO,
            Err(failure),
        )
    }

    /// What it means for the exit code.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Says on standard error how it ended, the last line for a tired reader.
    pub fn say(&self, program: &str) {
        if let Some(failure) = &self.failure {
            report::failure(program, failure);
        }
        report::note(self.last_line());
    }

    /// The result file's content.
    pub fn result(&self) -> impl Serialize + '_ {
        let Wanted {
            target,
            namespace,
            build,
            build_url,
            ..
        } = &self.wanted;
        ResultFile {
            version: 1,
            program: "stagewright-destroy-stage",
            step: self.step,
            outcome: self.outcome,
            exit_code: self.outcome.code(),
            error: self.error(),
            warnings: &self.progress.warnings,
            target: target.to_string(),
            repo: &target.repo,
            app_path: target.path.as_ref(),
            stage: &target.stage,
            namespace: namespace.as_ref(),
            build: *build,
            build_url: build_url.as_deref(),
            check: self.progress.check.as_ref().map(|check| CheckInResult {
                cleared: check.cleared,
                instances: &self.progress.instances,
                applications: check.looked_at.applications,
                registry_entries: &check.entries,
                matching: &check.matching,
                unproven: in_result(&check.unproven),
                lifted: in_result(&check.lifted),
            }),
            seconds: (self.took.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }

    /// Why the exit code is not 0; nothing where it is.
    fn error(&self) -> Option<String> {
        match (&self.failure, self.outcome) {
            (Some(failure), _) => Some(failure.message()),
            (None, Outcome::Interrupted) => Some("stopped by INT".to_owned()),
            (None, Outcome::Terminated) => Some("stopped by TERM".to_owned()),
            (None, _) => None,
        }
    }

    fn last_line(&self) -> String {
        let target = &self.wanted.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        match (&self.progress.check, self.outcome) {
            (Some(check), Outcome::Done) => format!(
                "Checked: {target} is deployed by no registry entry and by none of {} live Application(s), in {took}; nothing was \
                 changed. Next: what it left can be destroyed.",
                check.looked_at.applications
            ),
            (Some(check), Outcome::Refused) => {
                let (is, next) = if check.entries.is_empty() && check.matching.is_empty() {
                    ("may still be", "prove or prune what is named above")
                } else {
                    ("is still", "undeploy it")
                };
                format!(
                    "Checked: {target} {is} deployed, in {took}; nothing was changed. Next: {next}, and run it again."
                )
            }
            (_, Outcome::Interrupted | Outcome::Terminated) => format!(
                "Checked: nothing of {target}, stopped after {took}; nothing was changed. Next: run it again."
            ),
            _ => format!(
                "Checked: nothing of {target}, failed after {took}; nothing was changed. Next: mend what is named above, and run it \
                 again."
            ),
        }
    }
}
