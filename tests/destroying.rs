//! Destroying a retired stage for real, in the sandbox: what is confirmed, what is refused, and what a second run does.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/retiring.rs"]
mod retiring;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use estate::Estate;
use retiring::{KEY, done, git, has, step};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

/// The record, changed.
fn change_record(estate: &Estate, change: impl FnOnce(&mut Value)) {
    let file = estate.path().join("record.json");
    let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    change(&mut record);
    std::fs::write(&file, record.to_string()).unwrap();
}

/// The command of a commit's message that brings back what it removed.
fn restoring(message: &str) -> Vec<String> {
    let line = message
        .lines()
        .find(|line| line.starts_with("  git checkout "))
        .unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_retired_stage_goes_from_the_guard_to_both_commits_and_a_second_run_has_nothing_to_do() {
    let estate = Estate::unpack();
    let before = git(&estate, "TerraformState", &["show", &format!("main:{KEY}")]);
    let config = git(
        &estate,
        "FieldnotesDeploy",
        &["ls-tree", "-r", "main", "config/demo"],
    );
    done(&estate, &["check"]);
    done(&estate, &["preview"]);
    let destroyed = done(
        &estate,
        &["destroy", "--approved-by", "operator@example.org"],
    );
    assert!(
        destroyed
            .shown
            .contains("\npresync: the state lists no resources\n"),
        "{}",
        destroyed.shown
    );
    assert!(
        destroyed
            .shown
            .ends_with("\npresync: destroyed what was confirmed\n"),
        "{}",
        destroyed.shown
    );
    assert!(!has(&estate, "TerraformState", KEY));
    assert!(has(&estate, "FieldnotesDeploy", "config/demo"));
    let removed = done(&estate, &["remove-config"]);
    assert!(
        removed.said.contains(" removes config/demo/\n"),
        "{}",
        removed.said
    );
    assert!(!has(&estate, "FieldnotesDeploy", "config/demo"));
    // Everything else is where it was.
    assert!(has(&estate, "FieldnotesDeploy", "config/prd/values.yaml"));
    assert!(has(
        &estate,
        "TerraformState",
        "argocd/FieldnotesDeploy/prd/terraform.tfstate"
    ));

    let message = git(
        &estate,
        "TerraformState",
        &["log", "-1", "--format=%B", "main"],
    );
    assert!(
        message.starts_with(
            "Remove argocd/FieldnotesDeploy/demo/: demo of FieldnotesDeploy destroyed by "
        ),
        "{message}"
    );
    for trailer in [
        "Lineage: 523511e7-b165-8559-8be1-26cd2d13e435",
        "Digest: sha256:",
        "Approved-By: operator@example.org",
    ] {
        assert!(message.contains(&format!("\n{trailer}")), "{message}");
    }
    let head = git(&estate, "TerraformState", &["rev-parse", "main"]);
    let proof = format!("refs/stagewright/destroyed/{KEY}");
    assert_eq!(git(&estate, "TerraformState", &["rev-parse", &proof]), head);
    assert!(
        git(
            &estate,
            "TerraformState",
            &["for-each-ref", "refs/heads/locks"]
        )
        .is_empty()
    );

    // Again, each of them, and all of it from the beginning.
    assert!(
        done(&estate, &["destroy"])
            .said
            .contains("nothing to destroy")
    );
    assert!(
        done(&estate, &["remove-config"])
            .said
            .contains("has no config/demo/ on main: nothing to remove")
    );
    let all = done(&estate, &["all"]);
    assert!(
        all.said.contains("nothing is left to destroy or remove"),
        "{}",
        all.said
    );

    // And back, by the commands that the commits tell.
    let config_message = git(
        &estate,
        "FieldnotesDeploy",
        &["log", "-1", "--format=%B", "main"],
    );
    for (repository, message) in [
        ("TerraformState", message),
        ("FieldnotesDeploy", config_message),
    ] {
        let command = restoring(&message);
        estate.commit(repository, |files| {
            let mut git = estate.program("git");
            assert!(
                git.args(&command)
                    .current_dir(files)
                    .status()
                    .unwrap()
                    .success()
            );
        });
    }
    assert_eq!(
        git(&estate, "TerraformState", &["show", &format!("main:{KEY}")]),
        before
    );
    assert_eq!(
        git(
            &estate,
            "FieldnotesDeploy",
            &["ls-tree", "-r", "main", "config/demo"]
        ),
        config
    );
}

#[test]
fn what_moved_since_the_preview_is_not_destroyed() {
    let estate = Estate::unpack();
    let applications = estate.path().join("sandbox/applications.yaml");
    let manifests = std::fs::read_to_string(&applications).unwrap();
    let deploying = manifests.replace("value: dev\n", "value: demo\n");
    // A file, what is in it then, the code, and what is said.
    type Case = (
        &'static str,
        &'static str,
        fn(String) -> String,
        i32,
        &'static str,
    );
    let cases: [Case; 5] = [
        (
            "FieldnotesDeploy",
            "config/demo/values.yaml",
            |text| text + "# changed\n",
            5,
            "config/demo in the deploy repository is another",
        ),
        (
            "FieldnotesDeploy",
            "terraform/more.tf",
            |text| text + "# changed\n",
            5,
            "terraform in the deploy repository is another",
        ),
        (
            "TerraformState",
            KEY,
            |text| text.replace("\"serial\": 9", "\"serial\": 10"),
            5,
            "the state has the serial 10, and 9 was confirmed",
        ),
        (
            "ArgoCDDeploy",
            "releases/values.yaml",
            |text| {
                text.replace(
                    "      dev: { targetRevision: next }",
                    "      dev: { targetRevision: next }\n      demo: {}",
                )
            },
            3,
            "by the registry entry apps.fieldnotes.stages.demo",
        ),
        (
            "",
            "",
            |text| text,
            3,
            "the live Application argocd-prd/fieldnotes-dev",
        ),
    ];
    for (repository, file, change, code, said) in cases {
        std::fs::write(&applications, &manifests).unwrap();
        done(&estate, &["preview"]);
        if repository.is_empty() {
            std::fs::write(&applications, &deploying).unwrap();
        } else {
            estate.commit(repository, |files| {
                let path = files.join(file);
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let changed = change(text.clone());
                assert_ne!(text, changed);
                std::fs::write(path, changed).unwrap();
            });
        }
        let before = git(&estate, "TerraformState", &["rev-parse", "main"]);
        let ran = step(&estate, &["destroy"]);
        assert_eq!(ran.code, Some(code), "{file}: {}", ran.said);
        assert!(ran.said.contains(said), "{file}: {}{}", ran.shown, ran.said);
        let after = git(&estate, "TerraformState", &["rev-parse", "main"]);
        assert_eq!(before, after, "{file}");
        if repository == "ArgoCDDeploy" {
            estate.commit(repository, |files| {
                let path = files.join(file);
                let text = std::fs::read_to_string(&path).unwrap();
                std::fs::write(path, text.replace("      demo: {}\n", "")).unwrap();
            });
        }
    }
}

#[test]
fn a_change_that_is_a_neighbours_does_not_stop_a_destroy() {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    estate.commit("FieldnotesDeploy", |files| {
        std::fs::write(files.join("config/prd/more.yaml"), "a: 1\n").unwrap();
        std::fs::write(files.join("NOTES.md"), "changed\n").unwrap();
    });
    done(&estate, &["destroy"]);
    done(&estate, &["remove-config"]);
    assert!(has(&estate, "FieldnotesDeploy", "config/prd/more.yaml"));
    assert!(!has(&estate, "FieldnotesDeploy", "config/demo"));
}

#[test]
fn a_resource_that_was_not_shown_is_not_destroyed() {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    estate.commit("TerraformState", |files| {
        let file = files.join(KEY);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut state: Value = serde_json::from_str(&text).unwrap();
        let mut other = state["resources"][0].clone();
        other["module"] = Value::Null;
        other["name"] = "unseen".into();
        other.as_object_mut().unwrap().remove("module");
        state["resources"].as_array_mut().unwrap().push(other);
        state["serial"] = 10.into();
        std::fs::write(&file, state.to_string()).unwrap();
    });
    let before = git(&estate, "TerraformState", &["rev-parse", "main"]);
    let ran = step(&estate, &["destroy"]);
    assert_eq!(ran.code, Some(5), "{}", ran.said);
    assert!(
        ran.said
            .contains("terraform_data.unseen: destroy, which was not confirmed"),
        "{}",
        ran.said
    );
    assert_eq!(
        git(&estate, "TerraformState", &["rev-parse", "main"]),
        before
    );
    assert!(
        git(
            &estate,
            "TerraformState",
            &["for-each-ref", "refs/heads/locks"]
        )
        .is_empty()
    );
}

#[test]
fn what_came_to_stand_beside_the_state_is_refused_before_anything_is_destroyed() {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    estate.commit("TerraformState", |files| {
        let beside = files.join(KEY).with_file_name("notes.txt");
        std::fs::write(beside, "somebody else's").unwrap();
    });
    let before = git(&estate, "TerraformState", &["rev-parse", "main"]);
    let ran = step(&estate, &["destroy"]);
    assert_eq!(ran.code, Some(5), "{}", ran.said);
    let said = "holds more than the state by now: notes.txt";
    assert!(ran.said.contains(said), "{}", ran.said);
    assert_eq!(
        git(&estate, "TerraformState", &["rev-parse", "main"]),
        before
    );
}

/// `headlamp` has the stage `demo`, and `headlamp/demo` is an app.
#[test]
fn a_stage_and_an_app_of_the_same_path_do_not_take_each_others_state_or_config() {
    let estate = Estate::unpack();
    let states = "argocd/PlatformDeploy/headlamp/demo";
    estate.commit("TerraformState", |files| {
        let folder = files.join(states);
        std::fs::create_dir(folder.join("dev")).unwrap();
        std::fs::copy(
            folder.join("terraform.tfstate"),
            folder.join("dev/terraform.tfstate"),
        )
        .unwrap();
    });
    estate.commit("PlatformDeploy", |files| {
        let app = files.join("headlamp");
        let copy = |from: &str, to: &str| {
            let to = app.join(to);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let mut cp = estate.program("cp");
            cp.arg("-r").arg(app.join(from)).arg(to);
            assert!(cp.status().unwrap().success());
        };
        copy("terraform", "demo/terraform");
        copy("config/demo", "demo/config/dev");
    });
    let run = |step: &str, path: &str, stage: &str| {
        let mut job = estate.program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"));
        job.args([step, "--sandbox=sandbox", "--repo", "PlatformDeploy"])
            .args(["--app-path", path, "--stage", stage])
            .args(["--namespace", "headlamp-demo", "--record", "record.json"]);
        let output = job.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let outer = run("preview", "headlamp", "demo");
    assert_eq!(outer.0, Some(3), "{}", outer.1);
    assert!(outer.1.contains("dev/"), "{}", outer.1);

    for step in ["preview", "destroy", "remove-config"] {
        let inner = run(step, "headlamp/demo", "dev");
        assert_eq!(inner.0, Some(0), "{step}: {}", inner.1);
    }
    let state = format!("{states}/terraform.tfstate");
    assert!(has(&estate, "TerraformState", &state));
    assert!(!has(&estate, "TerraformState", &format!("{states}/dev")));
    assert!(has(&estate, "PlatformDeploy", "headlamp/config/demo"));
    assert!(!has(&estate, "PlatformDeploy", "headlamp/demo/config"));

    for step in ["preview", "destroy", "remove-config"] {
        let outer = run(step, "headlamp", "demo");
        assert_eq!(outer.0, Some(0), "{step}: {}", outer.1);
    }
    assert!(!has(&estate, "TerraformState", states));
    assert!(!has(&estate, "PlatformDeploy", "headlamp/config/demo"));
    assert!(has(&estate, "PlatformDeploy", "headlamp/demo/terraform"));
}

#[test]
fn a_record_of_another_stage_or_one_that_was_changed_confirms_nothing() {
    type Case = (fn(&mut Value), i32, &'static str);
    let cases: [Case; 4] = [
        (
            |r| r["expires"] = "2036-01-01T00:00:00Z".into(),
            3,
            "the record was changed or cut short since it was written",
        ),
        (
            |r| r["target"] = "FieldnotesDeploy/prd".into(),
            3,
            "the record was changed or cut short since it was written",
        ),
        (
            |r| r["preview"]["bound"]["changes"][0]["address"] = "terraform_data.other".into(),
            3,
            "the record was changed or cut short since it was written",
        ),
        (
            |r| r["surprise"] = 1.into(),
            2,
            "is not a record of a preview that this version reads",
        ),
    ];
    let estate = Estate::unpack();
    for (change, code, said) in cases {
        done(&estate, &["preview"]);
        change_record(&estate, change);
        let ran = step(&estate, &["destroy"]);
        assert_eq!(ran.code, Some(code), "{}", ran.said);
        assert!(ran.said.contains(said), "{}", ran.said);
        assert!(has(&estate, "TerraformState", KEY));
    }
    let mut other = estate.program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"));
    other
        .args(["preview", "--sandbox=sandbox", "--repo", "PlatformDeploy"])
        .args(["--app-path", "headlamp", "--stage", "demo"])
        .args(["--namespace", "headlamp-demo", "--record", "record.json"]);
    assert!(other.output().unwrap().status.success());
    let ran = step(&estate, &["destroy"]);
    assert_eq!(ran.code, Some(3), "{}", ran.said);
    let said = "the record is of PlatformDeploy/headlamp/demo, and FieldnotesDeploy/demo was to be destroyed";
    assert!(ran.said.contains(said), "{}", ran.said);
    std::fs::remove_file(estate.path().join("record.json")).unwrap();
    assert_eq!(step(&estate, &["destroy"]).code, Some(1));
    done(&estate, &["preview"]);
    let early = step(&estate, &["remove-config"]);
    assert_eq!(early.code, Some(3), "{}", early.said);
    change_record(&estate, |record| {
        record["preview"]["told"]["config"]["path"] = "terraform".into();
    });
    let elsewhere = step(&estate, &["remove-config"]);
    assert_eq!(elsewhere.code, Some(3), "{}", elsewhere.said);
    assert!(has(&estate, "FieldnotesDeploy", "terraform"));
    assert!(has(&estate, "FieldnotesDeploy", "config/demo"));
}

#[test]
fn a_config_folder_that_was_made_since_the_preview_is_neither_overlooked_nor_removed() {
    let estate = Estate::unpack();
    let file = "config/demo/values.yaml";
    done(&estate, &["preview"]);
    done(&estate, &["destroy"]);
    done(&estate, &["remove-config"]);
    done(&estate, &["preview"]);
    done(&estate, &["destroy"]);
    let make = |text: &str| {
        estate.commit("FieldnotesDeploy", |files| {
            std::fs::create_dir_all(files.join("config/demo")).unwrap();
            std::fs::write(files.join(file), text).unwrap();
        });
    };
    make("a: 1\n");
    let removal = step(&estate, &["remove-config"]);
    assert_eq!(removal.code, Some(5), "{}", removal.said);
    let said = "config/demo in the deploy repository is another";
    assert!(removal.said.contains(said), "{}", removal.said);
    assert!(has(&estate, "FieldnotesDeploy", file));
}

#[test]
fn what_cannot_be_ended_is_not_begun() {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    let output = estate
        .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args(["destroy", "--sandbox=sandbox", "--repo", "FieldnotesDeploy"])
        .args(["--stage", "demo", "--record", "record.json"])
        .env("STAGEWRIGHT_COMMIT_AUTHOR", "nobody")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("STAGEWRIGHT_COMMIT_AUTHOR"), "{said}");
    assert!(has(&estate, "TerraformState", KEY), "{said}");
}

#[test]
fn without_a_terminal_nothing_is_confirmed() {
    let estate = Estate::unpack();
    let ran = step(&estate, &[]);
    assert_eq!(ran.code, Some(6), "{}", ran.said);
    assert!(
        ran.said.contains("Not confirmed: nothing was destroyed."),
        "{}",
        ran.said
    );
    assert!(has(&estate, "TerraformState", KEY));
}

/// Runs all steps at a terminal, at which `ahead` is typed at once and `typed` when it asks; the exit code, and what was said.
fn at_a_terminal(estate: &Estate, ahead: &str, typed: &str) -> (Option<i32>, String) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut job = estate
        .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args([
            "--sandbox=sandbox",
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "demo",
        ])
        .args(["--namespace", "fieldnotes-demo"])
        .stdin(terminal)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = File::from(controller.try_clone().unwrap());
    keyboard.write_all(ahead.as_bytes()).unwrap();
    let mut said = String::new();
    for line in BufReader::new(job.stderr.take().unwrap()).lines() {
        said += &(line.unwrap() + "\n");
        if said.ends_with("Anything else ends it.\n") {
            keyboard.write_all(typed.as_bytes()).unwrap();
        }
    }
    (job.wait().unwrap().code(), said)
}

#[test]
fn at_a_terminal_the_target_is_typed_and_nothing_else_confirms() {
    let estate = Estate::unpack();
    // What is typed before it asks, and then; the last two end the input.
    for (ahead, typed) in [
        ("", "y\n"),
        ("", "yes\n"),
        ("", "\n"),
        ("", "FieldnotesDeploy/prd\n"),
        ("", "fieldnotesdeploy/demo\n"),
        ("FieldnotesDeploy/demo\n", "\n"),
        ("", "\u{4}"),
        ("", "FieldnotesDeploy/demo\u{4}\u{4}"),
    ] {
        let (code, said) = at_a_terminal(&estate, ahead, typed);
        assert_eq!(code, Some(6), "{ahead:?} {typed:?}: {said}");
        assert!(
            said.contains("type FieldnotesDeploy/demo and press Enter"),
            "{said}"
        );
        assert!(
            said.contains("Not confirmed: nothing was destroyed."),
            "{said}"
        );
        assert!(has(&estate, "TerraformState", KEY), "{typed:?}");
    }
    let (code, said) = at_a_terminal(&estate, "", "FieldnotesDeploy/demo\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(!has(&estate, "TerraformState", KEY));
    assert!(!has(&estate, "FieldnotesDeploy", "config/demo"));
}

#[test]
fn a_state_that_somebody_else_has_locked_is_not_destroyed() {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    let lock = r#"{"ID":"0a0b0c0d-0000-4000-8000-000000000001","Operation":"OperationTypeApply","Who":"somebody@else","Version":"1.11.4","Created":"2026-01-01T00:00:00Z","Path":"","Info":""}"#;
    let blob = estate.path().join("lock.json");
    std::fs::write(&blob, lock).unwrap();
    let work = estate.path().join("lock");
    let url = estate.repository("TerraformState");
    for arguments in [
        vec![
            "clone",
            "-q",
            "-b",
            "main",
            url.to_str().unwrap(),
            work.to_str().unwrap(),
        ],
        vec![
            "-C",
            work.to_str().unwrap(),
            "checkout",
            "-q",
            "-b",
            &format!("locks/{KEY}"),
        ],
    ] {
        assert!(
            estate
                .program("git")
                .args(arguments)
                .status()
                .unwrap()
                .success()
        );
    }
    let file = work.join(format!("{KEY}.lock"));
    std::fs::copy(&blob, &file).unwrap();
    for arguments in [
        vec!["add", "--all"],
        vec![
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@y",
            "commit",
            "-q",
            "-m",
            "Lock",
        ],
        vec!["push", "-q", "origin", "HEAD"],
    ] {
        let mut git = estate.program("git");
        assert!(
            git.args(arguments)
                .current_dir(&work)
                .status()
                .unwrap()
                .success()
        );
    }
    let ran = step(&estate, &["destroy"]);
    assert_eq!(ran.code, Some(9), "{}{}", ran.shown, ran.said);
    assert!(ran.said.contains("somebody@else"), "{}", ran.said);
    assert!(has(&estate, "TerraformState", KEY));
}
