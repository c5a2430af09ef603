//! The reduction of a root for the destroy of a retired stage: what declares no object stays, so that Terraform plans
//! the deletion of every resource in the state. Bytes go in and values come out; only [`Reduction::write`] touches files.
//!
//! Blocks `terraform`, `provider`, `variable` and `removed` stay, with the `locals`, `data` and `ephemeral` that these need,
//! byte for byte and on the lines where they were; comments outside of blocks stay too. What is kept and refers to a dropped
//! resource or module is a refusal: a provider without its address would talk to nothing, or to the wrong place.

mod closure;
mod file;
mod notes;
mod providers;
mod references;
mod scan;
mod structure;

pub use notes::{Note, Notes};
pub use providers::MissingProvider;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Flavour;
use super::root::{Root, configuration_files};

use closure::Kept;
use file::File;
use providers::Providers;
use references::Name;
use structure::Block;

/// How many dropped declarations a line names.
const NAMED: usize = 10;
/// The file with the versions of providers.
const LOCK_FILE: &str = ".terraform.lock.hcl";

/// A root that cannot be reduced.
#[derive(Debug, thiserror::Error)]
pub enum ReductionError {
    /// What of some file is to be kept cannot be told.
    #[error(
        "a destroy keeps of the root what declares no resource, which cannot be told here: {}; write that in Terraform's \
         own syntax, in UTF-8",
        list(faults)
    )]
    Unread {
        /// Every such file.
        faults: Vec<Unread>,
    },
    /// What is kept needs what is dropped.
    #[error(
        "a destroy keeps neither resources nor modules of the root, so a value would be missing: {}; take it from a \
         variable or a data source instead",
        list(references)
    )]
    Dangling {
        /// Every such reference.
        references: Vec<Dangling>,
    },
    /// The state names providers that the reduced root lacks.
    #[error(
        "the state has resources of providers that the reduced root does not configure: {}; configure them in the root \
         itself and apply that once, so that the state names those",
        list(missing)
    )]
    Providers {
        /// Every such provider.
        missing: Vec<MissingProvider>,
    },
    /// A file of the root could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A reduced file could not be written.
    #[error("the reduced file could not be written to {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A place at which a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// File and line in the clone.
    pub place: String,
    /// What is wrong there.
    pub why: &'static str,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.place, self.why)
    }
}

/// A kept expression that refers to what is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// File and line of the reference in the clone.
    pub place: String,
    /// What holds the expression: `provider "kubernetes"`, `local.host`.
    pub owner: String,
    /// The dropped resource or module.
    pub refers_to: String,
    /// The block that is kept in any case and needs the owner, where that is another.
    pub needed_by: Option<String>,
}

impl std::fmt::Display for Dangling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dangling {
            place,
            owner,
            refers_to,
            needed_by,
        } = self;
        write!(f, "{owner} refers to {refers_to} at {place}")?;
        match needed_by {
            Some(needed_by) => write!(f, ", and {needed_by} needs {owner}"),
            None => Ok(()),
        }
    }
}

fn set(all: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    let all = all.into_iter().map(|one| one.as_ref().to_owned());
    all.collect()
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// One file of the root, reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducedFile {
    name: String,
    text: String,
    kept: usize,
    dropped: Vec<String>,
}

impl ReducedFile {
    /// Its name in the root's folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is left of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many declarations are kept: blocks, and of `locals` each value.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// The dropped declarations in their order, as Terraform calls them.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

impl std::fmt::Display for ReducedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ReducedFile {
            name,
            kept,
            dropped,
            ..
        } = self;
        write!(f, "{name}: keeps {kept} declaration(s), drops ")?;
        match dropped.get(..NAMED) {
            _ if dropped.is_empty() => f.write_str("nothing"),
            Some(first) if dropped.len() > NAMED => {
                write!(f, "{} and {} more", first.join(", "), dropped.len() - NAMED)
            }
            _ => f.write_str(&dropped.join(", ")),
        }
    }
}

/// A variable of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it is declared first, in the clone.
    pub place: String,
    /// Whether a plan can do without a value from outside.
    pub has_default: bool,
}

/// A root without its resources.
#[derive(Clone, Debug)]
pub struct Reduction {
    files: Vec<ReducedFile>,
    variables: Vec<Variable>,
    notes: Notes,
    providers: Providers,
    flavour: Flavour,
}

