//! The demo's internet: an HTTPS host on loopback with a certificate of a root made for this one run.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};

/// The name that the image URLs carry; `serve` is told to find it on loopback.
pub(crate) const HOST_NAME: &str = "pictures.upscale-demo.org";
/// A peer that is silent for this long is gone.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest request head.
const HEAD_BYTES_MAX: u64 = 16 * 1024;

/// A host that runs until the process ends.
pub(crate) struct ImageHost {
    /// The root certificate, for `--source-ca`.
    pub(crate) root_file: PathBuf,
    /// For `--source-connect-to`.
    pub(crate) connect_to: String,
}

impl ImageHost {
    /// Serves these files by their paths and writes the root certificate into `folder`.
    pub(crate) fn start(folder: &Path, files: HashMap<String, Vec<u8>>) -> anyhow::Result<Self> {
        let (root, config) = certificates().context("the image host has no certificate")?;
        let root_file = folder.join("image-host-root.pem");
        std::fs::write(&root_file, root)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let connect_to = format!("{HOST_NAME}:443={}", listener.local_addr()?);
        let files = Arc::new(files);
        thread::spawn(move || accept(&listener, &config, &files));
        Ok(Self {
            root_file,
            connect_to,
        })
    }
}

/// A root in PEM, and a server that shows a certificate signed by it.
fn certificates() -> anyhow::Result<(String, Arc<ServerConfig>)> {
    let root_key = KeyPair::generate()?;
    let mut root = CertificateParams::new(Vec::new())?;
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root_pem = root.self_signed(&root_key)?.pem();
    let issuer = Issuer::new(root, root_key);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec![HOST_NAME.to_owned()])?.signed_by(&key, &issuer)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)?;
    Ok((root_pem, Arc::new(config)))
}

fn accept(
    listener: &TcpListener,
    config: &Arc<ServerConfig>,
    files: &Arc<HashMap<String, Vec<u8>>>,
) {
    for socket in listener.incoming().flatten() {
        let (config, files) = (Arc::clone(config), Arc::clone(files));
        // A peer that hangs up is a peer's right: nothing is done about it.
        thread::spawn(move || drop(answer(socket, config, &files)));
    }
}

/// One request, one answer, closed.
fn answer(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    files: &HashMap<String, Vec<u8>>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(WAIT_MAX))?;
    socket.set_write_timeout(Some(WAIT_MAX))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    let path = read_path(&mut stream)?;
    let (status, body) = match files.get(&path) {
        Some(bytes) => ("200 OK", bytes.as_slice()),
        None => ("404 Not Found", &[][..]),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The path of the request line; the headers are read away.
fn read_path(stream: &mut impl Read) -> io::Result<String> {
    let mut lines = BufReader::new(stream.take(HEAD_BYTES_MAX)).lines();
    let request_line = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    Ok(request_line
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .to_owned())
}
