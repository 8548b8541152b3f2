//! Measures what slow connections cost honest clients: answer times of reads during an attack by 2,000 connections
//! that send one byte of a head every half second and come back when they are closed. The attackers share the machine
//! with the service, so the baseline is the same attack on a decoy beside it, which takes connections, reads nothing and
//! closes them after five seconds: what differs is what the attack costs the service, not what attackers cost the
//! machine. Both turn by turn, four times each. Loopback only; ends by itself after about a minute.
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
    net::TcpStream,
    runtime::Builder,
    task::JoinHandle,
};
use upscale_api::{ApiLimits, ApiState, ServeLimits, api_router, listen, serve};
use upscale_core::{Clock, Credits, Permission};
use upscale_store::{Results, Store, StoreOptions};

const ATTACKERS: usize = 2_000;
const ROUNDS: usize = 4;
const ROUND: Duration = Duration::from_secs(6);
/// The decoy is as patient as the service.
const DECOY_TIMEOUT: Duration = Duration::from_secs(5);
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
    let decoy = server.block_on(start_decoy())?;
    let alone = honest.block_on(read_for(api, &request, ROUND))?;
    let (mut beside, mut attacked) = (Reads::default(), Reads::default());
    let (mut opened, mut longest) = (0, Duration::ZERO);
    for _ in 0..ROUNDS {
        for target in [decoy, api] {
            let attack = attackers.block_on(async { Attack::start(target) });
            // The first wave meets an empty house; what is measured is the siege.
            std::thread::sleep(Duration::from_secs(2));
            let reads = honest.block_on(read_for(api, &request, ROUND))?;
            let (held, connections) = attackers.block_on(attack.stop());
            if target == api {
                attacked.add(reads);
                opened += connections;
                longest = longest.max(held);
            } else {
                beside.add(reads);
            }
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "                    answered refused     p50 ms     p99 ms     max ms"
    )?;
    writeln!(out, "no one attacks      {alone}")?;
    writeln!(out, "a decoy is attacked {beside}")?;
    writeln!(out, "we are attacked     {attacked}")?;
    let (ours, theirs) = (attacked.millis(0.99), beside.millis(0.99));
    writeln!(out, "p99 attacked / p99 beside: {:.2}", ours / theirs)?;
    let held = longest.as_secs_f64();
    writeln!(
        out,
        "{ATTACKERS} slow clients opened {opened} connections; the longest was held {held:.1} s"
    )?;
    Ok(())
}

/// Takes every connection and closes it when its time is over.
async fn start_decoy() -> Result<SocketAddr, AnyError> {
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                tokio::time::sleep(DECOY_TIMEOUT).await;
                drop(stream);
            });
        }
    });
    Ok(address)
}

/// An API with one account and the bytes of an honest read: authentication and a look-up.
async fn start(directory: &std::path::Path) -> Result<(SocketAddr, Vec<u8>), AnyError> {
    let store = Store::open_sqlite(directory, Clock::System, StoreOptions::default()).await?;
    let results = Results::local(&directory.join("results"))?;
    let account = store.accounts().create("honest").await?.id;
    store
        .accounts()
        .credit(&account, Credits::parse("1")?, "a payment")
        .await?;
    let (_, key) = store
        .accounts()
        .create_key(&account, Permission::All, "")
        .await?
        .made()
        .ok_or("no account")?;
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
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
#[derive(Default)]
struct Reads {
    /// Sorted.
    times: Vec<Duration>,
    refused: usize,
}

impl Reads {
    fn add(&mut self, more: Self) {
        self.times.extend(more.times);
        self.times.sort_unstable();
        self.refused += more.refused;
    }

    /// The time below which this share of the answers came.
    fn millis(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let time = self.times.get((last as f64 * share) as usize);
        time.map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answered, refused) = (self.times.len(), self.refused);
        let (p50, p99, max) = (self.millis(0.5), self.millis(0.99), self.millis(1.0));
        write!(
            f,
            "{answered:>8} {refused:>7} {p50:>10.2} {p99:>10.2} {max:>10.2}"
        )
    }
}

async fn read_for(api: SocketAddr, request: &[u8], span: Duration) -> Result<Reads, AnyError> {
    let end = Instant::now() + span;
    let mut ticks = tokio::time::interval(READ_EVERY);
    let mut reads: Vec<JoinHandle<Result<Duration, AnyError>>> = Vec::new();
    while Instant::now() < end {
        ticks.tick().await;
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
