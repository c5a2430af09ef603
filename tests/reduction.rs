//! The reduction of a root, judged by Terraform itself and by chance; the long forms run with `tests/run --full`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "reduction/generate.rs"]
mod generate;
#[path = "history/random.rs"]
mod random;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use random::Random;
use stagewright::child::find_program;
use stagewright::terraform::Flavour;
use stagewright::terraform::inventory::Inventory;
use stagewright::terraform::reduction::{Reduction, ReductionError};
use stagewright::terraform::root::Root;

/// How many of something a run tries.
fn how_many(full: u64, otherwise: u64) -> u64 {
    if tools::is_on("STAGEWRIGHT_FULL") {
        full
    } else {
        otherwise
    }
}

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_CLI_CONFIG_FILE", "/dev/null")
        .env_remove("TF_DATA_DIR")
        .output()
        .unwrap()
}

/// Runs `program` and gives its standard output.
fn succeed(program: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = run(program, folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

fn reduce(files: &BTreeMap<String, Vec<u8>>) -> Result<Reduction, ReductionError> {
    Reduction::of(files, "terraform", Flavour::Terraform, None)
}

fn bytes_of(reduction: &Reduction) -> BTreeMap<String, Vec<u8>> {
    let files = reduction.files().iter();
    files
        .map(|file| (file.name().to_owned(), file.text().as_bytes().to_vec()))
        .collect()
}

/// Reduces the root of a seed, and lets `program` judge what is left.
fn judge(program: &str, seed: u64) {
    let root = generate::root(seed);
    let reduction = reduce(&root.files).unwrap();
    let left = bytes_of(&reduction);
    for (name, expected) in &root.left {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(shown(&left[name]), shown(expected), "seed {seed}, {name}");
    }
    let again = reduce(&left).unwrap();
    assert_eq!(bytes_of(&again), left, "seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &root.files);
    reduction.write(folder.path()).unwrap();
    let init = run(
        program,
        folder.path(),
        &["init", "-backend=false", "-input=false"],
    );
    let validate = run(program, folder.path(), &["validate", "-no-color"]);
    for output in [init, validate] {
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed}: {told}");
    }
}

/// Tries seeds on two threads, since the programs that judge take their time.
fn judge_all(program: &str, seeds: u64) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    judge(program, seed);
                }
            });
        }
    });
}

#[test]
fn what_is_left_of_a_root_is_as_it_was_and_terraform_takes_it() {
    judge_all("terraform", how_many(500, 40));
}

#[test]
fn opentofu_takes_what_is_left_of_a_root() {
    let tofu = find_program(Path::new("tofu")).filter(|_| tools::is_on("STAGEWRIGHT_FULL"));
    let tofu: Option<PathBuf> =
        tools::found_or_left_out("OpenTofu and STAGEWRIGHT_FULL=1", "STAGEWRIGHT_FULL", tofu);
    if let Some(tofu) = tofu {
        judge_all(tofu.to_str().unwrap(), 100);
    }
}

#[test]
fn a_corrupted_root_is_refused_or_reduced_to_what_reduces_no_further() {
    const BITS: &[&[u8]] = &[
        b"\"",
        b"${",
        b"%{",
        b"}",
        b"{",
        b"<<E\n",
        b"\nE\n",
        b"#",
        b"/*",
        b"*/",
        b"\n",
        b"\r",
        b"\\",
        b"~}",
        b"(",
        b"]",
        b"=",
        b".",
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf",
        "é".as_bytes(),
        b"locals {\n",
        b"data.a.b",
        b"resource",
    ];
    let (mut reduced, mut refused) = (0, 0);
    for seed in 0..how_many(10_000, 1_000) {
        let mut files = generate::root(seed).files;
        let mut random = Random(seed ^ 0x5eed);
        for _ in 0..=random.below(3) {
            let names: Vec<String> = files.keys().cloned().collect();
            let bytes = files.get_mut(&names[random.below(names.len())]).unwrap();
            let at = random.below(bytes.len() + 1);
            let end = (at + random.below(4)).min(bytes.len());
            match random.below(8) {
                0 => bytes.truncate(at),
                _ => {
                    let bit = BITS[random.below(BITS.len())];
                    bytes.splice(at..end, bit.iter().copied());
                }
            }
        }
        match reduce(&files) {
            Ok(reduction) => {
                reduced += 1;
                let left = bytes_of(&reduction);
                assert_eq!(bytes_of(&reduce(&left).unwrap()), left, "seed {seed}");
            }
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("terraform/"), "{error}");
            }
        }
    }
    assert!(
        reduced > 50 && refused > 50,
        "{reduced} reduced, {refused} refused"
    );
}

