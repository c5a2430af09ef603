//! The hooks of `.pre-commit-hooks.yaml`, carried out by pre-commit (<https://pre-commit.com>) where it is on `PATH`, else as it would.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

use stagewright::child::find_program;

const HOOKS: &str = include_str!("../.pre-commit-hooks.yaml");
const PROGRAM: &str = env!("CARGO_BIN_EXE_stagewright-registry-check");
const REGISTRY: &str = "releases/values.yaml";

#[derive(serde::Deserialize)]
struct Hook {
    id: String,
    entry: String,
    language: String,
    files: String,
}

fn hooks() -> Vec<Hook> {
    serde_yaml::from_str(HOOKS).unwrap()
}

/// A folder's git, of nobody's configuration.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with these files, committed; its head.
fn repository(folder: &Path, files: &[(&str, &str)]) -> String {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", "one"]);
    git(folder, &["rev-parse", "HEAD"])
}

/// Runs the hook on a repository whose registry has this text.
fn run(registry: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let estate = folder.path().join("estate");
    let hook = hooks()
        .into_iter()
        .find(|hook| hook.language == "system")
        .unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let files = [(REGISTRY, registry), ("README.md", "no registry\n")];
    let Some(pre_commit) = find_program("pre-commit".as_ref()) else {
        repository(&estate, &files);
        let mut command = Command::new(&hook.entry);
        return command
            .arg(REGISTRY)
            .current_dir(&estate)
            .env("PATH", path)
            .output()
            .unwrap();
    };
    let ours = folder.path().join("ours");
    let head = repository(&ours, &[(".pre-commit-hooks.yaml", HOOKS)]);
    let config = format!(
        "repos:\n- repo: {}\n  rev: {head}\n  hooks:\n  - id: {}\n",
        ours.display(),
        hook.id
    );
    repository(
        &estate,
        &[files[0], files[1], (".pre-commit-config.yaml", &config)],
    );
    Command::new(pre_commit)
        .args(["run", "--all-files"])
        .current_dir(&estate)
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("PRE_COMMIT_HOME", folder.path().join("cache"))
        .output()
        .unwrap()
}

#[test]
fn a_faulty_registry_fails_the_hook_with_its_finding_and_a_sound_one_passes() {
    let sound =
        "apps:\n  blog:\n    repo: https://github.com/example/Blog.git\n    stages: {prd: {}}\n";
    let passed = run(sound);
    assert!(passed.status.success(), "{passed:?}");

    let failed = run(&sound.replace("stages", "stags"));

    assert!(!failed.status.success(), "{failed:?}");
    let said = String::from_utf8(failed.stdout).unwrap();
    assert!(
        said.contains("releases/values.yaml:4:5: error: apps.blog: unknown key \"stags\""),
        "{said}"
    );
}

#[test]
fn the_hooks_call_the_program_on_the_registry_alone() {
    for hook in hooks() {
        assert!(PROGRAM.ends_with(&hook.entry), "{}", hook.id);
        assert_eq!(hook.files, r"^releases/values\.ya?ml$", "{}", hook.id);
    }
}
