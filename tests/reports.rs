//! What a report says however a job ends; and that no byte of a secret leaves presync but in Terraform's own output: not in a record,
//! a result, a report in either form, or the record of a confirmation.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/retiring.rs"]
mod retiring;

use std::path::Path;
use std::process::Output;

use estate::Estate;
use retiring::{KEY, done, git, has, step};
use serde_json::{Value, json};
use stagewright::transport::record;

/// A root whose secrets go where a provider, a careless author and the environment put them.
const ROOT: &str = r#"
variable "marked" {
  type      = string
  sensitive = true
  default   = "marked-hunter2-0001"
}
variable "api_token" {
  type    = string
  default = ""
}
resource "terraform_data" "login" {
  input = { user = "shop", password = var.marked, nested = [{ key = var.marked }] }
}
resource "terraform_data" "careless" {
  input = { url = "postgres://shop:${nonsensitive(var.marked)}@db", padded = "${join("", [for n in range(300) : "0123456789"])}${nonsensitive(var.marked)}" }
}
resource "terraform_data" "token" {
  input = { header = "Bearer ${var.api_token}", json = jsonencode({ token = var.api_token }), keyed = { (var.api_token) = "x" } }
}
output "login" {
  sensitive = true
  value     = { password = var.marked, url = "https://${var.marked}@example.com" }
}
output "open" {
  value = "the token is ${var.api_token}"
}
"#;

/// What the environment hands over, which no variable marks.
const TOKEN: &str = "env-hunter2-\"0002\"";
/// Everything of which nothing may be seen; the last two are in the state alone.
const SECRETS: [&str; 5] = [
    "marked-hunter2",
    "env-hunter2",
    "0002",
    "state-hunter2-0003",
    "deep-hunter2-0004",
];

fn estate() -> Estate {
    let estate = Estate::unpack();
    estate.commit("FieldnotesDeploy", |files| {
        std::fs::write(files.join("terraform/secrets.tf"), ROOT).unwrap();
    });
    estate.commit("TerraformState", |files| {
        let file = files.join("argocd/FieldnotesDeploy/demo/terraform.tfstate");
        let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let kind = json!(["object", {"user": "string", "password": "string", "list": ["list", "string"]}]);
        let input = json!({"user": "shop", "password": "state-hunter2-0003", "list": ["deep-hunter2-0004"]});
        let mark = |path: &[&str]| -> Vec<Value> {
            path.iter().map(|name| json!({"type": "get_attr", "value": name})).collect()
        };
        let held = json!({"value": input, "type": kind});
        let url = "postgres://shop:state-hunter2-0003@db and deep-hunter2-0004";
        let object = |name: &str, input: Value, sensitive: Value| {
            json!({"mode": "managed", "type": "terraform_data", "name": name,
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{"schema_version": 0, "sensitive_attributes": sensitive,
                    "attributes": {"id": format!("{name}-1"), "input": input, "output": null, "triggers_replace": null}}]})
        };
        let resources = state["resources"].as_array_mut().unwrap();
        resources.push(object("old_login", held, json!([mark(&["input", "password"]), mark(&["input", "list"])])));
        resources.push(object("old_copy", json!({"value": url, "type": "string"}), json!([])));
        std::fs::write(&file, state.to_string()).unwrap();
    });
    estate
}

fn run(estate: &Estate, program: &str, arguments: &[&str]) -> Output {
    estate
        .program(program)
        .args(arguments)
        .env("TF_VAR_api_token", TOKEN)
        .output()
        .unwrap()
}

