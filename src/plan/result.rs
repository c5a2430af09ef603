//! What came of a plan: the last line on standard error, and the result file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::names::{
    AppPath, BranchName, CommitSha, Namespace, RepoName, RepoUrl, StageName, StateKey, Target,
};
use crate::presync::provenance::without_credentials;
use crate::report::{self, Failure, Outcome};
use crate::terraform::changes::{Action, Changes};
use crate::transport::follow::Complete;
use crate::transport::record::PlanRecord;

use super::Wanted;

/// What was known when the plan ended.
#[derive(Debug, Default)]
pub struct Progress {
    /// Once the terms were drawn: what the caller was warned of.
    pub warnings: Vec<String>,
    /// Once the terms were drawn.
    pub namespace: Option<Namespace>,
    /// Once the terms were drawn; none where the registry pins a commit.
    pub branch: Option<BranchName>,
    /// Once the branch was resolved.
    pub revision: Option<CommitSha>,
    /// Once the folders were found.
    pub state: Option<StatePlace>,
    /// Once presync had ended: its last line.
    pub last_line: Option<String>,
    /// Once presync had finished.
    pub record: Option<PlanRecord>,
    /// Once presync had ended.
    pub complete: Option<Complete>,
}

/// Where a stage's state is.
#[derive(Debug)]
pub struct StatePlace {
    /// The state repository.
    pub repository: RepoUrl,
    /// Its branch.
    pub branch: BranchName,
    /// The state's path in it.
    pub key: StateKey,
}

impl Progress {
    /// Says a warning on standard error, and keeps it for the result.
    pub fn warn(&mut self, warning: String) {
        report::note(format_args!("warning: {warning}"));
        self.warnings.push(warning);
    }
}

/// How a plan ended.
#[derive(Debug)]
pub struct PlanReport {
    pub(super) outcome: Outcome,
    failure: Option<Failure>,
    pub(super) progress: Progress,
    pub(super) target: Target,
    pub(super) log: Option<PathBuf>,
    pub(super) build: Option<String>,
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
    warnings: &'a [String],
    target: String,
    repo: &'a RepoName,
    app_path: Option<&'a AppPath>,
    stage: &'a StageName,
    namespace: Option<&'a Namespace>,
    branch: Option<&'a BranchName>,
    revision: Option<&'a CommitSha>,
    state: Option<StateInResult<'a>>,
    terraform: Option<&'a str>,
    has_changes: Option<bool>,
    counts: Option<BTreeMap<Action, usize>>,
    changes: Option<&'a Changes>,
    log: Option<&'a Path>,
    log_complete: Option<bool>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct StateInResult<'a> {
    repository: &'a RepoUrl,
    branch: &'a BranchName,
    key: &'a StateKey,
    found: Option<bool>,
    lineage: Option<&'a str>,
    serial: Option<u64>,
}

impl PlanReport {
    /// Takes what the plan came to.
    pub(super) fn new(
        wanted: &Wanted,
        progress: Progress,
        took: Duration,
        end: Result<Outcome, Failure>,
    ) -> PlanReport {
        let (outcome, failure) = report::split(end);
        PlanReport {
            outcome,
            failure,
            progress,
            target: wanted.target.clone(),
            log: wanted.log.clone(),
            build: wanted.build.as_deref().map(without_credentials),
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
        report::end(
            program,
            self.failure.as_ref(),
            self.error(),
            self.last_line(),
        );
    }

    /// The result file's content.
    pub fn result(&self) -> impl Serialize + '_ {
        let progress = &self.progress;
        let record = progress.record.as_ref();
        let position = record.and_then(|record| record.state.position.as_ref());
        ResultFile {
            version: 1,
            program: "stagewright-plan",
            outcome: self.outcome,
            exit_code: self.outcome.code(),
            error: self.error(),
            warnings: &progress.warnings,
            target: self.target.to_string(),
            repo: &self.target.repo,
            app_path: self.target.path.as_ref(),
            stage: &self.target.stage,
            namespace: progress.namespace.as_ref(),
            branch: progress.branch.as_ref(),
            revision: progress.revision.as_ref(),
            state: progress.state.as_ref().map(|place| StateInResult {
                repository: &place.repository,
                branch: &place.branch,
                key: &place.key,
                found: record.map(|_| position.is_some()),
                lineage: position.map(|position| position.lineage.as_str()),
                serial: position.map(|position| position.serial),
            }),
            terraform: record.map(|record| record.terraform.as_str()),
            has_changes: record.map(|record| !record.changes.is_empty()),
            counts: record.map(|record| record.changes.counts()),
            changes: record.map(|record| &record.changes),
            log: self.log.as_deref(),
            log_complete: progress.complete.as_ref().map(|c| *c == Complete::Yes),
            seconds: report::seconds(self.took),
        }
    }

    /// Why the exit code is not 0; nothing where it is.
    pub(super) fn error(&self) -> Option<String> {
        if let Some(failure) = &self.failure {
            return Some(failure.message());
        }
        let missing = self.missing();
        let said = self.progress.last_line.as_ref();
        let said = said.map(|line| format!("the log ends with: {line}"));
        let parts = match self.outcome {
            Outcome::Done => return None,
            Outcome::Interrupted => [Some("stopped by INT".to_owned()), missing],
            Outcome::Terminated => [Some("stopped by TERM".to_owned()), missing],
            Outcome::Refused if self.progress.record.is_some() => {
                let changes = "the plan carries changes, and --fail-on-changes was given";
                [Some(changes.to_owned()), None]
            }
            Outcome::LogIncomplete => [missing, None],
            _ => [missing, said],
        };
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }

    /// What of the log did not arrive.
    fn missing(&self) -> Option<String> {
        match &self.progress.complete {
            Some(Complete::No(missing)) => Some(format!("the log is not complete: {missing}")),
            Some(Complete::Yes) | None => None,
        }
    }

    pub(super) fn last_line(&self) -> String {
        let target = &self.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        match (&self.progress.record, self.outcome) {
            (Some(record), Outcome::Done | Outcome::Refused | Outcome::LogIncomplete) => {
                let revision: String = record.revision.as_str().chars().take(12).collect();
                let next = if record.changes.is_empty() {
                    format!("nothing; a sync of {target} at {revision} would apply nothing")
                } else {
                    let would = match record.changes.refused() {
                        0 => "would apply them".to_owned(),
                        refused => format!(
                            "would apply none of them, because of {}",
                            counted(refused, "protected resource")
                        ),
                    };
                    format!("read the changes in the log; a sync of {target} at {revision} {would}")
                };
                let changes = in_words(&record.changes);
                let from = match record.state.position {
                    Some(_) => "",
                    None => " from no state",
                };
                format!(
                    "Planned: {changes} for {target}{from} in {took}; nothing was applied. Next: {next}."
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
            .filter(|(action, count)| *count > 0 && *action != Action::Nothing)
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
