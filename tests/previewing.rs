//! The record of a preview, and what a preview finds a second time.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;

use estate::Estate;
use serde_json::Value;

/// Previews the sandbox's retired stage; gives its record.
fn record(estate: &Estate, flags: &[&str]) -> Value {
    let output = estate
        .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args([
            "preview",
            "--sandbox=sandbox",
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "demo",
        ])
        .args(["--namespace", "fieldnotes-demo", "--record", "record.json"])
        .args(flags)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(estate.path().join("record.json")).unwrap();
    // What the stage's resources hold; a record has their names alone.
    for value in [
        "fieldnotes_demo_owner",
        "fieldnotes-demo-photos",
        "expire_days",
    ] {
        assert!(!text.contains(value), "{value}: {text}");
    }
    serde_json::from_str(&text).unwrap()
}

fn time(record: &Value, name: &str) -> jiff::Timestamp {
    record[name].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_record_binds_target_state_and_changes_for_an_hour_and_holds_no_value() {
    let estate = Estate::unpack();
    let record = record(
        &estate,
        &["--build-url", "https://user:secret@ci.example.org/job/7/"],
    );
    assert_eq!(record["target"], "FieldnotesDeploy/demo");
    assert_eq!(record["requested_by"], "https://ci.example.org/job/7/");
    let named = [
        "--build-url",
        "https://ci.example.org/job/7/",
        "--requested-by",
        "ada",
    ];
    assert_eq!(self::record(&estate, &named)["requested_by"], "ada");
    assert_eq!(record["image"], Value::Null);
    let life = time(&record, "created").duration_until(time(&record, "expires"));
    assert_eq!(life.as_secs(), 3600);
    let bound = &record["preview"]["bound"];
    assert_eq!(bound["state"]["position"]["serial"], 9);
    let trees: Vec<&String> = bound["trees"].as_object().unwrap().keys().collect();
    assert_eq!(
        trees,
        ["config/demo", "terraform", "terraform/modules/bucket"]
    );
    let changes = bound["changes"].as_array().unwrap().iter();
    let changes: Vec<&str> = changes
        .map(|change| change["address"].as_str().unwrap())
        .collect();
    assert_eq!(
        changes,
        [
            "module.notebook[\"photos\"].terraform_data.bucket",
            "module.notebook[\"photos\"].terraform_data.lifecycle_rule",
            "terraform_data.database"
        ]
    );
}

#[test]
fn the_digest_is_the_same_until_something_that_it_covers_changes() {
    let estate = Estate::unpack();
    let digest = |estate: &Estate| record(estate, &[])["digest"].clone();
    let first = digest(&estate);
    assert_eq!(digest(&estate), first);
    // Beside the app's folders.
    estate.commit("FieldnotesDeploy", |files| {
        std::fs::write(files.join("README.md"), "changed").unwrap();
    });
    assert_eq!(digest(&estate), first);
    estate.commit("FieldnotesDeploy", |files| {
        std::fs::write(files.join("config/demo/values.yaml"), "changed: true\n").unwrap();
    });
    let second = digest(&estate);
    assert_ne!(second, first);
    estate.commit("TerraformState", |files| {
        let file = files.join("argocd/FieldnotesDeploy/demo/terraform.tfstate");
        let state = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, state.replace("\"serial\": 9", "\"serial\": 10")).unwrap();
    });
    assert_ne!(digest(&estate), second);
}
