//! The client for services of HTTP: what it trusts, how it gets there, how long it waits.

use std::error::Error;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use rustls::CertificateError;

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

/// Why the certificate that a server shows is not taken. It stays so until somebody does what the sentence says.
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// It, or one that it builds upon, is by an authority that is not known here.
    #[error(
        "the certificate of {server} is by an authority that is not trusted here: add the authority's certificate, in PEM, to those of this machine, or to the file that SSL_CERT_FILE names"
    )]
    Authority {
        /// The server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
    /// It is made for another name.
    #[error(
        "the certificate of {server} is made for another name: use that one in the settings, or give the server a certificate with this one"
    )]
    Name {
        /// The server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
    /// It holds no longer, or not yet.
    #[error(
        "the certificate of {server} does not hold at this time: renew it, or set this machine's clock"
    )]
    Time {
        /// The server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
    /// Something else is wrong with it.
    #[error("the certificate of {server} is not accepted: give the server another one")]
    Other {
        /// The server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
}

/// Whether a request to `url` failed for the server's certificate; nothing where it failed for another reason.
pub fn distrust(url: &str, error: &(dyn Error + 'static)) -> Option<Distrust> {
    let (fault, source) = certificate_error(error)?;
    let server = reqwest::Url::parse(url)
        .map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization());
    Some(match fault {
        CertificateError::UnknownIssuer => Distrust::Authority { server, source },
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Distrust::Name { server, source }
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Distrust::Time { server, source },
        _ => Distrust::Other { server, source },
    })
}

fn certificate_error(error: &(dyn Error + 'static)) -> Option<(CertificateError, rustls::Error)> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(whole @ rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
            return Some((fault.clone(), whole.clone()));
        }
        // What an `io::Error` wraps is not its source.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
