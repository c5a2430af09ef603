//! The HTTP side, as Terraform's `http` backend calls it
//! (<https://developer.hashicorp.com/terraform/language/backend/http>): on loopback, on a port of the system's
//! choosing, with credentials made for this one run.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::session::{Answer, Session};

/// The user that Terraform gives; the password is what counts.
const USER: &str = "stagewright";
/// The one path that is served.
const PATH: &str = "/state";

/// The backend could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the state backend could not be started on 127.0.0.1")]
pub struct HttpError(#[from] io::Error);

/// The largest state that is taken, in bytes. Terraform's own states are rarely above some megabytes.
const LARGEST: usize = 512 * 1024 * 1024;

/// A backend for one state. It ends when it is dropped.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    password: String,
    server: JoinHandle<()>,
}

/// What stands behind the address.
#[derive(Clone)]
pub enum Serves {
    /// A state as it was read (`None`: there is none); every write is refused.
    ReadOnly(Option<Bytes>),
    /// A copy of a state, which is read and written and kept nowhere.
    Copy(Arc<Mutex<Option<Bytes>>>),
    /// The state repository.
    Session(Arc<Mutex<Session>>),
}

struct Served {
    serves: Serves,
    authorization: String,
}

impl Backend {
    /// Serves until it is dropped.
    pub async fn start(serves: Serves) -> Result<Backend, HttpError> {
        let password = random_password()?;
        let served = Arc::new(Served {
            serves,
            authorization: format!("Basic {}", STANDARD.encode(format!("{USER}:{password}"))),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(LARGEST))
            .with_state(served);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::debug!(%error, "the state backend ended");
            }
        });
        Ok(Backend {
            address,
            password,
            server,
        })
    }

    /// The variables by which Terraform's `http` backend finds it. There is no lock address: whoever only reads takes no
    /// lock, and a run may hold the lock itself.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        [
            ("TF_HTTP_ADDRESS", self.url()),
            ("TF_HTTP_USERNAME", USER.to_owned()),
            ("TF_HTTP_PASSWORD", self.password.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into()
    }

    /// [`Backend::variables`] with the lock addresses: Terraform takes the lock itself.
    pub fn locking_variables(&self) -> Vec<(String, OsString)> {
        let mut variables = self.variables();
        for name in ["TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS"] {
            variables.push((name.to_owned(), self.url().into()));
        }
        variables
    }

    fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The password of this run, to be masked wherever it might be printed.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let given = headers.get(header::AUTHORIZATION);
    if given.is_none_or(|value| value.as_bytes() != served.authorization.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if uri.path() != PATH {
        return StatusCode::NOT_FOUND.into_response();
    }
    match served.serves.clone() {
        Serves::ReadOnly(state) if method == Method::GET => {
            response(state.map_or(Answer::NoState, |state| Answer::State(state.into())))
        }
        Serves::ReadOnly(_) => {
            // 405 and not a 5xx, which Terraform's client would send again.
            let text = format!("a plan only reads the state: {method} is refused");
            (StatusCode::METHOD_NOT_ALLOWED, text).into_response()
        }
        Serves::Copy(state) => {
            let mut state = state.lock().await;
            match method.as_str() {
                "GET" => response(match state.clone() {
                    Some(state) => Answer::State(state.into()),
                    None => Answer::NoState,
                }),
                "POST" => {
                    *state = Some(body);
                    response(Answer::Done)
                }
                other => response(Answer::Bad(format!("{other} is nothing for a copy"))),
            }
        }
        Serves::Session(session) => {
            let id = uri.query().and_then(lock_id);
            let md5 = headers
                .get("content-md5")
                .map(|value| value.as_bytes().to_vec());
            // A task of its own: a client that hangs up must not end a write half-way.
            let answered = tokio::spawn(async move {
                let mut session = session.lock().await;
                ask(&mut session, &method, id, md5, &body).await
            });
            let answer = answered.await;
            response(answer.unwrap_or_else(|error| Answer::Failed(error.to_string())))
        }
    }
}

