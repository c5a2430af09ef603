//! What is found out before anything is destroyed: whether the commit that ends it would be taken.

use serde_json::{Value, json};

use crate::{World, chain};

async fn refused(world: &World) -> String {
    let asked = world.forge().may_write(&world.repo, &world.branch).await;
    asked.map_or_else(|error| chain(&error), |()| String::new())
}

#[tokio::test]
async fn a_branch_that_takes_commits_is_asked_by_reads_alone() {
    let world = World::new();
    assert_eq!(refused(&world).await, "");
    let seen = world.github.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.method == "GET"), "{seen:?}");
}

#[tokio::test]
async fn an_archived_repository_and_a_token_without_rights_are_refused() {
    let world = World::new();
    world.github.change(|account| account.push = false);
    assert!(refused(&world).await.contains("the token may not do this"));
    world.github.change(|account| {
        account.push = true;
        account.scopes = Some("read:org, gist");
    });
    assert!(refused(&world).await.contains("it needs the scope repo"));
    world
        .github
        .change(|account| account.scopes = Some("gist, repo"));
    assert_eq!(refused(&world).await, "");
    world.github.change(|account| account.archived = true);
    assert!(refused(&world).await.contains("it is archived"));
}

#[tokio::test]
async fn an_app_is_judged_by_the_permissions_of_its_installation() {
    let world = World::new();
    world.github.change(|account| account.push = false);
    let forge = world.forge_of_app();
    forge.may_write(&world.repo, &world.branch).await.unwrap();
    world.github.change(|account| account.contents = "read");
    let asked = world
        .forge_of_app()
        .may_write(&world.repo, &world.branch)
        .await;
    assert!(chain(&asked.unwrap_err()).contains("Contents: read and write, of the App"));
}

/// A protection that demands reviews, or signatures.
fn protection(enforced: bool, signatures: bool) -> Value {
    let url = "https://api.example.com/";
    let mut value = json!({
        "url": url,
        "enforce_admins": { "url": url, "enabled": enforced },
        "required_signatures": { "url": url, "enabled": signatures },
        "lock_branch": { "enabled": false },
    });
    if !signatures {
        value["required_pull_request_reviews"] = json!({
            "url": url, "dismiss_stale_reviews": false, "require_code_owner_reviews": false,
            "required_approving_review_count": 1,
        });
    }
    value
}

#[tokio::test]
async fn a_protected_branch_is_refused_where_its_protection_can_be_read_and_holds_for_us() {
    let world = World::new();
    for (protection, expected) in [
        (protection(true, false), "it demands pull requests"),
        (protection(true, true), "use a GitHub App"),
        // An administrator passes what is not enforced for administrators.
        (protection(false, false), ""),
        // It cannot be read: the commit will tell.
        (Value::Null, ""),
    ] {
        world
            .github
            .change(|account| account.protection = Some(protection));
        let said = refused(&world).await;
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{said}"
        );
    }
}

fn rule(kind: &str) -> Value {
    let mut rule = json!({ "type": kind, "ruleset_id": 42, "ruleset_source_type": "Repository", "ruleset_source": "example/Deploy" });
    if kind == "pull_request" {
        rule["parameters"] = json!({
            "dismiss_stale_reviews_on_push": false, "require_code_owner_review": false,
            "require_last_push_approval": false, "required_approving_review_count": 1,
            "required_review_thread_resolution": false,
        });
    }
    rule
}

#[tokio::test]
async fn a_ruleset_is_refused_that_stops_the_commit_and_does_not_let_us_pass() {
    let world = World::new();
    for (kind, bypass, expected) in [
        ("pull_request", Some("never"), "has the rule pull_request"),
        (
            "pull_request",
            Some("pull_requests_only"),
            "has the rule pull_request",
        ),
        ("pull_request", Some("always"), ""),
        // Whom it lets pass cannot be read: the commit will tell.
        ("pull_request", None, ""),
        ("required_signatures", Some("never"), "use a GitHub App"),
        ("non_fast_forward", Some("never"), ""),
        ("deletion", Some("never"), ""),
    ] {
        world.github.change(|account| {
            account.rules = vec![rule(kind)];
            account.bypass = bypass;
        });
        let said = refused(&world).await;
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{kind}: {said}"
        );
    }
    world.github.change(|account| {
        account.rules = vec![rule("required_signatures")];
        account.bypass = Some("never");
    });
    let forge = world.forge_of_app();
    forge.may_write(&world.repo, &world.branch).await.unwrap();
}
