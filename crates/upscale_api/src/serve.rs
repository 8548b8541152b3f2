//! The front: accepts connections and bounds each of them. HTTP/1.1 only, over TLS where the operator gave a certificate:
//! HTTP/2 belongs to a proxy in front, and what is not spoken cannot be abused.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::Request,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use metrics::counter;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream},
};
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::{
    api_limits::REFUSAL_LINES_PER_SECOND,
    bare_refusal::Exchange,
    client_address::{PeerAddress, PeerUser, connecting_network},
    connection::{Busy, Connection, Watched},
    connections::{Connections, NoPermit, Permit},
    refusal_log::RefusalLog,
    serve_limits::ServeLimits,
    tls::Tls,
};

/// Looks for a free permit within the newcomer time.
const PERMIT_TRIES: u32 = 20;

/// Newcomers that the system keeps until they are accepted; it may keep fewer (`net.core.somaxconn`). A wave of two
/// thousand overflows tokio's 1,024, and anyone who comes into a full queue tries again a second later.
const BACKLOG: u32 = 4_096;

/// Where connections come from.
pub enum Listener {
    /// An address of a network.
    Tcp(TcpListener),
    /// The same, with TLS.
    Tls(TcpListener, Tls),
    /// A file of this machine, whose permissions say who may connect.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl Listener {
    /// With TLS, where there is a certificate.
    #[must_use]
    pub fn with_tls(listener: TcpListener, tls: Option<&Tls>) -> Self {
        match tls {
            Some(tls) => Self::Tls(listener, tls.clone()),
            None => Self::Tcp(listener),
        }
    }

    /// The next one, and who is at its other end.
    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = accept_tcp(listener).await?;
                Ok((Stream::Tcp(stream), peer))
            }
            Self::Tls(listener, tls) => {
                let (stream, peer) = accept_tcp(listener).await?;
                Ok((Stream::Tls(stream, tls.clone()), peer))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = PeerUser(stream.peer_cred()?.uid());
                Ok((Stream::Unix(stream), Peer::User(user)))
            }
        }
    }
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, Peer)> {
    let (stream, address) = listener.accept().await?;
    // Small answers must not wait for an acknowledgement that the client delays.
    let _ = stream.set_nodelay(true);
    Ok((stream, Peer::Address(PeerAddress(address))))
}

enum Stream {
    Tcp(TcpStream),
    /// The handshake is still to come.
    Tls(TcpStream, Tls),
    Unix(UnixStream),
}

/// Who is at the other end; put on every request.
#[derive(Debug, Clone, Copy)]
enum Peer {
    Address(PeerAddress),
    User(PeerUser),
}

