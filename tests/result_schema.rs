//! What `--result` writes has the shape that `schemas/plan-result.v1.schema.json` promises.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/program.rs"]
mod program;
#[path = "support/repositories.rs"]
mod repositories;

use std::path::Path;

use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(include_str!("../schemas/plan-result.v1.schema.json")).unwrap()
}

/// What is wrong with `result`, each with its place.
fn faults(result: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    validator
        .iter_errors(result)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Runs a plan in `folder`, which must end with `code`, and gives its valid result.
fn result(folder: &Path, arguments: &[&str], code: i32) -> Value {
    let file = folder.join("result.json");
    let arguments = [arguments, &["--result", "result.json"]].concat();
    let run = program::plan(folder, &arguments);
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(faults(&result), Vec::<String>::new(), "{result:#}");
    assert_eq!(result["exit_code"], code);
    assert_eq!(result["error"].is_null(), code == 0, "{}", result["error"]);
    result
}

const HEADLAMP: &[&str] = &[
    "--sandbox",
    "--repo",
    "PlatformDeploy",
    "--app-path",
    "headlamp",
];

#[test]
fn a_plan_with_changes_is_told_whole() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [HEADLAMP, &["--stage", "prd", "--log", "plan.log"]].concat();

    let result = result(folder.path(), &arguments, 0);

    assert_eq!(result["outcome"], "done");
    assert_eq!(result["target"], "PlatformDeploy/headlamp/prd");
    assert_eq!(result["namespace"], "headlamp-prd");
    assert_eq!(result["branch"], "main");
    assert_eq!(result["log"], "plan.log");
    assert_eq!(result["log_complete"], true);
    assert_eq!(result["has_changes"], true);
    assert_eq!(
        result["state"]["key"],
        "argocd/PlatformDeploy/headlamp/prd/terraform.tfstate"
    );
    assert_eq!(result["state"]["serial"], 42);
    assert_eq!(
        result["counts"],
        json!({
            "create": 2, "update": 1, "destroy": 1, "read": 0, "destroy-then-create": 1, "create-then-destroy": 1,
            "forget": 0, "create-then-forget": 0, "nothing": 1, "unknown": 0
        })
    );
    assert_eq!(result["changes"]["resources"].as_array().unwrap().len(), 7);
}

#[test]
fn changes_that_were_to_be_refused_are_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [HEADLAMP, &["--stage", "prd", "--fail-on-changes"]].concat();

    let result = result(folder.path(), &arguments, 3);

    assert_eq!(result["outcome"], "refused");
    assert_eq!(
        result["error"],
        "the plan carries changes, and --fail-on-changes was given"
    );
    assert_eq!(result["has_changes"], true);
}

#[test]
fn a_stage_without_a_state_has_no_lineage_and_one_without_changes_has_zero_counts() {
    let folder = tempfile::tempdir().unwrap();
    let pgadmin = &[
        "--sandbox",
        "--repo",
        "PlatformDeploy",
        "--app-path",
        "pgadmin",
    ][..];

    let new = result(folder.path(), &[pgadmin, &["--stage", "dev"]].concat(), 0);

    assert_eq!(new["state"]["found"], false);
    assert_eq!(new["state"]["lineage"], Value::Null);
    assert_eq!(new["counts"]["create"], 3);

    let arguments = [pgadmin, &["--stage", "prd", "--fail-on-changes"]].concat();
    let unchanged = result(folder.path(), &arguments, 0);

    assert_eq!(unchanged["has_changes"], false);
    assert_eq!(unchanged["counts"]["create"], 0);
    assert_eq!(unchanged["changes"]["resources"], json!([]));
}

#[test]
fn a_change_of_a_protected_resource_is_told_with_what_an_apply_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [HEADLAMP, &["--stage", "prd"]].concat();
    result(folder.path(), &arguments, 0);
    std::fs::write(
        folder.path().join("stagewright.yaml"),
        "forge: {git: {root: stagewright-sandbox/git, known_as: https://github.com/example}}\n\
         registry: {repo: ArgoCDDeploy}\nstate: {repo: TerraformState}\nrunner: local\n\
         protect: [terraform_data.session_*]\n",
    )
    .unwrap();

    let mut marked = result(folder.path(), &arguments[1..], 0);

    let changes = marked["changes"]["resources"].as_array_mut().unwrap();
    let refused: Vec<&Value> = changes
        .iter()
        .filter(|change| change["protected"] == "refused")
        .map(|change| &change["address"])
        .collect();
    assert_eq!(
        refused,
        [
            "terraform_data.session_signing_key",
            "terraform_data.session_store"
        ]
    );
    let others = changes
        .iter()
        .filter(|change| change.get("protected").is_none());
    assert_eq!(others.count(), 5);
    for (mark, faulty) in [("allowed", false), ("perhaps", true)] {
        marked["changes"]["resources"][0]["protected"] = json!(mark);
        assert_eq!(!faults(&marked).is_empty(), faulty, "{mark}");
    }
}

