//! The internet, as far as the service is concerned: an HTTPS host on loopback that serves pictures, and misbehaves
//! when told to. Its certificate comes from a root made for this one test.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};

/// The only name it answers for; `serve` is told to find it on loopback.
pub const HOST_NAME: &str = "images.upscale-tests.org";
/// A gate that no one opens lets go after this long, so that no thread stays behind.
const HELD_AT_MOST: Duration = Duration::from_secs(120);

/// What a path answers.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// 200 with the bytes.
    File(Vec<u8>),
    /// 200 with the bytes, once the gate is open.
    Held(Vec<u8>),
    /// This status with no bytes.
    Status(u16),
    /// This status `times` times, then the bytes.
    FailFirst {
        times: usize,
        status: u16,
        bytes: Vec<u8>,
    },
    /// The bytes, but the connection is closed in the middle.
    Truncated(Vec<u8>),
    /// A length that is declared, and bytes without end until the peer hangs up or has them all.
    Zeros { declared: Option<u64>, sent: u64 },
    /// A body of many megabytes at so many bytes a second.
    Slow(usize),
    /// 302 to another address.
    Redirect(String),
    /// A page where a picture was promised.
    Page,
}

/// A running host; stops when dropped.
pub struct ImageHost {
    port: u16,
    root_file: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    behaviours: Mutex<HashMap<String, Behaviour>>,
    hits: Mutex<HashMap<String, usize>>,
    gate_is_open: Mutex<bool>,
    gate: Condvar,
    away: AtomicBool,
    stopped: AtomicBool,
}

impl ImageHost {
    /// Listens on a free port and writes its root certificate into `folder`.
    pub fn start(folder: &Path) -> Self {
        let (root, config) = certificates(HOST_NAME);
        let root_file = folder.join("image-host-root.pem");
        std::fs::write(&root_file, root).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &config, &accepting));
        Self {
            port,
            root_file,
            shared,
        }
    }

    /// The flags by which `serve` finds and trusts this host.
    pub fn flags(&self) -> Vec<String> {
        let root = self.root_file.to_string_lossy().into_owned();
        let target = format!("{HOST_NAME}:443=127.0.0.1:{}", self.port);
        [
            "--source-ca".to_owned(),
            root,
            "--source-connect-to".to_owned(),
            target,
        ]
        .to_vec()
    }

    /// What a browser is told, so that this host's name leads here.
    pub fn browser_rule(&self) -> String {
        format!("MAP {HOST_NAME}:443 127.0.0.1:{}", self.port)
    }

    /// From now on the path answers so; its URL.
    pub fn set(&self, path: &str, behaviour: Behaviour) -> String {
        let mut behaviours = self.shared.behaviours.lock().unwrap();
        behaviours.insert(path.to_owned(), behaviour);
        format!("https://{HOST_NAME}{path}")
    }

    /// While it is away every path answers 503.
    pub fn set_away(&self, is_away: bool) {
        self.shared.away.store(is_away, Ordering::SeqCst);
    }

    /// Requests of this path so far.
    pub fn hits(&self, path: &str) -> usize {
        self.shared
            .hits
            .lock()
            .unwrap()
            .get(path)
            .copied()
            .unwrap_or(0)
    }

    /// Lets go of everything held, now and later.
    pub fn open_gate(&self) {
        *self.shared.gate_is_open.lock().unwrap() = true;
        self.shared.gate.notify_all();
    }

    /// Holds again.
    pub fn close_gate(&self) {
        *self.shared.gate_is_open.lock().unwrap() = false;
    }
}