/// Listens on an address; port 0 picks a free one. Must be called within a runtime.
///
/// # Errors
/// When the address cannot be had.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As every server does: the port is free again at once after a restart.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown` resolves, then lets requests under way end, within the drain time.
///
/// # Errors
/// None today; errors of single connections end these alone.
pub async fn serve(
    listener: impl Into<Listener>,
    router: Router,
    limits: ServeLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = listener.into();
    let front = Front::new(router, limits);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    let mut looking = pin!(front.close_overdue_for_ever());
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = &mut looking => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match front.find_permit(peer).await {
                    Ok(permit) => {
                        front.welcome(stream, peer, permit, graceful.watcher());
                        // Those who have come are read before the next: in a wave of newcomers honest ones would give
                        // way before anyone saw what they ask.
                        tokio::task::yield_now().await;
                    }
                    Err(no_permit) => front.log_refusal(no_permit),
                },
                // Out of descriptors, most likely: spinning would make it worse.
                Err(error) => {
                    if front.refusals.may_write("not_accepted") {
                        tracing::warn!(%error, "a connection was not accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    front.drain(graceful).await;
    Ok(())
}

#[derive(Clone)]
struct Front {
    router: Router,
    limits: Arc<ServeLimits>,
    builder: http1::Builder,
    connections: Arc<Connections>,
    refusals: Arc<RefusalLog>,
}

impl Front {
    fn new(router: Router, limits: ServeLimits) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // Hyper's head timer also runs between requests, so it is set to the longer of the two times;
            // `connections.rs` keeps the shorter one.
            .header_read_timeout(limits.idle_timeout.max(limits.header_timeout))
            .max_headers(limits.headers_max)
            .max_header_size(limits.header_bytes_max)
            // One byte of room above the head, so that a head of exactly the limit can be parsed.
            .max_buf_size(limits.header_bytes_max.max(8 * 1024) + 1);
        Self {
            router,
            limits: Arc::new(limits),
            builder,
            connections: Arc::default(),
            refusals: Arc::new(RefusalLog::new(REFUSAL_LINES_PER_SECOND)),
        }
    }

    /// While none is free the next newcomers wait in the system's queue, which is where a flood belongs.
    /// Who comes from an address with its share is not waited for: that would hold up everyone else.
    async fn find_permit(&self, peer: Peer) -> Result<Permit, NoPermit> {
        let network = match peer {
            Peer::Address(PeerAddress(address)) => {
                connecting_network(address, &self.limits.trusted_proxies)
            }
            Peer::User(_) => None,
        };
        for _ in 0..PERMIT_TRIES {
            match self.connections.take_permit(network, &self.limits) {
                Err(NoPermit::AllAtWork) => {}
                found_or_not => return found_or_not,
            }
            tokio::time::sleep(self.limits.newcomer_time / PERMIT_TRIES).await;
        }
        self.connections.take_permit(network, &self.limits)
    }

    fn log_refusal(&self, no_permit: NoPermit) {
        let limit = match no_permit {
            NoPermit::AllAtWork => "connections",
            NoPermit::ShareAtWork { .. } => "connections_of_address",
        };
        counter!("upscale_limits_hit_total", "limit" => limit).increment(1);
        if !self.refusals.may_write(limit) {
            return;
        }
        match no_permit {
            NoPermit::AllAtWork => {
                let limit = self.limits.connections_max;
                tracing::warn!(limit, "a connection was closed at once: all are at work");
            }
            NoPermit::ShareAtWork { share } => tracing::warn!(
                share,
                "a connection was closed at once: its address has its share, and all are at work"
            ),
        }
    }

    fn welcome(&self, stream: Stream, peer: Peer, permit: Permit, watcher: Watcher) {
        match stream {
            Stream::Tcp(stream) => self.attend(stream, peer, permit, watcher),
            Stream::Unix(stream) => self.attend(stream, peer, permit, watcher),
            Stream::Tls(stream, tls) => {
                let front = self.clone();
                tokio::spawn(async move {
                    if let Some(stream) = front.shake_hands(stream, &tls, &permit).await {
                        front.attend(stream, peer, permit, watcher);
                    }
                });
            }
        }
    }

    /// Within the time of a first head, which goes on running, and holding a permit: anyone who dribbles here gives way as
    /// anyone who has not said a word. None when the client goes, is too slow or speaks something else.
    async fn shake_hands(
        &self,
        stream: TcpStream,
        tls: &Tls,
        permit: &Permit,
    ) -> Option<TlsStream<TcpStream>> {
        let handshake = tokio::time::timeout(self.limits.header_timeout, tls.accept(stream));
        tokio::select! {
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => Some(stream),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    None
                }
                Err(_) => None,
            },
            () = permit.connection.closed() => {
                counter!("upscale_connections_closed_total").increment(1);
                None
            }
        }
    }

    fn attend<S>(&self, stream: S, peer: Peer, permit: Permit, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let connection = Arc::clone(&permit.connection);
        let service = service_fn(move |request| {
            let busy = connection.begin_request();
            let connection = Arc::clone(&connection);
            answer(router.clone(), request, peer, connection, busy)
        });
        let stream = Watched {
            stream,
            connection: Arc::clone(&permit.connection),
            exchange: Exchange::new(&self.limits, Arc::clone(&self.refusals)),
        };
        let serving = self.builder.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(until_closed(watcher.watch(serving), permit));
    }

    /// Never resolves.
    async fn close_overdue_for_ever(&self) {
        let mut look = tokio::time::interval(self.limits.look_every());
        loop {
            look.tick().await;
            self.connections.close_overdue(&self.limits);
        }
    }

    /// Nothing new is accepted; anyone who is idle is closed, anyone who is at work may finish in time.
    async fn drain(&self, graceful: GracefulShutdown) {
        let drained = async {
            tokio::select! {
                () = graceful.shutdown() => {}
                () = self.close_overdue_for_ever() => {}
            }
        };
        if tokio::time::timeout(self.limits.drain_timeout, drained)
            .await
            .is_err()
        {
            tracing::warn!("connections were still at work when the drain time was over");
            self.connections.close_all();
        }
    }
}

/// An error of a connection (a head that is no HTTP, a client that went) is the client's affair.
async fn until_closed(serving: impl Future<Output = hyper::Result<()>>, permit: Permit) {
    tokio::select! {
        ended = serving => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        () = permit.connection.closed() => {
            counter!("upscale_connections_closed_total").increment(1);
        }
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    peer: Peer,
    connection: Arc<Connection>,
    busy: Busy,
) -> Result<axum::http::Response<AnswerBody>, std::convert::Infallible> {
    let mut request = request.map(Body::new);
    match peer {
        Peer::Address(address) => drop(request.extensions_mut().insert(address)),
        Peer::User(user) => drop(request.extensions_mut().insert(user)),
    }
    request.extensions_mut().insert(Arc::clone(&connection));
    let response = router.oneshot(request).await?;
    connection.begin_answer();
    Ok(response.map(|body| AnswerBody { body, _busy: busy }))
}

/// A body that keeps its connection at work until it is sent or dropped.
struct AnswerBody {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = std::pin::Pin::new(&mut self.body).poll_frame(cx);
        if let std::task::Poll::Ready(Some(Ok(frame))) = &polled {
            let sent = frame.data_ref().map_or(0, Bytes::len);
            counter!("upscale_sent_bytes_total").increment(sent as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