const APPLIED: &str = r#"
terraform {
  required_version = ">= 1.7"
}
variable "stage" {
  validation {
    condition     = contains(local.stages, var.stage)
    error_message = "No such stage."
  }
}
locals {
  stages = ["prd", data.terraform_remote_state.shared.defaults.stage]
  all    = [for each in terraform_data.each : each.output]
}
data "terraform_remote_state" "shared" {
  backend = "local"
  config = {
    path = "${path.module}/shared.tfstate"
  }
  defaults = {
    stage = "dev"
  }
}
resource "terraform_data" "each" {
  for_each = toset(["a", "b"])
  input    = <<EO
EO ${each.key}
}
EO
}
resource "terraform_data" "guarded" {
  input = local.all
  lifecycle {
    prevent_destroy = true
  }
  provisioner "local-exec" {
    when    = destroy
    command = "touch ran"
  }
}
resource "terraform_data" "left" {}
module "inner" {
  source = "./inner"
}
output "all" {
  value = terraform_data.guarded.output
}
"#;

fn apply(folder: &Path, text: &str, inner: &str) {
    std::fs::create_dir(folder.join("inner")).unwrap();
    std::fs::write(folder.join("inner/main.tf"), inner).unwrap();
    std::fs::write(folder.join("main.tf"), text).unwrap();
    let shared = r#"{"version":4,"terraform_version":"1.7.0","serial":1,"lineage":"a","outputs":{},"resources":[]}"#;
    std::fs::write(folder.join("shared.tfstate"), shared).unwrap();
    succeed("terraform", folder, &["init", "-input=false"]);
    let arguments = ["apply", "-auto-approve", "-input=false", "-var=stage=prd"];
    succeed("terraform", folder, &arguments);
}

fn reduce_in(folder: &Path) -> Reduction {
    let root = Root::open(folder, "terraform", "k", Flavour::Terraform).unwrap();
    let reduction = root.reduce("terraform").unwrap();
    reduction.write(folder).unwrap();
    reduction
}

/// The addresses that the plan in `folder` changes, and how.
fn planned(folder: &Path) -> Vec<(String, String)> {
    let arguments = ["plan", "-input=false", "-var=stage=prd", "-out=planned"];
    succeed("terraform", folder, &arguments);
    let json = succeed("terraform", folder, &["show", "-json", "planned"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let changes = json["resource_changes"].as_array().unwrap().iter();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    changes
        .map(|one| (word(&one["address"]), word(&one["change"]["actions"][0])))
        .collect()
}

#[test]
fn terraform_plans_of_a_reduced_root_to_delete_all_that_the_state_holds() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    apply(folder, APPLIED, "resource \"terraform_data\" \"x\" {}\n");
    let removed =
        "removed {\n  from = terraform_data.left\n  lifecycle {\n    destroy = false\n  }\n}\n";
    let now = APPLIED.replace("resource \"terraform_data\" \"left\" {}\n", removed);
    std::fs::write(folder.join("main.tf"), now).unwrap();
    let reduction = reduce_in(folder);
    assert_eq!(
        reduction.files()[0].to_string(),
        "main.tf: keeps 5 declaration(s), drops local.all, terraform_data.each, terraform_data.guarded, module.inner, output.all"
    );
    let notes = reduction.notes();
    assert_eq!(notes.prevent_destroy[0].address, "terraform_data.guarded");
    assert_eq!(
        notes.destroy_provisioners[0].address,
        "terraform_data.guarded"
    );
    assert_eq!(notes.forgotten[0].address, "terraform_data.left");
    let expected = [
        ("terraform_data.each[\"a\"]", "delete"),
        ("terraform_data.each[\"b\"]", "delete"),
        ("terraform_data.guarded", "delete"),
        ("terraform_data.left", "forget"),
        ("module.inner.terraform_data.x", "delete"),
    ];
    let mut expected = expected.map(|(address, action)| (address.to_owned(), action.to_owned()));
    expected.sort();
    let mut found = planned(folder);
    found.sort();
    assert_eq!(found, expected);
    succeed("terraform", folder, &["apply", "-input=false", "planned"]);
    assert_eq!(
        succeed("terraform", folder, &["state", "list"]).trim(),
        "data.terraform_remote_state.shared"
    );
    assert!(
        !folder.join("ran").exists(),
        "a dropped provisioner does not run"
    );
}

#[test]
fn a_provider_that_only_a_module_configures_is_refused_as_terraform_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let inner = "provider \"terraform\" {\n  alias = \"own\"\n}\nresource \"terraform_data\" \"x\" {\n  provider = terraform.own\n}\n";
    apply(folder, APPLIED, inner);
    let state = std::fs::read(folder.join("terraform.tfstate")).unwrap();
    let state = Inventory::read(&state).unwrap();
    let providers = state.instances().iter().map(|one| &one.provider);
    let reduction = reduce_in(folder);
    let error = reduction
        .check_providers(providers)
        .unwrap_err()
        .to_string();
    let missing = r#"module.inner.provider["terraform.io/builtin/terraform"].own"#;
    assert!(
        error.contains(&format!(": {missing} (configured inside module.inner,")),
        "{error}"
    );
    let plan = run(
        "terraform",
        folder,
        &["plan", "-input=false", "-no-color", "-var=stage=prd"],
    );
    let told = String::from_utf8_lossy(&plan.stderr);
    assert!(!plan.status.success() && told.contains(missing), "{told}");
}
