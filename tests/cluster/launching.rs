//! `stagewright-plan` with the Kubernetes runner: real pods, as the jobs' own account.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::launches::{Launches, Plan, SECRET, finish, make_secret, own};
use crate::testbed::{NAMESPACE, until};
use crate::tools;

impl Launches {
    fn plan(&self, more: &Value, arguments: &[&str]) -> Plan {
        let output = self.command(more, arguments).output().unwrap();
        let plan = Plan {
            code: output.status.code(),
            log: String::from_utf8_lossy(&output.stdout).into_owned(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert_eq!(
            self.left(),
            Vec::<String>::new(),
            "{}\n{}",
            plan.log,
            plan.said
        );
        plan
    }

    /// A plan of a stage of the test's own repository.
    fn own(&self, more: &Value, stage: &str) -> Plan {
        self.plan(more, &own(stage))
    }

    fn kubectl(&self, arguments: &[&str]) {
        self.admin.done(arguments, "");
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn stages_of_the_estate_are_planned_in_pods_with_the_log_and_the_code_of_a_local_plan() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let none = json!({});
    let same = launches.plan(&none, &["--repo", "FieldnotesDeploy", "--stage", "prd"]);
    assert_eq!(same.code, Some(0), "{}\n{}", same.log, same.said);
    assert!(
        same.log.contains("presync: the plan carries no changes\n"),
        "{}",
        same.log
    );
    let changes = launches.plan(
        &none,
        &[
            "--repo",
            "PlatformDeploy",
            "--app-path",
            "headlamp",
            "--stage",
            "prd",
        ],
    );
    assert_eq!(changes.code, Some(0), "{}\n{}", changes.log, changes.said);
    assert!(
        changes
            .log
            .contains("presync: the plan carries 7 change(s):\n"),
        "{}",
        changes.log
    );
    assert!(
        changes.said.contains("Planned: 7 changes"),
        "{}",
        changes.said
    );
    let sealed = launches.plan(
        &none,
        &[
            "--repo",
            "PlatformDeploy",
            "--app-path",
            "grafana",
            "--stage",
            "prd",
        ],
    );
    assert_eq!(sealed.code, Some(0), "{}\n{}", sealed.log, sealed.said);
    assert!(sealed.log.contains(": forget\n"), "{}", sealed.log);
    let failed = launches.own(&none, "fails");
    assert_eq!(failed.code, Some(4), "{}\n{}", failed.log, failed.said);
    assert!(failed.log.contains("the app says no"), "{}", failed.log);
}

#[test]
fn a_launch_that_cannot_start_is_told_in_the_words_of_the_cluster_and_leaves_nothing() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let never = |more: Value, words: &[&str]| {
        let plan = launches.own(&more, "quick");
        assert_eq!(plan.code, Some(7), "{more}: {}\n{}", plan.log, plan.said);
        for word in words {
            assert!(plan.said.contains(word), "{word}: {}", plan.said);
        }
    };
    never(
        json!({ "image": "registry.example.com/other:1", "start_deadline": 8 }),
        &["registry.example.com/other:1"],
    );
    never(
        json!({ "image": "registry.example.com/foreign:1" }),
        &["the image must be one of"],
    );
    never(
        json!({ "service_account": "default" }),
        &["the service account must be"],
    );
    never(
        json!({ "start_deadline": 5, "pod_template": { "spec": { "nodeSelector": { "disk": "none" } } } }),
        &["no node takes its pod", "node(s) didn't match"],
    );
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": { "name": "no-pods", "namespace": NAMESPACE },
        "spec": { "hard": { "pods": "0" } },
    });
    launches
        .admin
        .done(&["apply", "--filename=-"], &quota.to_string());
    until("the quota", || {
        let quota = launches
            .admin
            .read(&["resourcequota", "no-pods", "--namespace", NAMESPACE]);
        (quota["status"]["hard"]["pods"] == "0").then_some(())
    });
    let denied = launches.own(&json!({ "start_deadline": 6 }), "quick");
    launches.kubectl(&[
        "delete",
        "resourcequota",
        "no-pods",
        "--namespace",
        NAMESPACE,
    ]);
    assert_eq!(denied.code, Some(7), "{}", denied.said);
    assert!(
        denied.said.contains("exceeded quota: no-pods"),
        "{}",
        denied.said
    );

    launches.kubectl(&["delete", "secret", SECRET, "--namespace", NAMESPACE]);
    let no_secret = launches.own(&json!({ "start_deadline": 8 }), "quick");
    make_secret(&launches.admin, &launches.folder);
    assert_eq!(no_secret.code, Some(7), "{}", no_secret.said);
    assert!(
        no_secret
            .said
            .contains(&format!("secret \"{SECRET}\" not found")),
        "{}",
        no_secret.said
    );
}

