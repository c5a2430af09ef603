//! One writer: again and again it locks a state, reads it, writes it with its own operation added, and gives it back,
//! over HTTP as Terraform does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stagewright::git::Remote;
use stagewright::git::write::Author;
use stagewright::scratch::Scratch;
use stagewright::state_backend::http::{Backend, Serves};
use stagewright::state_backend::lock::{GivenBack, Lock, Taken};
use stagewright::state_backend::provenance::Provenance;
use stagewright::state_backend::recipients::Recipients;
use stagewright::state_backend::session::{Permits, Session};
use stagewright::state_backend::store::Store;
use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;

use crate::client::Client;
use crate::ledger::Ledger;
use crate::random::Random;

/// How many states there are.
const STATES: usize = 20;
/// A run tries so often for what it gives up in the end; presync's own patience is a minute.
const TRIES: usize = 12;

/// The key of a state, and whether it is sealed.
pub fn state(number: usize) -> (String, bool) {
    let key = match number % 2 {
        0 => format!("argocd/Repo{number}/prd/terraform.tfstate"),
        _ => format!("argocd/Monorepo/app{number}/dev/terraform.tfstate"),
    };
    (key, number.is_multiple_of(3))
}

/// What a writer is told on its command line.
pub struct Orders {
    /// `<writer>.<incarnation>`.
    pub name: String,
    pub url: String,
    pub ledger: PathBuf,
    /// Once it is there, the writer ends.
    pub stop: PathBuf,
    pub seed: u64,
}

impl Orders {
    pub fn to_arguments(&self) -> [String; 5] {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        [
            self.name.clone(),
            self.url.clone(),
            path(&self.ledger),
            path(&self.stop),
            self.seed.to_string(),
        ]
    }

    pub fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Orders {
        let mut next = || arguments.next().unwrap();
        Orders {
            name: next(),
            url: next(),
            ledger: next().into(),
            stop: next().into(),
            seed: next().parse().unwrap(),
        }
    }
}

/// Works until it is told to stop.
pub fn main(orders: &Orders) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut ledger = Ledger::open(&orders.ledger);
    let mut random = Random(orders.seed);
    for number in 0.. {
        if orders.stop.exists() {
            break;
        }
        runtime.block_on(operation(orders, number, &mut ledger, &mut random));
    }
    ExitCode::SUCCESS
}

/// Reads these states.
pub fn read_all(url: &str, keys: impl Iterator<Item = String>) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let scratch = Scratch::new().unwrap();
    let mut store = open(url, &scratch, "reader", None);
    for key in keys {
        let read = runtime.block_on(store.read(&key.parse().unwrap()));
        read.unwrap().unwrap();
    }
    ExitCode::SUCCESS
}

pub fn open(url: &str, scratch: &Scratch, name: &str, recipients: Option<Recipients>) -> Store {
    let author = Author {
        name: name.to_owned(),
        email: "writer@example.com".to_owned(),
    };
    let remote = Remote::new(url.parse().unwrap(), None);
    let folder = scratch.path().join("state.git");
    Store::open(
        &remote,
        &"main".parse().unwrap(),
        &folder,
        author,
        recipients,
    )
    .unwrap()
}

/// The lock of one operation.
struct Locking<'a> {
    key: &'a str,
    id: &'a str,
    document: String,
    session: Arc<Mutex<Session>>,
    client: Client,
    /// Whether the run holds the lock, as `presync apply` does, or Terraform, as under `presync backend`.
    by_run: bool,
}

