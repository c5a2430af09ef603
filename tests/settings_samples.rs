//! The samples in `examples/settings` are settings that work: each drives a plan, on an estate as the sample names it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/program.rs"]
mod program;
#[path = "support/repositories.rs"]
mod repositories;

use std::path::{Path, PathBuf};

use program::plan;
use repositories::{commit, repository};
use stagewright::settings::{Settings, SettingsOrigin};

/// A root that shows what it is given: the namespace, and what the variable files say.
const ROOT: &str = r#"
variable "stage" { type = string }
variable "namespace" { type = string }
variable "greeting" { type = string }

resource "terraform_data" "greeting" {
  input = var.greeting
}

output "namespace" {
  value = "${var.namespace} of ${var.stage}"
}
"#;

/// A state of that root, in which the greeting was another one.
const STATE: &str = r#"{
  "version": 4,
  "terraform_version": "1.7.0",
  "serial": 5,
  "lineage": "6f1d1b6e-0000-4000-8000-000000000001",
  "outputs": {},
  "resources": [{
    "mode": "managed",
    "type": "terraform_data",
    "name": "greeting",
    "provider": "provider[\"terraform.io/builtin/terraform\"]",
    "instances": [{
      "schema_version": 0,
      "attributes": {
        "id": "6f1d1b6e-0000-4000-8000-000000000002",
        "input": {"value": "hello", "type": "string"},
        "output": {"value": "hello", "type": "string"},
        "triggers_replace": null
      }
    }]
  }],
  "check_results": null
}
"#;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/settings")
        .join(name)
}

fn result(file: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The repositories that the sample for plain git names, with the state at `key`.
fn plain_git_estate(folder: &Path, key: &str) {
    repository(
        &folder.join("git/ArgoCDDeploy.git"),
        "main",
        &[(
            "releases/values.yaml",
            "apps:\n  fieldnotes:\n    repo: https://github.com/example/FieldnotesDeploy.git\n    stages:\n      prd: {}\n",
        )],
    );
    repository(
        &folder.join("git/FieldnotesDeploy.git"),
        "main",
        &[
            ("terraform/main.tf", ROOT),
            ("config/prd/stage.tfvars", "greeting = \"good day\"\n"),
        ],
    );
    repository(
        &folder.join("git/TerraformState.git"),
        "main",
        &[(key, STATE)],
    );
    // The state is not sealed, so nothing reads the key; that it is there is looked for all the same.
    std::fs::write(folder.join("age.key"), "").unwrap();
}

#[test]
fn the_sample_for_plain_git_plans_where_it_lies_without_any_flag() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(sample("plain-git.yaml"), folder.join("stagewright.yaml")).unwrap();
    plain_git_estate(folder, "argocd/FieldnotesDeploy/prd/terraform.tfstate");

    let run = plan(folder, &["--repo", "FieldnotesDeploy", "--stage", "prd"]);

    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains(
            "\npresync: planning against argocd/FieldnotesDeploy/prd/terraform.tfstate: nothing is applied\n"
        ),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains(
            "\npresync: the plan carries 1 change(s):\npresync: terraform_data.greeting: update\n"
        ),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains(r#"+ namespace = "fieldnotes-prd of prd""#),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr
            .contains("stagewright.yaml (found in the working folder)"),
        "{}",
        run.stderr
    );
}

