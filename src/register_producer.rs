//! Registering a producer of architecture: the facts are gathered (`gather.rs`), judged all at once ([`judge`]), the edit of the file
//! drawn, shown or carried out in one commit, the outcome reported (`result.rs`).

mod draw;
mod error;
mod gather;
pub mod judge;
mod page;
mod result;

use std::time::Instant;

use crate::estate::{EstateError, open_forge};
use crate::forge::{Edit as FileEdit, Edited, FileToEdit, Forge};
use crate::names::{AppPath, CommitSha, ProducerId};
use crate::presync::provenance;
use crate::producers::Producer;
use crate::producers::edit::{Edit, EditError};
use crate::report::{self, Failure, Outcome};
use crate::settings::{ProducersSettings, Settings};
use crate::stop::Stop;

use draw::draw;
pub use error::RegisterError;
use gather::gather;
pub use result::RegisterReport;
use result::{Progress, Shown};

/// The program.
pub const PROGRAM: &str = "stagewright-register-producer";

/// What is to become of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This entry more.
    Register(Producer),
    /// The entry of the same id says this of repository, job and path.
    Repoint(Producer),
    /// The entry of this id less.
    Remove(ProducerId),
}

impl Change {
    /// The producer.
    pub fn id(&self) -> &ProducerId {
        match self {
            Change::Register(producer) | Change::Repoint(producer) => &producer.id,
            Change::Remove(id) => id,
        }
    }

    /// What the entry is to say; nothing where it goes.
    pub fn wanted(&self) -> Option<&Producer> {
        match self {
            Change::Register(producer) | Change::Repoint(producer) => Some(producer),
            Change::Remove(_) => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Change::Register(_) => "register",
            Change::Repoint(_) => "repoint",
            Change::Remove(_) => "remove",
        }
    }
}

/// Whether a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is shown alone (`--dry-run`).
    Show,
    /// It is committed.
    Commit,
}

/// What the caller asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What is to become of the file.
    pub change: Change,
    /// Whether it is made.
    pub mode: Mode,
    /// The number of the build that asks.
    pub build: Option<u64>,
    /// Its address, for people.
    pub build_url: Option<String>,
    /// Who asks, where it is told.
    pub requested_by: Option<String>,
}

impl Wanted {
    fn build_url(&self) -> Option<String> {
        let url = self.build_url.as_deref();
        url.map(provenance::without_credentials)
    }

    /// Who asks.
    fn requester(&self) -> String {
        let build = self
            .build_url()
            .or_else(|| self.build.map(|number| format!("build #{number}")));
        provenance::requester(self.requested_by.as_deref(), build)
    }
}

/// Where a producer's artifact is archived: below the app's folder where it has one.
pub fn artifact_of(id: &ProducerId, path: Option<&AppPath>) -> String {
    match path {
        Some(path) => format!("{path}/docs/architecture/{id}.yaml"),
        None => format!("docs/architecture/{id}.yaml"),
    }
}

/// Makes the change, and says on standard error what is worked on. The report holds as much as was known when it ended, however it ended.
pub async fn run(wanted: &Wanted, settings: &Settings, stop: &mut Stop) -> RegisterReport {
    let started = Instant::now();
    let mut progress = Progress::default();
    let end = tokio::select! {
        end = carry_out(wanted, settings, &mut progress) => end.map_err(Failure::from),
        signal = stop.next() => Ok(Outcome::of_stop(signal)),
    };
    RegisterReport::new(wanted, progress, started.elapsed(), end)
}

