//! The form of a root module: which files are its configuration, and what of it we refuse before Terraform runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hcl_edit::Span;
use hcl_edit::structure::{Block, Body};

use super::Flavour;

mod files;
mod json;
mod modules;
mod words;

pub(super) use files::configuration_files;
use files::file_names;
pub use modules::{join_in_clone, module_sources};

/// Deeper than any configuration that a person writes; a parser that recurses would end the process somewhere beyond.
pub(super) const DEEPEST: usize = 256;

/// A root that we do not run.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Its folder could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It names where its state lives.
    #[error(
        "{place} declares {what}, while its state is kept at {key}: another place would plan everything anew; remove that block"
    )]
    OtherBackend {
        /// File and line in the clone.
        place: String,
        /// `backend "s3"`, `a cloud block`.
        what: String,
        /// Where the state is.
        key: String,
    },
    /// A file that our parser does not read and Terraform may.
    #[error(
        "{place} mentions {word}, and the file could not be read ({why}), so that might set another place for the state, \
         which is kept at {key}; mend what could not be read, or take the mention out of the file"
    )]
    Unread {
        /// File and line of the mention in the clone.
        place: String,
        /// `backend` or `cloud`.
        word: &'static str,
        /// What of the file could not be read.
        why: String,
        /// Where the state is.
        key: String,
    },
    /// It is Terragrunt's.
    #[error(
        "{file} makes this a Terragrunt root, which Terraform alone cannot plan: render it to plain Terraform first"
    )]
    Terragrunt {
        /// The file in the clone.
        file: String,
    },
    /// It is nested beyond reason.
    #[error("{file} nests brackets deeper than {DEEPEST} levels, which is not read")]
    TooDeep {
        /// The file in the clone.
        file: String,
    },
    /// No configuration at all.
    #[error(
        "{folder}/ holds no Terraform files, so there is nothing to plan: commit its *.tf files there"
    )]
    Empty {
        /// The folder in the clone.
        folder: String,
    },
    /// What another run of Terraform left is in the commit and stays in the way.
    #[error("{} is in the commit and could not be removed from the clone", path.display())]
    Remove {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It already has a file of the name that ours would take.
    #[error("{} is in the way of the file of that name that points Terraform to the state: rename it", path.display())]
    NameTaken {
        /// The file.
        path: PathBuf,
    },
    /// Our file could not be written.
    #[error("the override file that points Terraform to the stage's state could not be written to {}", path.display())]
    Override {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A root module's folder, looked at.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    files: BTreeSet<String>,
    has_lock_file: bool,
    flavour: Flavour,
}

impl Root {
    /// Looks at `folder`, which stands at `shown` in the clone, and refuses what would not run against the state at `key`.
    pub fn open(
        folder: &Path,
        shown: &str,
        key: &str,
        flavour: Flavour,
    ) -> Result<Root, RootError> {
        let names = file_names(folder)?;
        if names.contains("terragrunt.hcl") {
            return Err(RootError::Terragrunt {
                file: format!("{shown}/terragrunt.hcl"),
            });
        }
        let files = configuration_files(&names, flavour);
        if files.is_empty() {
            return Err(RootError::Empty {
                folder: shown.to_owned(),
            });
        }
        for name in &files {
            let path = folder.join(name);
            let bytes = std::fs::read(&path).map_err(|source| RootError::Read { path, source })?;
            let place = format!("{shown}/{name}");
            if nesting(&bytes) > DEEPEST {
                return Err(RootError::TooDeep { file: place });
            }
            let key = key.to_owned();
            match foreign_backend(name, &bytes) {
                Foreign::None => {}
                Foreign::Block { line, what } => {
                    let place = format!("{place}:{line}");
                    return Err(RootError::OtherBackend { place, what, key });
                }
                Foreign::Mention { line, word, why } => {
                    return Err(RootError::Unread {
                        place: format!("{place}:{line}"),
                        word,
                        why,
                        key,
                    });
                }
            }
        }
        Ok(Root {
            folder: folder.to_owned(),
            files,
            has_lock_file: names.contains(".terraform.lock.hcl"),
            flavour,
        })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of its configuration files.
    pub(super) fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    /// The program that loads them.
    pub(super) fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Whether the root pins its providers; `init` may then not change the pins.
    pub fn has_lock_file(&self) -> bool {
        self.has_lock_file
    }

    /// Removes what a run of Terraform leaves behind and somebody committed, `name` in the root's folder: a working folder
    /// may select a workspace, a backend, other modules, and an emergency file would pass for this run's state. Whether
    /// there was one.
    pub fn remove_leftover(&self, name: &str) -> Result<bool, RootError> {
        let path = self.folder.join(name);
        let removed = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => Err(error),
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
            Ok(_) => std::fs::remove_file(&path),
        };
        match removed {
            Ok(()) => Ok(true),
            Err(source) => Err(RootError::Remove { path, source }),
        }
    }

    /// A folder without configuration, in which only the state is worked on.
    pub fn without_files(folder: &Path, flavour: Flavour) -> Root {
        Root {
            folder: folder.to_owned(),
            files: BTreeSet::new(),
            has_lock_file: false,
            flavour,
        }
    }

    /// Writes the file that points Terraform to our state backend (its address comes from the environment).
    /// Override files apply in the order of their names and the last one wins, so ours sorts after every other.
    /// A file of the same name and another content is somebody else's, and stays.
    pub fn write_override(&self) -> Result<(), RootError> {
        let path = self.override_path();
        let text = "terraform {\n  backend \"http\" {}\n}\n";
        let written = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            // A run that was killed has left it there.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_ours = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())
                    && std::fs::read(&path).is_ok_and(|found| found == text.as_bytes());
                if is_ours {
                    Ok(())
                } else {
                    Err(RootError::NameTaken { path })
                }
            }
            other => other.map_err(|source| RootError::Override { path, source }),
        }
    }

    /// The same for a folder that is not ours: the file goes when what is returned is dropped.
    pub fn override_file(&self) -> Result<OverrideFile, RootError> {
        self.write_override()?;
        Ok(OverrideFile {
            path: self.override_path(),
        })
    }

    fn override_path(&self) -> PathBuf {
        let extension = match self.flavour {
            Flavour::Terraform => "tf",
            Flavour::OpenTofu => "tofu",
        };
        let mut name = "~stagewright_override".to_owned();
        let others = |file: &&String| !file.starts_with("~stagewright_override.");
        while self.files.iter().filter(others).any(|file| *file >= name) {
            name.insert(0, char::MAX);
        }
        self.folder.join(format!("{name}.{extension}"))
    }
}

