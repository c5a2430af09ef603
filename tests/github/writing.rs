//! Commits: what they hold, what they leave as it was, and who wins.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use stagewright::forge::{Edit, Edited, FileToEdit, ForgeError, Removal};

use crate::double::{Fault, What};
use crate::{World, author, chain};

fn message_of(world: &World, revision: &str) -> (String, String, String) {
    let repository = world.repository();
    let commit = repository
        .revparse_single(revision)
        .unwrap()
        .peel_to_commit()
        .unwrap();
    let (by, committer) = (commit.author().to_string(), commit.committer().to_string());
    (commit.message().unwrap().to_owned(), by, committer)
}

#[tokio::test]
async fn a_folder_goes_in_one_commit_and_every_other_path_keeps_its_blob() {
    for (folder, gone) in [
        ("config/demo", "config/demo/"),
        // The parent held nothing else, and goes too.
        ("only/demo", "only/"),
        ("config", "config/"),
        ("config/demo/extra", "config/demo/extra/"),
    ] {
        let world = World::new();
        let removed = world.remove(&world.forge(), folder).await.unwrap();
        let mut expected = world.files(world.head.as_str());
        expected.retain(|(path, _)| !path.starts_with(gone));
        assert_eq!(world.files("main"), expected, "{folder}");
        let repository = world.repository();
        let head = repository.refname_to_id("refs/heads/main").unwrap();
        assert_eq!(removed, Removal::Done(head.to_string().parse().unwrap()));
        let commit = repository.find_commit(head).unwrap();
        assert_eq!(
            commit.parent_id(0).unwrap().to_string(),
            world.head.as_str()
        );
        let ada = "Ada <ada@example.org>".to_owned();
        let expected = ("Remove it\n\nDigest: x\n".to_owned(), ada.clone(), ada);
        assert_eq!(message_of(&world, "main"), expected);
    }
}

#[tokio::test]
async fn a_repository_that_holds_nothing_else_is_empty_afterwards() {
    let world = World::with(&[("config/demo/values.yaml", "a\n")]);
    let removed = world.remove(&world.forge(), "config/demo").await.unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    assert_eq!(world.files("main"), []);
}

#[tokio::test]
async fn what_is_gone_or_another_one_is_told_and_nothing_is_written() {
    let world = World::new();
    let forge = world.forge();
    world.remove(&forge, "config/demo").await.unwrap();
    world.github.seen();
    assert_eq!(
        world.remove(&forge, "config/demo").await.unwrap(),
        Removal::Nothing
    );
    World::other_commit(&world.path(), "config/prd/new.yaml");
    assert_eq!(
        world.remove(&forge, "config/prd").await.unwrap(),
        Removal::Changed
    );
    assert!(world.github.seen().iter().all(|seen| seen.method == "GET"));
}

#[tokio::test]
async fn the_removal_takes_eight_requests_however_large_the_repository_is() {
    // 120,000 files: 300 stages of 400, which share one tree, as git allows.
    let world = World::new();
    let repository = world.repository();
    let blob = repository.blob(b"x").unwrap();
    let mut stage = repository.treebuilder(None).unwrap();
    for number in 0..400 {
        stage.insert(format!("f{number}"), blob, 0o100_644).unwrap();
    }
    let stage = stage.write().unwrap();
    let mut config = repository.treebuilder(None).unwrap();
    for number in 0..300 {
        config
            .insert(format!("stage-{number}"), stage, 0o040_000)
            .unwrap();
    }
    let parent = repository
        .revparse_single("main")
        .unwrap()
        .peel_to_commit()
        .unwrap();
    let mut top = repository
        .treebuilder(Some(&parent.tree().unwrap()))
        .unwrap();
    top.insert("config", config.write().unwrap(), 0o040_000)
        .unwrap();
    let tree = repository.find_tree(top.write().unwrap()).unwrap();
    let by = parent.author();
    repository
        .commit(Some("refs/heads/main"), &by, &by, "", &tree, &[&parent])
        .unwrap();

    let folder = stagewright::forge::FolderToGo {
        repo: &world.repo,
        branch: &world.branch,
        folder: "config/stage-7",
        tree: &stage.to_string(),
    };
    let removed = world
        .forge()
        .remove_folder(folder, "m", &author())
        .await
        .unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    let seen = world.github.seen();
    let asked: Vec<(&str, &str)> = seen
        .iter()
        .map(|seen| (seen.method.as_str(), seen.path.split('/').nth(5).unwrap()))
        .collect();
    assert_eq!(
        asked,
        [
            ("GET", "ref"),
            ("GET", "commits"),
            ("GET", "trees"),
            ("GET", "trees"),
            ("POST", "trees"),
            ("POST", "trees"),
            ("POST", "commits"),
            ("PATCH", "refs"),
        ]
    );
    assert_eq!(world.files("main").len(), 120_000 + 3 - 400);
}

#[tokio::test]
async fn the_removal_takes_one_request_more_for_each_folder_above_it() {
    for (folder, requests) in [("apps/config/demo", 9), ("a/b/c/d/config/demo", 12)] {
        let values = format!("{folder}/values.yaml");
        let other = values.replace("demo", "prd");
        let world = World::with(&[(&values, "a: 1\n"), (&other, "a: 2\n"), ("kept", "x\n")]);
        let forge = world.forge();
        let removed = world.remove(&forge, folder).await.unwrap();
        assert!(matches!(removed, Removal::Done(_)));
        assert_eq!(world.github.seen().len(), requests, "{folder}");
        let files: Vec<String> = world.files("main").into_iter().map(|(f, _)| f).collect();
        assert_eq!(files, [other.as_str(), "kept"]);
    }
}