async fn carry_out(
    wanted: &Wanted,
    settings: &Settings,
    progress: &mut Progress,
) -> Result<Outcome, RegisterError> {
    let place = settings.producers.as_ref();
    let place = place.ok_or_else(|| RegisterError::NoProducers {
        file: settings.file.clone(),
    })?;
    let forge = open_forge(settings)?;
    let found = forge.canonical_name(&place.repo).await;
    found.map_err(|source| EstateError::SettingsName {
        key: "producers.repo",
        file: settings.file.clone(),
        source: Box::new(source),
    })?;
    let change = &wanted.change;
    match change.wanted() {
        Some(producer) => report::heading("producer", producer),
        None => report::heading("producer", format_args!("id: {}", change.id())),
    }
    let head = forge.head(&place.repo, &place.branch).await?;
    report::heading(
        "file",
        format_args!("{} {} {head} ({})", place.repo, place.file, place.branch),
    );
    let text = text_of(&forge.read(&place.repo, &head, &place.file).await?, place)?;
    let drawn = draw(change, &text, &place.file);
    if matches!(drawn, Ok(Edit::Nothing)) {
        progress.base = Some(head);
        return Ok(Outcome::Done);
    }
    if wanted.mode == Mode::Commit {
        forge.may_write(&place.repo, &place.branch).await?;
    }
    let mut faults = Vec::new();
    if let Some(producer) = change.wanted() {
        let facts = gather(producer, &text, &forge, settings, place).await?;
        let judged = judge::judge(producer, &facts, &place.id_key);
        for note in judged.notes {
            report::note(format_args!("note: {note}"));
        }
        for warning in judged.warnings {
            progress.warn(warning);
        }
        faults = judged.faults;
        progress.artifact = judged.artifact;
    }
    let edit = match drawn {
        Ok(edit) => Some(edit),
        // What comes out is wrong because of what was asked for, and that is told already.
        Err(EditError::NotProven { .. }) if !faults.is_empty() => None,
        Err(error) => {
            faults.insert(0, error.to_string());
            None
        }
    };
    if !faults.is_empty() {
        for fault in &faults {
            report::note(format_args!("fault: {fault}"));
        }
        progress.faults = faults;
        return Err(RegisterError::Refused {
            id: change.id().clone(),
            faults: progress.faults.len(),
        });
    }
    if let (Mode::Show, Some(Edit::Text(after))) = (wanted.mode, edit) {
        progress.base = Some(head);
        progress.shown = Some(Shown::of(&place.file, &text, &after));
    } else {
        commit(wanted, &forge, place, progress).await?;
    }
    if let Some(shown) = &progress.shown {
        report::text(&shown.diff).map_err(RegisterError::Show)?;
    }
    Ok(Outcome::Done)
}

fn text_of(content: &[u8], place: &ProducersSettings) -> Result<String, RegisterError> {
    let text = String::from_utf8(content.to_vec());
    text.map_err(|_| RegisterError::Encoding {
        file: place.file.clone(),
    })
}

/// Draws the edit on what the file holds then, and commits it.
async fn commit(
    wanted: &Wanted,
    forge: &Forge,
    place: &ProducersSettings,
    progress: &mut Progress,
) -> Result<(), RegisterError> {
    let author = provenance::commit_author().map_err(RegisterError::Author)?;
    let message = draw::message(wanted, progress.artifact.as_ref());
    let at = FileToEdit {
        repo: &place.repo,
        branch: &place.branch,
        file: &place.file,
    };
    let mut shown = None;
    let judge = |_: &CommitSha, content: &[u8]| -> Result<FileEdit, RegisterError> {
        let text = text_of(content, place)?;
        Ok(match draw(&wanted.change, &text, &place.file)? {
            Edit::Nothing => {
                shown = None;
                FileEdit::Nothing
            }
            Edit::Text(after) => {
                shown = Some(Shown::of(&place.file, &text, &after));
                FileEdit::Write {
                    content: after.into_bytes(),
                    message: message.clone(),
                }
            }
        })
    };
    match forge.edit_file(at, &author, judge).await? {
        Edited::Done(commit) => {
            progress.commit = Some(commit);
            progress.shown = shown;
        }
        // Somebody else did the same meanwhile.
        Edited::Nothing(head) => progress.base = Some(head),
        Edited::Contended => return Err(RegisterError::Contended),
    }
    Ok(())
}