async fn operation(orders: &Orders, number: usize, ledger: &mut Ledger, random: &mut Random) {
    let id = format!("{}-{number}", orders.name);
    // Some states are in greater demand.
    let among = [5, STATES, STATES][random.below(3)];
    let (key, sealed) = state(random.below(among));
    let scratch = Scratch::new().unwrap();
    let recipients = Recipients::from_environment().unwrap();
    let recipients = recipients.filter(|_| sealed);
    let store = open(&orders.url, &scratch, &orders.name, recipients);
    let provenance = Provenance {
        job: Some(id.clone()),
        ..Provenance::default()
    };
    let (events, _lines) = unbounded_channel();
    let session = Session::new(
        store,
        key.parse().unwrap(),
        Permits::default(),
        provenance,
        events,
    );
    let session = Arc::new(Mutex::new(session));
    let backend = Backend::start(Serves::Session(Arc::clone(&session)))
        .await
        .unwrap();
    let locking = Locking {
        key: &key,
        id: &id,
        document: json!({"ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": orders.name, "Version": "1.11.4",
            "Created": jiff::Timestamp::now().to_string(), "Path": ""})
        .to_string(),
        session,
        client: Client::of(&backend.locking_variables()),
        by_run: random.below(2) == 0,
    };
    ledger.note(&["locking", &id, &key]);
    match locking.lock().await {
        Ok(true) => {
            ledger.note(&["locked", &id, &key]);
            locking.write(ledger, 1 + random.below(3) / 2).await;
            ledger.note(&["unlocking", &id, &key]);
            if !locking.unlock().await {
                ledger.note(&["unlock-failed", &id, &key]);
            }
        }
        Ok(false) => ledger.note(&["busy", &id, &key]),
        Err(status) => ledger.note(&["lock-failed", &id, &key, &status.to_string()]),
    }
    ledger.note(&["over", &id, &key]);
}

impl Locking<'_> {
    /// Whether the lock is ours, or the status that tells of neither.
    async fn lock(&self) -> Result<bool, u16> {
        if self.by_run {
            let lock = Lock::parse(self.document.as_bytes()).unwrap();
            return match self.session.lock().await.hold(lock).await {
                Ok(Taken::Ours(_)) => Ok(true),
                Ok(Taken::Others(_)) => Ok(false),
                Err(_) => Err(0),
            };
        }
        match self
            .client
            .ask("LOCK", None, self.document.as_bytes())
            .await
        {
            (200, _) => Ok(true),
            (423, _) => Ok(false),
            (status, _) => Err(status),
        }
    }

    /// Reads the state and writes it as often as said, going on from its own view of it as Terraform does.
    async fn write(&self, ledger: &mut Ledger, times: usize) {
        let mut state: Value = match self.client.ask("GET", None, b"").await {
            (200, body) => serde_json::from_slice(&body).unwrap(),
            (204, _) => {
                json!({"version": 4, "terraform_version": "1.11.4", "serial": 0, "lineage": format!("of-{}", self.id),
                "outputs": {"operations": {"value": [], "type": "string"}}, "resources": [], "check_results": null})
            }
            (status, _) => {
                return ledger.note(&["get-failed", self.id, self.key, &status.to_string()]);
            }
        };
        for time in 0..times {
            let operation = format!("{}/{time}", self.id);
            let serial = state["serial"].as_u64().unwrap() + 1;
            state["serial"] = serial.into();
            let operations = state["outputs"]["operations"]["value"].as_array_mut();
            operations.unwrap().push(operation.clone().into());
            ledger.note(&["intent", &operation, self.key]);
            let body = state.to_string();
            let id = (!self.by_run).then_some(self.id);
            let (status, _) = self.client.ask("POST", id, body.as_bytes()).await;
            let event = match status {
                200 => "written",
                500.. => "failed",
                _ => "refused",
            };
            ledger.note(&[event, &operation, self.key, &status.to_string()]);
        }
        // What the run's end does for a state that could not be written.
        let mut session = self.session.lock().await;
        for _ in 0..TRIES {
            if session.unsaved().is_none() || session.unsaved_for_good() {
                return;
            }
            if session.save_unsaved().await {
                let operation = format!("{}/{}", self.id, times - 1);
                return ledger.note(&["written", &operation, self.key, "later"]);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        ledger.note(&["unsaved", self.id, self.key]);
    }

    async fn unlock(&self) -> bool {
        if !self.by_run {
            let (status, _) = self
                .client
                .ask("UNLOCK", None, self.document.as_bytes())
                .await;
            if status == 200 {
                return true;
            }
        }
        let mut session = self.session.lock().await;
        matches!(
            session.release().await,
            Ok(None | Some(GivenBack::Done | GivenBack::NotLocked))
        )
    }
}
