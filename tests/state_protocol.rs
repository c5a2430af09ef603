//! The state backend's HTTP protocol, request by request, in front of a state repository in a folder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[expect(dead_code, reason = "nothing is run here")]
#[path = "support/bench.rs"]
mod bench;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bench::{Bench, KEY};
use stagewright::git::Remote;
use stagewright::git::write::Author;
use stagewright::state_backend::http::{Backend, Serves};
use stagewright::state_backend::provenance::Provenance;
use stagewright::state_backend::session::{Permits, Session};
use stagewright::state_backend::store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const LINEAGE: &str = "5f1c9d7a-8d57-4b0e-9a3b-0c9d0e6f4a11";
/// A lock as Terraform asks for it, and another's.
const OURS: &str = r#"{"ID":"ours-1","Operation":"OperationTypeApply","Info":"","Who":"bob@desk","Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":""}"#;
const THEIRS: &str = r#"{"ID":"theirs-1","Operation":"OperationTypeApply","Info":"","Who":"ada@laptop","Version":"1.11.4","Created":"2026-01-01T03:04:05Z","Path":""}"#;

/// A backend over a bench's repository.
struct Wire {
    bench: Bench,
    backend: Backend,
    address: String,
    lines: UnboundedReceiver<String>,
}

impl Wire {
    async fn new() -> Wire {
        Wire::with(Permits::default()).await
    }

    async fn with(permits: Permits) -> Wire {
        let bench = Bench::new("");
        let (backend, address, lines) = serve(&bench, "clone.git", permits).await;
        Wire {
            bench,
            backend,
            address,
            lines,
        }
    }

    /// One more backend over the same repository, as another machine would have it.
    async fn beside(&self, clone: &str) -> (Backend, String) {
        let (backend, address, _) = serve(&self.bench, clone, Permits::default()).await;
        (backend, address)
    }

    fn head(&self, method: &str, query: &str, length: usize, more: &str) -> String {
        head(&self.backend, method, query, length, more)
    }

    /// The status and the body of the answer.
    async fn ask_with(&self, method: &str, query: &str, body: &str, more: &str) -> (u16, String) {
        let request = self.head(method, query, body.len(), more) + body;
        answer(&self.address, &request).await
    }

    async fn ask(&self, method: &str, query: &str, body: &str) -> (u16, String) {
        self.ask_with(method, query, body, "").await
    }

    async fn status(&self, method: &str, query: &str, body: &str) -> u16 {
        self.ask(method, query, body).await.0
    }

    /// What the backend has said since the last time.
    fn said(&mut self) -> String {
        let mut said = String::new();
        while let Ok(line) = self.lines.try_recv() {
            said.push_str(&line);
            said.push('\n');
        }
        said
    }

    fn is_locked(&self) -> bool {
        !self.bench.locks().is_empty()
    }
}

/// A backend over the bench's repository, where it listens, and what it has to say.
async fn serve(
    bench: &Bench,
    clone: &str,
    permits: Permits,
) -> (Backend, String, UnboundedReceiver<String>) {
    let url = format!("file://{}", bench.states().display());
    let author = Author {
        name: "Bob".to_owned(),
        email: "bob@example.com".to_owned(),
    };
    let store = Store::open(
        &Remote::new(url.parse().unwrap(), None),
        &"main".parse().unwrap(),
        &bench.path().join(clone),
        author,
        None,
    )
    .unwrap();
    let (events, lines) = unbounded_channel();
    let key = KEY.parse().unwrap();
    let session = Session::new(store, key, permits, Provenance::default(), events);
    let session = Arc::new(Mutex::new(session));
    let backend = Backend::start(Serves::Session(session)).await.unwrap();
    let variables = backend.variables();
    let address = variables.iter().find(|(name, _)| name == "TF_HTTP_ADDRESS");
    let address = address.unwrap().1.to_str().unwrap();
    let address = address.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/state").unwrap().to_owned();
    (backend, address, lines)
}

fn head(backend: &Backend, method: &str, query: &str, length: usize, more: &str) -> String {
    let user = STANDARD.encode(format!("stagewright:{}", backend.password()));
    format!(
        "{method} /state{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n"
    )
}

