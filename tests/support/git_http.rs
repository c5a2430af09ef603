//! A git server for tests: the bare repositories of one folder over smart HTTP, by git's own `git http-backend`.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a panic here fails the test that asked for the server"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode, header};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;

/// Whether the server lets a client leave out objects (`uploadpack.allowFilter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filters {
    #[default]
    Allowed,
    Refused,
}

/// What every request must carry as HTTP Basic credentials.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// How the server behaves. The default serves and takes pushes without credentials, allows filters, and answers every
/// request as git does.
#[derive(Clone, Default)]
pub struct Options {
    pub filters: Filters,
    pub credentials: Option<Credentials>,
    /// Answers in the server's place, with [`Asked::answer`] where and when it wants to.
    pub between: Option<Between>,
}

/// What may stand between a client and git.
pub type Between = Arc<dyn Fn(Asked) -> Answering + Send + Sync>;
/// An answer on its way.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A running server; it stops when dropped.
pub struct GitHttp {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GitHttp {
    /// Serves `<root>/<name>.git` as `<url>/<name>.git` on a free port of 127.0.0.1.
    pub fn serve(root: &Path, options: Options) -> GitHttp {
        // A runtime and a thread of our own, so that a plain `#[test]` can use the server while it waits for git.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("starts a runtime for the git server");
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .expect("binds a free port for the git server");
        let address = listener
            .local_addr()
            .expect("the git server has an address");
        let requests = Arc::new(AtomicUsize::new(0));
        let site = Site {
            root: root
                .canonicalize()
                .expect("the folder of the repositories exists"),
            options,
            requests: Arc::clone(&requests),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let app = Router::new().fallback(answer).with_state(Arc::new(site));
            runtime.block_on(async {
                // Not a graceful shutdown: that would wait for connections which a killed git left open.
                tokio::select! {
                    served = axum::serve(listener, app) => served.expect("the git server serves"),
                    _ = stopped => {}
                }
            });
        });
        GitHttp {
            address,
            requests,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The base of the repositories' URLs, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many HTTP requests came in so far, refused ones included.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        // Both fail only when the server has panicked, and its test tells of that by itself.
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

struct Site {
    root: PathBuf,
    options: Options,
    requests: Arc<AtomicUsize>,
}

impl Site {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(Credentials { user, password }) = &self.options.credentials else {
            return true;
        };
        let wanted = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
        headers
            .get(header::AUTHORIZATION)
            .is_some_and(|given| given.as_bytes() == wanted.as_bytes())
    }

    async fn run_backend(
        &self,
        request: &Parts,
        body: &Bytes,
        variables: &[(&str, &str)],
    ) -> std::io::Result<Output> {
        let text = |name: &str| {
            request
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let filters = self.options.filters == Filters::Allowed;
        let mut backend = Command::new("git")
            .args([
                "-c",
                "http.receivepack=true",
                "-c",
                "uploadpack.allowAnySHA1InWant=true",
                "-c",
            ])
            .arg(format!("uploadpack.allowFilter={filters}"))
            .arg("http-backend")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", request.uri.path())
            .env("QUERY_STRING", request.uri.query().unwrap_or_default())
            .env("REQUEST_METHOD", request.method.as_str())
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("CONTENT_TYPE", text("content-type"))
            .env("CONTENT_LENGTH", body.len().to_string())
            // git compresses larger requests; http-backend unpacks them when it is told.
            .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
            // Without it the server falls back to protocol 0.
            .env("GIT_PROTOCOL", text("git-protocol"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = backend.stdin.take().expect("stdin is a pipe");
        // Written while the answer is read: both pipes may fill up. A backend that refuses early closes its end.
        let write = async move { stdin.write_all(body).await.ok() };
        let (_, output) = tokio::join!(write, backend.wait_with_output());
        output
    }
}

async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    site.requests.fetch_add(1, Ordering::SeqCst);
    if !site.admits(request.headers()) {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")
            .body(Body::empty())
            .expect("a plain response");
    }
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return failure(
            StatusCode::BAD_REQUEST,
            "the request's body ended early".into(),
        );
    };
    let between = site.options.between.clone();
    let asked = Asked { site, head, body };
    match between {
        Some(between) => between(asked).await,
        None => asked.answer(&[]).await,
    }
}

/// A request that git has not seen yet.
pub struct Asked {
    site: Arc<Site>,
    pub head: Parts,
    body: Bytes,
}

impl Asked {
    /// git's answer; its hooks see these variables.
    pub async fn answer(self, variables: &[(&str, &str)]) -> Response<Body> {
        let run = self.site.run_backend(&self.head, &self.body, variables);
        match run.await {
            Ok(output) => response(output),
            Err(error) => failure(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("git http-backend did not run: {error}"),
            ),
        }
    }
}

/// Turns a CGI answer (header lines, an empty line, the body; RFC 3875 section 6) into an HTTP response.
fn response(output: Output) -> Response<Body> {
    let stdout = Bytes::from(output.stdout);
    let Some(end) = stdout.windows(4).position(|window| window == b"\r\n\r\n") else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("git http-backend gave no answer: {said}"),
        );
    };
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&stdout[..end]).split("\r\n") {
        response = match line.split_once(": ") {
            Some(("Status", status)) => response.status(status.get(..3).unwrap_or("500")),
            Some((name, value)) => response.header(name, value),
            None => response,
        };
    }
    response
        .body(Body::from(stdout.slice(end + 4..)))
        .expect("git http-backend writes valid headers")
}

fn failure(status: StatusCode, message: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::from(message))
        .expect("a plain response")
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_usize, |group, byte| (group << 8) | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (group >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[index])
            } else {
                '='
            });
        }
    }
    text
}
