//! `pipeline-producers.yaml`: who publishes a part of the architecture model, by which Jenkins job. Read strictly, since one wrong entry
//! stops the collector for everybody, and edited so that every other byte stays ([`edit`]).

pub mod edit;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::names::{AppPath, JobName, OwnedRepo, ProducerId};
use crate::yaml::{self, Node, Place, Value};

/// The entries of a file in which nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producers {
    entries: Vec<Entry>,
    /// Where the list begins.
    list: Place,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its name, and its artifact's.
    pub id: ProducerId,
    /// What the job builds; none where the artifact comes from no repository.
    pub repo: Option<OwnedRepo>,
    /// The job that archives the artifact.
    pub job: JobName,
    /// The app's folder, where several producers share the job.
    pub path: Option<AppPath>,
    /// Whether it is the collector's own repository.
    pub is_self: bool,
    /// The logo of what has none.
    pub default_logo: Option<String>,
}

/// An entry and its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    producer: Producer,
    place: Place,
    /// Where the value of each key stands.
    values: BTreeMap<String, Place>,
}

/// What is wrong with the file. Its Display is `file:line:column: sentence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Where it is.
    pub place: Place,
    /// The sentence.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.place, self.message)
    }
}

impl Producers {
    /// Reads the file. `file` is its name, for errors.
    ///
    /// # Errors
    /// With everything that is wrong in it.
    pub fn read(text: &str, file: &str) -> Result<Producers, Vec<Fault>> {
        let fault = |place: Place, message: String| Fault {
            file: file.to_owned(),
            place,
            message,
        };
        let root =
            yaml::parse(text).map_err(|error| vec![fault(error.place(), error.to_string())])?;
        let shape = |place: Place, found: &str| {
            vec![fault(
                place,
                format!(
                    "{found}; the file has `producers:` with a list of entries that have `id:` and `jenkinsJob:`"
                ),
            )]
        };
        let Value::Mapping(keys) = root.value() else {
            return Err(shape(root.place(), &format!("{} stands here", root.kind())));
        };
        if let Some((key, _)) = keys.iter().find(|(key, _)| key.raw_text() != "producers") {
            return Err(shape(
                key.place(),
                &format!("unknown key {:?}", key.raw_text()),
            ));
        }
        let Some(list) = root.get("producers") else {
            return Err(shape(root.place(), "the key \"producers\" is missing"));
        };
        let Value::Sequence(items) = list.value() else {
            return Err(shape(list.place(), &format!("{} stands here", list.kind())));
        };
        if items.is_empty() {
            return Err(shape(list.place(), "the list is empty"));
        }
        let mut faults = Vec::new();
        let mut entries = Vec::new();
        for item in items {
            match entry::read(item) {
                Ok(entry) => entries.push(entry),
                Err(found) => {
                    faults.extend(found.into_iter().map(|(place, text)| fault(place, text)));
                }
            }
        }
        let together = between(&entries).into_iter();
        faults.extend(together.map(|(place, text)| fault(place, text)));
        faults.sort_by_key(|fault| fault.place);
        if faults.is_empty() {
            Ok(Producers {
                entries,
                list: list.place(),
            })
        } else {
            Err(faults)
        }
    }

    /// The entries, in the order of the file.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Producer> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.producer)
    }

    /// The one with this id.
    pub fn get(&self, id: &ProducerId) -> Option<&Producer> {
        self.all().find(|producer| producer.id == *id)
    }
}

/// What is wrong between entries that are right by themselves.
fn between(entries: &[Entry]) -> Vec<(Place, String)> {
    let mut faults = Vec::new();
    let mut first: BTreeMap<&ProducerId, Place> = BTreeMap::new();
    let mut jobs: BTreeMap<&JobName, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        let id = &entry.producer.id;
        match first.get(id) {
            Some(place) => faults.push((
                entry.place,
                format!("the id {id} is already used at {place}; an id names one artifact, so give this one another"),
            )),
            None => {
                first.insert(id, entry.place);
            }
        }
        jobs.entry(&entry.producer.job).or_default().push(entry);
    }
    for (job, entries) in jobs {
        for entry in entries.iter().filter(|_| entries.len() > 1) {
            if entry.producer.path.is_none() {
                faults.push((
                    entry.place,
                    format!(
                        "{}: {} producers share the job {job}, so each of them needs \"path\", its folder",
                        entry.producer.id,
                        entries.len()
                    ),
                ));
            }
        }
    }
    faults
}

impl Entry {
    fn new(producer: Producer, item: &Node) -> Entry {
        let values = match item.value() {
            Value::Mapping(keys) => keys
                .iter()
                .map(|(key, value)| (key.raw_text().to_owned(), value.place()))
                .collect(),
            Value::Scalar { .. } | Value::Sequence(_) => BTreeMap::new(),
        };
        Entry {
            producer,
            place: item.place(),
            values,
        }
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id: {}", self.id)?;
        if let Some(repo) = &self.repo {
            write!(f, ", repo: {repo}")?;
        }
        write!(f, ", jenkinsJob: {}", self.job)?;
        if let Some(path) = &self.path {
            write!(f, ", path: {path}")?;
        }
        if self.is_self {
            f.write_str(", self: true")?;
        }
        if let Some(logo) = &self.default_logo {
            write!(f, ", defaultLogo: {logo}")?;
        }
        Ok(())
    }
}
