//! An API server with one pod, whose log it serves as a test says: cut, reset, silent, refused.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use stagewright::cluster::Cluster;
use stagewright::cluster::logs::{Container, Ended, Event, Limits, Log};
use tokio::net::TcpListener;

use crate::kubelet::{Record, Style, serve, text};

/// What becomes of one request for the log, after so many bytes.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Closed(usize),
    Reset(usize),
    Silent(usize),
    /// An answer with this status.
    Refused(u16),
    /// No answer at all.
    Unanswered,
}

/// What becomes of the pod when all fates of its log have come true.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// Its container has ended, and its log is served whole.
    Ended,
    /// There is no such pod.
    Gone,
    /// There is another one of its name.
    Replaced,
    /// It was evicted, and its log has gone.
    Evicted,
    /// It goes on for ever, and so does the last fate.
    TheSame,
}

pub struct Server {
    pub records: Vec<Record>,
    pub fates: VecDeque<Fate>,
    pub after: After,
    /// It is said to be waiting so often.
    pub waiting: usize,
    /// The cluster has given up its node.
    pub doubtful: bool,
    /// The status of an answer about the pod that is refused.
    pub denied: Option<u16>,
    /// The log of an ended container comes so late.
    pub late: Duration,
    /// In pieces of so many bytes.
    pub piece: usize,
}

impl Server {
    pub fn new(records: Vec<Record>, fates: &[Fate], after: After) -> Server {
        Server {
            records,
            fates: fates.iter().copied().collect(),
            after,
            waiting: 0,
            doubtful: false,
            denied: None,
            late: Duration::ZERO,
            piece: 10_000,
        }
    }

    fn pod(&mut self) -> Response<Body> {
        if let Some(status) = self.denied {
            return refusal(status);
        }
        if self.waiting > 0 {
            self.waiting -= 1;
            return pod(
                "u",
                &status(&json!({"waiting": {"reason": "ContainerCreating"}})),
            );
        }
        let mut running = status(&json!({"running": {}}));
        if self.doubtful {
            running["conditions"] = json!([
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
            ]);
        }
        if !self.fates.is_empty() {
            return pod("u", &running);
        }
        let terminated = json!({"terminated": {"exitCode": 3, "message": "m"}});
        match self.after {
            After::Ended => pod("u", &status(&terminated)),
            After::Gone => refusal(404),
            After::Replaced => pod("another", &running),
            After::Evicted => pod(
                "u",
                &json!({"phase": "Failed", "reason": "Evicted", "message": "no room"}),
            ),
            After::TheSame => pod("u", &running),
        }
    }

    fn log(&mut self, since: Option<i64>) -> Response<Body> {
        let fate = match (self.after, self.fates.len()) {
            (After::TheSame, 1) => self.fates.front().copied(),
            _ => self.fates.pop_front(),
        };
        let bytes = serve(&self.records, 0, since, Style::New).bytes;
        let pieces = |count: usize| {
            let bytes = &bytes[..count.min(bytes.len())];
            let pieces: Vec<_> = bytes.chunks(self.piece).map(|c| Ok(c.to_vec())).collect();
            stream::iter(pieces)
        };
        let broken = stream::iter([Err(std::io::Error::other("reset"))]);
        Response::new(match fate {
            None if matches!(self.after, After::Ended) => Body::from_stream(pieces(usize::MAX)),
            None => return refusal(404),
            Some(Fate::Closed(count)) => Body::from_stream(pieces(count)),
            Some(Fate::Reset(count)) => Body::from_stream(pieces(count).chain(broken)),
            Some(Fate::Silent(count)) => Body::from_stream(pieces(count).chain(stream::pending())),
            Some(Fate::Refused(status)) => return refusal(status),
            Some(Fate::Unanswered) => Body::empty(),
        })
    }
}

async fn answer(State(server): State<Arc<Mutex<Server>>>, request: Request) -> Response<Body> {
    let uri = request.uri();
    if !uri.path().ends_with("/log") {
        return server.lock().unwrap().pod();
    }
    let (delay, answer) = {
        let mut server = server.lock().unwrap();
        let delay = match server.fates.front() {
            Some(Fate::Unanswered) => Duration::MAX,
            Some(_) => Duration::ZERO,
            None => server.late,
        };
        (delay, server.log(since(uri.query().unwrap())))
    };
    tokio::time::sleep(delay).await;
    answer
}

/// The second from which on the log is asked for.
pub fn since(query: &str) -> Option<i64> {
    let mut pairs = query.split('&');
    let time = pairs.find_map(|pair| pair.strip_prefix("sinceTime="))?;
    let time: jiff::Timestamp = time.replace("%3A", ":").parse().unwrap();
    Some(time.as_second())
}

fn status(state: &Value) -> Value {
    json!({"phase": "Running", "containerStatuses": [
        {"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state},
    ]})
}

fn pod(uid: &str, status: &Value) -> Response<Body> {
    let pod = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "n", "uid": uid},
        "status": status,
    });
    Response::new(Body::from(pod.to_string()))
}

/// A pod whose container runs.
pub fn running() -> Response<Body> {
    pod("u", &status(&json!({"running": {}})))
}

/// A pod whose container has ended.
pub fn terminated() -> Response<Body> {
    pod("u", &status(&json!({"terminated": {"exitCode": 0}})))
}

fn refusal(status: u16) -> Response<Body> {
    let reason = match status {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "InternalError",
    };
    let words = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
        "reason": reason, "message": "the words of the server",
    });
    let mut refusal = Response::new(Body::from(words.to_string()));
    *refusal.status_mut() = StatusCode::from_u16(status).unwrap();
    refusal
}

/// Serves these, and follows the log of the pod there.
pub async fn follow(router: Router, limits: Limits) -> Log {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let cluster = Cluster::from_config(kube::Config::new(url.parse().unwrap())).unwrap();
    let [namespace, pod, uid, container] = ["n", "p", "u", "c"].map(str::to_owned);
    let container = Container {
        namespace,
        pod,
        uid,
        container,
    };
    Log::follow(&cluster, container, limits)
}

/// What came of a log.
#[derive(Debug)]
pub struct Read {
    pub bytes: Vec<u8>,
    pub silences: Vec<Option<String>>,
    pub ended: Ended,
}

/// Limits so short that what they end is seen within a test, but for the last one.
pub fn limits() -> Limits {
    Limits {
        silence: Duration::from_millis(150),
        look: Duration::from_millis(50),
        reopen: Duration::from_millis(200),
        unreachable: Duration::from_secs(3600),
    }
}

/// Reads to the end of the log that this server has. The bound only ends a test that would hang.
pub async fn read(server: Server, limits: Limits) -> Read {
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::new(Mutex::new(server)));
    let mut log = follow(router, limits).await;
    let (mut bytes, mut silences) = (Vec::new(), Vec::new());
    let reading = async {
        loop {
            match log.next().await.unwrap() {
                Event::Bytes(piece) => bytes.extend(piece),
                Event::Gap(gap) => bytes.extend(format!("<{gap}>").bytes()),
                Event::Silent(_, why) => silences.push(why),
                Event::Ended(ended) => return ended,
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(120), reading)
        .await
        .unwrap();
    Read {
        bytes,
        silences,
        ended,
    }
}

/// Bytes of the stream that a server gives of these.
pub fn served(records: &[Record]) -> usize {
    serve(records, 0, None, Style::New).bytes.len()
}

/// Whether exactly these came.
pub fn came(read: &Read, records: &[Record]) -> bool {
    read.bytes == text(records)
}
