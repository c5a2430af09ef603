//! A plan and a preview change nothing: however it ends, every file of the estate is afterwards what it was before.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use estate::Estate;
use sha2::{Digest, Sha256};
use stagewright::child::find_program;

const REPOSITORIES: [&str; 5] = [
    "Architecture",
    "ArgoCDDeploy",
    "FieldnotesDeploy",
    "PlatformDeploy",
    "TerraformState",
];

/// All refs and all objects of all repositories, and kind, rights and content of every file below the sandbox.
#[derive(Debug, PartialEq, Eq)]
struct Everything {
    refs_and_objects: BTreeMap<&'static str, (String, String)>,
    files: BTreeMap<PathBuf, (u32, String)>,
}

impl Everything {
    fn of(estate: &Estate) -> Everything {
        let git = |repository: &str, arguments: &[&str]| {
            let output = estate
                .program("git")
                .arg("--git-dir")
                .arg(estate.repository(repository))
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        let all_objects = ["cat-file", "--batch-all-objects", "--batch-check"];
        let refs_and_objects = REPOSITORIES.map(|name| {
            let refs = git(name, &["for-each-ref"]);
            assert!(refs.contains("refs/heads/main"), "{name}");
            (name, (refs, git(name, &all_objects)))
        });
        let mut files = BTreeMap::new();
        hash_below(&estate.path().join("sandbox"), &mut files);
        Everything {
            refs_and_objects: refs_and_objects.into(),
            files,
        }
    }
}

fn hash_below(folder: &Path, files: &mut BTreeMap<PathBuf, (u32, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_dir() {
            hash_below(&path, files);
            String::new()
        } else {
            assert!(metadata.is_file(), "{}", path.display());
            format!("{:x}", Sha256::digest(std::fs::read(&path).unwrap()))
        };
        files.insert(path, (metadata.mode(), content));
    }
}

/// Plans, and compares everything before and after; returns the exit code and the log.
fn plan(estate: &Estate, target: &[&str]) -> (Option<i32>, String) {
    run(estate, env!("CARGO_BIN_EXE_stagewright-plan"), target)
}

/// The same with a preview.
fn preview(estate: &Estate, target: &[&str]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_stagewright-destroy-stage");
    run(estate, program, &[target, &["preview"]].concat())
}

fn run(estate: &Estate, program: &str, target: &[&str]) -> (Option<i32>, String) {
    let before = Everything::of(estate);
    assert!(before.files.len() > 50, "{}", before.files.len());
    let output = estate
        .program(program)
        .args(["--sandbox=sandbox", "--repo"])
        .args(target)
        .output()
        .unwrap();
    assert_eq!(Everything::of(estate), before);
    let temporary = std::fs::read_dir(estate.path().join("tmp")).unwrap();
    assert_eq!(temporary.count(), 0, "a temporary folder stays");
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_plan_with_changes_changes_nothing() {
    let estate = Estate::unpack();
    let target = ["PlatformDeploy", "--app-path", "headlamp", "--stage", "prd"];
    let (code, log) = plan(&estate, &target);
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("\npresync: the plan carries 7 change(s):\n"),
        "{log}"
    );
}

#[test]
fn a_plan_without_a_state_changes_nothing() {
    let estate = Estate::unpack();
    let target = ["PlatformDeploy", "--app-path", "pgadmin", "--stage", "dev"];
    let (code, log) = plan(&estate, &target);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("everything is planned anew\n"), "{log}");
}

#[test]
fn a_plan_against_a_sealed_state_changes_nothing() {
    let sops = find_program(Path::new("sops"));
    if tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops).is_none() {
        return;
    }
    let estate = Estate::unpack();
    let target = ["PlatformDeploy", "--app-path", "grafana", "--stage", "prd"];
    let (code, log) = plan(&estate, &target);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(": forget\n"), "{log}");
}

#[test]
fn a_plan_that_fails_changes_nothing() {
    let estate = Estate::unpack();
    estate.commit("FieldnotesDeploy", |files| {
        let check = "resource \"terraform_data\" \"refused\" {\n  lifecycle {\n    precondition {\n      condition     = var.stage == \"none\"\n      error_message = \"No stage will do.\"\n    }\n  }\n}\n";
        std::fs::write(files.join("terraform/refused.tf"), check).unwrap();
    });
    let (code, log) = plan(&estate, &["FieldnotesDeploy", "--stage", "prd"]);
    assert_eq!(code, Some(4), "{log}");
    assert!(log.contains("No stage will do."), "{log}");
}

const RETIRED: [&str; 3] = ["FieldnotesDeploy", "--stage", "demo"];
const NAMESPACE: [&str; 2] = ["--namespace", "fieldnotes-demo"];

#[test]
fn a_preview_of_a_retired_stage_changes_nothing() {
    let estate = Estate::unpack();
    let (code, log) = preview(&estate, &[&RETIRED[..], &NAMESPACE].concat());
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("\npresync: dry run: nothing was written\n"),
        "{log}"
    );
    assert!(
        log.contains("3 object(s) in the state: 3 destroyed"),
        "{log}"
    );
}

#[test]
fn a_preview_that_fails_or_is_refused_changes_nothing() {
    let estate = Estate::unpack();
    let (code, log) = preview(&estate, &RETIRED);
    assert_eq!(code, Some(4), "{log}");
    estate.commit("TerraformState", |files| {
        std::fs::write(files.join("argocd/FieldnotesDeploy/demo/more"), "x").unwrap();
    });
    let (code, log) = preview(&estate, &[&RETIRED[..], &NAMESPACE].concat());
    assert_eq!(code, Some(3), "{log}");
}
