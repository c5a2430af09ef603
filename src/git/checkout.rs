//! Files of a commit, written out. Links that leave the clone are not written, submodules are not followed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use git2::Oid;

use super::GitError;
use super::tree::{Entry, Kind, PartialClone};

/// Something of the commit that was not written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// A submodule, by its path in the clone.
    Submodule(String),
    /// A link whose target lies outside the clone, by its path there.
    LinkOutside(String),
    /// A link whose target the commit does not have, by its path there; it is written all the same.
    LinkToNothing(String),
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOut::Submodule(path) => write!(f, "{path} is a submodule, which is not followed"),
            LeftOut::LinkToNothing(path) => {
                write!(
                    f,
                    "{path} is a link to something that the commit does not have"
                )
            }
            LeftOut::LinkOutside(path) => {
                write!(
                    f,
                    "{path} is a link that leaves the clone, which is not followed"
                )
            }
        }
    }
}

/// What came of writing files out.
#[derive(Debug, Default)]
pub struct CheckedOut {
    /// What was not written, and why.
    pub left_out: Vec<LeftOut>,
    /// Where links lead that were written and end at nothing so far: paths in the clone, each with its link.
    pub wanted: Vec<(String, String)>,
}

/// Writes what stands at `path` in the commit into `clone_root`/`path`: a file, a link, or every file below a folder.
/// What is there already is left as it is.
pub async fn check_out(
    clone: &mut PartialClone,
    entry: Entry,
    path: &str,
    clone_root: &Path,
) -> Result<CheckedOut, GitError> {
    let entries = if entry.kind == Kind::Tree {
        clone.below(entry.id).await?
    } else {
        let name = String::new();
        vec![Entry { name, ..entry }]
    };
    let wanted: Vec<Oid> = entries
        .iter()
        .filter(|e| e.kind != Kind::Submodule)
        .map(|e| e.id)
        .collect();
    let blobs = clone.blobs(&wanted).await?;
    let mut done = CheckedOut::default();
    let mut links = Vec::new();
    for entry in &entries {
        let parts = [path, &entry.name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let name = parts.join("/");
        let file = safe_join(clone_root, &name)?;
        if file.symlink_metadata().is_ok() {
            continue;
        }
        let content = blobs.get(&entry.id).map(Vec::as_slice).unwrap_or_default();
        match entry.kind {
            Kind::Submodule | Kind::Tree => done.left_out.push(LeftOut::Submodule(name)),
            Kind::Link => links.push((name, file, content)),
            Kind::File { executable } => write_file(&file, content, executable)
                .map_err(|source| GitError::Write { path: file, source })?,
        }
    }
    // After every file, so that none is written through a link.
    let mut written = Vec::new();
    for (name, file, target) in links {
        let target = PathBuf::from(String::from_utf8_lossy(target).into_owned());
        let Some(end) = end_in_clone(&name, &target) else {
            done.left_out.push(LeftOut::LinkOutside(name));
            continue;
        };
        write_link(&file, &target).map_err(|source| GitError::Write {
            path: file.clone(),
            source,
        })?;
        done.wanted.push((end, name.clone()));
        written.push((name, file));
    }
    done.left_out.extend(remove_leaving(clone_root, written)?);
    done.wanted
        .retain(|(end, _)| clone_root.join(end).symlink_metadata().is_err());
    Ok(done)
}

fn write_file(file: &Path, content: &[u8], executable: bool) -> std::io::Result<()> {
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(file, content)?;
    if executable {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn write_link(file: &Path, target: &Path) -> std::io::Result<()> {
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::os::unix::fs::symlink(target, file)
}

/// Names alone do not tell where a link through another link ends (`a/up -> ..`, `b -> a/up/..`): the file system does.
fn remove_leaving(root: &Path, links: Vec<(String, PathBuf)>) -> Result<Vec<LeftOut>, GitError> {
    let io = |path: &Path, source| GitError::Write {
        path: path.to_owned(),
        source,
    };
    let real_root = root.canonicalize().map_err(|e| io(root, e))?;
    let mut left_out = Vec::new();
    for (name, file) in links {
        // A link that ends nowhere can read nothing; it stays, as a clone would have it.
        if file
            .canonicalize()
            .is_ok_and(|end| !end.starts_with(&real_root))
        {
            std::fs::remove_file(&file).map_err(|e| io(&file, e))?;
            left_out.push(LeftOut::LinkOutside(name));
        }
    }
    Ok(left_out)
}

/// git itself refuses such names on a normal clone; a server that is not git may send them all the same.
fn safe_join(root: &Path, name: &str) -> Result<PathBuf, GitError> {
    let relative = Path::new(name);
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(p) if !p.eq_ignore_ascii_case(".git")));
    if plain && !name.is_empty() {
        return Ok(root.join(relative));
    }
    Err(GitError::Refused {
        act: "writing a file of the clone".to_owned(),
        text: format!(
            "its name {name:?} leaves the clone or stands for git's own folder: remove it from the commit"
        ),
    })
}

/// Where in the clone a link at `name` with `target` ends, judged by the names alone; `None` when it leaves the clone on
/// its way.
fn end_in_clone(name: &str, target: &Path) -> Option<String> {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_inside_as_long_as_its_target_never_climbs_above_the_clone() {
        let end = |name: &str, target: &str| end_in_clone(name, Path::new(target));
        assert_eq!(end("a/b/link", "../../c").as_deref(), Some("c"));
        assert_eq!(end("link", "c/../d").as_deref(), Some("d"));
        assert_eq!(end("a/link", "../../etc/passwd"), None);
        assert_eq!(end("link", "/etc/passwd"), None);
        assert_eq!(end("a/link", "b/../../../a/b"), None);
    }

    #[test]
    fn a_link_that_leaves_through_another_link_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("clone");
        std::fs::create_dir_all(root.join("a")).unwrap();
        write_link(&root.join("a/up"), Path::new("..")).unwrap();
        write_link(&root.join("b"), Path::new("a/up/..")).unwrap();
        let links = vec![
            ("a/up".to_owned(), root.join("a/up")),
            ("b".to_owned(), root.join("b")),
        ];
        let left_out = remove_leaving(&root, links).unwrap();
        assert_eq!(left_out, [LeftOut::LinkOutside("b".to_owned())]);
        assert!(root.join("a/up").is_symlink());
        assert!(!root.join("b").is_symlink());
    }

    #[test]
    fn a_file_that_would_leave_the_clone_is_refused() {
        let root = Path::new("/clone");
        for name in [
            "../x",
            "/x",
            "a/../../x",
            ".git/config",
            "a/.GIT/hooks/x",
            "",
        ] {
            assert!(safe_join(root, name).is_err(), "{name}");
        }
        assert_eq!(
            safe_join(root, "a/b.tf").unwrap(),
            Path::new("/clone/a/b.tf")
        );
    }
}
