//! git's objects in GitHub's form, read and made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use git2::{Oid, Repository, Signature, Time, TreeWalkMode, TreeWalkResult};
use serde_json::{Value, json};

use super::routes::id_of;
use super::{Content, Reply};

const URL: &str = "https://api.example.com/";

pub fn reference(repository: &Repository, name: &str, id: Oid) -> Value {
    let kind = repository.find_object(id, None).unwrap().kind().unwrap();
    json!({
        "ref": format!("refs/{name}"),
        "node_id": "",
        "url": URL,
        "object": { "type": kind.str(), "sha": id.to_string(), "url": URL },
    })
}

pub fn commit(repository: &Repository, name: &str) -> Reply {
    let found = Oid::from_str(name).and_then(|id| repository.find_commit(id));
    match found {
        Ok(found) => Reply::json(200, described(&found)),
        Err(_) => Reply::refusal(404, "Not Found"),
    }
}

fn described(commit: &git2::Commit<'_>) -> Value {
    let by = |who: &Signature<'_>| {
        json!({
            "name": who.name().unwrap_or_default(),
            "email": who.email().unwrap_or_default(),
            "date": "2026-01-01T00:00:00Z",
        })
    };
    let parents = commit.parent_ids();
    let parents = parents.map(|id| json!({ "sha": id.to_string(), "url": URL, "html_url": URL }));
    json!({
        "sha": commit.id().to_string(),
        "node_id": "",
        "url": URL,
        "html_url": URL,
        "author": by(&commit.author()),
        "committer": by(&commit.committer()),
        "message": commit.message().unwrap_or_default(),
        "tree": { "sha": commit.tree_id().to_string(), "url": URL },
        "parents": parents.collect::<Vec<_>>(),
        "verification": {
            "verified": false,
            "reason": "unsigned",
            "signature": null,
            "payload": null,
            "verified_at": null,
        },
    })
}

pub fn tree(repository: &Repository, name: &str, status: u16) -> Reply {
    let found = Oid::from_str(name).and_then(|id| repository.find_tree(id));
    let Ok(found) = found else {
        return Reply::refusal(404, "Not Found");
    };
    let entries = found.iter().map(|entry| {
        json!({
            "path": entry.name().unwrap(),
            "mode": format!("{:06o}", entry.filemode()),
            "type": entry.kind().map_or("commit", |kind| kind.str()),
            "sha": entry.id().to_string(),
            "url": URL,
        })
    });
    // GitHub lists no more than 100,000 entries.
    let entries: Vec<Value> = entries.take(100_000).collect();
    let truncated = entries.len() < found.len();
    let value = json!({ "sha": name, "url": URL, "truncated": truncated, "tree": entries });
    Reply::json(status, value)
}

/// A tree with everything below it, each folder before what it holds.
pub fn all_below(repository: &Repository, name: &str, most: usize) -> Reply {
    let found = Oid::from_str(name).and_then(|id| repository.find_tree(id));
    let Ok(found) = found else {
        return Reply::refusal(404, "Not Found");
    };
    let mut entries = Vec::new();
    found
        .walk(TreeWalkMode::PreOrder, |folder, entry| {
            entries.push(json!({
                "path": format!("{folder}{}", entry.name().unwrap()),
                "mode": format!("{:06o}", entry.filemode()),
                "type": entry.kind().map_or("commit", |kind| kind.str()),
                "sha": entry.id().to_string(),
                "url": URL,
            }));
            TreeWalkResult::Ok
        })
        .unwrap();
    let truncated = entries.len() > most;
    entries.truncate(most);
    let value = json!({ "sha": name, "url": URL, "truncated": truncated, "tree": entries });
    Reply::json(200, value)
}

pub fn blob(repository: &Repository, name: &str, raw: bool) -> Reply {
    let found = Oid::from_str(name).and_then(|id| repository.find_blob(id));
    let Ok(found) = found else {
        return Reply::refusal(404, "Not Found");
    };
    if raw {
        return Reply {
            status: 200,
            headers: Vec::new(),
            content: Content::Raw(found.content().to_vec()),
        };
    }
    Reply::json(
        200,
        json!({
            "sha": name, "node_id": "", "url": URL, "size": found.size(),
            "encoding": "base64", "content": STANDARD.encode(found.content()),
        }),
    )
}

