//! A container's log followed over an API server that cuts, hangs and fails.
#![expect(
    clippy::unwrap_used,
    clippy::unreachable,
    reason = "a panic is how a test fails"
)]

#[path = "support/kubelet.rs"]
mod kubelet;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use kubelet::{EPOCH, Record, Style, records, serve, text};
use serde_json::{Value, json};
use stagewright::cluster::Cluster;
use stagewright::cluster::logs::reassemble::Tail;
use stagewright::cluster::logs::{Container, End, Ended, Event, Limits, Log};
use tokio::net::TcpListener;

/// What becomes of one request for the log, after so many bytes.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Closed(usize),
    Reset(usize),
    Silent(usize),
    Refused,
}

struct Server {
    records: Vec<Record>,
    /// One for each request; behind them the pod has ended, and the log is served whole.
    fates: Vec<Fate>,
    asked: usize,
    waiting: usize,
}

type Shared = Arc<Mutex<Server>>;

async fn answer(State(server): State<Shared>, request: Request) -> Response<Body> {
    let mut server = server.lock().unwrap();
    let uri = request.uri();
    if !uri.path().ends_with("/log") {
        if server.waiting > 0 {
            server.waiting -= 1;
            return object(&pod(&json!({"waiting": {"reason": "ContainerCreating"}})));
        }
        let running = server.asked < server.fates.len();
        let ended = json!({"terminated": {"exitCode": 3, "message": "m"}});
        return object(&pod(&if running {
            json!({"running": {}})
        } else {
            ended
        }));
    }
    let query = uri.query().unwrap();
    let since = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("sinceTime="));
    let since = since.map(|time| {
        let time = time.replace("%3A", ":");
        time.parse::<jiff::Timestamp>().unwrap().as_second()
    });
    let bytes = serve(&server.records, 0, since, Style::New).bytes;
    let fate = server.fates.get(server.asked).copied();
    server.asked += 1;
    let pieces = |count: usize| {
        let bytes = bytes[..count.min(bytes.len())].to_vec();
        let pieces: Vec<_> = bytes.chunks(10_000).map(|c| Ok(c.to_vec())).collect();
        stream::iter(pieces)
    };
    let broken = stream::iter([Err(std::io::Error::other("reset"))]);
    Response::new(match fate {
        None => Body::from_stream(pieces(usize::MAX)),
        Some(Fate::Closed(count)) => Body::from_stream(pieces(count)),
        Some(Fate::Reset(count)) => Body::from_stream(pieces(count).chain(broken)),
        Some(Fate::Silent(count)) => Body::from_stream(pieces(count).chain(stream::pending())),
        Some(Fate::Refused) => {
            let mut refused = Response::new(Body::from("no"));
            *refused.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return refused;
        }
    })
}

fn pod(state: &Value) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state},
        ]},
    })
}

fn object(value: &Value) -> Response<Body> {
    Response::new(Body::from(value.to_string()))
}

/// Follows the log that this server has; gives what came, the silences, and the end.
async fn follow(server: Server) -> (Vec<u8>, Vec<Option<String>>, Ended) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::new(Mutex::new(server)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let cluster = Cluster::from_config(kube::Config::new(url.parse().unwrap())).unwrap();
    let names = ["n", "p", "u", "c"].map(str::to_owned);
    let [namespace, pod, uid, container] = names;
    let limits = Limits {
        silence: Duration::from_millis(150),
        look: Duration::from_millis(50),
        reopen: Duration::from_millis(200),
        unreachable: Duration::from_secs(20),
    };
    let container = Container {
        namespace,
        pod,
        uid,
        container,
    };
    let mut log = Log::follow(&cluster, container, limits);
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
    let ended = tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .unwrap();
    (bytes, silences, ended)
}

fn lines(count: i64) -> Vec<Record> {
    let line = |n: i64| (EPOCH + n * 10_000_000, format!("line {n}\n").into_bytes());
    records(&(0..count).map(line).collect::<Vec<_>>(), 0)
}

#[tokio::test]
async fn a_log_that_is_cut_reset_refused_and_silent_comes_once_and_in_order() {
    let runs = if std::env::var_os("STAGEWRIGHT_FULL").is_some() {
        200
    } else {
        20
    };
    let all = (0..runs).map(async |run: usize| {
        let at = |n: usize| run * 977 + n * 7919;
        let fates = vec![
            Fate::Closed(0),
            Fate::Reset(at(1)),
            Fate::Refused,
            Fate::Silent(at(2)),
            Fate::Closed(at(3)),
            Fate::Reset(at(4)),
        ];
        let records = lines(2000);
        let expected = text(&records);
        let (bytes, _, ended) = follow(Server {
            records,
            fates,
            asked: 0,
            waiting: 2,
        })
        .await;
        assert!(
            bytes == expected,
            "run {run}: {} of {} bytes",
            bytes.len(),
            expected.len()
        );
        assert_eq!(ended.tail, Tail::Seen);
        assert_eq!((ended.delivered.lines, ended.delivered.gaps), (2000, 0));
        let End::Terminated(terminated) = ended.end else {
            unreachable!("{:?}", ended.end);
        };
        assert_eq!(
            (terminated.exit_code, terminated.message.as_deref()),
            (3, Some("m"))
        );
    });
    join_all(all).await;
}

#[tokio::test]
async fn a_pod_that_has_not_started_is_waited_for_and_the_reason_told() {
    let (bytes, silences, _) = follow(Server {
        records: lines(3),
        fates: Vec::new(),
        asked: 0,
        waiting: 3,
    })
    .await;
    assert_eq!(bytes, b"line 0\nline 1\nline 2\n");
    let why = "the container has not started yet: ContainerCreating".to_owned();
    assert_eq!(silences.first(), Some(&Some(why)));
}
