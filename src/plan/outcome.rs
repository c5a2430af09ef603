//! What came of a plan: the last line on standard error, and the result file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::names::{CommitSha, Namespace};
use crate::report::{self, Failure, Outcome};
use crate::terraform::changes::{Action, Changes};
use crate::transport::follow::Complete;
use crate::transport::record::{PlanRecord, StateSeen};

use super::Wanted;

/// What was known when the plan ended.
#[derive(Debug, Default)]
pub struct Progress {
    /// Once the terms were drawn.
    pub namespace: Option<Namespace>,
    /// Once the branch was resolved.
    pub revision: Option<CommitSha>,
    /// Once presync had finished.
    pub record: Option<PlanRecord>,
    /// Once presync had ended.
    pub complete: Option<Complete>,
}

/// How a plan ended.
#[derive(Debug)]
pub struct PlanReport {
    outcome: Outcome,
    failure: Option<Failure>,
    progress: Progress,
    target: String,
    took: Duration,
}

/// The result file; its shape is documented in the README and in `schemas/plan-result.v1.schema.json`.
#[derive(Debug, Serialize)]
struct ResultFile<'a> {
    version: u32,
    program: &'static str,
    outcome: Outcome,
    exit_code: u8,
    error: Option<String>,
    target: &'a str,
    namespace: Option<&'a Namespace>,
    revision: Option<&'a CommitSha>,
    state: Option<&'a StateSeen>,
    terraform: Option<&'a str>,
    changes: Option<&'a Changes>,
    counts: Option<BTreeMap<Action, usize>>,
    log_complete: Option<bool>,
    seconds: f64,
}

impl PlanReport {
    /// Takes what the plan came to.
    pub(super) fn new(
        wanted: &Wanted,
        progress: Progress,
        took: Duration,
        end: Result<Outcome, Failure>,
    ) -> PlanReport {
        let (outcome, failure) = match end {
            Ok(outcome) => (outcome, None),
            Err(failure) => (failure.outcome(), Some(failure)),
        };
        PlanReport {
            outcome,
            failure,
            progress,
            target: wanted.target.to_string(),
            took,
        }
    }

    /// A plan that ended before anything was read.
    pub fn failed(wanted: &Wanted, failure: Failure) -> PlanReport {
        PlanReport::new(wanted, Progress::default(), Duration::ZERO, Err(failure))
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
        if let Some(Complete::No(missing)) = &self.progress.complete {
            report::note(format_args!("the log is not complete: {missing}"));
        }
        report::note(self.last_line());
    }

    /// The result file's content.
    pub fn result(&self) -> impl Serialize + '_ {
        let record = self.progress.record.as_ref();
        ResultFile {
            version: 1,
            program: "stagewright-plan",
            outcome: self.outcome,
            exit_code: self.outcome.code(),
            error: self.failure.as_ref().map(Failure::message),
            target: &self.target,
            namespace: self.progress.namespace.as_ref(),
            revision: self.progress.revision.as_ref(),
            state: record.map(|record| &record.state),
            terraform: record.map(|record| record.terraform.as_str()),
            changes: record.map(|record| &record.changes),
            counts: record.map(|record| record.changes.counts()),
            log_complete: self.progress.complete.as_ref().map(|c| *c == Complete::Yes),
            seconds: (self.took.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }

    fn last_line(&self) -> String {
        let target = &self.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        match (&self.progress.record, self.outcome) {
            (Some(record), Outcome::Done | Outcome::Refused | Outcome::LogIncomplete) => {
                let next = match &self.progress.namespace {
                    _ if record.changes.is_empty() => "nothing; a sync applies nothing".to_owned(),
                    _ => format!("read the lines above; the next sync of {target} applies them"),
                };
                format!(
                    "Planned: {} for {target} in {took}; nothing was applied. Next: {next}.",
                    in_words(&record.changes)
                )
            }
            (_, Outcome::Interrupted | Outcome::Terminated) => {
                format!(
                    "Planned: nothing for {target}, stopped after {took}; nothing was changed. Next: run it again."
                )
            }
            _ => format!(
                "Planned: nothing for {target}, failed after {took}; nothing was changed. Next: mend what is named above, and run it again."
            ),
        }
    }
}

/// `no changes`, or `3 changes (2 create, 1 replace (destroy then create)), 1 output, 1 already gone`.
fn in_words(changes: &Changes) -> String {
    let mut words = Vec::new();
    if !changes.resources.is_empty() {
        let mut kinds: Vec<String> = changes
            .counts()
            .into_iter()
            .filter(|(action, _)| *action != Action::Nothing)
            .map(|(action, count)| format!("{count} {}", action.word()))
            .collect();
        let moved = changes.resources.iter().filter(|c| c.moved_from.is_some());
        let imported = changes.resources.iter().filter(|c| c.import);
        for (count, word) in [(moved.count(), "move"), (imported.count(), "import")] {
            if count > 0 {
                kinds.push(format!("{count} {word}"));
            }
        }
        let count = counted(changes.resources.len(), "change");
        words.push(format!("{count} ({})", kinds.join(", ")));
    }
    if !changes.outputs.is_empty() {
        words.push(counted(changes.outputs.len(), "output"));
    }
    if !changes.gone.is_empty() {
        words.push(format!("{} already gone", changes.gone.len()));
    }
    if words.is_empty() {
        return "no changes".to_owned();
    }
    words.join(", ")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
