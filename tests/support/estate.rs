//! A sandbox of a test's own, in a folder that holds everything its programs write, and by which they are found.
#![expect(
    clippy::unwrap_used,
    reason = "a panic here fails the test that asked for the estate"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stagewright::sandbox::{Reset, Sandbox};
use tempfile::TempDir;

/// The folder: `sandbox/`, `tmp/` (the programs' TMPDIR), and whatever a test puts beside them.
pub struct Estate {
    folder: TempDir,
}

impl Estate {
    /// Unpacks the example estate.
    pub fn unpack() -> Estate {
        let folder = tempfile::Builder::new()
            .prefix("estate-")
            .tempdir()
            .unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Sandbox::open(&folder.path().join("sandbox"), Reset::Fresh).unwrap();
        Estate { folder }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// One of the sandbox's bare repositories.
    pub fn repository(&self, name: &str) -> PathBuf {
        self.path().join("sandbox/git").join(format!("{name}.git"))
    }

    /// Commits to `main` of a repository what `change` makes of its files, and returns the commit.
    pub fn commit(&self, name: &str, change: impl FnOnce(&Path)) -> String {
        self.commit_saying(name, "A change of the test", change)
    }

    /// The same with a message.
    pub fn commit_saying(&self, name: &str, message: &str, change: impl FnOnce(&Path)) -> String {
        let work = tempfile::tempdir_in(self.path()).unwrap();
        let git = |arguments: &[&str]| {
            let output = self
                .program("git")
                .args([
                    "-c",
                    "user.name=Example",
                    "-c",
                    "user.email=example@example.com",
                ])
                .args(arguments)
                .current_dir(work.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "git {arguments:?}: {said}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let repository = self.repository(name);
        git(&[
            "clone",
            "-q",
            "-b",
            "main",
            repository.to_str().unwrap(),
            ".",
        ]);
        change(work.path());
        git(&["add", "--all"]);
        git(&["commit", "-q", "--allow-empty", "-m", message]);
        git(&["push", "-q", "origin", "main"]);
        git(&["rev-parse", "HEAD"])
    }

    /// A program in an environment that holds nothing of the caller's but PATH.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TMPDIR", self.path().join("tmp"))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }
}
