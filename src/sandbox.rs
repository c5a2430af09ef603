//! The sandbox: an example estate that is embedded in the program and unpacked into a folder.
//!
//! What is unpacked is real: bare git repositories with deterministic commits, the states that Terraform wrote, live
//! Application manifests and a settings file. A second run goes on with what the first one left; a reset starts anew.
//!
//! A folder that is not a sandbox is never written to and never removed. A sandbox is known by its marker file, which
//! is written last, into a temporary sibling folder that is then renamed: a run that is killed half-way leaves no
//! folder that looks like a sandbox.

use std::borrow::Cow;
use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;
use tempfile::TempDir;

mod repositories;
#[cfg(test)]
mod tests;

use repositories::Repositories;

/// The file that makes a folder a sandbox. It holds the format's version and nothing else.
const MARKER: &str = ".stagewright-sandbox";

/// The version of the layout on disk, raised when an older sandbox could no longer be used by this program.
const FORMAT: u32 = 4;

/// The folder whose files are secret, even though the sandbox's own key guards nothing: programs that read a key may
/// refuse one that others can read.
const CREDENTIALS: &str = "credentials";

/// The folder that answers as Jenkins; no repository.
const JENKINS: &str = "jenkins";

#[derive(RustEmbed)]
#[folder = "fixtures/estate"]
struct Estate;

/// What to do with a sandbox that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Use it as the last run left it.
    Keep,
    /// Remove it and unpack it again.
    Fresh,
}

/// An unpacked sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    root: PathBuf,
}

/// Why a sandbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The path is a file, a socket or anything else that holds no files.
    #[error(
        "the sandbox cannot be unpacked into {}: it is not a folder; name one that is empty or does not exist",
        path.display()
    )]
    NotAFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The path is a symbolic link. What it leads to may be anybody's, and a reset would remove it.
    #[error(
        "the sandbox cannot be unpacked into {}: it is a symbolic link; name the folder that it leads to",
        path.display()
    )]
    SymbolicLink {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder holds files and no marker.
    #[error(
        "{} is not a sandbox: it holds {found} and no {MARKER}, so nothing in it was touched; name a folder that is empty or does not exist",
        path.display()
    )]
    Foreign {
        /// The path as given.
        path: PathBuf,
        /// The name of one of the files in it.
        found: String,
    },
    /// The marker is there and is not one of ours: a folder, a link, or text that is no version.
    #[error(
        "{} is not a sandbox: its {MARKER} does not hold a format version, so nothing in it was touched; name a folder that is empty or does not exist",
        path.display()
    )]
    ForeignMarker {
        /// The path as given.
        path: PathBuf,
    },
    /// The sandbox was unpacked by another version of the program.
    #[error(
        "the sandbox {} has format {found} and this program works with format {FORMAT}: run it with --sandbox-reset to unpack it again, which drops what was done in it",
        path.display()
    )]
    OtherFormat {
        /// The path as given.
        path: PathBuf,
        /// The version in its marker.
        found: u32,
    },
    /// The program was started in the folder, or below it, and it would have to be put aside for the new one.
    #[error(
        "the sandbox cannot be unpacked into {}: the program was started in it; start it elsewhere, or name another folder",
        path.display()
    )]
    WorkingFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The path ends in no name, as `..` does, so nothing can be put beside it.
    #[error("the sandbox cannot be unpacked into {}: it has no name of its own; name a folder", path.display())]
    NoName {
        /// The path as given.
        path: PathBuf,
    },
    /// A file or folder could not be read, written, renamed or removed.
    #[error("the sandbox {} could not be {act}, at {}", sandbox.display(), path.display())]
    Io {
        /// The sandbox's folder.
        sandbox: PathBuf,
        /// What was being done with it: `read`, `unpacked`, `removed`.
        act: &'static str,
        /// The file or folder that failed.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// An embedded repository could not be written as a git repository.
    #[error("the sandbox's repository {} could not be written", path.display())]
    Git {
        /// The repository's folder.
        path: PathBuf,
        /// What libgit2 said.
        #[source]
        source: git2::Error,
    },
}

