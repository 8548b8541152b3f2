//! Measures what slow connections cost honest clients: answer times of reads before and during an attack by
//! 2,000 connections that send one byte of a head every half second and come back when they are closed.
//! Loopback only; ends by itself after about half a minute.
//!
//! `cargo run --release -p upscale_api --example slow_loris`

use std::{
    error::Error,
    fmt,
    io::Write,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    task::JoinHandle,
};
use upscale_api::{ApiLimits, ApiState, ServeLimits, api_router, serve};
use upscale_core::{Clock, Credits, Permission};
use upscale_store::{Results, Store, StoreOptions};

const ATTACKERS: usize = 2_000;
const BASELINE: Duration = Duration::from_secs(5);
const ATTACK: Duration = Duration::from_secs(20);
/// Honest reads: one every 10 ms, each on a connection of its own.
const READ_EVERY: Duration = Duration::from_millis(10);

type AnyError = Box<dyn Error + Send + Sync>;

/// Server, attackers and honest clients each have threads of their own, as they would on machines of their own.
fn main() -> Result<(), AnyError> {
    let threads = |count| {
        Builder::new_multi_thread()
            .worker_threads(count)
            .enable_all()
            .build()
    };
    let (server, attackers, honest) = (threads(2)?, threads(1)?, threads(1)?);
    let directory = tempfile::TempDir::new()?;
    let (api, request) = server.block_on(start(directory.path()))?;
    let before = honest.block_on(read_for(api, &request, BASELINE))?;
    let attack = attackers.block_on(async { Attack::start(api) });
    // The first wave meets an empty house; what is measured is the siege.
    std::thread::sleep(Duration::from_secs(2));
    let during = honest.block_on(read_for(api, &request, ATTACK))?;
    let (held, opened) = attackers.block_on(attack.stop());
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "           answered refused     p50 ms     p99 ms     max ms"
    )?;
    writeln!(out, "before     {before}\nattacked   {during}")?;
    let held = held.as_secs_f64();
    writeln!(
        out,
        "{ATTACKERS} slow clients opened {opened} connections; the longest was held {held:.1} s"
    )?;
    Ok(())
}

/// An API with one account and the bytes of an honest read: authentication and a look-up.
async fn start(directory: &std::path::Path) -> Result<(SocketAddr, Vec<u8>), AnyError> {
    let store = Store::open_sqlite(directory, Clock::System, StoreOptions::default()).await?;
    let results = Results::local(&directory.join("results"))?;
    let account = store.create_account("honest").await?.id;
    store
        .credit_account(&account, Credits::parse("1")?, "a payment")
        .await?;
    let (_, key) = store
        .create_key(&account, Permission::All)
        .await?
        .ok_or("no account")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let api = listener.local_addr()?;
    let limits = ApiLimits {
        reads_per_second: 1_000,
        ..ApiLimits::default()
    };
    let state = ApiState::new(store, results, "http://api", "http://results", limits);
    tokio::spawn(serve(
        listener,
        api_router(state),
        ServeLimits::default(),
        std::future::pending(),
    ));
    let request = format!(
        "GET /api/v1/upscales/ups_00000000000000000000000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        key.reveal()
    );
    Ok((api, request.into_bytes()))
}

/// What became of the honest reads.
struct Reads {
    /// Sorted.
    times: Vec<Duration>,
    refused: usize,
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.times.len().saturating_sub(1);
        let millis = |share: f64| {
            let time = self.times.get((last as f64 * share) as usize);
            time.map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
        };
        let (answered, refused) = (self.times.len(), self.refused);
        let (p50, p99, max) = (millis(0.5), millis(0.99), millis(1.0));
        write!(
            f,
            "{answered:>8} {refused:>7} {p50:>10.2} {p99:>10.2} {max:>10.2}"
        )
    }
}

async fn read_for(api: SocketAddr, request: &[u8], span: Duration) -> Result<Reads, AnyError> {
    let end = Instant::now() + span;
    let mut turns = tokio::time::interval(READ_EVERY);
    let mut reads: Vec<JoinHandle<Result<Duration, AnyError>>> = Vec::new();
    while Instant::now() < end {
        turns.tick().await;
        let request = request.to_vec();
        reads.push(tokio::spawn(async move { read_once(api, &request).await }));
    }
    let mut times = Vec::new();
    let mut refused = 0;
    for read in reads {
        match read.await? {
            Ok(time) => times.push(time),
            Err(_) => refused += 1,
        }
    }
    times.sort_unstable();
    Ok(Reads { times, refused })
}

async fn read_once(api: SocketAddr, request: &[u8]) -> Result<Duration, AnyError> {
    let started = Instant::now();
    let mut stream = TcpStream::connect(api).await?;
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if !answer.starts_with(b"HTTP/1.1 404") {
        return Err(format!("not answered: {}", String::from_utf8_lossy(&answer)).into());
    }
    Ok(started.elapsed())
}

struct Attack {
    is_over: Arc<AtomicBool>,
    opened: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Duration>>,
}

impl Attack {
    fn start(api: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let opened = Arc::new(AtomicU64::new(0));
        let client = |_| tokio::spawn(be_slow(api, Arc::clone(&is_over), Arc::clone(&opened)));
        let clients = (0..ATTACKERS).map(client).collect();
        Self {
            is_over,
            opened,
            clients,
        }
    }

    /// The longest time one connection was held, and how many were opened.
    async fn stop(self) -> (Duration, u64) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for client in self.clients {
            longest = longest.max(client.await.unwrap_or_default());
        }
        (longest, self.opened.load(Ordering::Relaxed))
    }
}

/// Holds a connection as long as it can, again and again; the longest time it could.
async fn be_slow(api: SocketAddr, is_over: Arc<AtomicBool>, opened: Arc<AtomicU64>) -> Duration {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let started = Instant::now();
        if let Ok(stream) = TcpStream::connect(api).await {
            opened.fetch_add(1, Ordering::Relaxed);
            dribble(stream, &is_over).await;
            longest = longest.max(started.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    longest
}

async fn dribble(mut stream: TcpStream, is_over: &AtomicBool) {
    let head = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ";
    let bytes = head.iter().chain(std::iter::repeat(&b'x'));
    for byte in bytes {
        if is_over.load(Ordering::Relaxed) || stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        // A close is seen at the next byte, or here.
        let mut rest = [0; 64];
        let read = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut rest));
        if read.await.is_ok() {
            return;
        }
    }
}
