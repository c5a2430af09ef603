//! Bare repositories made from a few files, by `git fast-import`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes the bare repository `folder`, whose branch `branch` holds these files in one commit, and returns that commit.
pub fn repository(folder: &Path, branch: &str, files: &[(&str, &str)]) -> String {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--bare"], "");
    git(folder, &["config", "uploadpack.allowFilter", "true"], "");
    git(
        folder,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
        "",
    );
    commit(folder, branch, None, files)
}

/// Makes a commit that sets these files, with `parent` before it, the head of `branch`.
pub fn commit(folder: &Path, branch: &str, parent: Option<&str>, files: &[(&str, &str)]) -> String {
    let mut stream = format!(
        "commit refs/heads/{branch}\ncommitter Example <example@example.com> 1700000000 +0000\ndata 1\nx\n"
    );
    if let Some(parent) = parent {
        writeln!(stream, "from {parent}").unwrap();
    }
    for (path, content) in files {
        let length = content.len();
        write!(stream, "M 100644 inline {path}\ndata {length}\n{content}\n").unwrap();
    }
    git(folder, &["fast-import", "--quiet"], &stream);
    git(folder, &["rev-parse", &format!("refs/heads/{branch}")], "")
}

fn git(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut git = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