impl Sandbox {
    /// Opens the sandbox in `dir`, and unpacks it first where there is none yet.
    ///
    /// # Errors
    ///
    /// When `dir` is neither missing nor empty nor a sandbox of this format, or is a symbolic link; then nothing in it
    /// has been touched. When it cannot be read or written; then an existing sandbox is as it was, and what was
    /// half unpacked has been removed.
    pub fn open(dir: &Path, reset: Reset) -> Result<Self, SandboxError> {
        let working_folder = env::current_dir().map_err(|source| SandboxError::Io {
            sandbox: dir.to_owned(),
            act: "read",
            path: PathBuf::from("."),
            source,
        })?;
        // Without a trailing slash, with which the system would look through a symbolic link.
        let sandbox = Self {
            root: working_folder.join(dir).components().collect(),
        };
        match (Found::look(&sandbox.root)?, reset) {
            (Found::Sandbox { format: FORMAT }, Reset::Keep) => {}
            (Found::Sandbox { format }, Reset::Keep) => {
                return Err(SandboxError::OtherFormat {
                    path: sandbox.root,
                    found: format,
                });
            }
            (Found::Sandbox { .. }, Reset::Fresh) => {
                sandbox.refuse_working_folder(&working_folder)?;
                sandbox.replace()?;
            }
            (Found::EmptyFolder, _) => {
                sandbox.refuse_working_folder(&working_folder)?;
                sandbox.unpack()?;
            }
            (Found::Nothing, _) => sandbox.unpack()?,
        }
        Ok(sandbox)
    }

    /// The sandbox's folder, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The settings of the sandbox, which name everything else in it.
    pub fn settings_file(&self) -> PathBuf {
        self.root.join("stagewright.yaml")
    }

    /// A folder that is replaced is another one afterwards: a shell in the old one, and every program started from
    /// it, would find its working folder gone.
    fn refuse_working_folder(&self, working_folder: &Path) -> Result<(), SandboxError> {
        let root =
            fs::canonicalize(&self.root).map_err(|source| self.io("read", &self.root, source))?;
        if working_folder.starts_with(&root) {
            return Err(SandboxError::WorkingFolder {
                path: self.root.clone(),
            });
        }
        Ok(())
    }

    /// Unpacks the estate where there is nothing, or an empty folder.
    fn unpack(&self) -> Result<(), SandboxError> {
        let fresh = self.sibling("unpacking")?;
        self.fill(fresh.path())?;
        // Fails when somebody has put a file into the empty folder in the meantime, which is right; unless it was
        // another run of this program that has put the same sandbox there.
        self.put_into_place(fresh)
            .or_else(|error| match Found::look(&self.root) {
                Ok(Found::Sandbox { format: FORMAT }) => Ok(()),
                _ => Err(error),
            })
    }

    /// Unpacks the estate anew and puts it in the place of the old sandbox, which is removed last.
    fn replace(&self) -> Result<(), SandboxError> {
        let fresh = self.sibling("unpacking")?;
        self.fill(fresh.path())?;
        let old = self.sibling("removing")?;
        fs::rename(&self.root, old.path())
            .map_err(|source| self.io("removed", &self.root, source))?;
        self.put_into_place(fresh)
            .inspect_err(|_| drop(fs::rename(old.path(), &self.root)))?;
        let old_path = old.path().to_owned();
        old.close()
            .map_err(|source| self.io("removed", &old_path, source))
    }

    fn put_into_place(&self, fresh: TempDir) -> Result<(), SandboxError> {
        fs::rename(fresh.path(), &self.root)
            .map_err(|source| self.io("unpacked", &self.root, source))?;
        // Its path leads to nothing any more; there is nothing left to remove.
        drop(fresh.keep());
        Ok(())
    }

