//! A report for people as one page that needs nothing else: as HTML ([`mod@html`]) or as Markdown ([`mod@markdown`]). The stories say what
//! stands on it and in which order; what comes from outside reaches a page as text alone, whatever it holds.

mod escape;
mod html;
mod markdown;
mod style;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::terraform::changes::{Action, Change, OutputChange};
use crate::terraform::values::ValuesOf;

pub use html::html;
pub use markdown::markdown;

/// Where a report goes, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    file: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Html,
    Markdown,
}

/// A file by whose name it cannot be told what to write.
#[derive(Debug, thiserror::Error)]
#[error("a report is written as HTML or as Markdown: name a file that ends in .html or in .md")]
pub struct FormError;

impl FromStr for ReportFile {
    type Err = FormError;

    fn from_str(text: &str) -> Result<ReportFile, FormError> {
        let file = PathBuf::from(text);
        let form = match file.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Form::Html,
            Some("md") => Form::Markdown,
            _ => return Err(FormError),
        };
        Ok(ReportFile { file, form })
    }
}

impl ReportFile {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The page in the form that the file's name asks for.
    pub fn show(&self, page: &Page) -> String {
        match self.form {
            Form::Html => html(page),
            Form::Markdown => markdown(page),
        }
    }
}

/// A whole page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What kind of report it is: `Plan`.
    pub kind: String,
    /// What it is about: `PlatformDeploy/headlamp/prd`.
    pub target: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What else the caller was told.
    pub warnings: Vec<String>,
    /// What a reader must know of it, by name.
    pub facts: Vec<Fact>,
    /// The rest, in the order in which it is to be read.
    pub parts: Vec<Part>,
    /// By which program, and when.
    pub made: String,
}

/// How a job ended, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How it is to be taken.
    pub tone: Tone,
    /// In a word or two.
    pub word: String,
    /// Why it did not end well, where it did not.
    pub error: Option<String>,
    /// What was done, and what is next.
    pub last_line: String,
}

/// How something is to be taken. It is said in words as well: nothing hangs on a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing is to be done or feared.
    Calm,
    /// Read it.
    Notice,
    /// Something is lost, or has failed.
    Grave,
}

/// A name with what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// `commit`
    pub name: String,
    /// One line each.
    pub lines: Vec<String>,
}

impl Fact {
    /// A fact of one line.
    pub fn new(name: &str, line: &(impl ToString + ?Sized)) -> Fact {
        Fact {
            name: name.to_owned(),
            lines: vec![line.to_string()],
        }
    }
}

/// A part under its own heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The heading.
    pub heading: String,
    /// How it is to be taken.
    pub tone: Tone,
    /// What stands below it.
    pub body: Body,
}

/// What a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A sentence each.
    Lines(Vec<String>),
    /// A table with the names of its columns.
    Table {
        /// The names.
        head: Vec<String>,
        /// The rows, as long as the head.
        rows: Vec<Vec<String>>,
    },
    /// Changes, each with its values.
    Changes {
        /// One after the other.
        changes: Vec<Item>,
        /// How many stand without values because there were too many.
        left_out: usize,
    },
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// At which address.
    pub address: String,
    /// What is done: `destroy`, …
    pub action: Action,
    /// In words, with a move or an import.
    pub words: String,
    /// What it holds, and by what it is known outside.
    pub data: Option<String>,
    /// What else is to be said of it.
    pub notes: Vec<String>,
    /// Its attributes, where they are known.
    pub values: Option<ValuesOf>,
}

impl Item {
    /// A change of a resource.
    pub fn of(change: &Change, values: Option<&ValuesOf>) -> Item {
        let mut notes = Vec::new();
        notes.extend(
            change.deposed.as_ref().map(|key| {
                format!("a deposed object, which a failed replacement left behind: {key}")
            }),
        );
        notes.extend(
            change
                .moved_from
                .as_ref()
                .map(|from| format!("moved from {from}")),
        );
        notes.extend(
            change
                .import
                .then(|| "taken over from outside (import)".to_owned()),
        );
        notes.extend(change.protected.map(|protected| protected.to_string()));
        let words = match change.action {
            Action::Unknown => change.actions.join(" and "),
            Action::Nothing if change.import => "import".to_owned(),
            Action::Nothing => "move".to_owned(),
            action => action.word().to_owned(),
        };
        Item {
            address: change.address.clone(),
            action: change.action,
            words,
            data: values.and_then(|values| values.holds.clone()),
            notes,
            values: values.cloned(),
        }
    }

    /// A change of an output.
    pub fn of_output(change: &OutputChange, values: &[ValuesOf]) -> Item {
        Item {
            address: format!("output.{}", change.name),
            action: change.action,
            words: change.action.word().to_owned(),
            data: None,
            notes: Vec::new(),
            values: values.iter().find(|of| of.address == change.name).cloned(),
        }
    }
}

/// How an action is to be taken.
fn tone_of(action: Action) -> Tone {
    match action {
        action if action.destroys() => Tone::Grave,
        Action::Update | Action::Forget | Action::CreateThenForget => Tone::Notice,
        _ => Tone::Calm,
    }
}

/// In which order changes are read: what is lost first.
pub fn weight_of(action: Action) -> u8 {
    match action {
        Action::Unknown => 0,
        Action::Destroy => 1,
        Action::DestroyThenCreate | Action::CreateThenDestroy => 2,
        Action::Forget | Action::CreateThenForget => 3,
        Action::Update => 4,
        Action::Create => 5,
        Action::Nothing => 6,
        Action::Read => 7,
    }
}

/// The last line of a page: by which program it was made, and when.
pub fn made(program: &str, now: jiff::Timestamp) -> String {
    let now = now.round(jiff::Unit::Second).unwrap_or(now);
    let version = env!("CARGO_PKG_VERSION");
    format!("Made at {now} by {program} {version}. Sensitive values are hidden.")
}

/// The sign that stands before an action.
fn sign_of(action: Action) -> &'static str {
    match action {
        Action::Create => "+",
        Action::Update => "~",
        Action::Destroy => "−",
        Action::DestroyThenCreate => "−/+",
        Action::CreateThenDestroy => "+/−",
        Action::CreateThenForget => "+/·",
        Action::Forget => "·",
        Action::Read => "←",
        Action::Nothing => "=",
        Action::Unknown => "?",
    }
}

/// What is said below a change's attributes of those that are not there.
fn beside(values: &ValuesOf) -> Option<String> {
    let counted = |count: usize| match count {
        1 => "1 attribute".to_owned(),
        count => format!("{count} attributes"),
    };
    let mut said = Vec::new();
    if values.left_out > 0 {
        said.push(format!(
            "{} more are not here: the report would be too long; the log has them",
            counted(values.left_out)
        ));
    }
    if values.same > 0 {
        let stay = if values.same == 1 { "stays" } else { "stay" };
        said.push(format!("{} {stay} as before", counted(values.same)));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// What is said of changes without values.
fn without_values(left_out: usize) -> Option<String> {
    let changes = match left_out {
        0 => return None,
        1 => "1 change stands".to_owned(),
        count => format!("{count} changes stand"),
    };
    Some(format!(
        "{changes} here without values, since all of them would be too long: the log has them."
    ))
}

#[cfg(test)]
mod tests;