/// The status and the body of the answer to a request.
async fn answer(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn state(lineage: &str, serial: u64, rest: &str) -> String {
    format!(r#"{{"version":4,"serial":{serial},"lineage":"{lineage}","outputs":{{}}{rest}}}"#)
}

fn id_of(lock: &str) -> String {
    let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
    lock["ID"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_state_is_written_only_by_whoever_names_the_standing_lock() {
    let wire = Wire::new().await;
    let first = state(LINEAGE, 1, "");
    assert_eq!(wire.status("POST", "", &first).await, 428);
    assert_eq!(wire.status("POST", "?ID=ours-1", &first).await, 428);
    assert_eq!(wire.status("DELETE", "", "").await, 428);
    wire.bench.lock(KEY, THEIRS);
    for query in ["", "?ID=ours-1", "?ID="] {
        let (status, body) = wire.ask("POST", query, &first).await;
        assert_eq!(status, 423);
        assert_eq!(id_of(&body), "theirs-1");
    }
    assert_eq!(wire.status("DELETE", "", "").await, 423);
    assert_eq!(wire.bench.commits(), 1);
    assert_eq!(wire.status("POST", "?ID=theirs-1", &first).await, 200);
    assert_eq!(wire.bench.kept(), first);
}

#[tokio::test]
async fn a_lock_that_is_asked_for_twice_is_one_lock() {
    let wire = Wire::new().await;
    assert_eq!(wire.status("LOCK", "", OURS).await, 200);
    assert_eq!(wire.status("LOCK", "", OURS).await, 200);
    let (status, body) = wire.ask("LOCK", "", THEIRS).await;
    assert_eq!(status, 423);
    let lock: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(lock["ID"], "ours-1");
    assert_eq!(lock["Who"], "bob@desk");
    assert_eq!(lock["Created"], "2026-01-02T03:04:05Z");
    assert_eq!(wire.bench.locks(), [format!("locks/{KEY}")]);
    assert_eq!(wire.status("UNLOCK", "", OURS).await, 200);
    assert_eq!(wire.status("UNLOCK", "", OURS).await, 200);
    assert!(!wire.is_locked());
    // An answer that got lost a while ago: another commit, the same lock.
    wire.bench.lock(KEY, OURS);
    assert_eq!(wire.status("LOCK", "", OURS).await, 200);
    assert_eq!(wire.status("UNLOCK", "", OURS).await, 200);
    assert!(!wire.is_locked());
}

#[tokio::test]
async fn of_many_that_ask_at_once_one_has_the_lock_and_the_others_are_told_which() {
    let first = Wire::new().await;
    let mut backends = Vec::new();
    for number in 0..6 {
        backends.push(first.beside(&format!("clone-{number}.git")).await);
    }
    let mut asked = tokio::task::JoinSet::new();
    for (number, (backend, address)) in backends.iter().enumerate() {
        let body = format!(r#"{{"ID":"id-{number}","Who":"somebody"}}"#);
        let request = head(backend, "LOCK", "", body.len(), "") + &body;
        let address = address.clone();
        asked.spawn(async move { answer(&address, &request).await });
    }
    let mut ids = Vec::new();
    for (status, body) in asked.join_all().await {
        match status {
            200 => {}
            423 => ids.push(id_of(&body)),
            other => assert_eq!(other, 423, "{body}"),
        }
    }
    let lock = first
        .bench
        .git(&["show", &format!("locks/{KEY}:{KEY}.lock")]);
    assert_eq!(ids, vec![id_of(&lock); 5]);
}

#[tokio::test]
async fn what_is_no_lock_takes_none() {
    let wire = Wire::new().await;
    for body in ["", "{}", "[]", r#"{"ID":""}"#, r#"{"ID":"a b"}"#] {
        assert_eq!(wire.status("LOCK", "", body).await, 400, "{body}");
    }
    assert!(!wire.is_locked());
    assert_eq!(wire.status("PATCH", "", "").await, 400);
}

#[tokio::test]
async fn a_lock_is_given_back_by_its_id_alone() {
    let mut wire = Wire::new().await;
    assert_eq!(wire.status("UNLOCK", "", "").await, 409);
    wire.bench.lock(KEY, THEIRS);
    wire.said();
    assert_eq!(wire.status("UNLOCK", "", "").await, 409);
    let said = wire.said();
    for words in [
        format!("presync unlock {KEY} --lock-id theirs-1"),
        format!(
            "presync backend {KEY} --allow-unlock theirs-1 -- terraform force-unlock -force theirs-1"
        ),
        "by ada@laptop".to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    for (query, body) in [("?ID=other", ""), ("", OURS)] {
        let (status, body) = wire.ask("UNLOCK", query, body).await;
        assert_eq!(status, 423);
        assert_eq!(id_of(&body), "theirs-1");
    }
    assert!(wire.is_locked());
    assert_eq!(wire.status("UNLOCK", "?ID=theirs-1", "").await, 200);
    assert!(!wire.is_locked());
}

#[tokio::test]
async fn a_permitted_unlock_releases_the_named_lock_and_no_other() {
    for (permitted, expected) in [("theirs-1", 200), ("other", 423)] {
        let permits = Permits {
            unlock: Some(permitted.parse().unwrap()),
            overwrite: false,
        };
        let wire = Wire::with(permits).await;
        wire.bench.lock(KEY, THEIRS);
        assert_eq!(wire.status("UNLOCK", "", "").await, expected);
        assert_eq!(wire.is_locked(), expected != 200);
    }
}

#[tokio::test]
async fn a_lock_that_another_has_taken_meanwhile_stays_theirs() {
    let wire = Wire::new().await;
    assert_eq!(wire.status("LOCK", "", OURS).await, 200);
    let branch = format!("refs/heads/locks/{KEY}");
    wire.bench.git(&["update-ref", "-d", &branch]);
    wire.bench.lock(KEY, THEIRS);
    let there = wire.bench.git(&["rev-parse", &branch]);
    assert_eq!(
        wire.status("POST", "?ID=ours-1", &state(LINEAGE, 1, ""))
            .await,
        423
    );
    let (status, body) = wire.ask("UNLOCK", "", OURS).await;
    assert_eq!(status, 423);
    assert_eq!(id_of(&body), "theirs-1");
    assert_eq!(wire.bench.git(&["rev-parse", &branch]), there);
    assert_eq!(wire.bench.commits(), 1);
}

#[tokio::test]
async fn a_state_follows_only_on_its_own_lineage_and_a_lower_serial() {
    for (kept, next, follows) in [
        ((LINEAGE, 7), (LINEAGE, 8), true),
        ((LINEAGE, 7), (LINEAGE, 6), false),
        ((LINEAGE, 7), (LINEAGE, 7), false),
        ((LINEAGE, 7), ("other", 8), false),
        ((LINEAGE, 7), ("", 8), false),
        (("", 7), (LINEAGE, 8), false),
        (("", 7), ("", 7), false),
        (("", 7), ("", 8), true),
    ] {
        let kept = state(kept.0, kept.1, "");
        let next = state(next.0, next.1, r#","more":1"#);
        for overwrite in [false, true] {
            let permits = Permits {
                unlock: None,
                overwrite,
            };
            let mut wire = Wire::with(permits).await;
            wire.bench.put_state(&kept);
            wire.status("LOCK", "", OURS).await;
            let expected = if follows || overwrite { 200 } else { 409 };
            let status = wire.status("POST", "?ID=ours-1", &next).await;
            assert_eq!(status, expected, "{kept} {next} {overwrite}");
            let (now, said) = (wire.bench.kept(), wire.said());
            assert_eq!(now, if expected == 200 { &next } else { &kept }.as_str());
            assert_eq!(
                said.contains("--allow-overwrite"),
                expected == 409,
                "{said}"
            );
        }
    }
}

#[tokio::test]
async fn the_same_state_again_is_no_second_commit() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    let first = state(LINEAGE, 1, "");
    for again in [&first, &first, &first.replace(':', ": ")] {
        assert_eq!(wire.status("POST", "?ID=ours-1", again).await, 200);
    }
    assert_eq!(wire.bench.commits(), 2);
}

#[tokio::test]
async fn a_plain_state_is_kept_and_given_byte_for_byte() {
    let wire = Wire::new().await;
    assert_eq!(wire.ask("GET", "", "").await, (204, String::new()));
    wire.status("LOCK", "", OURS).await;
    let odd = "{\n\t\"lineage\" : \"x\" ,\"serial\":1,\"n\":[9007199254740993,18446744073709551615,1e400,0.10,-0],\"e\":\"\",\"\":\"\\u00e4<&\"}\n\n";
    assert_eq!(wire.status("POST", "?ID=ours-1", odd).await, 200);
    assert_eq!(wire.bench.kept(), odd);
    assert_eq!(wire.ask("GET", "", "").await, (200, odd.to_owned()));
    let by_opentofu = r#"{"serial":2,"lineage":"x","meta":{"key_provider.pbkdf2.k":"e30="},"encrypted_data":"AAAA","encryption_version":"v0"}"#;
    assert_eq!(wire.status("POST", "?ID=ours-1", by_opentofu).await, 200);
    assert_eq!(wire.bench.kept(), by_opentofu);
}

#[tokio::test]
async fn what_is_no_state_is_not_written() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    for body in [
        "",
        "null",
        "[]",
        "not JSON",
        "{}",
        r#"{"serial":-1}"#,
        r#"{"serial":"1"}"#,
    ] {
        assert_eq!(wire.status("POST", "?ID=ours-1", body).await, 409, "{body}");
    }
    assert_eq!(wire.bench.commits(), 1);
}

#[tokio::test]
async fn a_body_that_is_not_what_its_sum_says_is_not_written() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    let body = r#"{"serial":1,"lineage":"x"}"#;
    for (sum, expected) in [
        ("AAAAAAAAAAAAAAAAAAAAAA==", 400),
        ("", 400),
        ("SDIkDZwgDD6dc6KADznKUA==", 200),
    ] {
        let more = format!("Content-MD5: {sum}\r\n");
        let (status, _) = wire.ask_with("POST", "?ID=ours-1", body, &more).await;
        assert_eq!(status, expected, "{sum:?}");
        assert_eq!(wire.bench.commits(), if expected == 200 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_body_that_is_cut_short_is_not_written() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    let body = state(LINEAGE, 1, "");
    let head = wire.head("POST", "?ID=ours-1", body.len() + 1, "");
    let mut stream = TcpStream::connect(&wire.address).await.unwrap();
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Requests are answered one after the other, so nothing of that one is under way any more.
    assert_eq!(wire.status("GET", "", "").await, 204);
    assert_eq!(wire.bench.commits(), 1);
}

#[tokio::test]
async fn what_others_write_while_a_state_is_worked_on_is_kept() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    wire.status("GET", "", "").await;
    let other = "argocd/Other/prd/terraform.tfstate";
    wire.bench
        .commit("main", "Update other", Some("main"), other, "{}");
    let first = state(LINEAGE, 1, "");
    assert_eq!(wire.status("POST", "?ID=ours-1", &first).await, 200);
    assert_eq!(wire.bench.kept(), first);
    assert_eq!(wire.bench.git(&["show", &format!("main:{other}")]), "{}");
    assert_eq!(wire.bench.commits(), 3);
    assert_eq!(wire.status("UNLOCK", "", OURS).await, 200);
}

#[tokio::test]
async fn a_deleted_state_is_gone_with_nothing_else() {
    let wire = Wire::new().await;
    wire.status("LOCK", "", OURS).await;
    let first = state(LINEAGE, 1, "");
    wire.status("POST", "?ID=ours-1", &first).await;
    assert_eq!(wire.status("DELETE", "", "").await, 200);
    assert_eq!(wire.status("DELETE", "", "").await, 200);
    assert_eq!(wire.status("GET", "", "").await, 204);
    assert_eq!(
        wire.bench.git(&["ls-tree", "-r", "--name-only", "main"]),
        "README.md\n"
    );
}
