//! The same API over TLS, asked by a real TLS client, and what a handshake may take.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use upscale_api::{Listener, ServeLimits, Tls, api_router};

use crate::harness::{App, Server, with_app};

/// A listener with TLS on the application's state, and clients that trust its certificate.
struct OverTls {
    address: SocketAddr,
    server: Server,
    roots: RootCertStore,
    _folder: TempDir,
}

impl OverTls {
    async fn start(app: &App, limits: &ServeLimits) -> Self {
        let folder = TempDir::new().unwrap();
        let made = generate_simple_self_signed(["api.example.org".to_owned()]);
        let CertifiedKey { cert, signing_key } = made.unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        std::fs::write(&certificate, cert.pem()).unwrap();
        std::fs::write(&key, signing_key.serialize_pem()).unwrap();
        let tls = Tls::load(&certificate, &key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listener::with_tls(listener, Some(&tls));
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        Self {
            address,
            server: Server::start(listener, api_router(app.state.clone()), limits),
            roots,
            _folder: folder,
        }
    }

    fn config(
        &self,
        alpn: &[&str],
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(self.roots.clone());
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    async fn connect(&self, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("api.example.org").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_real_tls_client_is_answered_in_http_1_1_and_no_other() {
    with_app(async |app: &App| {
        let tls = OverTls::start(app, &ServeLimits::default()).await;
        let request = "GET /healthz HTTP/1.1\r\nHost: api.example.org\r\nConnection: close\r\n\r\n";
        for versions in [&[&rustls::version::TLS13][..], &[&rustls::version::TLS12]] {
            for alpn in [&["h2", "http/1.1"][..], &[]] {
                let mut stream = tls.connect(tls.config(alpn, versions)).await.unwrap();
                let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                let expected = (!alpn.is_empty()).then(|| b"http/1.1".to_vec());
                assert_eq!(chosen, expected);
                let answer = ask(&mut stream, request).await;
                assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            }
        }
        let both = [&rustls::version::TLS13, &rustls::version::TLS12];
        assert!(tls.connect(tls.config(&["h2"], &both)).await.is_err());
        // A head that hyper refuses is refused in the contract's words here, too.
        let mut stream = tls.connect(tls.config(&[], &both)).await.unwrap();
        let answer = ask(&mut stream, "nonsense\r\n\r\n").await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains("x-request-id"),
            "{answer}"
        );
        tls.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_result_goes_over_tls_whole_and_who_does_not_trust_the_certificate_gets_none() {
    with_app(async |app: &App| {
        let tls = OverTls::start(app, &ServeLimits::default()).await;
        let id = app.created("over-tls-1").await;
        let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        app.succeed_next(&bytes).await;
        let url = app.read(&id).await.json()["result"]["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = &url[url.find("/r/").unwrap()..];
        app.keep_secret(path.split_once('?').unwrap().1);
        let both = [&rustls::version::TLS13, &rustls::version::TLS12];
        let mut stream = tls.connect(tls.config(&["http/1.1"], &both)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.ends_with(&bytes), "{} bytes", answer.len());

        let untrusted = OverTls {
            roots: RootCertStore::empty(),
            ..OverTls::start(app, &ServeLimits::default()).await
        };
        let refused = untrusted.connect(untrusted.config(&[], &both)).await;
        assert!(refused.unwrap_err().to_string().contains("UnknownIssuer"));
        untrusted.server.stop().await;
        tls.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_and_gives_way_as_any_silent_connection() {
    with_app(async |app: &App| {
        let limits = ServeLimits {
            header_timeout: Duration::from_millis(300),
            connections_max: 4,
            newcomer_time: Duration::ZERO,
            address_connections_max: None,
            ..ServeLimits::default()
        };
        let tls = OverTls::start(app, &limits).await;
        // The silent, the one who sends half of a hello, and one who speaks plain HTTP.
        for first in [
            &b""[..],
            b"\x16\x03\x01\x02\x00\x01",
            b"GET / HTTP/1.1\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(tls.address).await.unwrap();
            stream.write_all(first).await.unwrap();
            let mut answer = Vec::new();
            // Closed, or reset where bytes lay unread.
            let ended =
                tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer))
                    .await;
            assert!(ended.is_ok(), "{first:?} is still open");
            assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
        }
        // More of them than there are places: an honest client displaces one.
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(tls.address).await.unwrap());
        }
        let both = [&rustls::version::TLS13, &rustls::version::TLS12];
        let mut stream = tls.connect(tls.config(&[], &both)).await.unwrap();
        let request = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = ask(&mut stream, request).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        drop(silent);
        tls.server.stop().await;
    })
    .await;
}
