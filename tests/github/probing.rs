//! The probe of every write, and the description that all requests and answers are held to.

use std::cell::RefCell;

use axum::http::Method;
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
    let tried = forge.write_probe(&world.repo, &author(), say).await;
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
        "removed",
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
