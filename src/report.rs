//! From an outcome to what a caller sees: the exit code, the result file, and every line that a job prints.
//! The only room that prints; presync's log is written by `presync/log.rs`.

mod shown;

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Display;
use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use serde::Serialize;

use crate::stop::StopSignal;

pub use shown::Shown;

/// How a job ended. The numbers are an interface: Jenkinsfiles and scripts branch on them, and the README lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done, or nothing left to do.
    Done,
    /// Something could not be read or written.
    Failed,
    /// The command line, the settings or the root's form is wrong.
    Usage,
    /// Refused: a guard, a check's findings, a protected resource; or changes under `--fail-on-changes`.
    Refused,
    /// The launched run failed.
    RunFailed,
    /// What was confirmed, or what a commit was based on, is no longer so.
    Moved,
    /// Not confirmed: nothing was destroyed.
    NotConfirmed,
    /// The launched run never started.
    NeverStarted,
    /// The run ended, but its log is not complete.
    LogIncomplete,
    /// The state is locked by someone else.
    Locked,
    /// A service did not answer; try again later.
    Later,
    /// Stopped by a signal, after cleaning up.
    Interrupted,
    /// Stopped by a signal, after cleaning up.
    Terminated,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::Usage => 2,
            Outcome::Refused => 3,
            Outcome::RunFailed => 4,
            Outcome::Moved => 5,
            Outcome::NotConfirmed => 6,
            Outcome::NeverStarted => 7,
            Outcome::LogIncomplete => 8,
            Outcome::Locked => 9,
            Outcome::Later => 10,
            Outcome::Interrupted => 130,
            Outcome::Terminated => 143,
        }
    }

    /// How it ended, for people.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Done => "Done",
            Outcome::Failed => "Failed",
            Outcome::Usage => "Not begun",
            Outcome::Refused => "Refused",
            Outcome::RunFailed => "The run failed",
            Outcome::Moved => "Moved",
            Outcome::NotConfirmed => "Not confirmed",
            Outcome::NeverStarted => "The run never started",
            Outcome::LogIncomplete => "The log is not complete",
            Outcome::Locked => "The state is locked",
            Outcome::Later => "Try again later",
            Outcome::Interrupted | Outcome::Terminated => "Stopped",
        }
    }

    /// The code that a shell gives to a program that died of this signal.
    pub fn of_stop(signal: StopSignal) -> Outcome {
        match signal {
            StopSignal::Int => Outcome::Interrupted,
            StopSignal::Term => Outcome::Terminated,
        }
    }
}

/// A job's failure: what it means for the exit code, and why.
#[derive(Debug)]
pub struct Failure {
    outcome: Outcome,
    error: Box<dyn Error>,
}

impl Failure {
    /// A failure with the outcome that its room gave it.
    pub fn new(outcome: Outcome, error: impl Error + 'static) -> Failure {
        Failure {
            outcome,
            error: Box::new(error),
        }
    }

    /// INT and TERM cannot be caught, so a stop could not be passed on: nothing is started.
    pub fn no_signals(error: io::Error) -> Failure {
        Failure::new(Outcome::Failed, SignalsError(error))
    }

    /// What it means for the exit code.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The error and its causes on one line.
    pub fn message(&self) -> String {
        one_line(self.error.as_ref())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the stop signals could not be caught")]
struct SignalsError(#[source] io::Error);

/// A file that a job was told to write.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be written", file.display())]
pub struct OutputError {
    file: PathBuf,
    #[source]
    source: io::Error,
}

/// Runs a job's or presync's future on this thread. (A parent-death signal is bound to the thread that started the child,
/// so there is no other one that could end earlier.)
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}

/// Runs a job to its exit code, and prints the failure where it did not end with an outcome.
pub fn job(program: &str, work: impl Future<Output = Result<Outcome, Failure>>) -> ExitCode {
    let end = block_on(work).unwrap_or_else(|error| Err(Failure::no_signals(error)));
    let outcome = end.unwrap_or_else(|error| {
        failure(program, &error);
        error.outcome
    });
    ExitCode::from(outcome.code())
}

/// Prints what a job has to say about itself: stderr, one line.
pub fn note(text: impl Display) {
    to_stderr(&format!("{text}\n"));
}

/// Writes a text that is the work itself to standard output.
pub fn text(text: &impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.to_string().as_bytes())?;
    out.flush()
}

/// Whether what [`text`] writes may have colours: it goes to a terminal, and nobody asked for none
/// (<https://no-color.org>).
pub fn text_is_coloured() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !refused
}

/// Prints one of the lines that say what is worked on.
pub fn heading(name: &str, text: impl Display) {
    to_stderr(&format!("{name:<13}{text}\n"));
}

/// What an end means for the exit code, and the failure where it is one.
pub fn split(end: Result<Outcome, Failure>) -> (Outcome, Option<Failure>) {
    match end {
        Ok(outcome) => (outcome, None),
        Err(failure) => (failure.outcome(), Some(failure)),
    }
}

/// Seconds to the millisecond, as result files have them.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Prints how a job ended: its failure with the causes, else `error` on one line, and its last line.
pub fn end(program: &str, failed: Option<&Failure>, error: Option<String>, last_line: String) {
    match (failed, error) {
        (Some(failed), _) => failure(program, failed),
        (None, Some(error)) => note(format_args!("{program}: {error}")),
        (None, None) => {}
    }
    note(last_line);
}

/// Prints a failure with its causes, one a line.
pub fn failure(program: &str, failure: &Failure) {
    // One line each: a name in it may hold a line end, and what follows must not look like a line of ours.
    let line = |text: String| text.replace('\n', " ");
    let mut text = format!("{program}: {}\n", line(failure.error.to_string()));
    for cause in causes(failure.error.as_ref()) {
        text.push_str(&format!("  because: {}\n", line(cause)));
    }
    to_stderr(&text);
}

