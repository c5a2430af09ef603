//! The probe of every write, and the description that all requests and answers are held to.

use std::cell::RefCell;

use axum::http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stagewright::forge::Forge;

use crate::double::contract::Contract;
use crate::double::{Asked, Content, Fault, Reply, What};
use crate::{World, author, chain};

async fn probe(world: &World) -> (Vec<String>, Option<String>) {
    let Forge::GitHub(forge) = world.forge() else {
        return (Vec::new(), None);
    };
    let said = RefCell::new(Vec::new());
    let say = |done: &str| said.borrow_mut().push(done.to_owned());
    let probe = forge.prepare_probe(&world.repo, say).await.unwrap();
    let tried = forge.write_probe(&probe, &author(), say).await;
    forge.end_probe(&probe).await.unwrap();
    let error = tried.err().map(|error| chain(&error));
    (said.into_inner(), error)
}

fn branches(world: &World) -> usize {
    world.repository().branches(None).unwrap().count()
}

#[tokio::test]
async fn a_probe_tries_every_write_and_leaves_nothing_behind() {
    let world = World::new();
    let (said, error) = probe(&world).await;
    assert_eq!(error, None);
    let beginnings = [
        "made",
        "added",
        "replaced",
        "removed",
        "read",
        "was refused",
    ];
    assert_eq!(said.len(), beginnings.len(), "{said:#?}");
    for (said, beginning) in said.iter().zip(beginnings) {
        assert!(said.starts_with(beginning), "{said}");
    }
    assert_eq!(branches(&world), 1);
    assert_eq!(world.commits(), 1);
}

#[tokio::test]
async fn a_probe_that_fails_removes_its_branch_all_the_same() {
    let world = World::new();
    world.github.fault(Fault {
        method: "PATCH",
        path: "/git/refs/heads/stagewright-write-probe-",
        skip: 1,
        times: 1,
        what: What::refusal(422, "Repository rule violations found"),
    });
    let (said, error) = probe(&world).await;
    assert!(error.unwrap().contains("a ruleset of the repository"));
    assert_eq!(said.len(), 2);
    assert_eq!(branches(&world), 1);
}

#[tokio::test]
async fn what_a_killed_probe_left_goes_with_one_an_hour_later() {
    let world = World::new();
    let repository = world.repository();
    let head = repository.refname_to_id("refs/heads/main").unwrap();
    let made = |minutes: i64| {
        let made = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
        format!(
            "stagewright-write-probe-{}-00000001",
            made.strftime("%Y%m%dT%H%M%SZ")
        )
    };
    let (old, young) = (made(61), made(59));
    for name in [&old, &young, "stagewright-write-probe-mine"] {
        let name = format!("refs/heads/{name}");
        repository.reference(&name, head, false, "").unwrap();
    }
    let (said, error) = probe(&world).await;
    assert_eq!(error, None);
    let left = format!("removed the branch {old}, which another probe left");
    assert!(said.contains(&left), "{said:#?}");
    let there = format!("there is a branch {young}, which another probe works on or has left");
    assert!(said.iter().any(|s| s.starts_with(&there)), "{said:#?}");
    assert_eq!(branches(&world), 3);
}

/// The program, begun and in the middle of its writes: its scratch branch is there, and the next answer takes a while.
fn program(world: &World) -> std::process::Child {
    let api = world.github.api();
    let settings = format!(
        "forge: {{github: {{owner: example, api: '{api}', token_file: token}}}}\nregistry: {{repo: A}}\nstate: {{repo: B}}\nrunner: local\n"
    );
    let folder = world.folder.path();
    std::fs::write(folder.join("stagewright.yaml"), settings).unwrap();
    world.github.fault(Fault::once(
        "POST",
        "/git/blobs",
        What::Slow(std::time::Duration::from_secs(20)),
    ));
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_stagewright-register-producer"))
        .args(["--write-probe", "example/Deploy"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while branches(world) == 1 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    program
}

#[test]
fn a_probe_that_is_stopped_removes_its_branch_before_it_ends() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = World::new();
        let program = program(&world);
        let process = Pid::from_child(&program);
        kill_process(process, signal).unwrap();
        let output = program.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains("\nremoved the branch stagewright-write-probe-"),
            "{said}"
        );
        assert_eq!(branches(&world), 1, "{said}");
    }
}

#[test]
fn a_probe_that_cannot_remove_its_branch_names_it() {
    let world = World::new();
    world.github.fault(Fault::once(
        "DELETE",
        "/git/refs/",
        What::refusal(403, "Resource not accessible by personal access token"),
    ));
    let program = program(&world);
    kill_process(Pid::from_child(&program), Signal::TERM).unwrap();
    let output = program.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("may be there still: remove it"), "{said}");
}

/// A request for moving a branch, and its answer.
fn moving(body: Value, query: &str, status: u16, answer: Value) -> Vec<String> {
    let asked = Asked {
        method: Method::PATCH,
        path: "/repos/example/Deploy/git/refs/heads/main".to_owned(),
        query: query.to_owned(),
        raw: false,
        authorization: String::new(),
        body: Some(body),
    };
    let reply = Reply {
        status,
        headers: Vec::new(),
        content: Content::Json(answer),
    };
    let template = "/repos/{owner}/{repo}/git/refs/{ref}";
    Contract::read().offences(template, &asked, &reply)
}

#[test]
fn a_request_or_an_answer_that_is_bent_is_found_out() {
    let sound = json!({ "sha": "0123", "force": false });
    let answer = Contract::read().example("patch", "/repos/{owner}/{repo}/git/refs/{ref}");
    assert_eq!(
        moving(sound.clone(), "", 200, answer.clone()),
        Vec::<String>::new()
    );
    for (body, query, status, answer, expected) in [
        (
            json!({ "commit": "0123", "force": false }),
            "",
            200,
            answer.clone(),
            "\"sha\" is a required property",
        ),
        (
            json!({ "sha": "0123", "forced": false }),
            "",
            200,
            answer.clone(),
            "/forced: no such member is known",
        ),
        (
            json!({ "sha": "0123", "force": "no" }),
            "",
            200,
            answer.clone(),
            "is not of type \"boolean\"",
        ),
        (
            sound.clone(),
            "force=false",
            200,
            answer.clone(),
            "it has no parameter force",
        ),
        (
            sound.clone(),
            "",
            201,
            answer.clone(),
            "it is never answered with 201",
        ),
        (
            sound.clone(),
            "",
            200,
            json!({ "ref": "refs/heads/main" }),
            "\"object\" is a required property",
        ),
        (
            sound.clone(),
            "",
            200,
            json!([]),
            "is not of type \"object\"",
        ),
    ] {
        let found = moving(body, query, status, answer).join("\n");
        assert!(found.contains(expected), "{expected}: {found}");
    }
}
