//! What goes wrong on the way to GitHub, and what becomes of the commit then.

use std::sync::Arc;
use std::time::Duration;

use stagewright::forge::Removal;

use crate::double::{Fault, Seen, What};
use crate::{World, chain};

fn count(seen: &[Seen], method: &str, path: &str) -> usize {
    let fits = |seen: &&Seen| seen.method == method && seen.path.contains(path);
    seen.iter().filter(fits).count()
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_as_its_headers_say_for_reads_and_for_writes() {
    let world = World::new();
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    for (method, path, fault) in [
        (
            "GET",
            "/git/ref/",
            What::with_headers(403, "slow down", &[("retry-after", "3")]),
        ),
        (
            "GET",
            "/git/commits/",
            What::with_headers(429, "", &[("retry-after", "2")]),
        ),
        (
            "GET",
            "/git/trees/",
            What::with_headers(
                403,
                "API rate limit exceeded for user ID 1.",
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1767225605"),
                    ("date", date),
                ],
            ),
        ),
        (
            "POST",
            "/git/trees",
            What::refusal(
                403,
                "You have exceeded a secondary rate limit. Please wait.",
            ),
        ),
        ("PATCH", "/git/refs/", What::refusal(429, "")),
    ] {
        world.github.fault(Fault::times(2, method, path, fault));
    }
    let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    let seen = world.github.seen();
    assert_eq!(count(&seen, "PATCH", "/git/refs/"), 3);
    assert_eq!(seen.len(), 8 + 10);
}

#[tokio::test]
async fn a_rate_limit_that_lasts_longer_than_we_wait_is_told_as_one_for_later() {
    let world = World::new();
    world.github.fault(Fault::once(
        "GET",
        "/git/ref/",
        What::with_headers(403, "slow down", &[("retry-after", "3600")]),
    ));
    let head = world
        .forge()
        .head(&world.repo, &world.branch)
        .await
        .unwrap_err();
    assert!(head.is_passing());
    assert!(chain(&head).contains("try again later"), "{}", chain(&head));
    assert_eq!(world.github.seen().len(), 1);
}

#[tokio::test]
async fn reads_are_asked_again_after_faults_and_not_for_ever() {
    let world = World::new();
    world
        .github
        .fault(Fault::times(2, "GET", "/git/ref/", What::refusal(502, "")));
    world
        .github
        .fault(Fault::times(2, "GET", "/git/ref/", What::Cut));
    let head = world
        .forge()
        .head(&world.repo, &world.branch)
        .await
        .unwrap();
    assert_eq!(head, world.head);
    world
        .github
        .fault(Fault::times(9, "GET", "/git/ref/", What::refusal(502, "")));
    world.github.seen();
    let head = world
        .forge()
        .head(&world.repo, &world.branch)
        .await
        .unwrap_err();
    assert!(head.is_passing());
    assert_eq!(world.github.seen().len(), 5);
}

#[tokio::test]
async fn a_slow_answer_is_an_answer() {
    let world = World::new();
    world.github.fault(Fault::once(
        "GET",
        "/git/ref/",
        What::Slow(Duration::from_millis(200)),
    ));
    let head = world
        .forge()
        .head(&world.repo, &world.branch)
        .await
        .unwrap();
    assert_eq!(head, world.head);
}

