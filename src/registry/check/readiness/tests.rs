//! One stage whose Application is ready, and what each change makes of it.

use serde_json::{Value, json};

use super::*;
use crate::registry::Registry;

const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OLD: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const REPO: &str = "https://github.com/example/Mono.git";

fn shop() -> Value {
    let source = json!({"repoURL": REPO, "targetRevision": "main", "path": "shop/chart"});
    let destination = json!({"namespace": "shop-dev"});
    json!({
        "metadata": {"name": "shop-dev", "namespace": "argocd", "annotations": {"argocd.argoproj.io/manifest-generate-paths": "/shop"}},
        "spec": {"source": source, "destination": destination},
        "status": {
            "sync": {"status": "Synced", "revision": HEAD, "comparedTo": {"source": source, "destination": destination}},
            "health": {"status": "Healthy"},
            "operationState": {"phase": "Succeeded", "message": "ok", "syncResult": {"revision": HEAD}},
        },
    })
}

fn heads(same: &[(&str, &[&str])]) -> Heads {
    let comparison = |(commit, folders): &(&str, &[&str])| Comparison {
        repo: REPO.to_owned(),
        branch: "main".to_owned(),
        commit: (*commit).to_owned(),
        folders: folders.iter().map(|folder| (*folder).to_owned()).collect(),
    };
    Heads {
        heads: BTreeMap::from([((REPO.to_owned(), "main".to_owned()), Ok(HEAD.to_owned()))]),
        same: same.iter().map(|it| (comparison(it), true)).collect(),
    }
}

/// What is judged, and what was asked for it.
fn judged(application: &Value, stage: &str, heads: &Heads) -> (Readiness, Vec<String>) {
    let registry =
        format!("apps:\n  shop:\n    repo: {REPO}\n    path: shop\n    stages: {{dev: {stage}}}\n");
    let registry = Registry::parse(&registry, "values.yaml").unwrap();
    let app = registry.apps().next().unwrap();
    let observed = Observed::read(&application.to_string()).unwrap();
    let deployed = (app, &app.stages[0], &observed);
    let asked = questions(&[deployed], heads, &Layout::default());
    let asked = asked
        .iter()
        .map(|it| format!("{} {}", &it.commit[..4], it.folders.join(" ")));
    (judge(deployed, heads, &Layout::default()), asked.collect())
}

fn reasons(application: &Value) -> String {
    match judged(application, "{}", &heads(&[])).0 {
        Readiness::NotReady(reasons) => reasons.join("; "),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_stage_that_was_compared_and_synced_at_the_head_is_ready() {
    assert_eq!(
        judged(&shop(), "{}", &heads(&[])),
        (Readiness::Ready, Vec::new())
    );
}

#[test]
fn a_stage_that_is_synced_and_healthy_from_before_a_push_is_not_ready() {
    let mut stale = shop();
    stale["status"]["sync"]["revision"] = json!(OLD);
    stale["status"]["operationState"]["syncResult"]["revision"] = json!(OLD);
    assert_eq!(
        reasons(&stale),
        "it was compared at bbbbbbbbbbbb, and main is at aaaaaaaaaaaa"
    );
}

#[test]
fn a_push_that_leaves_the_stages_folders_as_they_were_changes_nothing() {
    let mut stale = shop();
    stale["status"]["sync"]["revision"] = json!(OLD);
    stale["status"]["operationState"]["syncResult"]["revision"] = json!(OLD);
    let (_, asked) = judged(&stale, "{}", &heads(&[]));
    assert_eq!(asked, ["bbbb shop", "bbbb shop/terraform shop/config/dev"]);
    let same = heads(&[
        (OLD, &["shop"]),
        (OLD, &["shop/terraform", "shop/config/dev"]),
    ]);
    assert_eq!(judged(&stale, "{}", &same).0, Readiness::Ready);
    // Without the annotation any commit may render otherwise.
    stale["metadata"]["annotations"] = json!({});
    assert!(
        reasons(&stale).starts_with("it was compared at"),
        "{}",
        reasons(&stale)
    );
}

#[test]
fn terraform_that_came_after_the_last_sync_was_not_applied() {
    let mut unapplied = shop();
    unapplied["status"]["operationState"]["syncResult"]["revision"] = json!(OLD);
    assert!(
        reasons(&unapplied).contains("its hook has not applied that"),
        "{}",
        reasons(&unapplied)
    );
    let same = heads(&[(OLD, &["shop/terraform", "shop/config/dev"])]);
    assert_eq!(judged(&unapplied, "{}", &same).0, Readiness::Ready);
}

#[test]
fn each_sign_of_trouble_is_a_reason_of_its_own() {
    let changes: [(&str, Value, &str); 10] = [
        ("/status/sync/status", json!("OutOfSync"), "it is OutOfSync"),
        (
            "/status/health/status",
            json!("Degraded"),
            "its health is Degraded",
        ),
        (
            "/status/sync/comparedTo/source/path",
            json!("other"),
            "it was last compared before its sources or destination changed",
        ),
        (
            "/status/sync/comparedTo",
            Value::Null,
            "it was never compared",
        ),
        (
            "/status/conditions",
            json!([{"type": "InvalidSpecError", "message": "no project"}, {"type": "OrphanedResourceWarning", "message": "x"}]),
            "InvalidSpecError: no project",
        ),
        (
            "/status/operationState/phase",
            json!("Running"),
            "a sync is running",
        ),
        (
            "/status/operationState",
            json!({"phase": "Failed", "message": "the hook failed"}),
            "its last sync ended as Failed: the hook failed",
        ),
        (
            "/operation",
            json!({"sync": {}}),
            "a sync was asked for and has not begun",
        ),
        (
            "/metadata/annotations/argocd.argoproj.io~1refresh",
            json!("hard"),
            "a refresh was asked for and has not been made",
        ),
        (
            "/status/sync/revision",
            Value::Null,
            "it does not say which revision it was compared at",
        ),
    ];
    for (pointer, value, reason) in changes {
        let mut changed = shop();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value;
        assert_eq!(reasons(&changed), reason, "{pointer}");
    }
}

#[test]
fn a_head_that_is_not_known_makes_no_stage_ready() {
    let mut unknown = heads(&[]);
    unknown.heads.insert(
        (REPO.to_owned(), "main".to_owned()),
        Err("no such repository".to_owned()),
    );
    assert_eq!(
        judged(&shop(), "{}", &unknown).0,
        Readiness::Unknown("no such repository".to_owned())
    );
    let mut degraded = shop();
    degraded["status"]["health"]["status"] = json!("Degraded");
    assert!(matches!(
        judged(&degraded, "{}", &unknown).0,
        Readiness::NotReady(_)
    ));
}

#[test]
fn a_stage_that_waits_for_somebody_says_so() {
    let mut waiting = shop();
    waiting["status"]["sync"]["status"] = json!("OutOfSync");
    let Readiness::NotReady(reasons) = judged(&waiting, "{autoSync: false}", &heads(&[])).0 else {
        panic!("it is ready");
    };
    assert_eq!(
        reasons,
        ["it is OutOfSync, and its entry says autoSync: false: somebody syncs it by hand"]
    );
}
