//! Private working folders: 0700, removed on every ending. What a KILL leaves is removed by the next program of ours.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How the folders' names begin, so that leftovers are recognised.
const PREFIX: &str = "stagewright-";
/// Held locked by the owner for as long as it lives; the system drops the lock however the owner ends.
const LOCK: &str = ".owner";

/// A private folder could not be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "no private working folder could be made in {}: make it writable, or set TMPDIR to a folder that is",
    folder.display()
)]
pub struct ScratchError {
    folder: PathBuf,
    #[source]
    source: io::Error,
}

/// A private folder. Dropping it removes it with all that it holds.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    _owner: File,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "a private working folder stays");
        }
    }
}

impl Scratch {
    /// Makes a folder (0700) below the system's temporary folder (`TMPDIR`), after removing what killed runs left there.
    pub fn new() -> Result<Scratch, ScratchError> {
        let parent = temporary_folder(std::env::var_os("TMPDIR"));
        sweep_in(&parent);
        let failed = |source| ScratchError {
            folder: parent.clone(),
            source,
        };
        // Under another name until its lock is held: a folder that a sweep can see is never without its owner.
        let unowned = tempfile::Builder::new()
            .prefix(".stagewright-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(failed)?;
        let owner = File::create_new(unowned.path().join(LOCK)).map_err(failed)?;
        owner.try_lock().map_err(|e| failed(io::Error::other(e)))?;
        let name = unowned.path().file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let folder = parent.join(name.trim_start_matches('.'));
        std::fs::rename(unowned.path(), &folder).map_err(failed)?;
        // It has moved: nothing is left for the guard to remove under the first name.
        let _first_name = unowned.keep();
        Ok(Scratch {
            folder,
            _owner: owner,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// The system's temporary folder. An empty `TMPDIR` counts as none; a relative one is made absolute: what is in
/// the folder is also named to programs that run elsewhere.
fn temporary_folder(tmpdir: Option<OsString>) -> PathBuf {
    let folder = tmpdir
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Removes the working folders of programs that were killed.
pub fn sweep() {
    sweep_in(&temporary_folder(std::env::var_os("TMPDIR")));
}

fn sweep_in(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return; // what is wrong with the folder is said by whoever needs one in it
    };
    let me = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == me);
        if ours && is_abandoned(&entry.path()) {
            tracing::debug!(folder = %entry.path().display(), "removing what a killed run left");
            if let Err(error) = remove(&entry.path()) {
                tracing::debug!(%error, "it stays");
            }
        }
    }
}

/// Removes a folder with its lock last: one that is half removed when its owner is killed is still known as abandoned.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir_all(folder)
}

/// A folder whose lock can be had has no living owner. One without a lock file is being made this moment, or is not ours.
fn is_abandoned(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| match lock.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tmpdir_counts_as_none_and_a_relative_one_is_made_absolute() {
        let folder = |tmpdir: &str| temporary_folder(Some(tmpdir.into()));
        assert_eq!(temporary_folder(None), Path::new("/tmp"));
        assert_eq!(folder(""), Path::new("/tmp"));
        assert_eq!(folder("/var/tmp"), Path::new("/var/tmp"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder("build/tmp"), here.join("build/tmp"));
        assert_eq!(folder("."), here);
    }

    #[test]
    fn a_dead_owners_folder_is_swept_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = parent.path().join("stagewright-living");
        let dead = parent.path().join("stagewright-dead");
        let foreign = parent.path().join("stagewright-foreign");
        for folder in [&living, &dead, &foreign] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(dead.join(LOCK), "").unwrap();
        let held = File::create(living.join(LOCK)).unwrap();
        held.try_lock().unwrap();
        sweep_in(parent.path());
        assert!(living.exists());
        assert!(foreign.exists());
        assert!(!dead.exists());
    }

    #[test]
    fn a_folder_that_cannot_be_removed_whole_keeps_its_lock() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("stagewright-dead");
        let protected = folder.join("protected");
        std::fs::create_dir_all(protected.join("inner")).unwrap();
        std::fs::write(folder.join(LOCK), "").unwrap();
        let mode =
            |mode| std::fs::set_permissions(&protected, std::fs::Permissions::from_mode(mode));
        mode(0o500).unwrap();
        // root may remove everything, and then nothing is left to be known again.
        if remove(&folder).is_err() {
            assert!(folder.join(LOCK).exists());
            mode(0o700).unwrap();
            sweep_in(parent.path());
        }
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_is_private_and_gone_when_dropped() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }
}
