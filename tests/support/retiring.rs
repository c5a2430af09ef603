//! The retired stage `demo` of the sandbox, and the steps that destroy it.
#![expect(
    clippy::unwrap_used,
    reason = "a panic here fails the test that takes the step"
)]

use crate::estate::Estate;

/// The state of the stage `demo`.
pub const KEY: &str = "argocd/FieldnotesDeploy/demo/terraform.tfstate";

/// What a step came to: its exit code, standard output and standard error.
pub struct Ran {
    pub code: Option<i32>,
    pub shown: String,
    pub said: String,
}

/// Runs a step on the stage `demo` of the sandbox, with its record.
pub fn step(estate: &Estate, arguments: &[&str]) -> Ran {
    let output = estate
        .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args(arguments)
        .args([
            "--sandbox=sandbox",
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "demo",
        ])
        .args(["--namespace", "fieldnotes-demo", "--record", "record.json"])
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        shown: String::from_utf8(output.stdout).unwrap(),
        said: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The same, which must end well.
pub fn done(estate: &Estate, arguments: &[&str]) -> Ran {
    let ran = step(estate, arguments);
    assert_eq!(
        ran.code,
        Some(0),
        "{arguments:?}: {}{}",
        ran.shown,
        ran.said
    );
    ran
}

/// What git says of one of the sandbox's repositories.
pub fn git(estate: &Estate, repository: &str, arguments: &[&str]) -> String {
    let output = estate
        .program("git")
        .arg("--git-dir")
        .arg(estate.repository(repository))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `main` of a repository has a path.
pub fn has(estate: &Estate, repository: &str, path: &str) -> bool {
    !git(estate, repository, &["ls-tree", "main", path]).is_empty()
}