pub fn tag(repository: &Repository, name: &str, mut value: Value) -> Reply {
    let found = Oid::from_str(name).and_then(|id| repository.find_tag(id));
    let Ok(found) = found else {
        return Reply::refusal(404, "Not Found");
    };
    value["sha"] = name.into();
    value["object"]["sha"] = found.target_id().to_string().into();
    value["object"]["type"] = found.target_type().unwrap().str().into();
    Reply::json(200, value)
}

pub fn make_blob(repository: &Repository, body: &Value) -> Reply {
    let content = body["content"].as_str().unwrap_or_default();
    let content = match body["encoding"].as_str() {
        Some("base64") => STANDARD.decode(content).unwrap(),
        _ => content.as_bytes().to_vec(),
    };
    let id = repository.blob(&content).unwrap();
    Reply::json(201, json!({ "sha": id.to_string(), "url": URL }))
}

/// With `base_tree` the entries are laid over it, at paths of any depth; without it there is nothing else.
pub fn make_tree(repository: &Repository, body: &Value) -> Reply {
    let base = match &body["base_tree"] {
        Value::Null => None,
        given => match id_of(given).and_then(|id| repository.find_tree(id).ok()) {
            Some(tree) => Some(tree),
            None => return Reply::refusal(422, "tree.base_tree is not a valid tree oid"),
        },
    };
    let mut id = base.map(|tree| tree.id());
    for entry in body["tree"].as_array().unwrap() {
        let path = entry["path"].as_str().unwrap();
        let mode = i32::from_str_radix(entry["mode"].as_str().unwrap(), 8).unwrap();
        let Some(sha) = id_of(&entry["sha"]) else {
            return Reply::refusal(422, "tree.sha is not a valid oid");
        };
        let there = mode == 0o160_000 || repository.find_object(sha, None).is_ok();
        if !there {
            return Reply::refusal(422, "tree.sha is not a valid oid");
        }
        id = Some(laid_over(repository, id, path, sha, mode));
    }
    match id {
        Some(id) => tree(repository, &id.to_string(), 201),
        None => Reply::refusal(422, "Invalid tree info"),
    }
}

fn laid_over(repository: &Repository, tree: Option<Oid>, path: &str, sha: Oid, mode: i32) -> Oid {
    let tree = tree.map(|id| repository.find_tree(id).unwrap());
    let mut builder = repository.treebuilder(tree.as_ref()).unwrap();
    match path.split_once('/') {
        None => {
            builder.insert(path, sha, mode).unwrap();
        }
        Some((name, rest)) => {
            let below = tree
                .as_ref()
                .and_then(|tree| Some(tree.get_name(name)?.id()));
            let below = laid_over(repository, below, rest, sha, mode);
            builder.insert(name, below, 0o040_000).unwrap();
        }
    }
    builder.write().unwrap()
}

pub fn make_commit(repository: &Repository, body: &Value) -> Reply {
    let parents = body["parents"].as_array().unwrap().iter();
    let parents: Option<Vec<_>> = parents
        .map(|parent| repository.find_commit(id_of(parent)?).ok())
        .collect();
    // The empty tree is there without having been made.
    if body["tree"] == "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
        repository.treebuilder(None).unwrap().write().unwrap();
    }
    let tree = id_of(&body["tree"]).and_then(|id| repository.find_tree(id).ok());
    let (Some(parents), Some(tree)) = (parents, tree) else {
        return Reply::refusal(422, "Tree SHA does not exist");
    };
    let by = match &body["author"] {
        Value::Null => {
            Signature::now("an-app[bot]", "an-app[bot]@users.noreply.github.com").unwrap()
        }
        author => {
            let date: jiff::Timestamp = author["date"].as_str().unwrap().parse().unwrap();
            let time = Time::new(date.as_second(), 0);
            Signature::new(
                author["name"].as_str().unwrap(),
                author["email"].as_str().unwrap(),
                &time,
            )
            .unwrap()
        }
    };
    let message = body["message"].as_str().unwrap();
    let parents: Vec<_> = parents.iter().collect();
    let id = repository
        .commit(None, &by, &by, message, &tree, &parents)
        .unwrap();
    Reply::json(201, described(&repository.find_commit(id).unwrap()))
}
