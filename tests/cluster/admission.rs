//! The admission policy, asked by the jobs' account.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::{Value, json};

use crate::testbed::{IMAGE, NAMESPACE, Testbed};

/// A Job as a launch makes it.
fn launch(testbed: &Testbed) -> Value {
    let url = &testbed.git_url;
    let uid = "metadata.labels['batch.kubernetes.io/controller-uid']";
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "tf-plan-admission-prd", "namespace": NAMESPACE },
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": 1800,
            "template": { "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": "tf-plan",
                "terminationGracePeriodSeconds": 600,
                "containers": [{
                    "name": "presync",
                    "image": IMAGE,
                    "command": ["presync"],
                    "args": ["plan", format!("{url}/AdmissionDeploy.git"), "1".repeat(40), "prd", "admission-prd"],
                    "env": [
                        { "name": "STAGEWRIGHT_STATE_URL", "value": format!("{url}/TerraformState.git") },
                        { "name": "STAGEWRIGHT_JOB_UID", "valueFrom": { "fieldRef": { "fieldPath": uid } } },
                    ],
                    "envFrom": [{ "secretRef": { "name": "argocd-plan-credentials" } }],
                }],
            } },
        },
    })
}

#[test]
fn a_launch_is_let_in_and_any_other_job_is_refused_by_name() {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let jobs = testbed.account("stagewright");
    let create = |job: &Value| {
        let answer = jobs.ask(&["create", "--dry-run=server", "--filename=-"], job);
        (
            answer.status.success(),
            String::from_utf8_lossy(&answer.stderr).into_owned(),
        )
    };
    let right = launch(testbed);
    assert_eq!(create(&right), (true, String::new()));
    let mut destroy = right.clone();
    merge(
        &mut destroy,
        "/metadata",
        json!({ "name": "destroy-stage-7" }),
    );
    let url = right.pointer("/spec/template/spec/containers/0/args/1");
    let args = json!(["destroy", "--preview", url, "1".repeat(40), "prd"]);
    let secret = json!([{ "secretRef": { "name": "argocd-hook-credentials" } }]);
    merge(
        &mut destroy,
        CONTAINER,
        json!({ "args": args, "envFrom": secret }),
    );
    merge(
        &mut destroy,
        POD,
        json!({ "serviceAccountName": "tf-presync" }),
    );
    assert_eq!(create(&destroy), (true, String::new()));
    let pinned = json!({ "image": format!("{IMAGE}@sha256:{}", "0".repeat(64)) });
    merge(&mut destroy, CONTAINER, pinned);
    assert_eq!(create(&destroy), (true, String::new()));

    let mut let_in = Vec::new();
    for (at, change, reason) in wrong(testbed) {
        let mut job = right.clone();
        merge(&mut job, at, change.clone());
        let (done, error) = create(&job);
        if done || !error.contains(reason) {
            let_in.push(format!("{change}: {error}"));
        }
    }
    assert!(let_in.is_empty(), "{}", let_in.join("\n"));
}