/// What clap has to say: an error of the command line, or the help that was asked for.
pub fn arguments(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        to_stderr(&text.to_string());
        return ExitCode::from(Outcome::Usage.code());
    }
    match io::stdout().write_all(text.to_string().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(Outcome::Failed.code()),
    }
}

/// A program that was to take this process's place could not be started.
pub fn child_did_not_start(program: &OsStr, error: &io::Error) {
    to_stderr(&format!(
        "{} could not be started: {error}\n",
        program.display()
    ));
}

/// An error and its causes joined on one line.
pub fn one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&cause);
    }
    text
}

/// The causes of an error, without those whose text the one above already ends with: some libraries repeat theirs.
fn causes(error: &dyn Error) -> Vec<String> {
    let mut above = error.to_string();
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !above.ends_with(&text) {
            causes.push(text.clone());
        }
        above = text;
        next = cause.source();
    }
    causes
}

/// Standard error may be closed; nobody could be told of that.
fn to_stderr(text: &str) {
    let clean: String = text
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if let Err(error) = io::stderr().write_all(clean.as_bytes()) {
        tracing::trace!(%error, "standard error is closed");
    }
}

/// Looks whether [`write_whole`] could write this file now, by making the one beside it and leaving none, and removes
/// what an earlier run wrote: it must not be taken for this run's.
pub fn prepare_result(file: &Path) -> Result<(), OutputError> {
    let failed = |source| OutputError {
        file: file.to_owned(),
        source,
    };
    if file.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    match real_target(file) {
        Target::Replaced(file) => {
            beside(&file)?;
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            }
        }
        Target::WrittenTo => Ok(()),
    }
}

/// How a result reaches the path that was named.
enum Target {
    /// It takes the place of this file, which is there or not: the path, or where a link at it leads.
    Replaced(PathBuf),
    /// A device or a pipe stands there, which is written to and stays.
    WrittenTo,
}

fn real_target(file: &Path) -> Target {
    match std::fs::metadata(file) {
        Ok(there) if !there.is_file() => Target::WrittenTo,
        Ok(_) => Target::Replaced(file.canonicalize().unwrap_or(file.to_owned())),
        Err(_) => Target::Replaced(file.to_owned()),
    }
}

/// Writes a result as JSON, as [`write_whole`] does.
pub fn write_result(file: &Path, result: &impl Serialize) -> Result<(), OutputError> {
    let json = serde_json::to_vec_pretty(result);
    let mut json = json.map_err(|error| OutputError {
        file: file.to_owned(),
        source: io::Error::other(error),
    })?;
    json.push(b'\n');
    write_whole(file, &json)
}

/// Writes a file whole or not at all: to one beside it first, which then takes its name.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let failed = |source| OutputError {
        file: file.to_owned(),
        source,
    };
    match real_target(file) {
        Target::WrittenTo => {
            // A pipe that nobody reads would be waited for without end, and no signal heard.
            let mut out = std::fs::OpenOptions::new()
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(file)
                .map_err(failed)?;
            fcntl_setfl(&out, OFlags::empty()).map_err(|e| failed(e.into()))?;
            out.write_all(bytes).map_err(failed)
        }
        Target::Replaced(file) => {
            let mut beside = beside(&file)?;
            beside.write_all(bytes).map_err(failed)?;
            beside.persist(&file).map_err(|e| failed(e.error))?;
            Ok(())
        }
    }
}

/// A file without a name of its own yet, in the folder of `file`.
fn beside(file: &Path) -> Result<tempfile::NamedTempFile, OutputError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    std::fs::metadata(folder).map_err(|source| OutputError {
        file: file.to_owned(),
        source,
    })?;
    // 0666 less the umask, as any other file that a program is told to write.
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        // The library's own error names the file beside, which means nothing to a caller.
        .map_err(|error| OutputError {
            file: file.to_owned(),
            source: error.kind().into(),
        })
}

/// Debug lines on standard error, for `-v`.
pub fn verbose() {
    // Only the first call of a process can succeed, and there is only one.
    let _set = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let error = write_result(&pipe, &"x").unwrap_err();
        assert!(error.to_string().contains("pipe"), "{error}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Level {
        text: &'static str,
        #[source]
        source: Option<Box<Level>>,
    }

    fn chain(texts: &[&'static str]) -> Level {
        let mut levels = texts.iter().rev();
        let mut error = Level {
            text: levels.next().unwrap(),
            source: None,
        };
        for text in levels {
            error = Level {
                text,
                source: Some(Box::new(error)),
            };
        }
        error
    }

    #[test]
    fn every_cause_is_told_once_even_where_a_library_repeats_it() {
        assert_eq!(
            one_line(&chain(&["a failed", "b failed: c", "c"])),
            "a failed: b failed: c"
        );
        assert_eq!(one_line(&chain(&["a", "b", "c"])), "a: b: c");
    }

    #[test]
    fn a_result_goes_where_a_link_leads_and_into_a_device_that_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target.json");
        std::fs::write(&target, "old").unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        prepare_result(&link).unwrap();
        std::fs::write(&target, "").unwrap();
        write_result(&link, &1).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "1\n");
        let device = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        prepare_result(&device).unwrap();
        write_result(&device, &1).unwrap();
        assert!(device.is_symlink());
    }

    #[test]
    fn a_result_replaces_the_file_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("result.json");
        std::fs::write(&file, "old").unwrap();
        write_result(&file, &vec![1, 2]).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[\n  1,\n  2\n]\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
