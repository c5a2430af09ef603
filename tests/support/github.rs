//! A double of GitHub: its REST API, as far as stagewright uses it, over the real bare repositories of one folder, with faults on
//! command. Each request and each answer is held to GitHub's own OpenAPI description; what does not fit it fails the test.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic here fails the test that asked for the double"
)]

#[path = "github/contract.rs"]
pub mod contract;
#[path = "github/faults.rs"]
mod faults;
#[path = "github/objects.rs"]
mod objects;
#[path = "github/routes.rs"]
mod routes;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use contract::Contract;
pub use faults::{Fault, What};
use routes::Call;

/// The account that owns the repositories.
pub const OWNER: &str = "example";
/// The token that is taken.
pub const TOKEN: &str = "github_pat_a-secret-of-the-test";
/// Below this the API lies, as on GitHub Enterprise.
const BASE: &str = "/api/v3";

/// What is true of the account, its repositories and the token.
pub struct Account {
    pub archived: bool,
    pub push: bool,
    /// The scopes of a classic token.
    pub scopes: Option<&'static str>,
    /// Old names, and the new ones.
    pub renamed: BTreeMap<&'static str, &'static str>,
    /// The protection of every branch; `Null`: there is some, and the token may not read it.
    pub protection: Option<Value>,
    pub rules: Vec<Value>,
    /// What the token's account may do about the rules.
    pub bypass: Option<&'static str>,
    /// How many entries a listing of everything below a tree has at most.
    pub listed: usize,
    /// How many refs stand on one page.
    pub page: usize,
    /// What an installation's token may do with files.
    pub contents: &'static str,
}

/// A request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    /// From the API's address on, without the query.
    pub path: String,
    pub query: String,
    pub status: u16,
}

pub struct Shared {
    root: PathBuf,
    /// The address of the API.
    api: String,
    contract: &'static Contract,
    account: Mutex<Account>,
    faults: Mutex<Vec<Fault>>,
    seen: Mutex<Vec<Seen>>,
    offences: Mutex<Vec<String>>,
    /// Where each ref was before it was last moved.
    before: Mutex<BTreeMap<String, String>>,
    /// One ref at a time is moved.
    moving: Mutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// A running double; it stops when dropped, and fails the test when GitHub's description was not kept to.
pub struct GitHub {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GitHub {
    /// Serves `<root>/<name>.git` as `example/<name>`.
    pub fn serve(root: &Path) -> GitHub {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            root: root.canonicalize().unwrap(),
            api: format!("http://{address}{BASE}"),
            contract: Contract::read(),
            account: Mutex::new(Account {
                archived: false,
                push: true,
                scopes: None,
                renamed: BTreeMap::new(),
                protection: None,
                rules: Vec::new(),
                bypass: None,
                listed: 100_000,
                page: usize::MAX,
                contents: "write",
            }),
            faults: Mutex::default(),
            seen: Mutex::default(),
            offences: Mutex::default(),
            before: Mutex::default(),
            moving: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(&shared);
        // A runtime of its own: a test may be in one, or wait for a program.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            let app = Router::new().fallback(answer).with_state(state);
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        GitHub {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The address of the API.
    pub fn api(&self) -> String {
        self.shared.api.clone()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what is true of the account.
    pub fn change(&self, change: impl FnOnce(&mut Account)) {
        change(&mut locked(&self.shared.account));
    }

    /// The next requests that fit get this fault; of several that fit the first one counts.
    pub fn fault(&self, fault: Fault) {
        locked(&self.shared.faults).push(fault);
    }

    /// The requests since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *locked(&self.shared.seen))
    }

    /// What did not keep to GitHub's description since the last call.
    pub fn offences(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.shared.offences))
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        if !std::thread::panicking() {
            let offences = self.offences();
            assert!(offences.is_empty(), "{}", offences.join("\n"));
        }
    }
}

/// A request, taken apart.
pub struct Asked {
    pub method: Method,
    /// From the API's address on.
    pub path: String,
    pub query: String,
    pub raw: bool,
    pub authorization: String,
    pub body: Option<Value>,
}

/// What goes back.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub content: Content,
}

pub enum Content {
    Json(Value),
    Raw(Vec<u8>),
    None,
}

impl Reply {
    pub fn json(status: u16, value: Value) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            content: Content::Json(value),
        }
    }

    /// A refusal as GitHub words them.
    pub fn refusal(status: u16, message: &str) -> Reply {
        let value = serde_json::json!({
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": status.to_string(),
        });
        Reply::json(status, value)
    }

    fn into_response(self) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        let (kind, body) = match self.content {
            Content::Json(value) => ("application/json; charset=utf-8", value.to_string().into()),
            Content::Raw(bytes) => ("application/vnd.github.raw", bytes),
            Content::None => ("text/plain", Vec::new()),
        };
        response
            .header("content-type", kind)
            .body(Body::from(body))
            .unwrap()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let text = |name: &str| {
        let value = head.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let path = head.uri.path();
    let asked = Asked {
        method: head.method.clone(),
        path: path.strip_prefix(BASE).unwrap_or(path).to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        raw: text("accept").contains("raw"),
        authorization: text("authorization"),
        body: serde_json::from_slice(&body).ok(),
    };
    for (header, wanted) in [
        ("x-github-api-version", "2022-11-28"),
        ("user-agent", "stagewright/"),
    ] {
        if !text(header).starts_with(wanted) {
            locked(&shared.offences).push(format!("{}: no header {header}: {wanted}", asked.path));
        }
    }
    let fault = faults::taken(&mut locked(&shared.faults), &asked);
    let Some(call) = Call::of(&asked) else {
        let offence = format!("{} {} is no route that is used", asked.method, asked.path);
        locked(&shared.offences).push(offence);
        return Reply::refusal(404, "Not Found").into_response();
    };
    let worker = Arc::clone(&shared);
    // Repositories are read while other requests are answered.
    let carried = tokio::task::spawn_blocking(move || {
        let reply = match &fault {
            Some(what) => what.reply(&worker, &asked, &call),
            None => call.carry_out(&worker, &asked),
        };
        let offences = worker.contract.offences(call.template(), &asked, &reply);
        locked(&worker.offences).extend(offences);
        locked(&worker.seen).push(Seen {
            method: asked.method.to_string(),
            path: asked.path.clone(),
            query: asked.query.clone(),
            status: reply.status,
        });
        (fault, reply)
    });
    let (fault, reply) = carried.await.unwrap();
    match fault {
        Some(What::Slow(time)) => {
            tokio::time::sleep(time).await;
            reply.into_response()
        }
        Some(What::Cut | What::CutAfter) => faults::cut(),
        _ => reply.into_response(),
    }
}
