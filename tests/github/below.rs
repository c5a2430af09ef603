//! Everything below a folder, the content of many files, and all refs of a namespace.

use std::collections::BTreeMap;

use git2::{Oid, Repository};
use stagewright::forge::{Forge, ForgeError, Standing};
use stagewright::git::tree::{Entry, Kind};

use crate::double::{Fault, What};
use crate::{World, chain, repositories};

const APP: [(&str, &str); 9] = [
    ("app/chart/Chart.yaml", "name: app\n"),
    ("app/chart/templates/a/deep.yaml", "d: 1\n"),
    ("app/config/dev/values.yaml", "a: 1\n"),
    ("app/config/prd/values.yaml", "a: 2\n"),
    ("app/config/stg/values.yaml", "a: 1\n"),
    ("app/terraform/main.tf", "locals {}\n"),
    ("app.yaml", "no folder\n"),
    ("apple/chart/Chart.yaml", "name: apple\n"),
    ("README.md", "The deploy repository.\n"),
];
const IN_APP: [&str; 6] = [
    "chart/Chart.yaml",
    "chart/templates/a/deep.yaml",
    "config/dev/values.yaml",
    "config/prd/values.yaml",
    "config/stg/values.yaml",
    "terraform/main.tf",
];

async fn everything(world: &World, forge: &Forge, folder: &str) -> Result<Vec<Entry>, ForgeError> {
    forge.everything_in(&world.repo, &world.head, folder).await
}

async fn names(world: &World, forge: &Forge, folder: &str) -> Vec<String> {
    let entries = everything(world, forge, folder).await.unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[tokio::test]
async fn an_app_with_three_stages_takes_four_requests_and_one_a_file_that_is_read() {
    let world = World::with(&APP);
    let forge = world.forge();
    let standing = forge.standing(&world.repo).await.unwrap();
    assert_eq!(standing, Standing::Writable);
    let head = forge.head(&world.repo, &world.branch).await.unwrap();
    let entries = forge.everything_in(&world.repo, &head, "app").await;
    let entries = entries.unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, IN_APP);
    assert_eq!(world.github.seen().len(), 4);
    let values = entries.iter().filter(|e| e.name.ends_with("values.yaml"));
    let values: Vec<Oid> = values.map(|entry| entry.id).collect();
    let contents = forge.contents(&world.repo, &values).await.unwrap();
    let texts = values.iter().map(|id| contents[id].as_slice());
    assert_eq!(texts.collect::<Vec<_>>(), [b"a: 1\n", b"a: 2\n", b"a: 1\n"]);
    // Two of the three are the same file.
    assert_eq!(world.github.seen().len(), 2);
    // The repository's other folders, and single files, are known by the same listing.
    let others = everything(&world, &forge, "apple/").await.unwrap();
    assert_eq!(others.len(), 1);
    let read = forge.read(&world.repo, &head, "README.md").await.unwrap();
    assert_eq!(read, b"The deploy repository.\n");
    assert_eq!(world.github.seen().len(), 1);
}

#[tokio::test]
async fn a_folder_that_is_not_there_or_no_folder_has_nothing() {
    let world = World::with(&APP);
    let forge = world.forge();
    for folder in ["none", "app/none/at/all", "App", "app.yaml", "app.yaml/x"] {
        assert_eq!(
            names(&world, &forge, folder).await,
            [""; 0].map(str::to_owned)
        );
    }
    assert_eq!(names(&world, &forge, "").await.len(), APP.len());
}

#[tokio::test]
async fn a_listing_that_is_cut_off_anywhere_is_made_whole_by_further_ones() {
    let world = World::with(&APP);
    let mut requests = Vec::new();
    for listed in 0..=20 {
        world.github.change(|account| account.listed = listed);
        let forge = world.forge();
        assert_eq!(names(&world, &forge, "app").await, IN_APP, "{listed}");
        requests.push(world.github.seen().len());
    }
    // The commit, and then each of nine folders twice: with everything below, and its own level. Two of the stages have the same.
    assert_eq!(requests.first(), Some(&19));
    assert_eq!(requests.last(), Some(&2));
}

#[tokio::test]
async fn where_a_level_itself_is_cut_off_the_answer_is_refused() {
    let world = World::with(&APP);
    world.github.change(|account| account.listed = 0);
    let mut level = Fault::once("GET", "/git/trees/", What::Truncated);
    level.skip = 1;
    world.github.fault(level);
    let found = everything(&world, &world.forge(), "app").await;
    let said = chain(&found.unwrap_err());
    assert!(
        said.contains("cuts off the listing of Deploy/, which"),
        "{said}"
    );
}

#[tokio::test]
async fn what_github_does_not_show_is_not_taken_for_an_empty_folder() {
    let world = World::with(&APP);
    for path in ["/git/commits/", "/git/trees/"] {
        world
            .github
            .fault(Fault::once("GET", path, What::refusal(404, "Not Found")));
        let found = everything(&world, &world.forge(), "none").await;
        let said = chain(&found.unwrap_err());
        assert!(
            said.contains("does not show it to this token"),
            "{path}: {said}"
        );
    }
}