#[tokio::test]
async fn a_commit_whose_answers_are_lost_is_on_the_branch_once() {
    for fault in [
        What::refusal(502, ""),
        What::AnswerAfter(502),
        What::Cut,
        What::CutAfter,
    ] {
        for (method, path) in [
            ("POST", "/git/trees"),
            ("POST", "/git/commits"),
            ("PATCH", "/git/refs/"),
        ] {
            let world = World::new();
            world
                .github
                .fault(Fault::times(3, method, path, fault.clone()));
            let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
            assert!(matches!(removed, Removal::Done(_)), "{path}");
            assert_eq!(world.commits(), 2, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_move_that_landed_is_found_below_what_others_have_written_since() {
    let world = World::new();
    let path = world.path();
    let other = Arc::new(move || World::other_commit(&path, "other"));
    let what = What::AnswerAfterMeanwhile(other, 502);
    world.github.fault(Fault::once("PATCH", "/git/refs/", what));
    let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
    let Removal::Done(commit) = removed else {
        panic!("{removed:?}");
    };
    let seen = world.github.seen();
    assert_eq!(count(&seen, "PATCH", ""), 1, "{seen:?}");
    let repository = world.repository();
    let head = repository
        .revparse_single("main")
        .unwrap()
        .peel_to_commit()
        .unwrap();
    assert_eq!(head.parent_id(0).unwrap().to_string(), commit.as_str());
}

#[tokio::test]
async fn a_move_that_never_gets_an_answer_is_given_up_for_later() {
    let world = World::new();
    world
        .github
        .fault(Fault::times(99, "PATCH", "/git/refs/", What::Cut));
    let removed = world
        .remove(&world.forge(), "config/demo")
        .await
        .unwrap_err();
    assert!(removed.is_passing());
    assert_eq!(world.commits(), 1);
}

#[tokio::test]
async fn a_stale_read_costs_another_try_and_nothing_else() {
    let world = World::new();
    let forge = world.forge();
    world.remove(&forge, "config/demo").await.unwrap();
    // The branch's read is behind twice: what is built upon it is no fast-forward.
    world
        .github
        .fault(Fault::times(2, "GET", "/git/ref/", What::Stale));
    for races in 0..2 {
        assert_eq!(
            world.remove(&forge, "config/prd").await.unwrap(),
            Removal::Moved
        );
        forge.after_lost_race(races).await;
    }
    let removed = world.remove(&forge, "config/prd").await.unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    assert_eq!(world.commits(), 3);
}

#[tokio::test]
async fn a_stale_read_after_our_own_write_does_not_hide_it() {
    let world = World::new();
    world
        .github
        .fault(Fault::once("PATCH", "/git/refs/", What::AnswerAfter(502)));
    // Neither that read nor the first comparison has it yet.
    world.github.fault(Fault::once(
        "GET",
        "/compare/",
        What::refusal(404, "Not Found"),
    ));
    let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    assert_eq!(world.commits(), 2);
}

#[tokio::test]
async fn every_wording_of_a_race_is_one_where_the_branch_has_moved() {
    for (status, words) in [
        (422, "Update is not a fast forward"),
        (422, "Update is not a fast-forward"),
        (422, "Reference update failed"),
        (
            422,
            "cannot lock ref 'refs/heads/main': is at 1 but expected 2",
        ),
        (409, "Conflict"),
    ] {
        let world = World::new();
        let path = world.path();
        let other = Arc::new(move || World::other_commit(&path, "other"));
        world
            .github
            .fault(Fault::once("POST", "/git/commits", What::Meanwhile(other)));
        world.github.fault(Fault::once(
            "PATCH",
            "/git/refs/",
            What::refusal(status, words),
        ));
        let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
        assert_eq!(removed, Removal::Moved, "{words}");
    }
}

#[tokio::test]
async fn a_permanent_refusal_is_told_with_its_remedy_and_not_repeated() {
    for (status, words, headers, expected) in [
        (
            403,
            "Repository was archived so is read-only.",
            vec![],
            "it is archived",
        ),
        (
            422,
            "Required status check \"build\" is expected.",
            vec![],
            "protected against direct commits",
        ),
        (
            422,
            "Repository rule violations found\n\nChanges must be made through a pull request.",
            vec![],
            "a ruleset of the repository",
        ),
        (
            422,
            "Repository rule violations found\n\nCommits must have verified signatures.",
            vec![],
            "use a GitHub App (forge.github.app)",
        ),
        (
            403,
            "Resource not accessible by personal access token",
            vec![("x-accepted-github-permissions", "contents=write")],
            "it needs contents=write",
        ),
        (
            403,
            "Resource protected by organization SAML enforcement.",
            vec![(
                "x-github-sso",
                "required; url=https://github.com/orgs/example/sso?x=1",
            )],
            "authorize it at https://github.com/orgs/example/sso?x=1",
        ),
        (404, "Not Found", vec![], "does not show it to this token"),
        (
            401,
            "Bad credentials",
            vec![],
            "it is wrong, expired or revoked",
        ),
        // Unknown words, and the branch is where it was.
        (
            422,
            "The hamster is asleep",
            vec![],
            "GitHub said: The hamster is asleep",
        ),
    ] {
        let world = World::new();
        let refusal = What::with_headers(status, words, &headers);
        world
            .github
            .fault(Fault::once("PATCH", "/git/refs/", refusal));
        let removed = world
            .remove(&world.forge(), "config/demo")
            .await
            .unwrap_err();
        let said = chain(&removed);
        assert!(said.contains(expected), "{words}: {said}");
        assert!(!removed.is_passing(), "{words}");
        assert_eq!(count(&world.github.seen(), "PATCH", ""), 1, "{words}");
        assert_eq!(world.commits(), 1);
    }
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_in_no_error() {
    let world = World::new();
    std::fs::write(world.folder.path().join("token"), "ghp_another-secret").unwrap();
    let head = world
        .forge()
        .head(&world.repo, &world.branch)
        .await
        .unwrap_err();
    let said = format!("{head:?} {}", chain(&head));
    assert!(said.contains("Bad credentials"), "{said}");
    assert!(!said.contains("another-secret"), "{said}");
}