/// Runs a job with every file that it can write; gives the report as HTML.
fn job(estate: &Estate, program: &str, arguments: &[&str]) -> String {
    for form in ["html", "md"] {
        let report = format!("report.{form}");
        let files = [
            "--sandbox=sandbox",
            "--result",
            "result.json",
            "--report",
            &report,
        ];
        let output = run(estate, program, &[arguments, &files].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    read(&estate.path().join("report.html"))
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

fn assert_clean(estate: &Estate, names: &[&str]) {
    for name in names {
        let text = read(&estate.path().join(name));
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} in {name}: {text}");
        }
    }
}

#[test]
fn no_secret_is_in_the_report_or_the_result_of_a_plan() {
    let estate = estate();
    let plan = env!("CARGO_BIN_EXE_stagewright-plan");
    let target = [
        "--repo",
        "FieldnotesDeploy",
        "--stage",
        "demo",
        "--namespace",
        "fieldnotes-demo",
    ];
    let html = job(&estate, plan, &target);
    assert_clean(&estate, &["report.html", "report.md", "result.json"]);
    // It is about them: what is not secret stands beside the marks.
    for piece in [
        "sensitive: hidden",
        "\"postgres://shop:***@db\"",
        "\"Bearer ***\"",
        "\"the token is ***\"",
        "old_login",
    ] {
        assert!(
            html.replace("&quot;", "\"").contains(piece),
            "{piece}: {html}"
        );
    }
}

#[test]
fn no_secret_is_in_the_report_the_result_or_the_record_of_a_preview() {
    let estate = estate();
    let destroy_stage = env!("CARGO_BIN_EXE_stagewright-destroy-stage");
    let target = [
        "preview",
        "--repo",
        "FieldnotesDeploy",
        "--stage",
        "demo",
        "--namespace",
        "fieldnotes-demo",
    ];
    let html = job(
        &estate,
        destroy_stage,
        &[&target[..], &["--record", "record.json"]].concat(),
    );
    assert_clean(
        &estate,
        &["report.html", "report.md", "result.json", "record.json"],
    );
    for piece in [
        "sensitive: hidden",
        "postgres://shop:***@db and ***",
        "old_copy",
    ] {
        assert!(html.contains(piece), "{piece}: {html}");
    }
    // What a confirmation is made of holds no value at all.
    let record: Value = serde_json::from_str(&read(&estate.path().join("record.json"))).unwrap();
    assert_eq!(record["preview"]["values"], Value::Null);
    assert!(!record.to_string().contains("postgres://"));
}

#[test]
fn no_secret_is_in_what_presync_sends() {
    let estate = estate();
    let deploy = estate.repository("FieldnotesDeploy");
    let head = run(
        &estate,
        "git",
        &["-C", deploy.to_str().unwrap(), "rev-parse", "main"],
    )
    .stdout;
    let head = String::from_utf8(head).unwrap();
    let arguments = [deploy.to_str().unwrap(), head.trim(), "demo"];
    for verb in [&["plan"][..], &["destroy", "--preview"]] {
        let namespace = ["fieldnotes-demo"];
        let namespace = if verb[0] == "plan" {
            &namespace[..]
        } else {
            &[]
        };
        let output = estate
            .program(env!("CARGO_BIN_EXE_presync"))
            .args([verb, &arguments, namespace].concat())
            .env("TF_VAR_api_token", TOKEN)
            .env("STAGEWRIGHT_NAMESPACE", "fieldnotes-demo")
            .env("STAGEWRIGHT_STATE_URL", estate.repository("TerraformState"))
            .output()
            .unwrap();
        let log = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{log}");
        let lines = log
            .lines()
            .filter_map(|line| line.strip_prefix("presync-record: 1 "));
        let parts: Vec<&str> = lines.map(|line| line.split_once(' ').unwrap().1).collect();
        let sent: Value = record::unpack(&parts.concat()).unwrap();
        assert!(
            sent["values"]["resources"].as_array().unwrap().len() > 2,
            "{sent}"
        );
        let sent = sent.to_string();
        for secret in SECRETS {
            assert!(!sent.contains(secret), "{verb:?}: {secret} in {sent}");
        }
    }
}

#[test]
fn a_report_of_a_destroy_says_what_was_done_and_what_the_objects_held_and_keeps_no_value_elsewhere()
{
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    let report = ["--report", "report.html", "--result", "result.json"];
    done(&estate, &[&["destroy"], &report[..]].concat());
    let html = read(&estate.path().join("report.html"));
    let removing = git(&estate, "TerraformState", &["rev-parse", "main"]);
    for piece in [
        "<p class=\"kind\">Destroy</p>",
        "<p class=\"word\">Destroyed</p>",
        "<li>3 object(s) destroyed</li>",
        &format!("<li>the state removed by commit {}</li>", removing.trim()),
        "&quot;fieldnotes-demo-photos&quot;",
    ] {
        assert!(html.contains(piece), "{piece}: {html}");
    }
    for name in ["record.json", "result.json"] {
        let text = read(&estate.path().join(name));
        assert!(!text.contains("fieldnotes-demo-photos"), "{name}: {text}");
    }
    let report = ["--report", "report.md"];
    done(&estate, &[&["destroy"], &report[..]].concat());
    let text = read(&estate.path().join("report.md"));
    assert!(
        text.contains("- an earlier run destroyed it by this record"),
        "{text}"
    );
    done(&estate, &[&["remove-config"], &report[..]].concat());
    let text = read(&estate.path().join("report.md"));
    assert!(
        text.contains("- the config folder removed by commit "),
        "{text}"
    );
    assert!(!has(&estate, "FieldnotesDeploy", "config/demo"));
    assert!(!has(&estate, "TerraformState", KEY));
}

#[test]
fn a_report_of_a_refusal_has_the_sentence_of_the_job_and_takes_the_place_of_an_older_one() {
    let estate = Estate::unpack();
    done(&estate, &["preview", "--report", "report.md"]);
    let older = read(&estate.path().join("report.md"));
    assert!(
        older.contains("**Previewed: nothing was changed**"),
        "{older}"
    );
    estate.commit("FieldnotesDeploy", |files| {
        std::fs::write(files.join("config/demo/values.yaml"), "changed: true\n").unwrap();
    });
    let moved = step(&estate, &["destroy", "--report", "report.md"]);
    assert_eq!(moved.code, Some(5), "{}", moved.said);
    let text = read(&estate.path().join("report.md"));
    for piece in [
        "> [!CAUTION]\n> **Moved**\n",
        "> moved since the preview, so nothing was changed: config/demo ",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
}
