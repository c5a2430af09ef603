//! The requests of the reattach, against a double of the API server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/volumes_api.rs"]
mod volumes_api;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use stagewright::cluster::Cluster;
use stagewright::presync::log::Log;
use stagewright::presync::volumes::{VolumesError, reattach_in};
use stagewright::report::one_line;
use volumes_api::{Api, Change, VolumesApi};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reattaches for pgadmin-prd, and gives the log with the end.
async fn run(cluster: &Cluster) -> (String, Result<(), VolumesError>) {
    let lines = Lines::default();
    let mut log = Log::to(Box::new(lines.clone()));
    let namespace = "pgadmin-prd".parse().unwrap();
    let end = reattach_in(cluster, &namespace, &mut log).await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    (text, end)
}

fn test(api: Api, work: impl AsyncFnOnce(VolumesApi, Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (server, cluster) = VolumesApi::serve(api).await;
        work(server, cluster).await;
    });
}

/// A volume with this phase, of the claim pgadmin-prd/data.
fn volume(name: &str, phase: &str) -> Value {
    json!({
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": "pgadmin-prd",
                "name": "data",
                "uid": "3f0a",
                "resourceVersion": "5",
            },
        },
        "status": {"phase": phase},
    })
}

fn of_claim(mut volume: Value, claim: &str) -> Value {
    volume["spec"]["claimRef"]["name"] = claim.into();
    volume
}

fn of_namespace(mut volume: Value, namespace: &str) -> Value {
    volume["spec"]["claimRef"]["namespace"] = namespace.into();
    volume
}

#[test]
fn released_volumes_of_every_page_are_reattached_and_a_second_run_changes_nothing() {
    let mut volumes: Vec<Value> = (0..1001)
        .map(|number| {
            of_namespace(
                volume(&format!("other-{number}"), "Released"),
                "grafana-prd",
            )
        })
        .collect();
    volumes[0] = of_claim(volume("first", "Released"), "logs");
    volumes[700] = volume("bound", "Bound");
    volumes[1000] = volume("last", "Released");
    let api = Api {
        volumes,
        ..Api::default()
    };
    test(api, async |server, cluster| {
        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: PersistentVolume first: reattached, the claim pgadmin-prd/logs can bind it again\n\
             presync: PersistentVolume last: reattached, the claim pgadmin-prd/data can bind it again\n"
        );
        assert_eq!(
            server.api().requests,
            [
                "GET &limit=500",
                "GET &limit=500&continue=500",
                "GET &limit=500&continue=1000",
                "PATCH /api/v1/persistentvolumes/first",
                "PATCH /api/v1/persistentvolumes/last",
            ]
        );
        assert_eq!(
            server.volume("last")["spec"]["claimRef"],
            json!({
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": "pgadmin-prd",
                "name": "data",
            })
        );
        assert_eq!(server.volume("bound"), volume("bound", "Bound"));

        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: no PersistentVolume of the namespace pgadmin-prd is to be reattached\n"
        );
        assert_eq!(server.patches(), 2);
    });
}

#[test]
fn two_volumes_of_one_claim_are_reattached_with_a_warning() {
    let api = Api {
        volumes: ["old", "new"].map(|name| volume(name, "Released")).into(),
        ..Api::default()
    };
    test(api, async |_, cluster| {
        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: warning: more than one PersistentVolume is Released by the claim pgadmin-prd/data, which may bind any of them: old, new\n\
             presync: PersistentVolume old: reattached, the claim pgadmin-prd/data can bind it again\n\
             presync: PersistentVolume new: reattached, the claim pgadmin-prd/data can bind it again\n"
        );
    });
}

#[test]
fn a_volume_that_is_not_retained_is_named_and_stays_as_it_is() {
    let mut deleted = volume("scratch", "Released");
    deleted["spec"]["persistentVolumeReclaimPolicy"] = "Delete".into();
    let api = Api {
        volumes: vec![deleted.clone()],
        ..Api::default()
    };
    test(api, async |server, cluster| {
        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: warning: PersistentVolume scratch: not reattached to the claim pgadmin-prd/data, its reclaim policy is Delete: set persistentVolumeReclaimPolicy to Retain first\n"
        );
        assert_eq!(server.volume("scratch"), deleted);
        assert_eq!(server.patches(), 0);
    });
}

const TOUCH: Change = |volume| volume["metadata"]["annotations"] = json!({"touched": "by another"});

fn conflicts(changes: &[Change]) -> Api {
    Api {
        volumes: vec![volume("data", "Released")],
        changes: changes.to_vec(),
        ..Api::default()
    }
}

#[test]
fn a_volume_that_others_change_is_read_again_and_reattached() {
    test(conflicts(&[TOUCH; 4]), async |server, cluster| {
        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: PersistentVolume data: reattached, the claim pgadmin-prd/data can bind it again\n"
        );
        assert_eq!(server.patches(), 5);
        assert_eq!(
            server.volume("data")["metadata"]["annotations"],
            json!({"touched": "by another"})
        );
    });
}

