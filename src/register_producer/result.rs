//! What came of it: the last line on standard error, and the result file.

use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;

use crate::names::{AppPath, CommitSha, JobName, OwnedRepo, ProducerId};
use crate::report::{self, Failure, Outcome};

use super::judge::Artifact;
use super::{Change, Mode, PROGRAM, Wanted};

/// What was known when it ended.
#[derive(Debug, Default)]
pub struct Progress {
    /// What forbids it.
    pub faults: Vec<String>,
    /// What the caller was warned of.
    pub warnings: Vec<String>,
    /// The proof.
    pub artifact: Option<Artifact>,
    /// The commit on which there was nothing to do, or the change was shown.
    pub base: Option<CommitSha>,
    /// The change.
    pub shown: Option<Shown>,
    /// The commit that made it.
    pub commit: Option<CommitSha>,
}

/// A change of the file as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// A unified diff.
    pub diff: String,
}

impl Shown {
    pub(super) fn of(file: &str, before: &str, after: &str) -> Shown {
        let diff = TextDiff::from_lines(before, after);
        let mut diff = diff.unified_diff();
        let diff = diff.header(&format!("a/{file}"), &format!("b/{file}"));
        Shown {
            diff: diff.to_string(),
        }
    }
}

impl Progress {
    /// Says a warning on standard error, and keeps it for the result.
    pub(super) fn warn(&mut self, warning: String) {
        report::note(format_args!("warning: {warning}"));
        self.warnings.push(warning);
    }
}

/// How it ended.
#[derive(Debug)]
pub struct RegisterReport {
    pub(super) outcome: Outcome,
    failure: Option<Failure>,
    pub(super) progress: Progress,
    pub(super) wanted: Wanted,
    took: Duration,
}

/// The result file; its shape is documented in `schemas/register-producer-result.v1.schema.json`.
#[derive(Debug, Serialize)]
struct ResultFile<'a> {
    version: u32,
    program: &'static str,
    change: &'static str,
    dry_run: bool,
    outcome: Outcome,
    exit_code: u8,
    error: Option<String>,
    faults: &'a [String],
    warnings: &'a [String],
    id: &'a ProducerId,
    repo: Option<&'a OwnedRepo>,
    jenkins_job: Option<&'a JobName>,
    app_path: Option<&'a AppPath>,
    build: Option<u64>,
    build_url: Option<String>,
    artifact: Option<&'a Artifact>,
    diff: Option<&'a str>,
    base: Option<&'a CommitSha>,
    commit: Option<&'a CommitSha>,
    seconds: f64,
}

impl RegisterReport {
    /// Takes what it came to.
    pub(super) fn new(
        wanted: &Wanted,
        progress: Progress,
        took: Duration,
        end: Result<Outcome, Failure>,
    ) -> RegisterReport {
        let (outcome, failure) = report::split(end);
        RegisterReport {
            outcome,
            failure,
            progress,
            wanted: wanted.clone(),
            took,
        }
    }

    /// A run that ended before anything was read.
    pub fn failed(wanted: &Wanted, failure: Failure) -> RegisterReport {
        RegisterReport::new(wanted, Progress::default(), Duration::ZERO, Err(failure))
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
            change,
            mode,
            build,
            ..
        } = &self.wanted;
        let entry = change.wanted();
        let progress = &self.progress;
        ResultFile {
            version: 1,
            program: PROGRAM,
            change: change.word(),
            dry_run: *mode == Mode::Show,
            outcome: self.outcome,
            exit_code: self.outcome.code(),
            error: self.error(),
            faults: &progress.faults,
            warnings: &progress.warnings,
            id: change.id(),
            repo: entry.and_then(|entry| entry.repo.as_ref()),
            jenkins_job: entry.map(|entry| &entry.job),
            app_path: entry.and_then(|entry| entry.path.as_ref()),
            build: *build,
            build_url: self.wanted.build_url(),
            artifact: progress.artifact.as_ref(),
            diff: progress.shown.as_ref().map(|shown| shown.diff.as_str()),
            base: progress.base.as_ref(),
            commit: progress.commit.as_ref(),
            seconds: report::seconds(self.took),
        }
    }

    /// Why the exit code is not 0; nothing where it is.
    pub(super) fn error(&self) -> Option<String> {
        match (&self.failure, self.outcome) {
            (Some(failure), _) => Some(failure.message()),
            (None, Outcome::Interrupted) => Some("stopped by INT".to_owned()),
            (None, Outcome::Terminated) => Some("stopped by TERM".to_owned()),
            (None, _) => None,
        }
    }

    /// What was done, and what is next.
    pub(super) fn last_line(&self) -> String {
        let Wanted { change, mode, .. } = &self.wanted;
        let id = change.id();
        let took = format!("{:.1} s", self.took.as_secs_f64());
        let (done, would) = match change {
            Change::Register(_) => ("Registered", "registers"),
            Change::Repoint(_) => ("Re-pointed", "re-points"),
            Change::Remove(_) => ("Removed", "removes"),
        };
        let progress = &self.progress;
        match (self.outcome, &progress.commit, mode) {
            (_, Some(commit), _) => format!(
                "{done}: {id}, by commit {commit}, in {took}. Next: the collector's next run takes it from there."
            ),
            (Outcome::Done, None, Mode::Show) if progress.shown.is_some() => format!(
                "{done}: nothing, the change of {id} was shown alone, in {took}. Next: the same command without --dry-run {would} it."
            ),
            (Outcome::Done, None, _) => {
                let so = match change {
                    Change::Remove(_) => "there is no such entry",
                    Change::Register(_) | Change::Repoint(_) => "the file says it already",
                };
                format!("{done}: nothing, {so} ({id}), in {took}. Next: nothing.")
            }
            (Outcome::Refused | Outcome::Usage, None, _) => format!(
                "{done}: nothing of {id}, in {took}. Next: mend what is named above, and run it again."
            ),
            (_, None, _) => format!(
                "{done}: nothing of {id} that is known of, in {took}. Next: see to what is named above, and run it again: it goes on with what is there."
            ),
        }
    }
}
