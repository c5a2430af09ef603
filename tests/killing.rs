//! A destroy that is stopped or killed: running it again brings it to the same end.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "support/estate.rs"]
#[expect(dead_code, reason = "nothing is committed here")]
mod estate;
#[path = "support/processes.rs"]
mod processes;
#[path = "history/random.rs"]
mod random;
#[path = "support/retiring.rs"]
mod retiring;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use estate::Estate;
use random::Random;
use retiring::{KEY, done, git, has, step};
use rustix::process::Signal;
use serde_json::Value;

/// In the place of `git` and of `terraform`: notes each call that has ended, and after the one whose number the file `kill` holds, kills
/// the job and the presync that made it.
const COUNTING: &str = r#"#!/bin/bash
name=${0##*/} folder=@FOLDER@
PATH=@PATH@ "$name" "$@"
code=$?
exec 9>"$folder/mutex"
flock 9
echo "$name $*" >>"$folder/calls"
if [ "$(wc -l <"$folder/calls")" = "$(cat "$folder/kill")" ]; then
  callers=
  caller=$PPID
  while [[ $(readlink "/proc/$caller/exe") == */stagewright-destroy-stage ]]; do
    callers="$caller $callers"
    caller=$(awk '{ print $4 }' "/proc/$caller/stat")
  done
  # The job first: it must not see how its presync ended.
  kill -KILL $callers
fi
exit $code
"#;

/// Puts it in place; the program's PATH with it.
fn count(estate: &Estate, kill: usize) -> String {
    let folder = estate.path().join("counted");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("kill"), kill.to_string()).unwrap();
    std::fs::write(folder.join("calls"), "").unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = COUNTING
        .replace("@FOLDER@", folder.to_str().unwrap())
        .replace("@PATH@", &format!("'{path}'"));
    for name in ["git", "terraform"] {
        let file = folder.join(name);
        std::fs::write(&file, &script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{path}", folder.display())
}

/// A step whose calls are counted, up to the one after which it is killed.
fn counted(estate: &Estate, step: &str, path: &str) -> Option<i32> {
    let mut job = estate.program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"));
    job.args([
        step,
        "--sandbox=sandbox",
        "--repo",
        "FieldnotesDeploy",
        "--stage",
        "demo",
        "--record",
        "record.json",
    ])
    .env("PATH", path)
    .stdout(Stdio::null())
    .stderr(Stdio::null());
    let status = job.status().unwrap();
    // What a killed job leaves dies with it, a moment later.
    processes::until("all of it ended", || {
        processes::of(estate.path()).is_empty().then_some(())
    });
    status.code()
}

fn calls(estate: &Estate) -> Vec<String> {
    let calls = std::fs::read_to_string(estate.path().join("counted/calls")).unwrap();
    calls.lines().map(str::to_owned).collect()
}

/// Whether a call may have changed something beyond the run's own folder, or is one of Terraform's.
fn is_boundary(call: &str) -> bool {
    call.starts_with("terraform ") || call.contains(" push ")
}

/// What both repositories hold in the end, and which commits removed something, in order.
fn end(estate: &Estate) -> Vec<String> {
    let mut end = Vec::new();
    for repository in ["TerraformState", "FieldnotesDeploy"] {
        end.push(git(estate, repository, &["rev-parse", "main^{tree}"]));
        let subjects = git(
            estate,
            repository,
            &["log", "--reverse", "--format=%s", "main"],
        );
        let removals = subjects.lines().filter(|s| s.starts_with("Remove "));
        // Behind the first word they name the host.
        end.extend(removals.map(|s| s.split(" by ").next().unwrap().to_owned()));
        let refs = [
            "for-each-ref",
            "--format=%(refname)",
            "refs/heads",
            "refs/stagewright",
        ];
        end.push(git(estate, repository, &refs));
    }
    end
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
fn a_kill_after_any_step_that_changes_something_is_made_good_by_running_the_same_again() {
    let undisturbed = Estate::unpack();
    done(&undisturbed, &["preview"]);
    let path = count(&undisturbed, 0);
    for step in ["destroy", "remove-config"] {
        assert_eq!(counted(&undisturbed, step, &path), Some(0));
    }
    let expected = end(&undisturbed);
    let all = calls(&undisturbed);
    let boundaries: Vec<usize> = (0..all.len()).filter(|at| is_boundary(&all[*at])).collect();
    let next = std::sync::Mutex::new(boundaries.iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(at) = { next.lock().unwrap().next() } {
                    let call = &all[*at];
                    println!("killed after call {at}: {call}");
                    killed_after(*at, call, &expected);
                }
            });
        }
    });
    let count = |what: &str| {
        boundaries
            .iter()
            .filter(|at| all[**at].contains(what))
            .count()
    };
    // The lock, what is forgotten and destroyed, the state, the lock again, the config folder.
    assert!(count(" push ") >= 5, "{all:#?}");
    assert!(count("terraform ") >= 4, "{all:#?}");
}

fn killed_after(at: usize, call: &str, expected: &[String]) {
    let estate = Estate::unpack();
    done(&estate, &["preview"]);
    let path = count(&estate, at + 1);
    let mut was_killed = false;
    for step in ["destroy", "remove-config"] {
        if counted(&estate, step, &path).is_none() {
            was_killed = true;
            break;
        }
    }
    assert!(was_killed, "{call}");
    until_done(&estate);
    done(&estate, &["remove-config"]);
    assert_eq!(end(&estate), expected, "{call}");
    let again = step(&estate, &["destroy"]);
    assert_eq!(again.code, Some(0), "{call}: {}", again.said);
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
