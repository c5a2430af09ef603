//! A holder is killed, its lock is given back for it, the next one has read the state: and only then the server gets the
//! push that the dead one had sent.

use serde_json::json;
use stagewright::names::StateKey;
use stagewright::scratch::Scratch;
use stagewright::state_backend::provenance::Provenance;
use stagewright::state_backend::session::{Answer, Permits, Session};
use stagewright::state_backend::store::Store;
use tokio::sync::mpsc::unbounded_channel;

use crate::repositories::repository;
use crate::writer::open;

const KEY: &str = "argocd/FieldnotesDeploy/prd/terraform.tfstate";

fn state(serial: u64, by: &str) -> Vec<u8> {
    json!({"version": 4, "serial": serial, "lineage": "one", "outputs": {"by": {"value": by}}})
        .to_string()
        .into_bytes()
}

async fn holder(store: Store, key: &StateKey) -> Session {
    let (events, _lines) = unbounded_channel();
    let (permits, provenance) = (Permits::default(), Provenance::default());
    let mut session = Session::new(store, key.clone(), permits, provenance, events);
    assert_eq!(session.lock(br#"{"ID": "next"}"#).await, Answer::Done);
    session
}

pub fn check() -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let first = String::from_utf8(state(1, "first")).unwrap();
    repository(&folder.path().join("state.git"), "main", &[(KEY, &first)]);
    let url = format!("file://{}/state.git", folder.path().display());
    let key: StateKey = KEY.parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (of_next, of_dead) = (Scratch::new().unwrap(), Scratch::new().unwrap());
    runtime.block_on(async {
        let mut next = holder(open(&url, &of_next, "next", None), &key).await;
        assert_eq!(next.get().await, Answer::State(first.into_bytes()));
        let mut dead = open(&url, &of_dead, "dead", None);
        let pushed = dead
            .write(&key, &state(2, "dead"), "Update", |_| Ok(()))
            .await;
        pushed.unwrap();
        // Terraform counts its serial on after a write that was refused.
        for serial in [2, 3] {
            let answer = next.post(Some("next"), &state(serial, "next")).await;
            if !matches!(answer, Answer::Refused(_)) {
                return Err(format!("serial {serial}: {answer:?}"));
            }
        }
        // It goes on once it has read what is there, and from one write of its own to the next.
        assert_eq!(next.get().await, Answer::State(state(2, "dead")));
        for serial in [3, 4] {
            let answer = next.post(Some("next"), &state(serial, "next")).await;
            assert_eq!(answer, Answer::Done, "{serial}");
        }
        Ok(())
    })
}
