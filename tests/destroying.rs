//! Destroying a retired stage for real, in the sandbox: what is confirmed, what is refused, and what a second run does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/processes.rs"]
mod processes;
#[path = "history/random.rs"]
mod random;

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use estate::Estate;
use random::Random;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

const KEY: &str = "argocd/FieldnotesDeploy/demo/terraform.tfstate";

/// What a step came to: its exit code, standard output and standard error.
struct Ran {
    code: Option<i32>,
    shown: String,
    said: String,
}

fn step(estate: &Estate, arguments: &[&str]) -> Ran {
    let output = estate
        .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args(arguments)
        .args([
            "--sandbox=sandbox",
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "demo",
        ])
        .args(["--namespace", "fieldnotes-demo", "--record", "record.json"])
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        shown: String::from_utf8(output.stdout).unwrap(),
        said: String::from_utf8(output.stderr).unwrap(),
    }
}

fn done(estate: &Estate, arguments: &[&str]) -> Ran {
    let ran = step(estate, arguments);
    assert_eq!(
        ran.code,
        Some(0),
        "{arguments:?}: {}{}",
        ran.shown,
        ran.said
    );
    ran
}

fn git(estate: &Estate, repository: &str, arguments: &[&str]) -> String {
    let output = estate
        .program("git")
        .arg("--git-dir")
        .arg(estate.repository(repository))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn has(estate: &Estate, repository: &str, path: &str) -> bool {
    !git(estate, repository, &["ls-tree", "main", path]).is_empty()
}

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
    let cases: [(&str, &str, &str); 3] = [
        (
            "FieldnotesDeploy",
            "config/demo/values.yaml",
            "config/demo in the deploy repository is another",
        ),
        (
            "FieldnotesDeploy",
            "terraform/more.tf",
            "terraform in the deploy repository is another",
        ),
        (
            "TerraformState",
            KEY,
            "moved since the preview, so nothing was destroyed",
        ),
    ];
    for (repository, file, said) in cases {
        let estate = Estate::unpack();
        done(&estate, &["preview"]);
        estate.commit(repository, |files| {
            let path = files.join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let text = match file {
                KEY => text.replace("\"serial\": 9", "\"serial\": 10"),
                _ => format!("{text}# changed\n"),
            };
            std::fs::write(path, text).unwrap();
        });
        let ran = step(&estate, &["destroy"]);
        // A state that was only written again, and lists the same, is the rest of what was confirmed.
        let expected = if file == KEY { Some(0) } else { Some(5) };
        assert_eq!(ran.code, expected, "{file}: {}", ran.said);
        if file != KEY {
            assert!(ran.said.contains(said), "{file}: {}", ran.said);
            assert!(has(&estate, "TerraformState", KEY), "{file}");
        }
    }
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

/// Runs all steps at a terminal, at which `typed` is typed; the exit code, and what was said.
fn at_a_terminal(estate: &Estate, typed: &str) -> (Option<i32>, String) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let job = estate
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
    File::from(controller.try_clone().unwrap())
        .write_all(typed.as_bytes())
        .unwrap();
    let output = job.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn at_a_terminal_the_target_is_typed_and_nothing_else_confirms() {
    let estate = Estate::unpack();
    // The last is the end of the input.
    for typed in [
        "y\n",
        "yes\n",
        "\n",
        "FieldnotesDeploy/prd\n",
        "fieldnotesdeploy/demo\n",
        "\u{4}",
    ] {
        let (code, said) = at_a_terminal(&estate, typed);
        assert_eq!(code, Some(6), "{typed:?}: {said}");
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
    let (code, said) = at_a_terminal(&estate, "FieldnotesDeploy/demo\n");
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

/// Runs the same destroy until it is done, as an operator would who reads what it says. How often it had to be run.
fn until_done(estate: &Estate) -> usize {
    for times in 1..=4 {
        let ran = step(estate, &["destroy"]);
        let said = format!("{}{}", ran.shown, ran.said);
        match ran.code {
            Some(0) => return times,
            // What was killed is gone; its lock says how it is released.
            Some(9) => {
                let command = said.split("release it with presync ").nth(1).unwrap();
                let command: Vec<&str> = command.split_whitespace().take(4).collect();
                let mut unlock = estate.program(env!("CARGO_BIN_EXE_presync"));
                let states = format!("file://{}", estate.repository("TerraformState").display());
                let unlock = unlock.env("STAGEWRIGHT_STATE_URL", states).args(&command);
                assert!(unlock.output().unwrap().status.success(), "{command:?}");
            }
            _ => panic!("{said}"),
        }
    }
    panic!("the destroy never came to its end")
}

#[test]
fn a_destroy_that_was_stopped_or_killed_at_any_moment_is_finished_by_running_it_again() {
    let seed = std::env::var("STAGEWRIGHT_DESTROY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    });
    println!("STAGEWRIGHT_DESTROY_SEED={seed}");
    let full = std::env::var_os("STAGEWRIGHT_FULL").is_some_and(|value| value == "1");
    let rounds = if full { 40 } else { 6 };
    let mut random = Random(seed);
    for round in 0..rounds {
        let estate = Estate::unpack();
        done(&estate, &["preview"]);
        let mut job = estate
            .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
            .args([
                "destroy",
                "--sandbox=sandbox",
                "--repo",
                "FieldnotesDeploy",
                "--stage",
                "demo",
            ])
            .args(["--record", "record.json"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(random.below(2500) as u64));
        let signal = if round % 2 == 0 {
            Signal::TERM
        } else {
            Signal::KILL
        };
        // It may have ended by itself.
        if job.try_wait().unwrap().is_none() {
            processes::send(i32::try_from(job.id()).unwrap(), signal);
        }
        job.wait().unwrap();
        // What a killed job leaves dies with it, a moment later.
        processes::until("all of it ended", || {
            processes::of(estate.path()).is_empty().then_some(())
        });
        until_done(&estate);
        done(&estate, &["remove-config"]);
        assert!(
            !has(&estate, "TerraformState", KEY),
            "round {round} of {seed}"
        );
        assert!(
            !has(&estate, "FieldnotesDeploy", "config/demo"),
            "round {round} of {seed}"
        );
        let removals = git(&estate, "TerraformState", &["log", "--format=%s", "main"]);
        let removals = removals
            .lines()
            .filter(|subject| subject.starts_with("Remove argocd/"));
        assert_eq!(removals.count(), 1, "round {round} of {seed}");
        assert!(
            git(
                &estate,
                "TerraformState",
                &["for-each-ref", "refs/heads/locks", "refs/heads/rescue"]
            )
            .is_empty()
        );
        // The last state that was kept lists nothing: all that it listed was destroyed.
        let last = git(
            &estate,
            "TerraformState",
            &["show", &format!("main~1:{KEY}")],
        );
        let last: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(
            last["resources"],
            Value::Array(Vec::new()),
            "round {round} of {seed}"
        );
    }
}
