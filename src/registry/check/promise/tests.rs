//! Registries of one entry, and Applications that keep its promise or do not.

use serde_json::{Value, json};

use super::*;
use crate::applications::observed::GENERATE_PATHS;

const ENTRY: &str = "apps:\n  shop:\n    repo: https://github.com/example/Mono.git\n    path: shop\n    syncOptions: [B=true, A=true]\n    stages: {dev: {}}\n";

fn expected() -> ExpectedApplications {
    ExpectedApplications {
        namespace: Some("argocd".parse().unwrap()),
        parent: Some("releases".to_owned()),
        project: Some("releases".to_owned()),
        destination: Some(Destination::Server(
            "https://kubernetes.default.svc".to_owned(),
        )),
        retry: json!({"limit": 3, "backoff": {"factor": 2}})
            .as_object()
            .cloned(),
        parameters: BTreeMap::new(),
    }
}

/// The Application that `ENTRY` promises.
fn shop() -> Value {
    let parameter = |name: &str, value: &str| json!({"name": name, "value": value});
    json!({
        "metadata": {"name": "shop-dev", "namespace": "argocd", "annotations": {GENERATE_PATHS: "/shop"}},
        "spec": {
            "project": "releases",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop-dev"},
            "source": {
                "repoURL": "https://github.com/example/Mono.git",
                "targetRevision": "main",
                "path": "shop/chart",
                "helm": {
                    "valueFiles": ["../config/dev/values.yaml"],
                    "parameters": [
                        parameter("hook.repo", "https://github.com/example/Mono.git"),
                        parameter("hook.revision", "$ARGOCD_APP_REVISION"),
                        parameter("hook.stage", "dev"),
                        parameter("hook.namespace", "shop-dev"),
                        parameter("hook.path", "shop"),
                    ],
                },
            },
            "syncPolicy": {
                "automated": {"prune": true},
                "retry": {"limit": 3, "backoff": {"factor": 2}},
                "syncOptions": ["A=true", "B=true"],
            },
        },
    })
}

fn found(registry: &str, applications: &[Value], expected: &ExpectedApplications) -> Vec<Finding> {
    let registry = Registry::parse(registry, "values.yaml").unwrap();
    let read = |it: &Value| Observed::read(&it.to_string()).unwrap();
    let instance = Instance {
        name: "test".to_owned(),
        applications: applications.iter().map(read).collect(),
    };
    compare(&registry, &[instance], &Layout::default(), expected).findings
}

/// The findings, each as `check at: fields that differ`.
fn told(applications: &[Value]) -> Vec<String> {
    let findings = found(ENTRY, applications, &expected());
    findings
        .iter()
        .map(|finding| {
            let fields: Vec<&str> = finding
                .differences
                .iter()
                .map(|it| it.field.as_str())
                .collect();
            format!(
                "{} {}: {}",
                finding.check.name,
                finding.at,
                fields.join(" ")
            )
        })
        .collect()
}

#[test]
fn an_application_that_keeps_the_promise_is_no_finding_whatever_else_it_has() {
    let mut kept = shop();
    kept["metadata"]["labels"] = json!({"team": "a"});
    kept["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    kept["spec"]["ignoreDifferences"] = json!([{"kind": "Secret"}]);
    kept["spec"]["revisionHistoryLimit"] = json!(3);
    assert_eq!(told(&[kept]), [""; 0]);
}

#[test]
fn every_field_that_was_changed_by_hand_is_told() {
    let changes: [(&str, Value, &str); 16] = [
        (
            "/metadata/annotations",
            json!({}),
            "metadata.annotations[argocd.argoproj.io/manifest-generate-paths]",
        ),
        ("/spec/project", json!("default"), "spec.project"),
        (
            "/spec/destination/server",
            json!("https://other"),
            "spec.destination.server",
        ),
        (
            "/spec/destination/namespace",
            json!("other"),
            "spec.destination.namespace",
        ),
        (
            "/spec/source/repoURL",
            json!("https://github.com/example/mono.git"),
            "spec.source.repoURL",
        ),
        (
            "/spec/source/targetRevision",
            json!("next"),
            "spec.source.targetRevision",
        ),
        (
            "/spec/source/path",
            json!("shop/chart2"),
            "spec.source.path",
        ),
        (
            "/spec/source/helm/valueFiles",
            json!([]),
            "spec.source.helm.valueFiles",
        ),
        (
            "/spec/source/helm/parameters/2/value",
            json!("prd"),
            "spec.source.helm.parameters[hook.stage]",
        ),
        (
            "/spec/source/helm/parameters/4",
            json!({"name": "more", "value": "1"}),
            "spec.source.helm.parameters[hook.path] spec.source.helm.parameters[more]",
        ),
        (
            "/spec/source/helm/valuesObject",
            json!({"a": 1}),
            "spec.source.helm.valuesObject",
        ),
        (
            "/spec/source/kustomize",
            json!({"namePrefix": "x"}),
            "spec.source.…",
        ),
        (
            "/spec/syncPolicy/automated",
            json!({"prune": true, "selfHeal": true}),
            "spec.syncPolicy.automated.selfHeal",
        ),
        (
            "/spec/syncPolicy/automated",
            Value::Null,
            "spec.syncPolicy.automated.prune spec.syncPolicy.automated.selfHeal",
        ),
        (
            "/spec/syncPolicy/retry/limit",
            json!(5),
            "spec.syncPolicy.retry.limit",
        ),
        (
            "/spec/syncPolicy/syncOptions",
            json!(["A=true"]),
            "spec.syncPolicy.syncOptions",
        ),
    ];
    for (pointer, value, fields) in changes {
        let mut changed = shop();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = changed.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            parent => parent[key] = value,
        }
        assert_eq!(
            told(&[changed]),
            [format!("application 6:14: {fields}")],
            "{pointer}"
        );
    }
}