impl Drop for ImageHost {
    fn drop(&mut self) {
        self.open_gate();
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// A root in PEM, and a server that shows a certificate for this name, signed by it.
pub fn certificates(name: &str) -> (String, Arc<ServerConfig>) {
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root_pem = root.self_signed(&root_key).unwrap().pem();
    let issuer = Issuer::new(root, root_key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (root_pem, Arc::new(config))
}

fn accept(listener: &TcpListener, config: &Arc<ServerConfig>, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let (Ok(socket), config) = (connection, Arc::clone(config)) else {
            continue;
        };
        let shared = Arc::clone(shared);
        // A peer that hangs up is a peer's right: nothing is done about it.
        thread::spawn(move || drop(answer(socket, config, &shared)));
    }
}

/// One request, one answer, closed.
fn answer(socket: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    socket.set_read_timeout(Some(HELD_AT_MOST))?;
    socket.set_write_timeout(Some(HELD_AT_MOST))?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(tls, socket));
    let path = read_path(&mut stream)?;
    let hit = {
        let mut hits = shared.hits.lock().unwrap();
        let hit = hits.entry(path.clone()).or_default();
        *hit += 1;
        *hit
    };
    let behaviour = shared.behaviours.lock().unwrap().get(&path).cloned();
    let behaviour = match shared.away.load(Ordering::SeqCst) {
        true => Behaviour::Status(503),
        false => behaviour.unwrap_or(Behaviour::Status(404)),
    };
    let mut stream = stream.into_inner();
    write_answer(&mut stream, behaviour, hit, shared)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The path of the request line without its query; the headers are read away.
fn read_path(stream: &mut impl BufRead) -> io::Result<String> {
    let mut request_line = String::new();
    stream.read_line(&mut request_line)?;
    let mut line = String::new();
    while stream.read_line(&mut line)? > 2 {
        line.clear();
    }
    let target = request_line.split(' ').nth(1).unwrap_or_default();
    Ok(target.split('?').next().unwrap_or_default().to_owned())
}

fn write_answer(
    stream: &mut impl Write,
    behaviour: Behaviour,
    hit: usize,
    shared: &Shared,
) -> io::Result<()> {
    match behaviour {
        Behaviour::File(bytes) => write_file(stream, &bytes, bytes.len()),
        Behaviour::Held(bytes) => {
            wait_for_gate(shared);
            write_file(stream, &bytes, bytes.len())
        }
        Behaviour::Truncated(bytes) => write_file(stream, &bytes[..bytes.len() / 2], bytes.len()),
        Behaviour::FailFirst { times, status, .. } if hit <= times => write_status(stream, status),
        Behaviour::FailFirst { bytes, .. } => write_file(stream, &bytes, bytes.len()),
        Behaviour::Status(status) => write_status(stream, status),
        Behaviour::Zeros { declared, sent } => write_zeros(stream, declared, sent),
        Behaviour::Slow(bytes_a_second) => write_slowly(stream, bytes_a_second),
        Behaviour::Redirect(location) => write!(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        Behaviour::Page => {
            let page = b"<!doctype html><title>Not a picture</title><p>Log in to see it.";
            write_file(stream, page, page.len())
        }
    }
}

fn wait_for_gate(shared: &Shared) {
    let open = shared.gate_is_open.lock().unwrap();
    let waited = shared
        .gate
        .wait_timeout_while(open, HELD_AT_MOST, |open| !*open);
    drop(waited);
}

fn write_file(stream: &mut impl Write, bytes: &[u8], declared: usize) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {declared}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(bytes)?;
    stream.flush()
}

/// Ten pieces a second, for as long as the peer listens and no longer than anything is held.
fn write_slowly(stream: &mut impl Write, bytes_a_second: usize) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: 15000000\r\nConnection: close\r\n\r\n"
    )?;
    let begun = Instant::now();
    while begun.elapsed() < HELD_AT_MOST {
        stream.write_all(&vec![0; bytes_a_second / 10])?;
        stream.flush()?;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn write_status(stream: &mut impl Write, status: u16) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} Told So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// Without a declared length the end of the connection is the end of the body.
fn write_zeros(stream: &mut impl Write, declared: Option<u64>, sent: u64) -> io::Result<()> {
    let length = declared
        .map(|bytes| format!("Content-Length: {bytes}\r\n"))
        .unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\n{length}Connection: close\r\n\r\n"
    )?;
    let block = [0; 64 * 1024];
    for _ in 0..sent / block.len() as u64 {
        stream.write_all(&block)?;
    }
    stream.flush()
}