#[test]
fn a_plan_whose_log_is_rotated_is_shown_whole_or_ends_with_the_code_of_an_incomplete_log() {
    if !tools::is_on("STAGEWRIGHT_FULL") {
        return;
    }
    let Some(launches) = Launches::new() else {
        return;
    };
    let plan = launches.own(&json!({}), "wide");
    // Twice as much as the kubelet keeps in one file.
    assert!(plan.log.len() > 1_500_000, "{}", plan.log.len());
    let shown = plan.log.matches(" will be created\n").count();
    let said = &plan.said;
    match plan.code {
        Some(0) => assert_eq!(shown, 401, "{said}"),
        Some(8) => assert!(said.contains("arrived of the"), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
}

/// Launches outside of what `deploy/` watches over, as the administrator.
#[test]
fn a_missing_service_account_is_told_in_the_words_of_the_cluster() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let namespace = "no-account";
    let admin = &launches.admin;
    let made =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    admin.done(&["apply", "--filename=-"], &made.to_string());
    let more = json!({ "namespace": namespace, "service_account": "nobody", "start_deadline": 8 });
    let child = launches
        .command(&more, &own("quick"))
        .env("KUBECONFIG", admin.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let plan = finish(child);
    let left = admin.read(&["jobs,pods", "--namespace", namespace]);
    admin.done(&["delete", "namespace", namespace, "--wait=false"], "");
    assert_eq!(plan.code, Some(7), "{}\n{}", plan.log, plan.said);
    let words = "serviceaccount \"nobody\" not found";
    assert!(plan.said.contains(words), "{}", plan.said);
    assert_eq!(left["items"], json!([]), "{}", plan.said);
}

#[test]
fn a_job_that_the_cluster_suspends_is_told_so_and_runs_when_it_is_resumed() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let admin = &launches.admin;
    let policy = suspending("tf-plan-suspended");
    admin.done(&["apply", "--filename=-"], &policy.to_string());
    until("the policy that suspends", || {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "tf-plan-suspended", "namespace": "default" },
            "spec": { "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "a", "image": "a" }],
            } } },
        });
        let arguments = [
            "create",
            "--dry-run=server",
            "--output=json",
            "--filename=-",
        ];
        let made: Value = serde_json::from_str(&admin.done(&arguments, &job.to_string())).unwrap();
        (made["spec"]["suspend"] == true).then_some(())
    });
    let mut arguments = own("quick");
    arguments[5] = "suspended";
    let never = launches.plan(&json!({ "start_deadline": 3 }), &arguments);

    let child = launches
        .command(&json!({}), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let job = ["job", "tf-plan-suspended", "--namespace", NAMESPACE];
    until("the suspended Job", || {
        let conditions = admin.ask(
            &[&["get", "--output=json"], &job[..]].concat(),
            &Value::Null,
        );
        let job: Value = serde_json::from_slice(&conditions.stdout).ok()?;
        (job["status"]["conditions"][0]["type"] == "Suspended").then_some(())
    });
    let resume = [
        &["patch"],
        &job[..],
        &["--patch", "{\"spec\":{\"suspend\":false}}"],
    ]
    .concat();
    admin.done(&resume, "");
    let resumed = finish(child);
    admin.done(&["delete", "--filename=-"], &policy.to_string());

    assert_eq!(never.code, Some(7), "{}\n{}", never.log, never.said);
    let words = "the Job is suspended: something in the cluster holds it back";
    assert!(never.said.contains(words), "{}", never.said);
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.log, resumed.said);
    assert!(resumed.said.contains(words), "{}", resumed.said);
    assert_eq!(launches.left(), Vec::<String>::new());
}

/// Makes every new Job of this name a suspended one, as a queue of the cluster does.
fn suspending(job: &str) -> Value {
    let api = "admissionregistration.k8s.io/v1beta1";
    let policy = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": "suspends" },
        "spec": {
            "matchConstraints": { "resourceRules": [
                { "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"] },
            ] },
            "matchConditions": [{ "name": "name", "expression": format!("object.metadata.name == '{job}'") }],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{
                "patchType": "ApplyConfiguration",
                "applyConfiguration": { "expression": "Object{spec: Object.spec{suspend: true}}" },
            }],
        },
    });
    let binding = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": "suspends" },
        "spec": { "policyName": "suspends" },
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [policy, binding] })
}

