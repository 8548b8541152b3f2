//! Slow sockets: each sends a whole head, or a part of one, and then a byte a second for as long as it is let; when it is
//! closed it comes back. Loopback only.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};

/// Between two bytes.
const PAUSE: Duration = Duration::from_secs(1);
/// Before coming back. What is counted is what slow sockets take, not how fast new ones can be opened.
const AWAY: Duration = Duration::from_secs(3);

/// What one socket sends before it dribbles.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Arc<str>,
}

impl Opening {
    /// The start of a sign-in form at the console.
    pub(crate) fn form(console: SocketAddr) -> Self {
        let head = format!(
            "POST /sign-in HTTP/1.1\r\nHost: {console}\r\nOrigin: http://{console}\r\nContent-Length: 900\r\n\r\nemail="
        );
        Self::of(console, &head)
    }

    /// The start of an event of Stripe with a signature that no one made, of this time.
    pub(crate) fn webhook(api: SocketAddr, unix_seconds: i64) -> Self {
        let signature = "ab".repeat(32);
        let head = format!(
            "POST /webhooks/stripe HTTP/1.1\r\nHost: a\r\nStripe-Signature: t={unix_seconds},v1={signature}\r\n\
             Content-Length: 9000\r\n\r\n{{"
        );
        Self::of(api, &head)
    }

    /// A head that does not end.
    pub(crate) fn head(to: SocketAddr) -> Self {
        Self::of(to, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ")
    }

    /// The start of a create with a good key.
    pub(crate) fn create(api: SocketAddr, key: &str) -> Self {
        let head = format!(
            "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Idempotency-Key: slow-as-can-be\r\nContent-Length: 900\r\n\r\n{{"
        );
        Self::of(api, &head)
    }

    fn of(to: SocketAddr, text: &str) -> Self {
        Self {
            to,
            bytes: text.into(),
        }
    }
}

/// Sockets at work until it is stopped.
pub(crate) struct Attack {
    is_over: Arc<AtomicBool>,
    counts: Arc<Counts>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    opened: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// How many connections there were in all, and how many at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sockets {
    pub(crate) opened: usize,
    pub(crate) most_open: usize,
}

impl Attack {
    /// `count` sockets that share these openings, the n-th from the address `from(n)`.
    pub(crate) fn start(openings: &[Opening], count: usize, from: fn(usize) -> Ipv4Addr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let client = |number: usize| {
            let opening = openings[number % openings.len()].clone();
            let (is_over, counts) = (Arc::clone(&is_over), Arc::clone(&counts));
            tokio::spawn(async move { be_slow(&opening, from(number), &is_over, &counts).await })
        };
        let clients = (0..count).map(client).collect();
        Self {
            is_over,
            counts,
            clients,
        }
    }

    /// Resolves when as many as there are sockets have connected, or after half a minute in which they could not.
    pub(crate) async fn under_way(&self, sockets: usize) {
        for _ in 0..300 {
            if self.counts.opened.load(Ordering::Relaxed) >= sockets {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn stop(self) -> Sockets {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.abort();
            let _ = client.await;
        }
        Sockets {
            opened: self.counts.opened.load(Ordering::Relaxed),
            most_open: self.counts.most_open.load(Ordering::Relaxed),
        }
    }
}

async fn be_slow(opening: &Opening, from: Ipv4Addr, is_over: &AtomicBool, counts: &Counts) {
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(stream) = connect(opening.to, from).await {
            counts.opened.fetch_add(1, Ordering::Relaxed);
            let open = counts.open.fetch_add(1, Ordering::Relaxed) + 1;
            counts.most_open.fetch_max(open, Ordering::Relaxed);
            dribble(stream, &opening.bytes).await;
            counts.open.fetch_sub(1, Ordering::Relaxed);
        }
        tokio::time::sleep(AWAY).await;
    }
}

/// Until the other side has had enough: it answers or closes.
async fn dribble(mut stream: TcpStream, opening: &str) {
    if stream.write_all(opening.as_bytes()).await.is_err() {
        return;
    }
    let mut answer = [0; 64];
    loop {
        let read = tokio::time::timeout(PAUSE, stream.read(&mut answer)).await;
        if read.is_ok() || stream.write_all(b"x").await.is_err() {
            return;
        }
    }
}

/// From an address of this machine; all of 127.0.0.0/8 is.
pub(crate) async fn connect(to: SocketAddr, from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    socket.connect(to).await
}
