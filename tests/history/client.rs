//! Terraform's HTTP client, as far as a state backend sees it.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What got a 5xx or no answer is sent again so often, as `retry_max` has it.
const MORE: u32 = 2;
/// Terraform waits longer.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Client {
    address: String,
    authorization: String,
}

impl Client {
    pub fn of(variables: &[(String, OsString)]) -> Client {
        let value = |wanted: &str| {
            let mut variables = variables.iter();
            let found = variables.find(|(name, _)| name == wanted).unwrap();
            found.1.to_str().unwrap().to_owned()
        };
        let (user, password) = (value("TF_HTTP_USERNAME"), value("TF_HTTP_PASSWORD"));
        Client {
            address: value("TF_HTTP_ADDRESS"),
            authorization: STANDARD.encode(format!("{user}:{password}")),
        }
    }

    /// The status and the body of the last answer; 599 where there was none.
    pub async fn ask(&self, method: &str, id: Option<&str>, body: &[u8]) -> (u16, Vec<u8>) {
        for _ in 0..MORE {
            match self.once(method, id, body).await {
                Ok(answer) if answer.0 < 500 => return answer,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        let last = self.once(method, id, body).await;
        last.unwrap_or((599, Vec::new()))
    }

    async fn once(
        &self,
        method: &str,
        id: Option<&str>,
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let (host, path) = self.address["http://".len()..].split_once('/').unwrap();
        let query = id.map(|id| format!("?ID={id}")).unwrap_or_default();
        let mut stream = TcpStream::connect(host).await?;
        let head = format!(
            "{method} /{path}{query} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {}\r\nContent-MD5: {}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.authorization,
            STANDARD.encode(Md5::digest(body)),
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let head = String::from_utf8_lossy(&answer[..end]);
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((
            status.ok_or(io::ErrorKind::InvalidData)?,
            answer[end + 4..].to_vec(),
        ))
    }
}
