//! A proxy for HTTPS, and behind it a host with a certificate of its own before a server that speaks plain HTTP.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A running proxy, until the test ends.
pub struct Proxy {
    /// Its address, for `HTTPS_PROXY`.
    pub url: String,
    /// The certificate that the host shows, in PEM.
    pub certificate: String,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// Knows one host, `host` on port 443, which shows this certificate, and answers there with what `server` answers.
    pub fn showing(
        certificate: &CertificateParams,
        server: SocketAddr,
        host: &'static str,
    ) -> Proxy {
        let key = KeyPair::generate().unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::from(key))
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((client, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(tunnel(client, acceptor.clone(), server, host));
                }
            });
        });
        Proxy {
            url,
            certificate: certificate.pem(),
            connections,
        }
    }

    /// How many came.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A client that does not trust the certificate goes away, which is no fault here.
async fn tunnel(
    mut client: TcpStream,
    acceptor: TlsAcceptor,
    server: SocketAddr,
    host: &'static str,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    if !head.starts_with(format!("CONNECT {host}:443 ").as_bytes()) {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await;
    }
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(server).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