    /// Makes an empty folder beside the sandbox, on the same file system, so that it can be renamed into place.
    fn sibling(&self, purpose: &str) -> Result<TempDir, SandboxError> {
        let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) else {
            return Err(SandboxError::NoName {
                path: self.root.clone(),
            });
        };
        fs::create_dir_all(parent).map_err(|source| self.io("unpacked", parent, source))?;
        tempfile::Builder::new()
            .prefix(&format!(".{}.{purpose}-", name.to_string_lossy()))
            .tempdir_in(parent)
            .map_err(|source| self.io("unpacked", parent, source))
    }

    /// Writes the whole estate into `folder`, the marker last.
    fn fill(&self, folder: &Path) -> Result<(), SandboxError> {
        let credentials = folder.join(CREDENTIALS);
        DirBuilder::new()
            .mode(0o700)
            .create(&credentials)
            .map_err(|source| self.io("unpacked", &credentials, source))?;
        let mut repositories = Repositories::default();
        for (name, content) in embedded() {
            match name.splitn(3, '/').collect::<Vec<_>>()[..] {
                [JENKINS, ..] => {
                    let file = folder.join(&*name);
                    if let Some(parent) = file.parent() {
                        fs::create_dir_all(parent)
                            .map_err(|source| self.io("unpacked", parent, source))?;
                    }
                    self.write(&file, 0o644, &content)?;
                }
                [CREDENTIALS, _] => self.write(&folder.join(&*name), 0o600, &content)?,
                [repo, branch, path] => repositories.add(repo, branch, path, content),
                _ => self.write(&folder.join(&*name), 0o644, &content)?,
            }
        }
        repositories
            .write_into(&folder.join("git"))
            .map_err(|(path, source)| SandboxError::Git { path, source })?;
        self.write(
            &folder.join(MARKER),
            0o644,
            format!("{FORMAT}\n").as_bytes(),
        )
    }

    fn write(&self, file: &Path, mode: u32, content: &[u8]) -> Result<(), SandboxError> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(file)
            .and_then(|mut opened| opened.write_all(content))
            .map_err(|source| self.io("unpacked", file, source))
    }

    fn io(&self, act: &'static str, path: &Path, source: io::Error) -> SandboxError {
        SandboxError::Io {
            sandbox: self.root.clone(),
            act,
            path: path.to_owned(),
            source,
        }
    }
}

/// The embedded files by their path below `fixtures/estate`, in the order of the paths.
fn embedded() -> impl Iterator<Item = (Cow<'static, str>, Cow<'static, [u8]>)> {
    Estate::iter().filter_map(|name| Estate::get(&name).map(|file| (name, file.data)))
}

/// What stands at the path that was given for a sandbox.
enum Found {
    Nothing,
    EmptyFolder,
    /// A sandbox, made by this version of the program or by another.
    Sandbox {
        format: u32,
    },
}

impl Found {
    /// Looks without changing anything. Whatever is not ours is an error.
    fn look(root: &Path) -> Result<Self, SandboxError> {
        let io = |path: &Path, source| SandboxError::Io {
            sandbox: root.to_owned(),
            act: "read",
            path: path.to_owned(),
            source,
        };
        let kind = match fs::symlink_metadata(root) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(source) => return Err(io(root, source)),
        };
        if kind.is_symlink() {
            return Err(SandboxError::SymbolicLink {
                path: root.to_owned(),
            });
        }
        if !kind.is_dir() {
            return Err(SandboxError::NotAFolder {
                path: root.to_owned(),
            });
        }
        let marker = root.join(MARKER);
        match fs::symlink_metadata(&marker) {
            // A file of any size could lie there; a version is short.
            Ok(metadata) if metadata.is_file() && metadata.len() <= 16 => {
                let text = fs::read(&marker).map_err(|source| io(&marker, source))?;
                str::from_utf8(&text)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
                    .map(|format| Self::Sandbox { format })
                    .ok_or_else(|| SandboxError::ForeignMarker {
                        path: root.to_owned(),
                    })
            }
            Ok(_) => Err(SandboxError::ForeignMarker {
                path: root.to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let first = fs::read_dir(root)
                    .and_then(|mut entries| entries.next().transpose())
                    .map_err(|source| io(root, source))?;
                match first {
                    None => Ok(Self::EmptyFolder),
                    Some(entry) => Err(SandboxError::Foreign {
                        path: root.to_owned(),
                        found: entry.file_name().to_string_lossy().into_owned(),
                    }),
                }
            }
            Err(source) => Err(io(&marker, source)),
        }
    }
}