async fn ask(
    session: &mut Session,
    method: &Method,
    id: Option<String>,
    md5: Option<Vec<u8>>,
    body: &[u8],
) -> Answer {
    let id = id.as_deref();
    match method.as_str() {
        "GET" => session.get().await,
        "POST" | "PUT" => {
            let sum = STANDARD.encode(Md5::digest(body));
            if md5.is_some_and(|md5| md5 != sum.as_bytes()) {
                return Answer::Bad("the body is not what Content-MD5 says".to_owned());
            }
            session.post(id, body).await
        }
        "DELETE" => session.delete().await,
        "LOCK" => session.lock(body).await,
        "UNLOCK" => session.unlock(id, body).await,
        other => Answer::Bad(format!("{other} is no method of a state backend")),
    }
}

/// The status codes are those that Terraform's client and OpenTofu's accept
/// (<https://github.com/hashicorp/terraform/blob/v1.11.4/internal/backend/remote-state/http/client.go>); it sends what got
/// a 5xx again.
fn response(answer: Answer) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    match answer {
        Answer::Done => StatusCode::OK.into_response(),
        Answer::State(state) => (json, state).into_response(),
        // Terraform takes 204 for "no state yet".
        Answer::NoState => StatusCode::NO_CONTENT.into_response(),
        Answer::Locked(lock) => (StatusCode::LOCKED, json, lock.to_json()).into_response(),
        Answer::NotLocked(text) => (StatusCode::PRECONDITION_REQUIRED, text).into_response(),
        Answer::Bad(text) => (StatusCode::BAD_REQUEST, text).into_response(),
        Answer::Refused(text) => (StatusCode::CONFLICT, text).into_response(),
        Answer::Failed(text) => (StatusCode::BAD_GATEWAY, text).into_response(),
    }
}

/// The value of `ID` in a query string.
fn lock_id(query: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "ID")
        .map(|(_, value)| value.into_owned())
}

/// 32 random bytes in hex.
fn random_password() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if read != bytes.len() {
        return Err(io::Error::other("the system gave too few random bytes"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn ask(backend: &Backend, method: &str, path: &str, password: &str) -> String {
        let mut stream = TcpStream::connect(backend.address).await.unwrap();
        let authorization = STANDARD.encode(format!("{USER}:{password}"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {authorization}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn status(backend: &Backend, method: &str, path: &str, password: &str) -> String {
        let answer = ask(backend, method, path, password).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_state_is_given_byte_for_byte_and_none_is_204() {
        let backend = Backend::start(Serves::ReadOnly(Some(Bytes::from_static(
            b"{\"serial\": 1e3}",
        ))))
        .await
        .unwrap();
        let answer = ask(&backend, "GET", "/state", &backend.password).await;
        assert!(answer.ends_with("\r\n\r\n{\"serial\": 1e3}"), "{answer}");
        let none = Backend::start(Serves::ReadOnly(None)).await.unwrap();
        assert_eq!(status(&none, "GET", "/state", &none.password).await, "204");
    }

    #[tokio::test]
    async fn every_writing_verb_is_refused() {
        let backend = Backend::start(Serves::ReadOnly(None)).await.unwrap();
        for verb in ["POST", "PUT", "DELETE", "PATCH", "LOCK", "UNLOCK"] {
            assert_eq!(
                status(&backend, verb, "/state", &backend.password).await,
                "405",
                "{verb}"
            );
        }
    }

    #[tokio::test]
    async fn another_password_or_path_gets_nothing() {
        let backend = Backend::start(Serves::ReadOnly(None)).await.unwrap();
        assert_eq!(status(&backend, "GET", "/state", "guess").await, "401");
        assert_eq!(
            status(&backend, "GET", "/other", &backend.password).await,
            "404"
        );
        let other = Backend::start(Serves::ReadOnly(None)).await.unwrap();
        assert_ne!(other.password, backend.password);
    }
}
