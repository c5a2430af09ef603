//! The HTTP side, as Terraform's `http` backend calls it
//! (<https://developer.hashicorp.com/terraform/language/backend/http>): on loopback, on a port of the system's
//! choosing, with credentials made for this one run.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The user that Terraform gives; the password is what counts.
const USER: &str = "stagewright";
/// The one path that is served.
const PATH: &str = "/state";

/// The backend could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the state backend could not be started on 127.0.0.1")]
pub struct HttpError(#[from] io::Error);

/// A backend that serves one state and refuses every write. It ends when it is dropped.
#[derive(Debug)]
pub struct ReadOnlyBackend {
    address: SocketAddr,
    password: String,
    server: JoinHandle<()>,
}

struct Served {
    state: Option<Bytes>,
    authorization: String,
}

impl ReadOnlyBackend {
    /// Serves `state` as it is (`None`: there is none) until it is dropped.
    pub async fn serve(state: Option<Vec<u8>>) -> Result<ReadOnlyBackend, HttpError> {
        let password = random_password()?;
        let served = Arc::new(Served {
            state: state.map(Bytes::from),
            authorization: format!("Basic {}", STANDARD.encode(format!("{USER}:{password}"))),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(served);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::debug!(%error, "the state backend ended");
            }
        });
        Ok(ReadOnlyBackend {
            address,
            password,
            server,
        })
    }

    /// The variables by which Terraform's `http` backend finds it. There is no lock address: a plan takes no lock.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        [
            ("TF_HTTP_ADDRESS", format!("http://{}{PATH}", self.address)),
            ("TF_HTTP_USERNAME", USER.to_owned()),
            ("TF_HTTP_PASSWORD", self.password.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into()
    }

    /// The password of this run, to be masked wherever it might be printed.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl Drop for ReadOnlyBackend {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let given = headers.get(header::AUTHORIZATION);
    if given.is_none_or(|value| value.as_bytes() != served.authorization.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if uri.path() != PATH {
        return StatusCode::NOT_FOUND.into_response();
    }
    if method == Method::GET {
        return match &served.state {
            Some(state) => {
                ([(header::CONTENT_TYPE, "application/json")], state.clone()).into_response()
            }
            // Terraform takes 204 for "no state yet".
            None => StatusCode::NO_CONTENT.into_response(),
        };
    }
    // 405 and not a 5xx, which Terraform's client would send again.
    let text = format!("a plan only reads the state: {method} is refused");
    (StatusCode::METHOD_NOT_ALLOWED, text).into_response()
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

    async fn ask(backend: &ReadOnlyBackend, method: &str, path: &str, password: &str) -> String {
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

    async fn status(backend: &ReadOnlyBackend, method: &str, path: &str, password: &str) -> String {
        let answer = ask(backend, method, path, password).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_state_is_given_byte_for_byte_and_none_is_204() {
        let backend = ReadOnlyBackend::serve(Some(b"{\"serial\": 1e3}".to_vec()))
            .await
            .unwrap();
        let answer = ask(&backend, "GET", "/state", &backend.password).await;
        assert!(answer.ends_with("\r\n\r\n{\"serial\": 1e3}"), "{answer}");
        let none = ReadOnlyBackend::serve(None).await.unwrap();
        assert_eq!(status(&none, "GET", "/state", &none.password).await, "204");
    }

    #[tokio::test]
    async fn every_writing_verb_is_refused() {
        let backend = ReadOnlyBackend::serve(None).await.unwrap();
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
        let backend = ReadOnlyBackend::serve(None).await.unwrap();
        assert_eq!(status(&backend, "GET", "/state", "guess").await, "401");
        assert_eq!(
            status(&backend, "GET", "/other", &backend.password).await,
            "404"
        );
        let other = ReadOnlyBackend::serve(None).await.unwrap();
        assert_ne!(other.password, backend.password);
    }
}
