//! A large state repository for tests, made in about a second by `git fast-import`.
#![expect(
    clippy::expect_used,
    reason = "a panic here fails the test that asked for the repository"
)]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// How many states lie around the one that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// States that have a folder of their own beside the wanted one's: `argocd/Repo0000/prd/terraform.tfstate` and on.
    pub repositories: usize,
    /// States of one monorepo: `argocd/Monorepo/app0000/prd/terraform.tfstate` and on.
    pub apps: usize,
}

/// Makes the bare repository `repository`, whose branch `main` holds in one commit the `crowd` and the state `wanted` at
/// `key`, and returns that commit. Author and date are pinned, so equal arguments make equal ids.
pub fn make_state_repository(repository: &Path, crowd: Crowd, key: &str, wanted: &str) -> String {
    git(
        repository.parent().expect("a repository lies in a folder"),
        &[
            "init",
            "--quiet",
            "--bare",
            "--initial-branch=main",
            repository.to_str().expect("a path of a test is UTF-8"),
        ],
    );
    // What file:// needs, and servers that do not set these themselves.
    git(repository, &["config", "uploadpack.allowFilter", "true"]);
    git(
        repository,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );

    let mut import = Command::new("git")
        .args(["fast-import", "--quiet", "--done"])
        .current_dir(repository)
        .stdin(Stdio::piped())
        .spawn()
        .expect("starts git fast-import");
    let stream = BufWriter::new(import.stdin.take().expect("stdin is a pipe"));
    write_stream(stream, crowd, key, wanted).expect("git fast-import reads its stream");
    let status = import.wait().expect("git fast-import ends");
    assert!(status.success(), "git fast-import failed: {status}");
    git(repository, &["rev-parse", "refs/heads/main"])
}

fn write_stream(
    mut stream: impl Write,
    crowd: Crowd,
    key: &str,
    wanted: &str,
) -> std::io::Result<()> {
    let message = "Many states";
    writeln!(stream, "commit refs/heads/main")?;
    writeln!(
        stream,
        "committer Example <example@example.com> 1700000000 +0000"
    )?;
    writeln!(stream, "data {}\n{message}", message.len())?;
    for number in 0..crowd.repositories {
        write_state(
            &mut stream,
            &format!("argocd/Repo{number:04}/prd/terraform.tfstate"),
            &state(number),
        )?;
    }
    for number in 0..crowd.apps {
        write_state(
            &mut stream,
            &format!("argocd/Monorepo/app{number:04}/prd/terraform.tfstate"),
            &state(crowd.repositories + number),
        )?;
    }
    write_state(&mut stream, key, wanted)?;
    writeln!(stream, "done")?;
    stream.flush()
}

fn write_state(stream: &mut impl Write, path: &str, content: &str) -> std::io::Result<()> {
    writeln!(
        stream,
        "M 100644 inline {path}\ndata {}\n{content}",
        content.len()
    )
}

fn state(number: usize) -> String {
    format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{number},"lineage":"00000000-0000-4000-8000-{number:012}","outputs":{{}},"resources":[],"check_results":null}}"#
    )
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("runs git");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}