#[test]
fn each_way_in_which_a_pod_can_end_has_its_own_sentence() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let memory = json!({ "pod_template": { "spec": { "containers": [
        { "name": "presync", "resources": { "limits": { "memory": "48Mi" } } }] } } });
    let out_of_memory = launches.own(&memory, "slow");
    assert_eq!(
        out_of_memory.code,
        Some(4),
        "{}\n{}",
        out_of_memory.log,
        out_of_memory.said
    );
    assert!(
        out_of_memory.said.contains("more memory than its limit")
            || out_of_memory.log.contains("signal 9"),
        "{}\n{}",
        out_of_memory.log,
        out_of_memory.said
    );
    let late = launches.own(&json!({ "deadline": 3 }), "slow");
    assert_eq!(late.code, Some(4), "{}\n{}", late.log, late.said);
    assert!(
        late.said.contains("took longer than the Job's deadline"),
        "{}",
        late.said
    );

    let small = json!({ "pod_template": { "spec": {
        "volumes": [{ "name": "tmp", "emptyDir": { "sizeLimit": "64Ki" } }],
        "containers": [{ "name": "presync", "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }] }],
    } } });
    let evicted = launches.own(&small, "huge");
    assert_eq!(evicted.code, Some(4), "{}\n{}", evicted.log, evicted.said);
    assert!(
        evicted.said.contains("was evicted from its node"),
        "{}",
        evicted.said
    );

    let child = launches.start(&json!({}), "slow");
    launches.kubectl(&[
        "delete",
        "jobs",
        "--namespace",
        NAMESPACE,
        "--selector",
        "app.kubernetes.io/managed-by=stagewright",
        "--wait=false",
    ]);
    let deleted = finish(child);
    assert_eq!(deleted.code, Some(4), "{}\n{}", deleted.log, deleted.said);
    assert!(
        deleted.said.contains("was deleted by someone else"),
        "{}",
        deleted.said
    );
    assert_eq!(launches.left(), Vec::<String>::new());
}

#[test]
fn a_second_plan_of_the_same_stage_is_refused_while_the_first_runs() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "slow");
    let output = launches.command(&json!({}), &own("slow")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("works on LaunchDeploy/slow already"),
        "{said}"
    );
    signal(&child, Signal::TERM);
    let first = finish(child);
    assert_eq!(first.code, Some(143), "{}\n{}", first.log, first.said);
    assert_eq!(launches.left(), Vec::<String>::new());
}

#[test]
fn an_abort_at_any_moment_leaves_no_job_and_no_pod() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let rounds: u64 = if tools::is_on("STAGEWRIGHT_FULL") {
        100
    } else {
        10
    };
    for round in 0..rounds {
        let child = launches
            .command(&json!({}), &own("long"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Over the whole life of a launch, in steps that share no divisor with its length.
        std::thread::sleep(Duration::from_millis((round * 617) % 5000));
        signal(
            &child,
            if round % 2 == 0 {
                Signal::TERM
            } else {
                Signal::INT
            },
        );
        let plan = finish(child);
        assert!(
            // None: before the job could catch a signal, and had made anything.
            matches!(plan.code, Some(130 | 143 | 0) | None),
            "{round}: {:?}\n{}\n{}",
            plan.code,
            plan.log,
            plan.said
        );
        assert_eq!(
            launches.left(),
            Vec::<String>::new(),
            "{round}: {}",
            plan.said
        );
    }
}

#[test]
fn a_kill_soon_after_a_term_leaves_nothing_since_the_deletion_was_ordered_first() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "slow");
    signal(&child, Signal::TERM);
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::KILL);
    let killed = finish(child);
    assert!(
        matches!(killed.code, None | Some(143)),
        "{}\n{}",
        killed.log,
        killed.said
    );
    until("the end of what was deleted", || {
        launches.left().is_empty().then_some(())
    });
}

#[test]
fn what_a_killed_job_left_is_removed_by_the_next_one_when_it_has_ended() {
    let Some(launches) = Launches::new() else {
        return;
    };
    let child = launches.start(&json!({}), "long");
    signal(&child, Signal::KILL);
    finish(child);
    assert_ne!(launches.left(), Vec::<String>::new());
    until("a plan after the one that was left", || {
        let output = launches.command(&json!({}), &own("long")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => Some(()),
            Some(3) => {
                assert!(
                    said.contains("works on LaunchDeploy/long already"),
                    "{said}"
                );
                None
            }
            other => panic!("{other:?}: {said}"),
        }
    });
    assert_eq!(launches.left(), Vec::<String>::new());
}