#[test]
fn states_without_a_prefix_are_found_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = std::fs::read_to_string(sample("plain-git.yaml")).unwrap();
    let text = text.replace("state:\n", "state:\n  prefix: \"\"\n");
    std::fs::write(folder.join("stagewright.yaml"), text).unwrap();
    plain_git_estate(folder, "FieldnotesDeploy/prd/terraform.tfstate");

    let run = plan(folder, &["--repo", "FieldnotesDeploy", "--stage", "prd"]);

    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains(
            "\npresync: planning against FieldnotesDeploy/prd/terraform.tfstate: nothing is applied\n"
        ),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains("\npresync: terraform_data.greeting: update\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_sample_whose_every_key_differs_plans_an_estate_laid_out_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = std::fs::read_to_string(sample("other-layout.yaml")).unwrap();
    let here = format!("file://{}", folder.canonicalize().unwrap().display());
    let server = "ssh://git@git.example.org:2222";
    assert_eq!(text.matches(server).count(), 2);
    std::fs::write(folder.join("estate.yaml"), text.replace(server, &here)).unwrap();
    // The program that the sample names, relative to itself. What it is it says by itself.
    std::fs::create_dir(folder.join("bin")).unwrap();
    std::os::unix::fs::symlink(terraform(), folder.join("bin/tofu")).unwrap();
    repository(
        &folder.join("infra/Estate.git"),
        "live",
        &[(
            "clusters/live/apps.yaml",
            "apps:\n  shop:\n    repo: https://code.example.org/infra/Shops.git\n    path: web\n    stages:\n      prd: {}\n",
        )],
    );
    let shops = folder.join("infra/Shops.git");
    let main = repository(
        &shops,
        "main",
        &[
            ("infra/web/tf/main.tf", ROOT),
            (
                "infra/web/stages/prd/web.auto.tfvars",
                "greeting = \"hello\"\n",
            ),
            (
                "infra/web/stages/prd/other.tfvars",
                "greeting = \"not read\"\n",
            ),
        ],
    );
    let unmerged = commit(
        &shops,
        "next",
        Some(&main),
        &[(
            "infra/web/stages/prd/web.auto.tfvars",
            "greeting = \"good day\"\n",
        )],
    );
    let key = "tf/live/prd/Shops/web/state.json";
    repository(
        &folder.join("terraform/states.git"),
        "states",
        &[(key, STATE)],
    );
    std::fs::create_dir(folder.join("keys")).unwrap();
    std::fs::write(folder.join("keys/live.age"), "").unwrap();
    let target = [
        "--settings",
        "estate.yaml",
        "--repo",
        "Shops",
        "--app-path",
        "web",
        "--stage",
        "prd",
        "--result",
        "result.json",
    ];

    let run = plan(folder, &target);

    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let planning = format!("\npresync: planning against {key}: nothing is applied\n");
    assert!(run.stdout.contains(&planning), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("\npresync: the plan carries no changes to resources and 1 to outputs:\npresync: output.namespace: create\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains(r#"+ namespace = "prd-shop-ns of prd""#),
        "{}",
        run.stdout
    );
    let written = result(&folder.join("result.json"));
    assert_eq!(written["namespace"], "prd-shop-ns");
    assert_eq!(written["revision"], main.as_str());
    assert_eq!(written["state"]["key"], key);
    assert_eq!(written["state"]["branch"], "states");
    assert_eq!(written["state"]["serial"], 5);

    // allow_unmerged is set: a commit of another branch can be planned.
    let arguments = [&target[..], &["--revision", &unmerged[..12]]].concat();
    let run = plan(folder, &arguments);

    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout
            .contains("\npresync: terraform_data.greeting: update\n"),
        "{}",
        run.stdout
    );
    assert_eq!(
        result(&folder.join("result.json"))["revision"],
        unmerged.as_str()
    );
}

#[test]
fn the_sample_for_github_and_kubernetes_is_read_and_its_plan_asks_for_the_token() {
    let file = sample("github-kubernetes.yaml");
    assert!(Settings::load(&file, SettingsOrigin::Flag).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let settings = file.to_str().unwrap();

    let run = plan(
        folder.path(),
        &["--settings", settings, "--repo", "X", "--stage", "prd"],
    );

    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let expected = "the variable GITHUB_TOKEN that forge.github names holds no token: set it";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

/// The first `terraform` on the PATH.
fn terraform() -> PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("terraform"))
        .find(|file| file.is_file())
        .unwrap()
}
