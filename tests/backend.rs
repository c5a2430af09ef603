//! Terraform's commands through `presync backend`: the real programs against a state repository in a folder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/bench.rs"]
mod bench;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::path::Path;

use bench::{Bench, KEY};
use stagewright::child::find_program;

/// Two resources that need no provider of their own.
const ROOT: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n\nresource \"terraform_data\" \"b\" {}\n";
const LINEAGE: &str = "5f1c9d7a-8d57-4b0e-9a3b-0c9d0e6f4a11";
const ID: &str = "3f0a1c52-7d0e-4f9b-8a66-1f2e3d4c5b6a";
const LOCK: &str = r#"{"ID":"3f0a1c52-7d0e-4f9b-8a66-1f2e3d4c5b6a","Operation":"OperationTypeApply","Info":"","Who":"ada@laptop","Version":"1.11.4","Created":"2026-01-02T03:04:05.678901Z","Path":""}"#;

fn state(lineage: &str, serial: u64, output: &str) -> String {
    format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"{lineage}","outputs":{{"o":{{"value":"{output}","type":"string"}}}},"resources":[],"check_results":null}}"#
    )
}

fn write(bench: &Bench, name: &str, text: &str) {
    std::fs::write(bench.path().join("root").join(name), text).unwrap();
}

/// Every command of the state's through one program.
fn works_on_a_state(program: &str, declares: &str) {
    let bench = Bench::new(&format!("{declares}{ROOT}"));
    let run = |words: &str| bench.backend(&format!("-- {program} {words}"));
    run("init -input=false -no-color").done();
    run("apply -auto-approve -input=false -no-color").done();
    assert_eq!(
        run("state list").done(),
        "terraform_data.a\nterraform_data.b\n"
    );
    run("state mv terraform_data.a terraform_data.c").done();
    run("state rm terraform_data.b").done();
    assert_eq!(run("state list").done(), "terraform_data.c\n");
    let pulled = run("state pull").done();
    let mut next: serde_json::Value = serde_json::from_str(&pulled).unwrap();
    assert_eq!(next["resources"][0]["name"], "c");
    let serial = next["serial"].as_u64().unwrap();
    next["serial"] = (serial + 5).into();
    next["outputs"] = serde_json::json!({ "o": { "value": "pushed", "type": "string" } });
    write(&bench, "next.tfstate", &next.to_string());
    run("state push next.tfstate").done();
    let kept: serde_json::Value = serde_json::from_str(&bench.kept()).unwrap();
    assert!(kept["serial"].as_u64().unwrap() >= serial + 5, "{kept}");
    assert_eq!(kept["outputs"]["o"]["value"], "pushed");

    let subjects = bench.git(&["log", "--format=%s", "main"]);
    let updates = format!("Update {KEY}");
    assert!(
        subjects.lines().filter(|line| *line == updates).count() >= 4,
        "{subjects}"
    );
    assert!(subjects.ends_with("Begin\n"), "{subjects}");
    assert_eq!(bench.locks(), Vec::<String>::new());
    let left = BTreeSet::from([".terraform", "main.tf", "next.tfstate"].map(str::to_owned));
    assert_eq!(bench.root_names(), left);
}

#[test]
fn a_state_is_listed_moved_pruned_pulled_and_pushed() {
    works_on_a_state("terraform", "");
}

#[test]
fn a_root_that_declares_an_http_backend_works() {
    works_on_a_state("terraform", "terraform {\n  backend \"http\" {}\n}\n");
}

#[test]
fn opentofu_works_on_a_state_as_well() {
    let tofu = find_program(Path::new("tofu")).filter(|_| tools::is_on("STAGEWRIGHT_FULL"));
    let what = "OpenTofu and STAGEWRIGHT_FULL=1";
    if tools::found_or_left_out(what, "STAGEWRIGHT_FULL", tofu).is_some() {
        works_on_a_state("tofu", "");
    }
}

#[test]
fn a_root_that_keeps_its_state_elsewhere_is_refused() {
    let bench = Bench::new("terraform {\n  backend \"s3\" {}\n}\n");
    let run = bench.backend("-- terraform init");
    assert_eq!(run.code, 1);
    assert!(run.says("main.tf:2 declares backend \"s3\""), "{run:#?}");
    assert_eq!(bench.root_names(), BTreeSet::from(["main.tf".to_owned()]));
}

#[test]
fn a_folder_without_files_is_enough_to_work_on_a_state() {
    let bench = Bench::new("");
    let kept = state(LINEAGE, 7, "kept");
    bench.put_state(&kept);
    bench.backend("-- terraform init -input=false").done();
    let pulled = bench.backend("-- terraform state pull").done();
    let same: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&pulled).unwrap(),
        same
    );
    assert_eq!(
        bench.root_names(),
        BTreeSet::from([".terraform".to_owned()])
    );
}

