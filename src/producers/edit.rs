//! Changes to the text of the file that keep every other byte: an entry more, another or one less. The new text is read again, and
//! must hold exactly what it should.
//!
//! An entry is its lines from the dash to its last line that is indented deeper than the dash, comments in between and beside
//! included. What stands between two entries, comments at the dash's column among it, belongs to the file: such a comment begins a
//! section.

mod layout;

use super::{Fault, Producer, Producers};
use crate::names::{ProducerId, nearest};
use crate::yaml::Place;

use layout::Layout;

/// How the ids of producers end that a deploy repository carries.
pub const DEPLOY: &str = "-deploy";

/// A change that was thought out whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The file says it already.
    Nothing,
    /// What the file becomes.
    Text(String),
}

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file has faults of its own.
    #[error("{} fault(s) in the file, which stop the collector as it is; mend them first: {}", .0.len(), each(.0))]
    Faults(Vec<Fault>),
    /// The id is another entry's.
    #[error(
        "{file}:{place}: the id {} is there already and says something else\n  there:  {there}\n  wanted: {wanted}\nTo point the entry elsewhere, ask for that with --repoint",
        wanted.id
    )]
    Other {
        /// The file.
        file: String,
        /// Where it stands.
        place: Place,
        /// What it says.
        there: Box<Producer>,
        /// What was wanted.
        wanted: Box<Producer>,
    },
    /// No such entry.
    #[error("{file} has no producer {id}{}", near(.like))]
    Absent {
        /// The file.
        file: String,
        /// The id.
        id: ProducerId,
        /// Ids that look like it.
        like: Vec<String>,
    },
    /// It is the last one.
    #[error(
        "{file} would be left without a producer, which stops the collector; register another one first"
    )]
    Last {
        /// The file.
        file: String,
    },
    /// It is written in a form that is not edited.
    #[error(
        "{file}:{place}: {what}; edit it by hand, or write the list with one `- ` line for each entry and one line for each key"
    )]
    Form {
        /// The file.
        file: String,
        /// Where.
        place: Place,
        /// What is in the way.
        what: String,
    },
    /// What came out is not what it should be.
    #[error("{file}: the edited file would not say what it should, so it is left as it is{}; edit it by hand", because(.fault))]
    NotProven {
        /// The file.
        file: String,
        /// What is wrong with it.
        fault: Option<Box<Fault>>,
    },
}

