use git2::{Commit, Repository, Signature, Time};

use super::*;
use crate::forge::Forge;

fn signature() -> Signature<'static> {
    Signature::new("A", "a@example.com", &Time::new(1, 0)).unwrap()
}

/// A commit with `chart/.argocd-source.yaml` in it, a link, and a file at its top.
fn commit<'r>(repository: &'r Repository, branch: &str, content: &str) -> Commit<'r> {
    let blob = repository.blob(content.as_bytes()).unwrap();
    let mut chart = repository.treebuilder(None).unwrap();
    chart
        .insert(".argocd-source.yaml", blob, 0o100_644)
        .unwrap();
    let templates = repository.treebuilder(None).unwrap().write().unwrap();
    chart.insert("templates", templates, 0o040_000).unwrap();
    let mut top = repository.treebuilder(None).unwrap();
    top.insert("chart", chart.write().unwrap(), 0o040_000)
        .unwrap();
    top.insert("link", blob, 0o120_000).unwrap();
    top.insert("file", blob, 0o100_644).unwrap();
    let tree = repository.find_tree(top.write().unwrap()).unwrap();
    let by = signature();
    let reference = format!("refs/heads/{branch}");
    let id = repository
        .commit(Some(&reference), &by, &by, "", &tree, &[])
        .unwrap();
    repository.find_commit(id).unwrap()
}

fn forge(folder: &std::path::Path) -> (GitForge, Repository) {
    let repository = Repository::init_bare(folder.join("It.git")).unwrap();
    repository.set_head("refs/heads/main").unwrap();
    let root = folder.to_str().unwrap().parse().unwrap();
    (GitForge::new(root, None, None), repository)
}

#[tokio::test]
async fn a_revision_is_told_as_a_branch_a_tag_a_commit_or_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let (forge, repository) = forge(folder.path());
    let main = commit(&repository, "main", "a");
    let next = commit(&repository, "next", "b");
    commit(&repository, "twice", "c");
    let by = signature();
    let object = next.as_object();
    repository
        .tag("v1", object, &by, "annotated", false)
        .unwrap();
    repository.tag_lightweight("v2", object, false).unwrap();
    repository.tag_lightweight("twice", object, false).unwrap();
    let repo = "It".parse().unwrap();
    let sha = next.id().to_string();
    let [main, next] = [main, next].map(|commit| commit.id().to_string());
    for (revision, expected) in [
        ("", vec![&main]),
        ("HEAD", vec![&main]),
        ("main", vec![&main]),
        ("next", vec![&next]),
        ("refs/heads/next", vec![&next]),
        ("v1", vec![&next]),
        ("v2", vec![&next]),
        (&sha, vec![&next]),
        ("*", vec![]),
        ("1.x", vec![]),
        (&sha[..7], vec![]),
    ] {
        let found = forge.revision(&repo, revision).await.unwrap();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{revision}");
    }
    assert_eq!(forge.revision(&repo, "twice").await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_files_of_a_folder_are_told_from_none_and_from_what_is_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (forge, repository) = forge(folder.path());
    let id = commit(&repository, "main", "a").id().to_string();
    let (repo, id) = ("It".parse().unwrap(), id.parse().unwrap());
    for (path, expected) in [
        ("chart", Some(vec![".argocd-source.yaml"])),
        ("", Some(vec!["file", "link"])),
        ("chart/templates", Some(vec![])),
        ("other", Some(vec![])),
        ("Chart", Some(vec![])),
        ("link", None),
        ("link/chart", None),
        ("file", None),
    ] {
        let found = forge.files_in(&repo, &id, path).await.unwrap();
        let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{path}");
    }
}

#[tokio::test]
async fn a_repository_of_a_folder_is_there_spelled_otherwise_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let (forge, _) = forge(folder.path());
    let it: RepoName = "It".parse().unwrap();
    let absent = Standing::Absent {
        names: vec![it.clone()],
    };
    for (name, expected) in [
        ("It", Standing::Writable),
        ("IT", Standing::OtherSpelling(it)),
        ("Other", absent),
    ] {
        let found = forge.standing(&name.parse().unwrap()).await.unwrap();
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn everything_below_a_folder_is_listed_and_its_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (forge, repository) = forge(folder.path());
    let id = commit(&repository, "main", "content").id().to_string();
    let (repo, id) = ("It".parse().unwrap(), id.parse().unwrap());
    let forge = Forge::Git(forge);
    for (path, expected) in [
        ("", vec!["chart/.argocd-source.yaml", "file", "link"]),
        ("chart", vec![".argocd-source.yaml"]),
        ("chart/templates", vec![]),
        ("other", vec![]),
        ("Chart", vec![]),
        ("file", vec![]),
        ("link/chart", vec![]),
    ] {
        let found = forge.everything_in(&repo, &id, path).await.unwrap();
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, expected, "{path}");
    }
    let found = forge.everything_in(&repo, &id, "").await.unwrap();
    let kinds: Vec<Kind> = found.iter().map(|entry| entry.kind).collect();
    let file = Kind::File { executable: false };
    assert_eq!(kinds, [file, file, Kind::Link]);
    let contents = forge.contents(&repo, &[found[0].id]).await.unwrap();
    assert_eq!(contents, [(found[0].id, b"content".to_vec())].into());
}

#[tokio::test]
async fn the_refs_of_a_namespace_are_those_whose_names_begin_so() {
    let folder = tempfile::tempdir().unwrap();
    let (forge, repository) = forge(folder.path());
    let repo = "It".parse().unwrap();
    let forge = Forge::Git(forge);
    let of = ["refs/heads/locks/", "refs/stagewright/destroyed/"];
    let none = forge.refs_below(&repo, &of).await.unwrap();
    assert_eq!(none, BTreeMap::new());
    let id = commit(&repository, "locks/a/dev", "x").id();
    commit(&repository, "locksmith", "y");
    let [inside, proof] = [
        "refs/x/refs/heads/locks/b",
        "refs/stagewright/destroyed/c/dev",
    ];
    for name in [inside, proof] {
        repository.reference(name, id, false, "").unwrap();
    }
    let found = forge.refs_below(&repo, &of).await.unwrap();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["refs/heads/locks/a/dev", proof]);
    assert!(found.values().all(|sha| sha.as_str() == id.to_string()));
}