#[tokio::test]
async fn folders_that_hold_nothing_else_go_with_it_at_any_depth() {
    let world = World::with(&[
        ("apps/shop/config/demo/values.yaml", "a: 1\n"),
        ("apps/cart/config/demo/values.yaml", "a: 2\n"),
    ]);
    let forge = world.forge();
    world.remove(&forge, "apps/shop/config/demo").await.unwrap();
    let files: Vec<String> = world.files("main").into_iter().map(|(f, _)| f).collect();
    assert_eq!(files, ["apps/cart/config/demo/values.yaml"]);
}

#[tokio::test]
async fn a_tree_that_github_made_otherwise_is_found_out_before_the_branch_is_moved() {
    let world = World::new();
    let other = world.tree("config");
    world.github.fault(Fault {
        method: "POST",
        path: "/git/trees",
        skip: 1,
        times: 1,
        what: What::Bent("sha", json!(other)),
    });
    let removed = world.remove(&world.forge(), "config/demo").await;
    let said = chain(&removed.unwrap_err());
    assert!(said.contains("nothing was changed on the branch"), "{said}");
    assert_eq!(world.commits(), 1);
}

#[tokio::test]
async fn a_write_to_a_renamed_repository_goes_nowhere_else() {
    let world = World::new();
    world.github.fault(Fault::once(
        "POST",
        "/git/trees",
        What::with_headers(307, "", &[("location", "/api/v3/repositories/1/git/trees")]),
    ));
    let removed = world.remove(&world.forge(), "config/demo").await;
    assert!(chain(&removed.unwrap_err()).contains("it is now "));
    let seen = world.github.seen();
    assert_eq!(seen.last().unwrap().status, 307, "{seen:?}");
    assert_eq!(world.commits(), 1);
}

#[tokio::test]
async fn an_app_sends_no_author_so_that_github_signs() {
    let world = World::new();
    let removed = world
        .remove(&world.forge_of_app(), "config/demo")
        .await
        .unwrap();
    assert!(matches!(removed, Removal::Done(_)));
    let (_, author, committer) = message_of(&world, "main");
    let bot = "an-app[bot] <an-app[bot]@users.noreply.github.com>";
    assert_eq!([author.as_str(), committer.as_str()], [bot, bot]);
    let tokens = world.github.seen();
    let tokens = tokens
        .iter()
        .filter(|seen| seen.path.ends_with("/access_tokens"));
    assert_eq!(tokens.count(), 1);
}

/// Adds a line for `name` to `only/demo/values.yaml`, unless it is there.
async fn add(world: &World, name: &str) -> Edited {
    let place = FileToEdit {
        repo: &world.repo,
        branch: &world.branch,
        file: "only/demo/values.yaml",
    };
    let line = format!("{name}: 1\n");
    let (forge, by) = (world.forge(), author());
    let edited = forge.edit_file(place, &by, |_, before| {
        let before = String::from_utf8(before.to_vec()).unwrap();
        Ok::<_, ForgeError>(match before.contains(&line) {
            true => Edit::Nothing,
            false => Edit::Write {
                content: format!("{before}{line}").into_bytes(),
                message: format!("Add {name}\n"),
            },
        })
    });
    edited.await.unwrap()
}

fn read(world: &World) -> String {
    let repository = world.repository();
    let blob = repository
        .revparse_single("main:only/demo/values.yaml")
        .unwrap();
    String::from_utf8(blob.as_blob().unwrap().content().to_vec()).unwrap()
}

#[tokio::test]
async fn a_file_is_replaced_in_one_commit_and_every_other_path_keeps_its_blob() {
    let world = World::new();
    let edited = add(&world, "new").await;
    assert!(matches!(edited, Edited::Done(_)));
    assert_eq!(read(&world), "a: 4\nnew: 1\n");
    let mut before: BTreeMap<_, _> = world.files(world.head.as_str()).into_iter().collect();
    let mut after: BTreeMap<_, _> = world.files("main").into_iter().collect();
    before.remove("only/demo/values.yaml");
    after.remove("only/demo/values.yaml");
    assert_eq!(before, after);
    assert!(matches!(add(&world, "new").await, Edited::Nothing(_)));
    assert_eq!(world.commits(), 2);
}

#[tokio::test]
async fn a_lost_race_is_read_again_judged_again_and_made_anew() {
    let world = World::new();
    let path = world.path();
    let other = Arc::new(move || World::other_commit(&path, "other"));
    world.github.fault(Fault::times(
        2,
        "PATCH",
        "/git/refs/",
        What::Meanwhile(other),
    ));
    let edited = add(&world, "new").await;
    assert!(matches!(edited, Edited::Done(_)));
    assert_eq!(world.commits(), 4);
    assert!(world.files("main").iter().any(|(path, _)| path == "other"));
}

async fn at_once(count: usize) {
    let world = World::new();
    let names: Vec<String> = (0..count).map(|number| format!("name-{number}")).collect();
    let edits = names.iter().map(|name| add(&world, name));
    let edited = futures_util::future::join_all(edits).await;
    assert!(
        edited
            .iter()
            .all(|edited| matches!(edited, Edited::Done(_))),
        "{edited:?}"
    );
    let text = read(&world);
    for name in &names {
        assert!(text.contains(&format!("\n{name}: 1\n")), "{name} in {text}");
    }
    assert_eq!(world.commits(), 1 + count);
}

#[tokio::test]
async fn two_commits_at_once_both_land() {
    at_once(2).await;
}

#[tokio::test]
async fn twenty_commits_at_once_all_land() {
    at_once(20).await;
}
