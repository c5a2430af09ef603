//! How repositories and revisions are written.

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::names::BranchName;
use crate::registry::Registry;

use super::{REPO_URL, TARGET_REVISION, stages};

/// URLs that are not written as all others are.
pub(super) fn urls(registry: &Registry) -> Vec<Finding> {
    let mut first: BTreeMap<String, (&str, String)> = BTreeMap::new();
    let mut findings = Vec::new();
    for app in registry.apps() {
        let url = app.repo.as_str();
        let mut found = |what: &str| {
            let text = format!("apps.{}: repo: {what}", app.name);
            findings.push(REPO_URL.finding(app.place, text));
        };
        let form = form(url);
        if let Some(what) = form {
            found(&format!("{url} {what}"));
        }
        let key = app.repo.full_name().to_lowercase();
        match first.get(&key) {
            Some((spelled, by)) if *spelled != url && form.is_none() => {
                found(&format!(
                    "{url} is spelled {spelled} in apps.{by}; spell it as the forge does in both"
                ));
            }
            Some(_) => {}
            None => {
                first.insert(key, (url, app.name.to_string()));
            }
        }
    }
    findings
}

/// What is unusual in a URL, and what it should be.
fn form(url: &str) -> Option<&'static str> {
    if url.starts_with("file:") {
        return None;
    }
    let Some(rest) = url.strip_prefix("https://") else {
        return Some("is no https:// URL; use the one by which the forge serves everybody");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        Some("has a user in it; credentials belong into the settings of who reads it")
    } else if host.chars().any(|c| c.is_ascii_uppercase()) {
        Some("has its host in capital letters; write it in small ones")
    } else if url.ends_with('/') {
        Some("ends with \"/\"; leave that out")
    } else if !url.ends_with(".git") {
        Some("does not end with \".git\"; add that")
    } else {
        None
    }
}

/// Revisions that do not move, or that only Argo CD understands.
pub(super) fn revisions(registry: &Registry) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (app, stage) in stages(registry) {
        let Some(revision) = &stage.target_revision else {
            continue;
        };
        let is_hex =
            (7..=40).contains(&revision.len()) && revision.chars().all(|c| c.is_ascii_hexdigit());
        let what = if is_hex && revision.chars().any(|c| c.is_ascii_digit()) {
            "looks like a commit, which does not move: no push reaches the stage; name the branch"
        } else if revision == "HEAD" {
            "leaves it to the repository which branch is tracked; name the branch"
        } else if revision.starts_with("refs/") {
            "is a full ref; name the branch alone"
        } else if revision.contains(['*', '^', '~', '>', '<', '=', ' ']) {
            "is a pattern of versions, which Argo CD reads for tags alone; name the branch"
        } else if revision.parse::<BranchName>().is_err() {
            "is a name that git gives no branch; name the branch"
        } else {
            continue;
        };
        findings.push(TARGET_REVISION.finding(
            stage.place,
            format!(
                "apps.{}.stages.{}: targetRevision {revision:?} {what}",
                app.name, stage.name
            ),
        ));
    }
    findings
}
