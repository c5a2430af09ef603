//! What came of a step: the last line on standard error, and the result file.

mod last_line;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::applications::Instance;
use crate::guard::{Cleared, Found, LookedAt, Refusal, Unproven};
use crate::names::{AppPath, CommitSha, Namespace, RepoName, StageName};
use crate::presync::provenance::without_credentials;
use crate::preview::objections::{Allowance, Left, Objection};
use crate::preview::question::question;
use crate::preview::reading::Reading;
use crate::preview::{Data, Preview};
use crate::report::{self, Failure, Outcome};
use crate::transport::follow::Complete;
use crate::transport::record::{DestroyRecord, StateSeen};

use super::record::Record;
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
    /// What a preview found; none before there was one.
    pub preview: Option<Previewed>,
    /// Whether the log of presync is here whole; none before it ran.
    pub complete: Option<Complete>,
    /// The last line of presync's log.
    pub last_line: Option<String>,
    /// Whether the config folder is gone.
    pub config_removed: bool,
    /// The commit that removed it.
    pub config_commit: Option<CommitSha>,
    /// What presync's destroy did.
    pub destroyed: Option<DestroyRecord>,
    /// Whether an earlier run did that.
    pub was_destroyed: bool,
    /// Whether a destroy was launched.
    pub launched: bool,
    /// What was previewed, for a report; none before there was a preview.
    pub reviewed: Option<Reviewed>,
}

/// A preview as a report shows it.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// In the order of reading.
    pub reading: Reading,
    /// What presync found; its values are those that the report shows.
    pub preview: Preview,
    /// What spoke against it and is lifted by a flag.
    pub lifted: Vec<Objection>,
}

/// What a preview found.
#[derive(Clone, Debug, Serialize)]
pub struct Previewed {
    pub(super) digest: String,
    revision: CommitSha,
    state: StateSeen,
    pub(super) left: Left,
    objects: usize,
    destroyed: usize,
    forgotten: usize,
    gone: usize,
    data: Vec<Data>,
    pub(super) objections: Vec<String>,
    allowed: BTreeSet<Allowance>,
    pub(super) expires: String,
    question: Option<String>,
}

impl Previewed {
    pub(super) fn new(record: &Record, left: Left, objections: Vec<String>) -> Previewed {
        let Preview {
            revision,
            bound,
            told,
            ..
        } = &record.preview;
        let question = question(&record.preview, &record.expires);
        Previewed {
            digest: record.digest.clone(),
            revision: revision.clone(),
            state: bound.state.clone(),
            left,
            objects: told.objects,
            destroyed: bound.destroyed(),
            forgotten: bound.forgotten.len(),
            gone: bound.gone.len(),
            data: told.data.clone(),
            question: question.filter(|_| objections.is_empty()),
            objections,
            allowed: record.allowed.clone(),
            expires: record.expires.clone(),
        }
    }
}

/// One Argo CD that was read whole.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedInstance {
    /// Whose, in words.
    pub name: String,
    /// How many Applications it has.
    pub applications: usize,
}

impl From<&Instance> for CheckedInstance {
    fn from(instance: &Instance) -> CheckedInstance {
        CheckedInstance {
            name: instance.name.clone(),
            applications: instance.applications.len(),
        }
    }
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
    pub(super) step: Step,
    pub(super) outcome: Outcome,
    failure: Option<Failure>,
    pub(super) progress: Progress,
    pub(super) wanted: Wanted,
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
    build_url: Option<String>,
    check: Option<CheckInResult<'a>>,
    preview: Option<&'a Previewed>,
    record: Option<&'a Path>,
    destroyed: Option<&'a DestroyRecord>,
    config_removed: bool,
    config_commit: Option<&'a CommitSha>,
    log_complete: Option<bool>,
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
        let (outcome, failure) = report::split(end);
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
        report::end(
            program,
            self.failure.as_ref(),
            self.error(),
            self.last_line(),
        );
    }

    /// The result file's content.
    pub fn result(&self) -> impl Serialize + '_ {
        let Wanted {
            target,
            namespace,
            build,
            build_url,
            record,
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
            build_url: build_url.as_deref().map(without_credentials),
            check: self.progress.check.as_ref().map(|check| CheckInResult {
                cleared: check.cleared,
                instances: &self.progress.instances,
                applications: check.looked_at.applications,
                registry_entries: &check.entries,
                matching: &check.matching,
                unproven: in_result(&check.unproven),
                lifted: in_result(&check.lifted),
            }),
            preview: self.progress.preview.as_ref(),
            record: record.as_deref(),
            destroyed: self.progress.destroyed.as_ref(),
            config_removed: self.progress.config_removed,
            config_commit: self.progress.config_commit.as_ref(),
            log_complete: self.progress.complete.as_ref().map(|c| *c == Complete::Yes),
            seconds: report::seconds(self.took),
        }
    }

    /// Why the exit code is not 0; nothing where it is.
    pub(super) fn error(&self) -> Option<String> {
        match (&self.failure, self.outcome) {
            (Some(failure), _) => Some(failure.message()),
            (None, Outcome::Done) => None,
            (None, outcome) => {
                let stopped = match outcome {
                    Outcome::Interrupted => Some("stopped by INT".to_owned()),
                    Outcome::Terminated => Some("stopped by TERM".to_owned()),
                    _ => None,
                };
                let missing = match &self.progress.complete {
                    Some(Complete::No(missing)) => {
                        Some(format!("the log is not complete: {missing}"))
                    }
                    Some(Complete::Yes) | None => None,
                };
                let said = self
                    .progress
                    .last_line
                    .as_ref()
                    .filter(|_| stopped.is_none());
                let said = said.map(|line| format!("the log ends with: {line}"));
                let parts: Vec<String> = [stopped, missing, said].into_iter().flatten().collect();
                Some(parts.join("; "))
            }
        }
    }
}
