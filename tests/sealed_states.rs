//! Encrypted states through `presync backend`: real Terraform, real sops, and the sandbox's age key.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[expect(dead_code, reason = "only pushes and pulls here")]
#[path = "support/bench.rs"]
mod bench;
#[path = "support/tools.rs"]
mod tools;

use std::path::Path;

use bench::{Bench, KEY};
use serde_json::Value;
use stagewright::child::find_program;

const RECIPIENT: &str = "age1z8ddlq8swr6zywnv4cxq7fn32mnfvxhxygtsjm9ngytwu5te0sys67h49w";
const KEYS: &str = include_str!("../fixtures/estate/credentials/sandbox.agekey");
const STATE: &str = r#"{
  "version": 4, "terraform_version": "1.11.4", "serial": 7, "lineage": "5f1c9d7a-8d57-4b0e-9a3b-0c9d0e6f4a11",
  "outputs": {"note_unencrypted": {"value": "in the clear?", "type": "string"}},
  "resources": [{
    "mode": "managed", "type": "terraform_data", "name": "a",
    "provider": "provider[\"terraform.io/builtin/terraform\"]",
    "instances": [{"schema_version": 0, "attributes": {
      "id": "one", "triggers_replace": null,
      "input": {"value": {"empty": "", "password_unencrypted": "swordfish", "": "nameless", "yes": true,
        "n": [9007199254740993, 18446744073709551615, 1e400, 0.10, -0, 1.0]},
        "type": ["object", {"empty": "string", "password_unencrypted": "string", "": "string", "yes": "bool", "n": ["list", "number"]}]}
    }, "sensitive_attributes": []}]
  }],
  "check_results": null
}"#;

/// A bench whose states are sealed, with Terraform ready in an empty folder; nothing where there is no sops.
fn sealing() -> Option<Bench> {
    let sops = find_program(Path::new("sops"));
    tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops)?;
    let mut bench = Bench::new("");
    bench.set("SOPS_AGE_RECIPIENTS", RECIPIENT);
    let key = KEYS
        .lines()
        .find(|line| line.starts_with("AGE-SECRET-KEY-"));
    bench.set("SOPS_AGE_KEY", key.unwrap());
    bench.backend("-- terraform init -input=false").done();
    Some(bench)
}

fn push(bench: &Bench, text: &str) -> bench::Run {
    std::fs::write(bench.path().join("root/pushed.tfstate"), text).unwrap();
    bench.backend("-- terraform state push pushed.tfstate")
}

/// The values that a sealed document shows.
fn in_the_clear(document: &Value) -> Vec<String> {
    match document {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "sops")
            .flat_map(|(_, value)| in_the_clear(value))
            .collect(),
        Value::Array(values) => values.iter().flat_map(in_the_clear).collect(),
        Value::String(text) if text.starts_with("ENC[AES256_GCM,") => Vec::new(),
        other => vec![other.to_string()],
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_value_of_a_state_is_sealed_and_comes_back() {
    let Some(bench) = sealing() else { return };
    let pushed = push(&bench, STATE);
    assert_eq!(pushed.code, 0, "{pushed:#?}");
    let kept = json(&bench.kept());
    // sops leaves what is empty, and so do we.
    let mut clear = in_the_clear(&kept);
    clear.dedup();
    assert_eq!(clear, ["null", "\"\"", "null"]);
    assert_eq!(kept["sops"]["age"][0]["recipient"], RECIPIENT);

    let number = "resources[0].instances[0].attributes.input.value.n";
    let warnings: Vec<&str> = pushed
        .stderr
        .lines()
        .filter(|line| line.contains("warning"))
        .collect();
    assert_eq!(warnings.len(), 2, "{pushed:#?}");
    assert_eq!(
        warnings[0],
        format!(
            "state backend: warning: sops cannot carry a number of {KEY}: {number}[1]: 18446744073709551615 became 18446744073709552000"
        )
    );
    let beyond = format!("{number}[2]: 1e+400 became 1.7976931348623157");
    assert!(warnings[1].contains(&beyond), "{pushed:#?}");

    let pulled = json(&bench.backend("-- terraform state pull").done());
    let (before, after) = (json(STATE), pulled);
    assert_eq!(after["outputs"], before["outputs"]);
    let value = |state: &Value| {
        state["resources"][0]["instances"][0]["attributes"]["input"]["value"].clone()
    };
    let (before, after) = (value(&before), value(&after));
    for member in ["empty", "password_unencrypted", "", "yes"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(after["n"][0].to_string(), "9007199254740993");
    let float = |at: usize| after["n"][at].as_f64();
    assert_eq!(
        [float(3), float(4), float(5)],
        [Some(0.1), Some(0.0), Some(1.0)]
    );
}

#[test]
fn a_sealed_state_stays_sealed_and_is_never_written_in_plain_text() {
    let Some(mut bench) = sealing() else { return };
    bench.put_state(STATE);
    bench
        .backend("-- terraform state rm terraform_data.a")
        .done();
    let sealed = bench.kept();
    assert!(json(&sealed)["sops"]["mac"].is_string(), "{sealed}");

    bench.unset("SOPS_AGE_RECIPIENTS");
    let pulled = bench.backend("-- terraform state pull").done();
    assert_eq!(json(&pulled)["serial"], 8);
    let refused = push(&bench, &pulled.replace("\"serial\": 8", "\"serial\": 9"));
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(
        refused
            .says("is encrypted and no recipient is named, so it would be written in plain text"),
        "{refused:#?}"
    );
    assert_eq!(bench.kept(), sealed);

    bench.set("TF_BACKEND_HTTP_ENCRYPTION_PROVIDER", "sops");
    bench.set("TF_BACKEND_HTTP_SOPS_AGE_RECIPIENTS", RECIPIENT);
    let done = push(&bench, &pulled.replace("\"serial\": 8", "\"serial\": 9"));
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(in_the_clear(&json(&bench.kept())), ["null"]);
    assert_eq!(bench.locks(), Vec::<String>::new());
}

#[test]
fn a_sealed_state_that_was_changed_by_hand_is_not_served() {
    let Some(bench) = sealing() else { return };
    assert_eq!(push(&bench, STATE).code, 0);
    let kept = bench.kept();
    let mut changed = json(&kept);
    changed["outputs"] = Value::Object(serde_json::Map::new());
    for (document, why) in [
        (changed.to_string(), "MAC mismatch"),
        (
            kept.replacen("\"mac\"", "\"nac\"", 1),
            "it carries sops' mark without its MAC",
        ),
    ] {
        bench.put_state(&document);
        let pulled = bench.backend("-- terraform state pull");
        assert_eq!(
            (pulled.code, pulled.stdout.as_str()),
            (1, ""),
            "{pulled:#?}"
        );
        assert!(pulled.says(why), "{why}: {pulled:#?}");
        // Nor is it overwritten.
        assert_eq!(push(&bench, STATE).code, 1);
        assert_eq!(bench.kept(), document);
    }
}
