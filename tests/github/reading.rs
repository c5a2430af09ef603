//! What is read, and what is told before anything is written.

use stagewright::forge::Standing;
use stagewright::git::history::{Located, Reach};

use crate::double::{Fault, What};
use crate::{World, chain, repositories};

#[tokio::test]
async fn a_repository_is_read_commit_by_commit_and_folder_by_folder() {
    let world = World::new();
    let forge = world.forge();
    forge.canonical_name(&world.repo).await.unwrap();
    let head = forge.head(&world.repo, &world.branch).await.unwrap();
    assert_eq!(head, world.head);
    let read = forge
        .read(&world.repo, &head, "config/demo/values.yaml")
        .await;
    assert_eq!(read.unwrap(), b"a: 1\n");
    let missing = forge
        .read(&world.repo, &head, "config/demo/none.yaml")
        .await;
    assert!(chain(&missing.unwrap_err()).contains("has no file config/demo/none.yaml"));
    let folders = forge
        .folders_in(&world.repo, &head, "config")
        .await
        .unwrap();
    assert_eq!(folders, ["demo", "prd"]);
    let tree = forge
        .tree_of(&world.repo, &head, "config/demo")
        .await
        .unwrap();
    assert_eq!(tree, Some(world.tree("config/demo")));
    assert!(forge.has_folder(&world.repo, &head, "only").await.unwrap());
    assert!(
        !forge
            .has_folder(&world.repo, &head, "config.yaml")
            .await
            .unwrap()
    );
    for (folder, expected) in [
        ("config/demo", Some(vec!["values.yaml"])),
        ("config", Some(vec![])),
        ("none/at/all", Some(vec![])),
        ("config.yaml", None),
        ("config.yaml/x", None),
    ] {
        let files = forge.files_in(&world.repo, &head, folder).await.unwrap();
        let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
        assert_eq!(files, expected, "{folder}");
    }
    assert_eq!(
        forge.known_url(&world.repo).as_str(),
        "https://github.com/example/Deploy.git"
    );
}

#[tokio::test]
async fn a_file_of_several_megabytes_is_read_whole() {
    let content = "0123456789abcdef".repeat(300_000);
    let world = World::with(&[("large.yaml", &content)]);
    let read = world
        .forge()
        .read(&world.repo, &world.head, "large.yaml")
        .await
        .unwrap();
    assert!(read == content.as_bytes());
}

