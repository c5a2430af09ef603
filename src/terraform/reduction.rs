//! The reduction of a root for the destroy of a retired stage: what declares no object stays, so that Terraform plans
//! the deletion of every resource in the state. Bytes go in and values come out; only [`Reduction::write`] touches files.
//!
//! Blocks `terraform`, `provider`, `variable` and `removed` stay, with the `locals`, `data` and `ephemeral` that these need,
//! byte for byte and on the lines where they were; comments outside of blocks stay too. What is kept and refers to a dropped
//! resource or module is a refusal: a provider without its address would talk to nothing, or to the wrong place.

mod closure;
mod cut;
mod error;
mod file;
mod notes;
mod providers;
mod references;
mod scan;
mod structure;

pub use cut::ReducedFile;
pub use error::{Dangling, ReductionError, Unread};
pub use notes::{Note, Notes};
pub use providers::MissingProvider;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use super::Flavour;
use super::root::{Root, configuration_files};

use file::File;
use providers::Providers;

/// The file with the versions of providers.
const LOCK_FILE: &str = ".terraform.lock.hcl";

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
            notes.add_root(&file.source, &file.lines, flavour);
        }
        // What an override file says of a provider replaces what the others say, whatever its name.
        let (overrides, others): (Vec<_>, Vec<_>) = read.iter().partition(|f| f.is_override());
        for file in others.into_iter().chain(overrides) {
            providers.add(&file.source);
        }
        if let Some(lock) = lock {
            providers.add_lock(lock);
        }
        let mut files = Vec::new();
        for file in &read {
            match cut::cut(file, &needed) {
                Ok(file) => files.push(file),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(ReductionError::Unread { faults });
        }
        Ok(Reduction {
            files,
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
            let path = folder.join(file.name());
            // Its name begins with a dot, so Terraform does not see it.
            let beside = tempfile::NamedTempFile::new_in(folder).and_then(|mut beside| {
                beside.write_all(file.text().as_bytes())?;
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

fn set(all: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    let all = all.into_iter().map(|one| one.as_ref().to_owned());
    all.collect()
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
