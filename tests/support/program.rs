//! A run of a job in a bare environment.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::Command;

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    /// Its exit code.
    pub code: i32,
    /// The log.
    pub stdout: String,
    /// What the job says of itself.
    pub stderr: String,
}

/// Runs `stagewright-plan` in `folder` with nothing in its environment but PATH, and HOME and TMPDIR below `folder`.
pub fn plan(folder: &Path, arguments: &[&str]) -> Run {
    run(env!("CARGO_BIN_EXE_stagewright-plan"), folder, arguments)
}

/// Runs a program so.
pub fn run(program: &str, folder: &Path, arguments: &[&str]) -> Run {
    let scratch = folder.join("tmp");
    std::fs::create_dir_all(&scratch).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", &scratch)
        .env("TMPDIR", &scratch)
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