#[tokio::test]
async fn a_file_that_is_not_what_its_id_says_is_not_taken() {
    let world = World::new();
    world.github.fault(Fault::once(
        "GET",
        "/git/blobs/",
        What::Answer(200, Vec::new(), serde_json::json!({})),
    ));
    let read = world
        .forge()
        .read(&world.repo, &world.head, "README.md")
        .await;
    assert!(chain(&read.unwrap_err()).contains("is not what its id says"));
    // The double answered with something that is no blob, and was to be found out.
    assert!(!world.github.offences().is_empty());
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_told_with_those_that_are() {
    let world = World::new();
    let head = world
        .forge()
        .head(&world.repo, &"gone".parse().unwrap())
        .await;
    let said = chain(&head.unwrap_err());
    assert!(said.ends_with("has no branch gone; it has main"), "{said}");
}

#[tokio::test]
async fn a_commit_is_found_by_its_first_digits_and_told_whether_the_branch_holds_it() {
    let world = World::new();
    let path = world.path();
    let unmerged = repositories::commit(&path, "next", Some(world.head.as_str()), &[("n", "n\n")]);
    let forge = world.forge();
    let find = async |prefix: &str, reach| {
        let prefix = prefix.parse().unwrap();
        forge
            .commit(&world.repo, &world.branch, &prefix, reach)
            .await
    };
    let found = find(&world.head.as_str()[..9], Reach::TrackedBranch)
        .await
        .unwrap();
    assert_eq!(found, Located::OnBranch(world.head.clone()));
    let refused = find(&unmerged[..9], Reach::TrackedBranch).await;
    assert!(chain(&refused.unwrap_err()).contains("not reachable from main"));
    let found = find(&unmerged, Reach::AnyBranch).await.unwrap();
    assert_eq!(
        found,
        Located::Elsewhere(unmerged.parse().unwrap(), vec!["next".to_owned()])
    );
    let none = find("0123456789", Reach::AnyBranch).await;
    assert!(chain(&none.unwrap_err()).contains("has no commit 0123456789"));
}

#[tokio::test]
async fn a_forks_commit_that_github_serves_under_the_parents_name_is_none_of_its_own() {
    let world = World::new();
    let fork = repositories::commit(&world.path(), "fork", None, &[("f", "f\n")]);
    let repository = world.repository();
    let mut branch = repository.find_reference("refs/heads/fork").unwrap();
    branch.delete().unwrap();
    drop(branch);
    let prefix = fork.parse().unwrap();
    let found = world
        .forge()
        .commit(&world.repo, &world.branch, &prefix, Reach::AnyBranch)
        .await;
    assert!(chain(&found.unwrap_err()).contains("has no commit"));
}

#[tokio::test]
async fn a_revision_is_a_branch_a_tag_a_commit_or_the_default_branch() {
    let world = World::new();
    let repository = world.repository();
    let object = repository.revparse_single("main").unwrap();
    let by = git2::Signature::now("A", "a@example.org").unwrap();
    repository
        .tag("v1", &object, &by, "annotated", false)
        .unwrap();
    repository.tag_lightweight("v2", &object, false).unwrap();
    let forge = world.forge();
    for revision in [
        "",
        "HEAD",
        "main",
        "refs/heads/main",
        "v1",
        "v2",
        world.head.as_str(),
    ] {
        let found = forge.revision(&world.repo, revision).await.unwrap();
        assert_eq!(found, [world.head.clone()].into(), "{revision}");
    }
    for revision in ["*", "1.x", ">= 1.0", "gone", "refs/pull/1/head/../x"] {
        let found = forge.revision(&world.repo, revision).await.unwrap();
        assert!(found.is_empty(), "{revision}");
    }
}

#[tokio::test]
async fn another_spelling_a_new_name_and_one_that_is_not_shown_are_told_apart() {
    let world = World::new();
    let forge = world.forge();
    let ask = async |name: &str| {
        chain(
            &forge
                .canonical_name(&name.parse().unwrap())
                .await
                .unwrap_err(),
        )
    };
    let said = ask("deploy").await;
    assert!(said.contains("spells deploy as Deploy"), "{said}");
    let said = ask("Gone").await;
    assert!(
        said.contains("has no repository Gone that the token may see"),
        "{said}"
    );
    world.github.change(|account| {
        account.renamed.insert("Old", "Deploy");
    });
    let said = ask("Old").await;
    assert!(said.contains("it is now example/Deploy"), "{said}");
}

#[tokio::test]
async fn how_a_repository_stands_is_told_by_one_request() {
    let world = World::new();
    world.github.change(|account| {
        account.renamed.insert("Old", "Deploy");
    });
    let forge = world.forge();
    let renamed = Standing::Renamed {
        to: "example/Deploy".to_owned(),
    };
    let absent = Standing::Absent { names: Vec::new() };
    for (name, expected, requests) in [
        ("Deploy", Standing::Writable, 1),
        ("deploy", Standing::OtherSpelling(world.repo.clone()), 1),
        ("Gone", absent, 1),
        ("Old", renamed, 2), // and where it leads to
    ] {
        let found = forge.standing(&name.parse().unwrap()).await.unwrap();
        assert_eq!(found, expected, "{name}");
        assert_eq!(world.github.seen().len(), requests, "{name}");
    }
    world.github.change(|account| account.archived = true);
    let found = forge.standing(&world.repo).await.unwrap();
    assert_eq!(found, Standing::ReadOnly { how: "archived" });
    world.github.fault(Fault::once(
        "GET",
        "/repos/",
        What::with_headers(301, "", &[("location", "https://elsewhere.example/it")]),
    ));
    let found = forge.standing(&world.repo).await.unwrap();
    let to = "https://elsewhere.example/it".to_owned();
    assert_eq!(found, Standing::Renamed { to });
    let refused = What::refusal(403, "Resource not accessible by integration");
    world.github.fault(Fault::once("GET", "/repos/", refused));
    let found = forge.standing(&world.repo).await;
    assert!(chain(&found.unwrap_err()).contains("the token may not do this"));
}

#[tokio::test]
async fn reads_follow_a_renamed_repository() {
    let world = World::new();
    world.github.change(|account| {
        account.renamed.insert("Old", "Deploy");
    });
    let head = world
        .forge()
        .head(&"Old".parse().unwrap(), &world.branch)
        .await
        .unwrap();
    assert_eq!(head, world.head);
}

#[tokio::test]
async fn a_read_is_not_forwarded_to_another_host_which_would_see_the_token() {
    let world = World::new();
    let elsewhere = [("location", "https://elsewhere.example/repos/example/Deploy")];
    world.github.fault(Fault::once(
        "GET",
        "/git/ref/",
        What::with_headers(301, "", &elsewhere),
    ));
    let head = world.forge().head(&world.repo, &world.branch).await;
    assert!(chain(&head.unwrap_err()).contains("it is now https://elsewhere.example"));
}

#[tokio::test]
async fn a_listing_that_was_cut_off_is_no_listing() {
    let world = World::new();
    world
        .github
        .fault(Fault::times(2, "GET", "/git/trees/", What::Truncated));
    let folders = world.forge().folders_in(&world.repo, &world.head, "").await;
    assert!(chain(&folders.unwrap_err()).contains("cuts off the listing"));
    let removed = world.remove(&world.forge(), "config/demo").await;
    assert!(chain(&removed.unwrap_err()).contains("cuts off the listing"));
    assert_eq!(world.commits(), 1);
}

#[tokio::test]
async fn what_is_not_shown_is_not_taken_for_what_is_not_there() {
    let world = World::new();
    for path in ["/git/trees/", "/git/commits/"] {
        world
            .github
            .fault(Fault::once("GET", path, What::refusal(404, "Not Found")));
        let found = world
            .forge()
            .tree_of(&world.repo, &world.head, "config/demo")
            .await;
        assert!(
            chain(&found.unwrap_err()).contains("does not show it to this token"),
            "{path}"
        );
    }
}
