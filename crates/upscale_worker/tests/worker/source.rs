//! A source that does exactly what a test says, byte by byte: HTTPS on loopback with a certificate of our
//! own root.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustls::ServerConfig;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};
use tokio_rustls::TlsAcceptor;
use upscale_core::{AccountId, SourceUrl};
use upscale_worker::{AttemptError, FetchBudgets, FetchOptions, Fetcher};

use crate::certificates::{Certificate, made};

pub(crate) const NAME: &str = "images.upscale-tests.org";
/// What its certificate is made out to.
const CERTIFIED: &str = "*.upscale-tests.org";

/// One thing a source does after it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends this byte again and again, a pause between, until the peer is gone.
    Drip(u8, Duration),
    /// Sends these bytes again and again until the peer is gone.
    Flood(Vec<u8>),
    /// Waits until the gate is open.
    Gate,
    /// Says nothing more until the peer is gone.
    Hang,
    /// Ends without saying so in TLS.
    Cut,
}

/// A running source; stops with the test's runtime.
pub(crate) struct Source {
    pub(crate) address: SocketAddr,
    pub(crate) root: PathBuf,
    shared: Arc<Shared>,
    _folder: TempDir,
}

struct Shared {
    steps: Mutex<HashMap<String, Vec<Step>>>,
    requests: Mutex<Vec<String>>,
    reached_at: Mutex<Vec<IpAddr>>,
    gate: watch::Sender<bool>,
    open: AtomicUsize,
    open_max: AtomicUsize,
}

impl Source {
    pub(crate) async fn start() -> Self {
        Self::showing(Certificate::Good).await
    }

    pub(crate) async fn showing(certificate: Certificate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, certificate)
    }

    pub(crate) fn on(listener: TcpListener, certificate: Certificate) -> Self {
        let (root_pem, config) = made(CERTIFIED, certificate);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root.pem");
        std::fs::write(&root, root_pem).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            steps: Mutex::default(),
            requests: Mutex::default(),
            reached_at: Mutex::default(),
            gate: watch::Sender::new(false),
            open: AtomicUsize::new(0),
            open_max: AtomicUsize::new(0),
        });
        tokio::spawn(accept(listener, config, Arc::clone(&shared)));
        Self {
            address,
            root,
            shared,
            _folder: folder,
        }
    }

    /// From now on the path (with its query) does this; its URL.
    pub(crate) fn set(&self, path: &str, steps: Vec<Step>) -> SourceUrl {
        self.answer(path, steps);
        SourceUrl::parse(&format!("https://{NAME}{path}")).unwrap()
    }

    /// The same for a path that only a redirect can lead to.
    pub(crate) fn answer(&self, path: &str, steps: Vec<Step>) {
        let mut all = self.shared.steps.lock().unwrap();
        all.insert(path.to_owned(), steps);
    }

    /// The heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Takes the addresses at which connections arrived since the last call.
    pub(crate) fn take_reached_at(&self) -> Vec<IpAddr> {
        std::mem::take(&mut self.shared.reached_at.lock().unwrap())
    }

    pub(crate) fn open_gate(&self) {
        self.shared.gate.send_replace(true);
    }

    /// Requests under way at a time, at most so far.
    pub(crate) fn open_max(&self) -> usize {
        self.shared.open_max.load(Ordering::SeqCst)
    }

    /// Waits until so many requests are under way.
    pub(crate) async fn wait_until_open(&self, count: usize) {
        while self.shared.open.load(Ordering::SeqCst) < count {
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn options(&self, budgets: FetchBudgets) -> FetchOptions {
        let connect_to = format!("{NAME}:443={}", self.address);
        FetchOptions {
            connect_to: vec![connect_to.parse().unwrap()],
            ca_files: vec![self.root.clone()],
            budgets,
            ..FetchOptions::default()
        }
    }

    pub(crate) async fn download(
        &self,
        url: &SourceUrl,
        budgets: FetchBudgets,
    ) -> Result<Vec<u8>, AttemptError> {
        let fetcher = Fetcher::new(&self.options(budgets)).unwrap();
        let account = AccountId::random().unwrap();
        let source = fetcher.download(account, url).await?;
        Ok(source.bytes().to_vec())
    }
}

/// A whole answer with these lines between status and length.
pub(crate) fn answer(status: &str, lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn accept(listener: TcpListener, config: Arc<ServerConfig>, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let at = stream.local_addr().unwrap().ip().to_canonical();
        shared.reached_at.lock().unwrap().push(at);
        let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
        tokio::spawn(async move {
            // A peer that hangs up is within its rights.
            let _ = serve(stream, config, &shared).await;
        });
    }
}

async fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut stream = TlsAcceptor::from(config).accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    shared.requests.lock().unwrap().push(head);
    let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
    shared.open_max.fetch_max(open, Ordering::SeqCst);
    let steps = shared.steps.lock().unwrap().get(&path).cloned();
    let steps = steps.unwrap_or_else(|| vec![Step::Send(answer("404 Not Found", "", b""))]);
    let done = follow(&mut stream, steps, shared).await;
    shared.open.fetch_sub(1, Ordering::SeqCst);
    if done? {
        stream.shutdown().await?;
    }
    Ok(())
}

/// Whether the end is said in TLS.
async fn follow(
    stream: &mut (impl AsyncWrite + Unpin),
    steps: Vec<Step>,
    shared: &Shared,
) -> std::io::Result<bool> {
    for step in steps {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes).await?,
            Step::Drip(byte, pause) => loop {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                sleep(pause).await;
            },
            Step::Flood(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Step::Gate => drop(shared.gate.subscribe().wait_for(|open| *open).await),
            Step::Hang => {
                stream.flush().await?;
                std::future::pending::<()>().await;
            }
            Step::Cut => return stream.flush().await.map(|()| false),
        }
        stream.flush().await?;
    }
    Ok(true)
}