impl Reduction {
    /// Reduces the root whose folder stands at `shown` in the clone. `files` holds its files by name (those that are no
    /// configuration are left alone), `lock` its lock file.
    pub fn of(
        files: &BTreeMap<String, Vec<u8>>,
        shown: &str,
        flavour: Flavour,
        lock: Option<&[u8]>,
    ) -> Result<Reduction, ReductionError> {
        let names: BTreeSet<String> = files.keys().cloned().collect();
        let (mut read, mut faults) = (Vec::new(), Vec::new());
        for name in configuration_files(&names, flavour) {
            let bytes = files.get(&name).map_or(&[][..], Vec::as_slice);
            match File::read(&name, bytes, shown) {
                Ok(file) => read.push(file),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(ReductionError::Unread { faults });
        }
        let needed =
            closure::needed(&read).map_err(|references| ReductionError::Dangling { references })?;
        let (mut notes, mut providers) = (Notes::default(), Providers::default());
        for file in &read {
            notes.add(&file.source, &file.lines, false);
            providers.add(&file.source);
        }
        if let Some(lock) = lock {
            providers.add_lock(lock);
        }
        Ok(Reduction {
            files: read.iter().map(|file| reduced(file, &needed)).collect(),
            variables: variables(&read),
            notes,
            providers,
            flavour,
        })
    }

    /// Its files in the order of their names; each displays as the line that tells of it.
    pub fn files(&self) -> &[ReducedFile] {
        &self.files
    }

    /// The variables of the root in the order of their names.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// What the destroy leaves undone or no longer heeds.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Refuses a state whose resources name providers (`provider["registry.terraform.io/hashicorp/aws"].west`) that the
    /// reduced root does not configure. A root's provider without an alias needs no configuration.
    pub fn check_providers(
        &self,
        in_state: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), ReductionError> {
        let missing = self.providers.missing(&set(in_state), self.flavour);
        if missing.is_empty() {
            Ok(())
        } else {
            Err(ReductionError::Providers { missing })
        }
    }

    /// The addresses of providers, of the root's and of those that the state names, of which no lock file and no version
    /// constraint says the version: the newest is taken, which may not be the one that wrote the state.
    pub fn unpinned_providers(
        &self,
        in_state: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Vec<String> {
        self.providers.unpinned(&set(in_state), self.flavour)
    }

    /// Puts the reduced files in the place of those in `folder`. All are written beside them first, so that a full disk
    /// leaves the folder as it was.
    pub fn write(&self, folder: &Path) -> Result<(), ReductionError> {
        let mut written = Vec::new();
        for file in &self.files {
            let path = folder.join(&file.name);
            // Its name begins with a dot, so Terraform does not see it.
            let beside = tempfile::NamedTempFile::new_in(folder).and_then(|mut beside| {
                beside.write_all(file.text.as_bytes())?;
                Ok(beside)
            });
            match beside {
                Ok(beside) => written.push((beside, path)),
                Err(source) => return Err(ReductionError::Write { path, source }),
            }
        }
        for (beside, path) in written {
            if let Err(error) = beside.persist(&path) {
                return Err(ReductionError::Write {
                    path,
                    source: error.error,
                });
            }
        }
        Ok(())
    }
}

impl Root {
    /// Reduces this root, whose folder stands at `shown` in the clone; its files stay as they are.
    pub fn reduce(&self, shown: &str) -> Result<Reduction, ReductionError> {
        let read = |name: &str| {
            let path = self.folder().join(name);
            std::fs::read(&path).map_err(|source| ReductionError::Read { path, source })
        };
        let mut files = BTreeMap::new();
        for name in self.files() {
            files.insert(name.clone(), read(name)?);
        }
        let lock = self.has_lock_file().then(|| read(LOCK_FILE)).transpose()?;
        Reduction::of(&files, shown, self.flavour(), lock.as_deref())
    }
}

fn reduced(file: &File<'_>, needed: &BTreeSet<Name>) -> ReducedFile {
    let mut kept = 0;
    let mut dropped: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    for block in &file.source.body.blocks {
        match closure::is_kept(block) {
            Kept::Always => kept += 1,
            Kept::IfNeeded(name) if needed.contains(&name) => kept += 1,
            Kept::IfNeeded(name) => dropped.push((block.bytes.clone(), vec![name.to_string()])),
            Kept::Never(_) => dropped.push((block.bytes.clone(), vec![called(file, block)])),
            Kept::Values => {
                let values = &block.body.attributes;
                let (stay, go): (Vec<_>, Vec<_>) = values
                    .iter()
                    .partition(|value| needed.contains(&closure::local(value)));
                kept += stay.len();
                let names = go.iter().map(|value| closure::local(value).to_string());
                if stay.is_empty() {
                    let names = if go.is_empty() {
                        vec!["locals".to_owned()]
                    } else {
                        names.collect()
                    };
                    dropped.push((block.bytes.clone(), names));
                } else {
                    let gone = names.zip(&go);
                    dropped.extend(gone.map(|(name, value)| (value.bytes.clone(), vec![name])));
                }
            }
        }
    }
    let ranges: Vec<Range<usize>> = dropped.iter().map(|(range, _)| range.clone()).collect();
    ReducedFile {
        name: file.name.clone(),
        text: file.without(&ranges),
        kept,
        dropped: dropped.into_iter().flat_map(|(_, names)| names).collect(),
    }
}

/// A dropped block as Terraform calls it.
fn called(file: &File<'_>, block: &Block) -> String {
    let written = |name| {
        let attribute = block.body.attribute(name);
        attribute.map_or("?", |attribute| file.source.written(attribute))
    };
    match (block.kind.as_str(), &block.labels[..]) {
        ("resource", labels) => labels.join("."),
        ("moved", _) => format!("moved from {}", written("from")),
        ("import", _) => format!("import to {}", written("to")),
        (kind, []) => kind.to_owned(),
        (kind, labels) => format!("{kind}.{}", labels.join(".")),
    }
}

fn variables(files: &[File<'_>]) -> Vec<Variable> {
    let mut variables: BTreeMap<String, Variable> = BTreeMap::new();
    for file in files {
        for block in file.source.body.blocks_of("variable") {
            let Some(name) = block.labels.first() else {
                continue;
            };
            let variable = variables.entry(name.clone()).or_insert_with(|| Variable {
                name: name.clone(),
                place: file.lines.place(block.bytes.start),
                has_default: false,
            });
            variable.has_default |= block.body.attribute("default").is_some();
        }
    }
    variables.into_values().collect()
}

#[cfg(test)]
mod tests;