#[test]
fn the_exit_code_of_the_command_is_that_of_presync() {
    let bench = Bench::new(ROOT);
    bench.backend("-- terraform init -input=false").done();
    let changes = bench.backend("-- terraform plan -input=false -detailed-exitcode");
    assert_eq!(changes.code, 2, "{changes:#?}");
    assert_eq!(bench.backend("-- terraform state rm no.such").code, 1);
    let written = bench.commits();
    assert_eq!(written, 1);
    for words in ["-- terraform", "-- terraform -chdir=.. state list"] {
        let run = bench.backend(words);
        assert_eq!(run.code, 1);
        assert!(run.says("names no command: after --"), "{run:#?}");
    }
}

#[test]
fn a_pushed_state_that_may_not_follow_is_refused_until_it_is_permitted() {
    let bench = Bench::new("");
    let kept = state(LINEAGE, 7, "kept");
    bench.put_state(&kept);
    bench.backend("-- terraform init -input=false").done();
    let other = "0b6d3d0e-58a0-4c5e-8f0a-3a51f1c7ad02";
    for (pushed, its_own, ours) in [
        (
            state(other, 8, "pushed"),
            "unrelated state with lineage",
            format!("it has the lineage \"{other}\", and what is kept there has \"{LINEAGE}\""),
        ),
        // Terraform pushes a state of the same lineage with the next serial.
        (
            state(LINEAGE, 5, "pushed"),
            "newer state with serial 7",
            "its serial 6 is lower than 7".to_owned(),
        ),
        (
            state(LINEAGE, 6, "pushed"),
            "newer state with serial 7",
            "it has the serial 7, as what is kept there, and another content".to_owned(),
        ),
    ] {
        write(&bench, "pushed.tfstate", &pushed);
        let run = |words: &str| bench.backend(&format!("{words} pushed.tfstate"));
        // Terraform looks by itself first, and with -force it leaves that to us.
        let refused = run("-- terraform state push");
        assert_eq!(refused.code, 1, "{pushed}");
        assert!(refused.says(its_own), "{refused:#?}");
        let refused = run("-- terraform state push -force");
        assert_eq!(refused.code, 1, "{pushed}");
        let permits = format!("presync backend {KEY} --allow-overwrite -- terraform … permits it");
        assert!(
            refused.says(&ours) && refused.says(&permits),
            "{refused:#?}"
        );
        assert_eq!(bench.kept(), kept);
        assert_eq!(bench.locks(), Vec::<String>::new());

        run("--allow-overwrite -- terraform state push -force").done();
        let now: serde_json::Value = serde_json::from_str(&bench.kept()).unwrap();
        assert_eq!(now["outputs"]["o"]["value"], "pushed");
        bench.put_state(&kept);
    }
}

#[test]
fn a_lock_in_terraform_backend_gits_form_blocks_and_is_named() {
    let bench = Bench::new(ROOT);
    bench.backend("-- terraform init -input=false").done();
    bench.lock(KEY, LOCK);
    let blocked = bench.backend("-- terraform apply -auto-approve -input=false -no-color");
    assert_eq!(blocked.code, 1);
    for words in [
        "Error acquiring the state lock",
        "HTTP remote state already locked: ID=3f0a1c52-7d0e-4f9b-8a66-1f2e3d4c5b6a",
        &format!(
            "state backend: {KEY} is locked: by ada@laptop, OperationTypeApply, since 2026-01-02T03:04:05.678901Z, ID {ID}"
        ),
    ] {
        assert!(blocked.says(words), "{words}: {blocked:#?}");
    }
    assert_eq!(bench.commits(), 1);
    assert_eq!(bench.locks(), [format!("locks/{KEY}")]);
    // A look at the state takes no lock.
    bench
        .backend("-- terraform plan -input=false -lock=false")
        .done();
    // And a write without one is refused where somebody else has it.
    let unlocked = bench.backend("-- terraform apply -auto-approve -input=false -lock=false");
    assert_eq!(unlocked.code, 1);
    assert!(
        unlocked.says("is locked by another: by ada@laptop"),
        "{unlocked:#?}"
    );
    assert_eq!(bench.commits(), 1);
}

#[test]
fn a_state_is_not_written_without_a_lock() {
    let bench = Bench::new(ROOT);
    bench.backend("-- terraform init -input=false").done();
    let run = bench.backend("-- terraform apply -auto-approve -input=false -lock=false");
    assert_eq!(run.code, 1);
    assert!(
        run.says("a state is written only under its lock: leave out -lock=false"),
        "{run:#?}"
    );
    assert_eq!(bench.commits(), 1);
}

