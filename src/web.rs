//! The client for services of HTTP: what it trusts, how it gets there, how long it waits.

use std::sync::OnceLock;
use std::time::Duration;

/// How long a connection may take, and how long a server may be silent within an answer.
const CONNECT: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(60);

/// The client trusts the machine's certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, and goes through the proxies of
/// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
///
/// # Errors
/// When the machine's certificates cannot be used.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    // One provider for the process; where there is one already, it stays.
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        let installed = rustls::crypto::ring::default_provider().install_default();
        tracing::debug!(first = installed.is_ok(), "the provider of cryptography");
    });
    reqwest::Client::builder()
        // Forwardings are looked at by who asks: none may carry the token to another host, or turn a write into a read.
        .redirect(reqwest::redirect::Policy::none())
        // Nor may a request be sent twice without our knowing.
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .build()
}