#[tokio::test]
async fn links_and_submodules_are_told_from_files() {
    let world = World::new();
    let repository = world.repository();
    let blob = repository.blob(b"target").unwrap();
    let mut folder = repository.treebuilder(None).unwrap();
    let module: Oid = Oid::from_str(world.head.as_str()).unwrap();
    for (name, id, mode) in [
        ("file", blob, 0o100_644),
        ("link", blob, 0o120_000),
        ("module", module, 0o160_000),
        ("run", blob, 0o100_755),
    ] {
        folder.insert(name, id, mode).unwrap();
    }
    let mut top = repository.treebuilder(None).unwrap();
    top.insert("f", folder.write().unwrap(), 0o040_000).unwrap();
    let tree = repository.find_tree(top.write().unwrap()).unwrap();
    let by = git2::Signature::now("A", "a@example.org").unwrap();
    let commit = repository.commit(None, &by, &by, "", &tree, &[]).unwrap();
    let commit = commit.to_string().parse().unwrap();
    let found = world.forge().everything_in(&world.repo, &commit, "f").await;
    let kinds: Vec<(String, Kind)> = found
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.kind))
        .collect();
    let expected = [
        ("file", Kind::File { executable: false }),
        ("link", Kind::Link),
        ("module", Kind::Submodule),
        ("run", Kind::File { executable: true }),
    ];
    assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

/// Some locks, a branch whose name only begins like theirs, and a ref of a namespace of its own.
fn with_refs(world: &World) -> BTreeMap<String, String> {
    let path = world.path();
    let mut locks = BTreeMap::new();
    for name in ["a/dev", "a/prd", "b/dev", "b/stg", "c/dev"] {
        let branch = format!("locks/argocd/{name}/terraform.tfstate");
        let commit = repositories::commit(&path, &branch, None, &[(name, "{}\n")]);
        locks.insert(format!("refs/heads/{branch}"), commit);
    }
    repositories::commit(&path, "locksmith", None, &[("x", "x\n")]);
    let repository = Repository::open_bare(&path).unwrap();
    let proof = "refs/stagewright/destroyed/argocd/d/dev/terraform.tfstate";
    let head = Oid::from_str(world.head.as_str()).unwrap();
    repository.reference(proof, head, false, "").unwrap();
    locks
}

#[tokio::test]
async fn the_refs_of_a_namespace_are_listed_to_the_last_page() {
    let world = World::new();
    let locks = with_refs(&world);
    for (page, requests) in [(usize::MAX, 1), (6, 1), (5, 2), (2, 3), (1, 6)] {
        world.github.change(|account| account.page = page);
        let forge = world.forge();
        let found = forge.refs_below(&world.repo, &["refs/heads/locks/"]).await;
        let found: BTreeMap<String, String> = found
            .unwrap()
            .into_iter()
            .map(|(name, sha)| (name, sha.to_string()))
            .collect();
        assert_eq!(found, locks);
        assert_eq!(world.github.seen().len(), requests, "{page}");
    }
    let forge = world.forge();
    let both = ["refs/heads/rescue/", "refs/stagewright/destroyed/"];
    let found = forge.refs_below(&world.repo, &both).await.unwrap();
    let proof = "refs/stagewright/destroyed/argocd/d/dev/terraform.tfstate";
    assert_eq!(found, [(proof.to_owned(), world.head.clone())].into());
}

#[tokio::test]
async fn refs_that_cannot_be_read_to_the_last_page_are_none() {
    let world = World::new();
    with_refs(&world);
    world.github.change(|account| account.page = 2);
    let refs = async |fault: Option<Fault>| {
        fault
            .into_iter()
            .for_each(|fault| world.github.fault(fault));
        let forge = world.forge();
        forge.refs_below(&world.repo, &["refs/heads/locks/"]).await
    };
    let mut second = Fault::once(
        "GET",
        "/git/matching-refs/",
        What::refusal(404, "Not Found"),
    );
    second.skip = 1;
    let said = chain(&refs(Some(second)).await.unwrap_err());
    assert!(said.contains("does not show it to this token"), "{said}");
    let next = r#"<https://elsewhere.example/refs?page=2>; rel="next""#;
    let elsewhere = What::Answer(200, vec![("link", next.to_owned())], serde_json::json!([]));
    let elsewhere = Fault::once("GET", "/git/matching-refs/", elsewhere);
    let said = chain(&refs(Some(elsewhere)).await.unwrap_err());
    assert!(
        said.contains("goes on at https://elsewhere.example/refs?page=2"),
        "{said}"
    );
    let empty = What::refusal(409, "Git Repository is empty.");
    let empty = Fault::once("GET", "/git/matching-refs/", empty);
    assert_eq!(refs(Some(empty)).await.unwrap(), BTreeMap::new());
}