#[test]
fn our_lock_has_terraform_backend_gits_form_while_terraform_works() {
    let bench = Bench::new("");
    let states = bench.states();
    let states = states.display();
    bench.write_root(&format!(
        "resource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{\n    command = \"git --git-dir={states} log -1 --format='%s %D' locks/{KEY} >seen && git --git-dir={states} show locks/{KEY}:{KEY}.lock >>seen\"\n  }}\n}}\n"
    ));
    bench.backend("-- terraform init -input=false").done();
    bench
        .backend("-- terraform apply -auto-approve -input=false")
        .done();
    let seen = std::fs::read_to_string(bench.path().join("root/seen")).unwrap();
    let (line, document) = seen.split_once('\n').unwrap();
    assert_eq!(line, format!("Lock {KEY} locks/{KEY}"));
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["Operation"], "OperationTypeApply");
    for member in ["ID", "Who", "Version", "Created"] {
        let text = document[member].as_str().unwrap();
        assert!(!text.is_empty(), "{member}");
    }
    assert_eq!(bench.locks(), Vec::<String>::new());
}

#[test]
fn a_killed_terraforms_lock_is_given_back() {
    let bench = Bench::new(
        "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"kill -KILL $PPID\"\n  }\n}\n",
    );
    bench.backend("-- terraform init -input=false").done();
    let run = bench.backend("-- terraform apply -auto-approve -input=false");
    assert_eq!(run.code, 137, "{run:#?}");
    assert_eq!(bench.locks(), Vec::<String>::new());
    assert_eq!(
        bench.root_names(),
        BTreeSet::from([".terraform", "main.tf"].map(str::to_owned))
    );
}

#[test]
fn a_stopped_command_saves_its_state_and_gives_its_lock_back() {
    let bench = Bench::new(
        "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"kill -TERM $(cut -d ' ' -f 4 /proc/$PPID/stat); exec sleep 60\"\n  }\n}\n",
    );
    bench.backend("-- terraform init -input=false").done();
    let run = bench.backend("-- terraform apply -auto-approve -input=false");
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.says("stopped by"), "{run:#?}");
    assert!(bench.kept().contains("\"tainted\""), "{}", bench.kept());
    assert_eq!(bench.locks(), Vec::<String>::new());
    assert!(!bench.root_names().contains("errored.tfstate"));
}

#[test]
fn a_plan_that_came_too_late_leaves_no_lock() {
    let bench = Bench::new(ROOT);
    bench.backend("-- terraform init -input=false").done();
    bench
        .backend("-- terraform plan -input=false -out=late")
        .done();
    bench
        .backend("-- terraform apply -auto-approve -input=false")
        .done();
    let kept = bench.kept();
    let late = bench.backend("-- terraform apply -input=false -no-color late");
    assert_eq!(late.code, 1);
    assert!(late.says("Saved plan is stale"), "{late:#?}");
    assert_eq!(bench.kept(), kept);
    assert_eq!(bench.locks(), Vec::<String>::new());
}

#[test]
fn force_unlock_needs_the_permission_to_release_exactly_that_lock() {
    let bench = Bench::new("");
    bench.backend("-- terraform init -input=false").done();
    bench.lock(KEY, LOCK);
    let force = format!("-- terraform force-unlock -force {ID}");
    let refused = bench.backend(&force);
    assert_eq!(refused.code, 1, "{refused:#?}");
    for words in [
        format!("presync unlock {KEY} --lock-id {ID}"),
        format!("presync backend {KEY} --allow-unlock {ID} -- terraform force-unlock -force {ID}"),
        "by ada@laptop".to_owned(),
    ] {
        assert!(refused.says(&words), "{words}: {refused:#?}");
    }
    let wrong = bench.backend(&format!("--allow-unlock other {force}"));
    assert_eq!(wrong.code, 1, "{wrong:#?}");
    assert_eq!(bench.locks(), [format!("locks/{KEY}")]);
    bench
        .backend(&format!("--allow-unlock {ID} {force}"))
        .done();
    assert_eq!(bench.locks(), Vec::<String>::new());
    let none = bench.backend(&force);
    assert_eq!(none.code, 1);
    assert!(none.says("is not locked"), "{none:#?}");
}