#[test]
fn what_the_settings_say_nothing_of_is_not_compared() {
    let mut other = shop();
    other["spec"]["project"] = json!("default");
    other["spec"]["destination"]["server"] = json!("https://other");
    other["spec"]["syncPolicy"]["retry"] = Value::Null;
    let nothing = ExpectedApplications::default();
    assert_eq!(found(ENTRY, &[other], &nothing), []);
    assert_eq!(nothing.left_out(), ["project", "destination", "retry"]);
    assert_eq!(expected().left_out(), [""; 0]);
}

#[test]
fn an_upstream_app_has_three_sources_in_any_order() {
    let registry = "apps:\n  web:\n    repo: https://github.com/example/Web.git\n    upstream: {repo: https://charts.example.org, chart: web}\n    stages: {prd: {version: \"1.2.3\", autoSync: false}}\n";
    let mut web = shop();
    web["metadata"] = json!({"name": "web-prd", "namespace": "argocd"});
    let hook = |name: &str, value: &str| json!({"name": name, "value": value});
    let repo = "https://github.com/example/Web.git";
    web["spec"] = json!({
        "project": "releases",
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "web-prd"},
        "sources": [
            {"repoURL": repo, "targetRevision": "main", "ref": "values"},
            {"repoURL": repo, "targetRevision": "main", "path": "chart", "helm": {"parameters": [
                hook("hook.repo", repo), hook("hook.revision", "$ARGOCD_APP_REVISION"), hook("hook.stage", "prd"), hook("hook.namespace", "web-prd")]}},
            {"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.2.3", "helm": {"valueFiles": ["$values/config/prd/values.yaml"]}},
        ],
    });
    assert_eq!(found(registry, std::slice::from_ref(&web), &expected()), []);
    web["spec"]["sources"][2]["targetRevision"] = json!("1.2.4");
    let findings = found(registry, &[web], &expected());
    assert_eq!(
        findings[0].differences,
        [Difference {
            field: "spec.sources[chart].targetRevision".to_owned(),
            wanted: Some("1.2.3".to_owned()),
            found: Some("1.2.4".to_owned()),
        }]
    );
}

#[test]
fn an_application_that_is_not_there_or_goes_is_told_with_what_its_parent_complains_of() {
    let parent = json!({
        "metadata": {"name": "releases", "namespace": "argocd"},
        "spec": {"project": "default", "source": {"repoURL": "https://github.com/example/ArgoCDDeploy.git"}},
        "status": {
            "conditions": [{"type": "ComparisonError", "message": "no chart"}],
            "operationState": {"phase": "Failed", "message": "one object failed"},
        },
    });
    let missing = found(ENTRY, &[parent], &expected());
    assert_eq!(
        missing[0].message,
        "apps.shop.stages.dev: there is no Application argocd/shop-dev; argocd/releases makes it when it is synced (ComparisonError: no chart; its last sync ended as Failed: one object failed)"
    );
    let mut elsewhere = shop();
    elsewhere["metadata"]["namespace"] = json!("other");
    assert_eq!(
        told(&[elsewhere]),
        [
            "application 6:14: ",
            "unknown-application the Application other/shop-dev: "
        ]
    );
    let mut going = shop();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let going = found(ENTRY, &[going], &expected());
    assert!(going[0].message.contains("is being deleted"), "{going:?}");
}

#[test]
fn an_application_without_an_entry_waits_for_pruning_or_is_unknown_or_is_none_of_ours() {
    let other = |name: &str, project: &str, repo: &str| json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": {"project": project, "source": {"repoURL": repo}}});
    let elsewhere = "https://github.com/example/Other.git";
    let mut parent = other("releases", "default", elsewhere);
    let child = |name: &str, pruned: bool| json!({"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": name, "requiresPruning": pruned});
    parent["status"] = json!({"resources": [child("shop-dev", false), child("old-prd", true), child("gone-prd", false)]});
    let found = told(&[
        shop(),
        parent,
        other("old-prd", "releases", elsewhere),
        other("gone-prd", "releases", elsewhere),
        other("by-hand", "default", "ssh://git@github.com/example/mono"),
        other("stray", "releases", elsewhere),
        other("theirs", "default", elsewhere),
    ]);
    assert_eq!(
        found,
        [
            "pruning the Application argocd/old-prd: ",
            "pruning the Application argocd/gone-prd: ",
            "unknown-application the Application argocd/by-hand: ",
            "unknown-application the Application argocd/stray: ",
        ]
    );
}