const SPEC: &str = "/spec";
const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// What each Job has in place of a launch's, and what the refusal says.
fn wrong(testbed: &Testbed) -> Vec<(&'static str, Value, &'static str)> {
    let url = &testbed.git_url;
    let plan =
        |url: &str, stage: &str| json!({ "args": ["plan", url, "1".repeat(40), stage, "a-prd"] });
    let env = |entry: Value| json!({ "env": [entry] });
    let other_secret =
        json!({ "secretKeyRef": { "name": "argocd-hook-credentials", "key": "GITHUB_TOKEN" } });
    let good = json!({ "name": "presync", "image": IMAGE, "command": ["presync"] });
    let repository = "the deploy repository must be one of";
    vec![
        ("/metadata", json!({ "name": "mine" }), "the Job's name"),
        (SPEC, json!({ "backoffLimit": 3 }), "one pod, once"),
        (
            SPEC,
            json!({ "completions": 2, "parallelism": 2 }),
            "one pod, once",
        ),
        (
            POD,
            json!({ "restartPolicy": "OnFailure" }),
            "one pod, once",
        ),
        (
            POD,
            json!({ "initContainers": [{ "name": "b", "image": IMAGE }] }),
            "one container",
        ),
        (
            POD,
            json!({ "containers": [good, { "name": "b", "image": IMAGE }] }),
            "one container",
        ),
        (
            CONTAINER,
            json!({ "image": "busybox" }),
            "the image must be one of",
        ),
        (
            CONTAINER,
            json!({ "image": format!("{IMAGE}-other@sha256:{}", "0".repeat(64)) }),
            "the image must be one of",
        ),
        (
            CONTAINER,
            json!({ "command": ["sh"] }),
            "the command must be presync",
        ),
        (
            CONTAINER,
            json!({ "command": null }),
            "the command must be presync",
        ),
        (
            CONTAINER,
            json!({ "args": ["apply"] }),
            "the command must be presync",
        ),
        (
            CONTAINER,
            json!({ "args": [] }),
            "the command must be presync",
        ),
        (
            CONTAINER,
            json!({ "lifecycle": { "postStart": { "exec": { "command": ["sh"] } } } }),
            "beside its command",
        ),
        (
            CONTAINER,
            json!({ "livenessProbe": { "exec": { "command": ["sh"] } } }),
            "beside its command",
        ),
        (
            CONTAINER,
            plan("https://evil.example.com/A.git", "prd"),
            repository,
        ),
        (
            CONTAINER,
            plan(&format!("{url}/../A.git"), "prd"),
            repository,
        ),
        (
            CONTAINER,
            plan(&format!("{url}/a/A.git"), "prd"),
            repository,
        ),
        (
            CONTAINER,
            plan(&format!("{url}/A.git"), "$(GITHUB_TOKEN)"),
            "other variables",
        ),
        (
            CONTAINER,
            env(json!({ "name": "STAGEWRIGHT_MASK", "value": "$(GITHUB_TOKEN)" })),
            "other variables",
        ),
        (
            POD,
            json!({ "serviceAccountName": "tf-presync" }),
            "the service account must be tf-plan",
        ),
        (
            POD,
            json!({ "serviceAccountName": null }),
            "the service account must be tf-plan",
        ),
        (
            CONTAINER,
            json!({ "envFrom": [{ "secretRef": { "name": "argocd-hook-credentials" } }] }),
            "argocd-plan-credentials alone",
        ),
        (
            CONTAINER,
            json!({ "envFrom": [{ "configMapRef": { "name": "a" } }] }),
            "argocd-plan-credentials alone",
        ),
        (
            CONTAINER,
            env(json!({ "name": "STAGEWRIGHT_MASK", "valueFrom": other_secret })),
            "a field of the pod",
        ),
        (
            CONTAINER,
            env(json!({ "name": "LD_PRELOAD", "value": "a" })),
            "only variables STAGEWRIGHT_",
        ),
        (
            CONTAINER,
            env(
                json!({ "name": "STAGEWRIGHT_STATE_URL", "value": "https://evil.example.com/a.git" }),
            ),
            "the state repository must be",
        ),
        (
            CONTAINER,
            env(json!({ "name": "STAGEWRIGHT_TERRAFORM", "value": "/bin/sh" })),
            "must be terraform or tofu",
        ),
        (
            POD,
            json!({ "volumes": [{ "name": "a", "hostPath": { "path": "/" } }] }),
            "no volumes",
        ),
        (
            POD,
            json!({ "volumes": [{ "name": "a", "secret": { "secretName": "a" } }] }),
            "no volumes",
        ),
        (POD, json!({ "hostNetwork": true }), "the node's namespaces"),
        (POD, json!({ "hostPID": true }), "the node's namespaces"),
        (
            POD,
            json!({ "hostAliases": [{ "ip": "10.0.0.1", "hostnames": ["a"] }] }),
            "the node's namespaces",
        ),
        (
            POD,
            json!({ "securityContext": { "runAsUser": 0 } }),
            "as root",
        ),
        (
            CONTAINER,
            json!({ "securityContext": { "runAsUser": 0 } }),
            "as root",
        ),
        (
            CONTAINER,
            json!({ "securityContext": { "privileged": true } }),
            "privileged",
        ),
        (
            CONTAINER,
            json!({ "securityContext": { "capabilities": { "add": ["SYS_ADMIN"] } } }),
            "privileged",
        ),
    ]
}

/// Puts the fields of `change` into the object at `at`; null takes one away.
fn merge(job: &mut Value, at: &str, change: Value) {
    let object = job.pointer_mut(at).unwrap().as_object_mut().unwrap();
    let Value::Object(change) = change else {
        return;
    };
    for (name, value) in change {
        if value.is_null() {
            object.remove(&name);
        } else {
            object.insert(name, value);
        }
    }
}