#[test]
fn a_volume_that_others_never_leave_alone_ends_the_tries() {
    test(conflicts(&[TOUCH; 9]), async |server, cluster| {
        let (log, end) = run(&cluster).await;
        assert_eq!(log, "");
        assert!(matches!(end, Err(VolumesError::Contended { volume }) if volume == "data"));
        assert_eq!(server.patches(), 5);
        assert_eq!(server.volume("data")["spec"]["claimRef"]["uid"], "3f0a");
    });
}

#[test]
fn a_volume_that_was_bound_or_reserved_for_another_meanwhile_is_left_to_its_new_claim() {
    let changes: [Change; 2] = [
        |volume| volume["status"]["phase"] = "Bound".into(),
        |volume| volume["spec"]["claimRef"]["namespace"] = "grafana-prd".into(),
    ];
    for change in changes {
        test(conflicts(&[change]), async |server, cluster| {
            let (log, end) = run(&cluster).await;
            end.unwrap();
            assert_eq!(
                log,
                "presync: PersistentVolume data: needs no reattach any more, others changed it meanwhile\n"
            );
            assert_eq!(server.patches(), 1);
            assert_eq!(server.volume("data")["spec"]["claimRef"]["uid"], "3f0a");
        });
    }
}

#[test]
fn a_volume_that_is_gone_is_no_fault() {
    test(
        conflicts(&[|volume| *volume = Value::Null]),
        async |_, cluster| {
            let (log, end) = run(&cluster).await;
            end.unwrap();
            assert_eq!(
                log,
                "presync: PersistentVolume data: not reattached, it is gone\n"
            );
        },
    );
}

#[test]
fn a_refusal_says_which_rights_would_lift_it() {
    let of_volume = Some("data");
    for (method, name, verb) in [
        (Method::GET, None, "list"),
        (Method::PATCH, of_volume, "patch"),
        (Method::GET, of_volume, "get"),
    ] {
        let mut api = conflicts(&[TOUCH]);
        api.refusals = vec![(method, name, StatusCode::FORBIDDEN)];
        test(api, async |_, cluster| {
            let (log, end) = run(&cluster).await;
            assert_eq!(log, "");
            assert_eq!(
                one_line(&end.unwrap_err()),
                format!(
                    "the service account may not {verb} PersistentVolumes, so not all were reattached: it needs a ClusterRole with the verbs get, list and patch on persistentvolumes, by a ClusterRoleBinding: the Kubernetes API answered 403: the double says 403"
                )
            );
        });
    }
}

fn two_pages(expired: usize) -> Api {
    let mut volumes: Vec<Value> = (0..501)
        .map(|number| volume(&format!("bound-{number}"), "Bound"))
        .collect();
    volumes[0] = of_claim(volume("first", "Released"), "logs");
    volumes[500] = volume("last", "Released");
    Api {
        volumes,
        expired,
        ..Api::default()
    }
}

#[test]
fn a_list_that_the_server_forgets_half_way_is_begun_anew() {
    test(two_pages(2), async |server, cluster| {
        let (log, end) = run(&cluster).await;
        end.unwrap();
        assert_eq!(
            log,
            "presync: PersistentVolume first: reattached, the claim pgadmin-prd/logs can bind it again\n\
             presync: PersistentVolume last: reattached, the claim pgadmin-prd/data can bind it again\n"
        );
        assert_eq!(server.patches(), 2);
    });
}

#[test]
fn a_list_that_is_forgotten_every_time_reattaches_nothing() {
    test(two_pages(99), async |server, cluster| {
        let (log, end) = run(&cluster).await;
        assert_eq!(log, "");
        assert_eq!(
            one_line(&end.unwrap_err()),
            "the PersistentVolumes could not be listed, so none was reattached: the Kubernetes API forgot the rest of a list before it was read, 5 times over"
        );
        assert_eq!(server.patches(), 0);
        assert_eq!(server.api().requests.len(), 10);
    });
}

#[test]
fn one_volume_that_cannot_be_patched_does_not_keep_the_others() {
    let api = Api {
        volumes: ["a", "b", "c"]
            .map(|name| of_claim(volume(name, "Released"), name))
            .into(),
        refusals: ["a", "b"]
            .map(|name| (Method::PATCH, Some(name), StatusCode::UNPROCESSABLE_ENTITY))
            .into(),
        ..Api::default()
    };
    test(api, async |_, cluster| {
        let (log, end) = run(&cluster).await;
        assert_eq!(
            log,
            "presync: the PersistentVolume a could not be reattached: the Kubernetes API answered 422: the double says 422\n\
             presync: PersistentVolume c: reattached, the claim pgadmin-prd/c can bind it again\n"
        );
        assert_eq!(
            one_line(&end.unwrap_err()),
            "the PersistentVolume b could not be reattached: the Kubernetes API answered 422: the double says 422"
        );
    });
}