fn each(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

fn near(like: &[String]) -> String {
    match like {
        [] => String::new(),
        like => format!("; it has {}", like.join(", ")),
    }
}

fn because(fault: &Option<Box<Fault>>) -> String {
    fault.as_ref().map_or_else(String::new, |fault| {
        format!(" ({}: {})", fault.place, fault.message)
    })
}

/// The file with `wanted` registered: behind the last entry of the same repository, else at the end of the last section that has a
/// producer of the same kind (one of a deploy repository, by its id, or another), else at the end.
pub fn add(text: &str, file: &str, wanted: &Producer) -> Result<Edit, EditError> {
    let before = Producers::read(text, file).map_err(EditError::Faults)?;
    if let Some(entry) = before.entries.iter().find(|e| e.producer.id == wanted.id) {
        if entry.producer == *wanted {
            return Ok(Edit::Nothing);
        }
        return Err(EditError::Other {
            file: file.to_owned(),
            place: entry.place,
            there: Box::new(entry.producer.clone()),
            wanted: Box::new(wanted.clone()),
        });
    }
    let layout = Layout::of(text, file, &before)?;
    let at = behind(&before, &layout, wanted);
    let mut expected: Vec<Producer> = before.all().cloned().collect();
    expected.insert(at + 1, wanted.clone());
    let lines = layout.entry(at, wanted);
    proven(layout.with_behind(at, &lines), file, &expected)
}

/// Behind which entry a new one goes.
fn behind(before: &Producers, layout: &Layout, wanted: &Producer) -> usize {
    let of_same_repo = |producer: &Producer| wanted.repo.is_some() && producer.repo == wanted.repo;
    if let Some(at) = before.all().rposition(of_same_repo) {
        return at;
    }
    let is_deploy = |producer: &Producer| producer.id.as_str().ends_with(DEPLOY);
    let kind = is_deploy(wanted);
    let of_kind = before
        .all()
        .rposition(|producer| is_deploy(producer) == kind);
    let last = before.entries.len() - 1;
    of_kind.map_or(last, |at| layout.end_of_section(at))
}

/// The file with the entry of the same id saying what `wanted` says of repository, job and path; the rest of the entry stays.
pub fn repoint(text: &str, file: &str, wanted: &Producer) -> Result<Edit, EditError> {
    let before = Producers::read(text, file).map_err(EditError::Faults)?;
    let at = position(&before, file, &wanted.id)?;
    let there = &before.entries[at].producer;
    let wanted = Producer {
        repo: wanted.repo.clone(),
        job: wanted.job.clone(),
        path: wanted.path.clone(),
        ..there.clone()
    };
    if *there == wanted {
        return Ok(Edit::Nothing);
    }
    let mut layout = Layout::of(text, file, &before)?;
    let values = &before.entries[at].values;
    let repo = wanted.repo.as_ref().map(ToString::to_string);
    let job = Some(wanted.job.to_string());
    let path = wanted.path.as_ref().map(ToString::to_string);
    // From the last to the first, so that the places of those before stay true.
    let mut keys = [("repo", repo), ("jenkinsJob", job), ("path", path)];
    keys.sort_by_key(|(key, _)| std::cmp::Reverse(values.get(*key).copied()));
    for (key, value) in &keys {
        match (values.get(*key), value) {
            (Some(place), Some(value)) => layout.set(at, *place, value)?,
            (Some(place), None) => layout.drop_key(at, key, *place)?,
            (None, _) => {}
        }
    }
    // What was missing goes behind the job, whose line has not moved but by what was dropped above it.
    for (key, value) in keys.iter().filter(|(key, _)| !values.contains_key(*key)) {
        if let Some(value) = value {
            layout.add_key(at, key, value)?;
        }
    }
    let mut expected: Vec<Producer> = before.all().cloned().collect();
    expected[at] = wanted;
    proven(layout.text(), file, &expected)
}

/// The file without the entry.
pub fn remove(text: &str, file: &str, id: &ProducerId) -> Result<Edit, EditError> {
    let before = Producers::read(text, file).map_err(EditError::Faults)?;
    let Some(at) = before.all().position(|producer| producer.id == *id) else {
        return Ok(Edit::Nothing);
    };
    if before.entries.len() == 1 {
        return Err(EditError::Last {
            file: file.to_owned(),
        });
    }
    let layout = Layout::of(text, file, &before)?;
    let mut expected: Vec<Producer> = before.all().cloned().collect();
    expected.remove(at);
    proven(layout.without(at), file, &expected)
}

fn position(before: &Producers, file: &str, id: &ProducerId) -> Result<usize, EditError> {
    let at = before.all().position(|producer| producer.id == *id);
    at.ok_or_else(|| EditError::Absent {
        file: file.to_owned(),
        id: id.clone(),
        like: nearest(id.as_str(), before.all().map(|p| p.id.to_string())),
    })
}

fn proven(text: String, file: &str, expected: &[Producer]) -> Result<Edit, EditError> {
    let not_proven = |fault: Option<Fault>| EditError::NotProven {
        file: file.to_owned(),
        fault: fault.map(Box::new),
    };
    match Producers::read(&text, file) {
        Ok(after) if after.all().eq(expected) => Ok(Edit::Text(text)),
        Ok(_) => Err(not_proven(None)),
        Err(faults) => Err(not_proven(faults.into_iter().next())),
    }
}