#[test]
fn all_locks_are_listed_with_their_holders_and_ages() {
    let bench = Bench::new("");
    assert_eq!(
        bench.presync(&["locks"]).done(),
        "presync: no state is locked\n"
    );
    bench.lock(KEY, LOCK);
    bench.lock("other/terraform.tfstate", "not JSON");
    let young = jiff::Timestamp::now().to_string();
    bench.lock(
        "young/terraform.tfstate",
        &format!(r#"{{"ID":"y-1","Who":"bob@desk","Operation":"OperationTypePlan","Created":"{young}","Info":"build: https://ci.example.com/7"}}"#),
    );
    bench.lock("bare/terraform.tfstate", r#"{"ID":"b-1"}"#);
    let listed = bench.presync(&["locks"]).done();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    let [argocd, bare, other, young] = lines[..] else {
        return;
    };
    let begins = format!(
        "presync: {KEY}: locked by ada@laptop, OperationTypeApply, since 2026-01-02T03:04:05.678901Z, ID {ID}, "
    );
    let age = argocd.strip_prefix(&begins).unwrap();
    assert!(age.contains(" d ") && age.ends_with(" h ago"), "{argocd}");
    assert_eq!(
        bare,
        "presync: bare/terraform.tfstate: locked by somebody, an unknown operation, since an unknown time, ID b-1"
    );
    assert!(
        other.starts_with("presync: other/terraform.tfstate: the branch locks/other/terraform.tfstate of the state repository holds no lock that can be read"),
        "{other}"
    );
    assert!(
        young.contains("locked by bob@desk, OperationTypePlan") && young.ends_with(" s ago"),
        "{young}"
    );
    assert!(
        young.contains("(build: https://ci.example.com/7)"),
        "{young}"
    );
}

#[test]
fn locks_that_cannot_be_listed_are_said_to_be_the_state_repositorys() {
    let mut bench = Bench::new("");
    let away = bench.path().join("away.git");
    bench.set(
        "STAGEWRIGHT_STATE_URL",
        &format!("file://{}", away.display()),
    );
    let listed = bench.presync(&["locks"]);
    assert_eq!(listed.code, 1, "{listed:#?}");
    assert!(
        listed
            .stdout
            .starts_with("presync: the locks of the state repository could not be read"),
        "{listed:#?}"
    );
}

#[test]
fn a_lock_is_released_by_its_exact_id_alone() {
    let bench = Bench::new("");
    let none = bench.presync(&["unlock", KEY, "--lock-id", ID]);
    assert_eq!(none.code, 1);
    assert_eq!(
        none.stdout,
        format!("presync: the state {KEY} is not locked: there is nothing to release\n")
    );
    bench.lock(KEY, LOCK);
    let other = bench.presync(&["unlock", KEY, "--lock-id", "another"]);
    assert_eq!(other.code, 1);
    assert!(
        other.stdout.starts_with(&format!(
            "presync: the lock another was not released: the state {KEY} is locked by ada@laptop"
        )),
        "{other:#?}"
    );
    assert_eq!(bench.locks(), [format!("locks/{KEY}")]);
    let done = bench.presync(&["unlock", KEY, "--lock-id", ID]).done();
    assert_eq!(done, format!("presync: released the lock {ID} of {KEY}\n"));
    assert_eq!(bench.locks(), Vec::<String>::new());
}

#[test]
fn a_lock_that_a_killed_presync_leaves_is_named_and_can_be_released() {
    let bench = Bench::new(
        "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"kill -KILL $(cut -d ' ' -f 4 /proc/$PPID/stat)\"\n  }\n}\n",
    );
    bench.backend("-- terraform init -input=false").done();
    let killed = bench.backend("-- terraform apply -auto-approve -input=false");
    assert_eq!(killed.code, -9, "{killed:#?}");
    let listed = bench.presync(&["locks"]).done();
    assert!(
        listed.starts_with(&format!("presync: {KEY}: locked by ")) && listed.ends_with(" ago\n"),
        "{listed}"
    );
    let id = listed.split("ID ").nth(1).unwrap();
    let id = id.split([',', ' ']).next().unwrap();
    bench.presync(&["unlock", KEY, "--lock-id", id]).done();
    bench.backend("-- terraform state list");
    assert_eq!(bench.locks(), Vec::<String>::new());
}

#[test]
fn a_branch_that_is_not_there_is_told_and_leaves_no_lock() {
    let mut bench = Bench::new(ROOT);
    bench.backend("-- terraform init -input=false").done();
    bench.set("STAGEWRIGHT_STATE_BRANCH", "elsewhere");
    let run = bench.backend("-- terraform plan -input=false");
    assert_eq!(run.code, 1);
    assert!(run.says("has no branch elsewhere; it has main"), "{run:#?}");
    assert_eq!(run.stderr.matches("elsewhere").count(), 1, "{run:#?}");
    bench.unset("STAGEWRIGHT_STATE_BRANCH");
    bench.git(&["update-ref", "-d", "refs/heads/main"]);
    let run = bench.backend("-- terraform plan -input=false");
    assert_eq!(run.code, 1);
    assert!(run.says("push a first commit to main"), "{run:#?}");
    assert_eq!(bench.locks(), Vec::<String>::new());
}