/// Our file in somebody else's folder.
#[derive(Debug)]
pub struct OverrideFile {
    path: PathBuf,
}

impl Drop for OverrideFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, file = %self.path.display(), "the override file stays");
        }
    }
}

/// What one file says of the state's place.
enum Foreign {
    None,
    /// A `backend` or `cloud` block.
    Block {
        line: usize,
        what: String,
    },
    /// A word in a file that does not parse here. Terraform takes more than our parser does, and once our override is
    /// beside such a block, the backend that is read back after `init` is ours: only a refusal is safe.
    Mention {
        line: usize,
        word: &'static str,
        why: String,
    },
}

/// The first `backend` or `cloud` block of one file. A file that does not parse and mentions neither has none:
/// Terraform says what is wrong with it.
fn foreign_backend(name: &str, bytes: &[u8]) -> Foreign {
    if name.ends_with(".json") {
        return foreign_backend_json(bytes);
    }
    let why = match std::str::from_utf8(bytes) {
        Err(error) => {
            let line = line_at(bytes, error.valid_up_to());
            format!("line {line} is not UTF-8")
        }
        Ok(text) => {
            let text = without_bom(text);
            match parse(text) {
                Err(why) => why,
                Ok(body) => {
                    let mut blocks = body
                        .get_blocks("terraform")
                        .flat_map(|terraform| terraform.body.blocks());
                    let block =
                        blocks.find_map(|block| Some((line_of(text, block), words_for(block)?)));
                    match block {
                        Some((line, what)) => return Foreign::Block { line, what },
                        None if !words::doubtful_heredoc(text) => return Foreign::None,
                        None => "a line of a heredoc begins with the word that ends it".to_owned(),
                    }
                }
            }
        }
    };
    match words::block_words(bytes) {
        Some((line, word)) => Foreign::Mention { line, word, why },
        None => Foreign::None,
    }
}

fn words_for(block: &Block) -> Option<String> {
    match block.ident.as_str() {
        "cloud" => Some("a cloud block".to_owned()),
        "backend" => {
            let kind = block.labels.first().map_or("?", |label| label.as_str());
            // Without an address it is the one that our override leads to: so terraform-backend-git's roots declare it.
            let leads =
                |attribute: &hcl_edit::structure::Attribute| attribute.key.ends_with("address");
            if kind == "http" && !block.body.attributes().any(leads) {
                return None;
            }
            Some(format!("backend \"{kind}\""))
        }
        _ => None,
    }
}

fn foreign_backend_json(bytes: &[u8]) -> Foreign {
    let keys = json::keys(bytes);
    let block = keys.iter().enumerate().find_map(|(at, key)| {
        let [terraform, block] = &key.path[..] else {
            return None;
        };
        let what = match block.as_str() {
            _ if terraform != "terraform" => return None,
            "cloud" => "a cloud block".to_owned(),
            "backend" => {
                let below = keys.get(at + 1).filter(|below| below.path.len() == 3);
                let kind = below.and_then(|below| below.path.last());
                format!("backend \"{}\"", kind.map_or("?", String::as_str))
            }
            _ => return None,
        };
        Some((key.line, what))
    });
    match block {
        Some((line, what)) => Foreign::Block { line, what },
        None => Foreign::None,
    }
}

/// The body, or why there is none.
fn parse(text: &str) -> Result<Body, String> {
    if nesting(text.as_bytes()) > DEEPEST {
        return Err(format!("it nests brackets deeper than {DEEPEST} levels"));
    }
    text.parse().map_err(|error: hcl_edit::parser::Error| {
        format!("line {} is not understood", error.location().line())
    })
}

/// The text after a byte order mark, which Terraform allows and the parser does not know.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|b| **b == b'\n').count() + 1
}

fn line_of(text: &str, block: &Block) -> usize {
    let start = block.span().map_or(0, |span| span.start);
    line_at(text.as_bytes(), start)
}

/// The deepest nesting of brackets, those in strings and comments counted as well. A closing one in a comment or a string
/// is taken off too, so a file made for it nests deeper than this says; one that a person writes does not.
fn nesting(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in bytes {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
