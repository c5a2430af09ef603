//! OpenTofu in Terraform's place; runs with `tests/run --full`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/tools.rs"]
mod tools;

use std::path::Path;

use estate::Estate;
use stagewright::child::find_program;

/// Whether OpenTofu is to be tried; it must be there then.
fn is_wanted() -> bool {
    let tofu = find_program(Path::new("tofu")).filter(|_| tools::is_on("STAGEWRIGHT_FULL"));
    tools::found_or_left_out("OpenTofu and STAGEWRIGHT_FULL=1", "STAGEWRIGHT_FULL", tofu).is_some()
}

/// Plans FieldnotesDeploy/dev at a branch's head with `program`; gives presync's own lines from the second on (the first names the program).
fn plan(estate: &Estate, program: &str, branch: &str) -> Vec<String> {
    let settings = estate.path().join("settings.yaml");
    let text = format!(
        "forge: {{git: {{root: sandbox/git, known_as: https://github.com/example}}}}\n\
         registry: {{repo: ArgoCDDeploy}}\nstate: {{repo: TerraformState}}\nrunner: local\n\
         terraform: {{program: {program}}}\n"
    );
    std::fs::write(&settings, text).unwrap();
    let output = estate
        .program(env!("CARGO_BIN_EXE_stagewright-plan"))
        .arg("--settings")
        .arg(&settings)
        .args([
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "dev",
            "--branch",
            branch,
        ])
        .output()
        .unwrap();
    let log = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    let lines: Vec<String> = log
        .lines()
        .filter(|line| line.starts_with("presync: "))
        .map(str::to_owned)
        .collect();
    let name = if program == "tofu" {
        "presync: OpenTofu 1."
    } else {
        "presync: Terraform 1."
    };
    assert!(lines[0].starts_with(name), "{log}");
    lines[1..].to_vec()
}

#[test]
fn opentofu_plans_the_same_changes_as_terraform() {
    if !is_wanted() {
        return;
    }
    let estate = Estate::unpack();
    let lines = plan(&estate, "tofu", "next");
    assert!(
        lines.contains(&"presync: the plan carries 2 change(s):".to_owned()),
        "{lines:?}"
    );
    assert_eq!(lines, plan(&estate, "terraform", "next"));
}

#[test]
fn a_main_tofu_takes_the_place_of_main_tf_for_opentofu_alone() {
    if !is_wanted() {
        return;
    }
    let estate = Estate::unpack();
    estate.commit("FieldnotesDeploy", |files| {
        let main = std::fs::read_to_string(files.join("terraform/main.tf")).unwrap();
        let more = format!("{main}\nresource \"terraform_data\" \"opentofu_alone\" {{}}\n");
        std::fs::write(files.join("terraform/main.tofu"), more).unwrap();
    });
    let alone = "presync: terraform_data.opentofu_alone: create".to_owned();
    assert!(plan(&estate, "tofu", "main").contains(&alone));
    assert!(!plan(&estate, "terraform", "main").contains(&alone));
}