#[test]
fn a_failed_run_is_told_with_the_cause_from_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join("git");
    std::fs::write(
        folder.path().join("stagewright.yaml"),
        "forge: {git: {root: git, known_as: https://github.com/example}}\nregistry: {repo: ArgoCDDeploy}\n\
         state: {repo: TerraformState}\nrunner: local\n",
    )
    .unwrap();
    repositories::repository(
        &git.join("ArgoCDDeploy.git"),
        "main",
        &[(
            "releases/values.yaml",
            "apps:\n  notes:\n    repo: https://github.com/example/NotesDeploy.git\n    stages: {prd: {}}\n",
        )],
    );
    repositories::repository(
        &git.join("TerraformState.git"),
        "main",
        &[("README.md", "states\n")],
    );
    repositories::repository(
        &git.join("NotesDeploy.git"),
        "main",
        &[
            ("terraform/main.tf", "resource \"terraform_data\" {}\n"),
            ("config/prd/stage.tfvars", "\n"),
        ],
    );

    let result = result(
        folder.path(),
        &["--repo", "NotesDeploy", "--stage", "prd"],
        4,
    );

    assert_eq!(result["outcome"], "run-failed");
    assert_eq!(
        result["error"],
        "the log ends with: terraform init ended with exit code 1; its own message stands above"
    );
    assert_eq!(result["has_changes"], Value::Null);
    assert_eq!(result["state"]["found"], Value::Null);
    assert_eq!(result["app_path"], Value::Null);
}

#[test]
fn settings_that_cannot_be_read_have_a_result_too() {
    let folder = tempfile::tempdir().unwrap();

    let missing = result(folder.path(), &["--repo", "X", "--stage", "prd"], 2);

    assert_eq!(missing["outcome"], "usage");
    assert_eq!(missing["target"], "X/prd");
    assert_eq!(missing["revision"], Value::Null);
    assert!(
        missing["error"]
            .as_str()
            .unwrap()
            .starts_with("there is no settings file \"stagewright.yaml\""),
        "{}",
        missing["error"]
    );

    std::fs::write(folder.path().join("stagewright.yaml"), "forg: {}\n").unwrap();
    let unknown = result(folder.path(), &["--repo", "X", "--stage", "prd"], 2);

    assert!(
        unknown["error"].as_str().unwrap().contains("`forg`"),
        "{}",
        unknown["error"]
    );
}

#[test]
fn a_bent_result_is_refused_at_the_bent_place() {
    let folder = tempfile::tempdir().unwrap();
    let sound = result(
        folder.path(),
        &["--sandbox", "--repo", "FieldnotesDeploy", "--stage", "prd"],
        0,
    );
    let bent: [(&str, &str, Value); 7] = [
        ("", "extra", json!(1)),
        ("", "version", json!(2)),
        ("", "outcome", json!("moved")),
        ("", "revision", json!("abc")),
        ("", "seconds", json!("1.5")),
        ("/state", "serial", json!(-1)),
        ("/counts", "burn", json!(1)),
    ];
    for (parent, key, value) in bent {
        let mut result = sound.clone();
        result
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .insert(key.to_owned(), value);
        assert_ne!(faults(&result), Vec::<String>::new(), "{parent}/{key}");
    }
    for key in sound.as_object().unwrap().keys() {
        let mut result = sound.clone();
        result.as_object_mut().unwrap().remove(key);
        assert_ne!(faults(&result), Vec::<String>::new(), "without {key}");
    }
}

#[test]
fn every_field_of_the_schema_is_described() {
    fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, field) in properties {
            let place = format!("{path}/{name}");
            if field["description"].is_null() && field["$ref"].is_null() {
                found.push(place.clone());
            }
            undescribed(field, &place, found);
            undescribed(&field["items"], &place, found);
        }
    }
    let schema = schema();
    let mut found = Vec::new();
    undescribed(&schema, "", &mut found);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        undescribed(definition, name, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_result_that_could_not_be_written_is_told_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [HEADLAMP, &["--stage", "prd", "--result", "no/result.json"]].concat();

    let run = program::plan(folder.path(), &arguments);

    assert_eq!(run.code, 1);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "stagewright-plan: no/result.json could not be written\n  because: No such file or directory (os error 2)\n"
    );
}

/// Holds the result of every golden case of a job to its schema.
fn golden_results_fit(job: &str, schema: &str) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut looked_at = 0;
    for case in std::fs::read_dir(Path::new("fixtures").join(job)).unwrap() {
        let file = case.unwrap().path().join("result.json");
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        // What differs from run to run stands in brackets in a golden case.
        let text = text.replace("[SECONDS]", "0.5");
        let text = text.replace("[DIGEST]", &"0".repeat(64));
        let text = text.replace("[COMMIT]", &"0".repeat(40));
        let result: Value = serde_json::from_str(&text).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(&result)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{}", file.display());
        assert_eq!(
            result["error"].is_null(),
            result["exit_code"] == 0,
            "{}",
            file.display()
        );
        looked_at += 1;
    }
    assert!(looked_at > 4, "{looked_at}");
}

#[test]
fn every_outcome_of_checking_a_registry_fits_its_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../schemas/registry-check.v1.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let fits = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        let errors = validator.iter_errors(&value);
        let faults: Vec<String> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{text}");
        value
    };
    let cases = Path::new("fixtures/registry-check");
    let shown = cases.join("findings_are_written_as_json/stdout");
    fits(&std::fs::read_to_string(shown).unwrap());
    let written = cases.join("a_report_and_a_result_hold_the_findings/result.json");
    let result = fits(&std::fs::read_to_string(written).unwrap());
    assert_eq!(result["exit_code"], 3);
    let unread = cases.join("a_file_that_is_not_there_is_told/result.json");
    let result = fits(&std::fs::read_to_string(unread).unwrap());
    assert_eq!(result["exit_code"], 1);
    assert!(result["error"].is_string());
}

#[test]
fn every_result_of_destroying_a_stage_fits_its_schema() {
    let schema = include_str!("../schemas/destroy-result.v1.schema.json");
    golden_results_fit("destroy-stage", schema);
}

#[test]
fn every_result_of_registering_a_producer_fits_its_schema() {
    let schema = include_str!("../schemas/register-producer-result.v1.schema.json");
    golden_results_fit("register-producer", schema);
}
