//! Each account of `deploy/rbac`, asking with a token of its own.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::testbed::{NAMESPACE, Testbed, User};

/// Held while one of the accounts has other rights than those of `deploy/`, or is asked for them.
pub static GRANTS: Mutex<()> = Mutex::new(());

/// What an account may do in a namespace, as `<verb> <resource>`, without the questions about itself that anybody may ask.
fn rights(user: &User, namespace: &str) -> BTreeSet<String> {
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": { "namespace": namespace },
    });
    // Not validated by kubectl, which would have to read the definitions of all resources for it.
    let arguments = [
        "create",
        "--validate=false",
        "--output=json",
        "--filename=-",
    ];
    let answer: Value =
        serde_json::from_str(&user.done(&arguments, &question.to_string())).unwrap();
    assert_eq!(answer["status"]["incomplete"], false);
    let mut rights = BTreeSet::new();
    let list = |rule: &Value, name: &str| -> Vec<String> {
        serde_json::from_value(rule[name].clone()).unwrap()
    };
    for rule in answer["status"]["resourceRules"].as_array().unwrap() {
        for group in list(rule, "apiGroups") {
            if ["authorization.k8s.io", "authentication.k8s.io"].contains(&group.as_str()) {
                continue;
            }
            for resource in list(rule, "resources") {
                for verb in list(rule, "verbs") {
                    let dot = if group.is_empty() { "" } else { "." };
                    rights.insert(format!("{verb} {resource}{dot}{group}"));
                }
            }
        }
    }
    rights
}

fn set(rights: &[&str]) -> BTreeSet<String> {
    rights.iter().map(ToString::to_string).collect()
}

#[test]
fn each_account_has_exactly_the_rights_that_its_work_needs() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let _granted = GRANTS.lock().unwrap_or_else(PoisonError::into_inner);
    let jobs = testbed.account("stagewright");
    assert_eq!(
        rights(&jobs, NAMESPACE),
        set(&[
            "create jobs.batch",
            "delete jobs.batch",
            "get jobs.batch",
            "list jobs.batch",
            "get pods",
            "list pods",
            "get pods/log",
            "list events",
            "list applications.argoproj.io",
        ])
    );
    assert_eq!(
        rights(&jobs, "argocd"),
        set(&["list applications.argoproj.io"])
    );
    assert_eq!(rights(&testbed.account("tf-plan"), NAMESPACE), set(&[]));
    assert_eq!(
        rights(&testbed.account("tf-presync"), NAMESPACE),
        set(&[
            "get persistentvolumes",
            "list persistentvolumes",
            "patch persistentvolumes"
        ])
    );
}

#[test]
fn the_jobs_account_reads_applications_and_launches_and_no_secret() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let jobs = testbed.account("stagewright");
    jobs.read(&["applications.argoproj.io", "--all-namespaces"]);
    jobs.read(&["jobs,pods,events", "--namespace", NAMESPACE]);
    for (namespace, resource) in [
        (NAMESPACE, "secrets"),
        (NAMESPACE, "configmaps"),
        ("argocd", "pods"),
    ] {
        let answer = jobs.ask(&["get", resource, "--namespace", namespace], &json!(""));
        let error = String::from_utf8_lossy(&answer.stderr);
        assert!(error.contains("Forbidden"), "{resource}: {error}");
    }
}
