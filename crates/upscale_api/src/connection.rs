//! One open connection and what it is doing, so that one which only holds a permit can be told from one at work: hyper has
//! no idle time apart from its header time and no write time. Anyone who has to give way is chosen in `connections.rs`.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use crate::{bare_refusal::Exchange, serve_limits::ServeLimits};

/// What a connection is doing, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Open, and no byte of its first request has come.
    New,
    /// Bytes of a head have come, but not all.
    Head,
    /// A body is awaited from someone who has not said who they are, or one that no one wants.
    Waiting,
    /// A body is awaited from a caller with a key or a session.
    KnownWaiting,
    /// A request is being answered.
    Busy,
    /// All that was asked is answered.
    Idle,
}

#[derive(Debug, Clone, Copy)]
struct Doing {
    phase: Phase,
    since: Instant,
    /// Since when a write has been waiting for the client to read.
    stalled_since: Option<Instant>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The network it counts for; none where addresses are not told apart.
    pub(crate) network: Option<IpAddr>,
    doing: Mutex<Doing>,
    closed: Notify,
    /// Whether a handler's answer is about to be written: what hyper writes without one is its own.
    has_answer: AtomicBool,
}

impl Connection {
    pub(crate) fn new(now: Instant, network: Option<IpAddr>) -> Self {
        Self {
            network,
            doing: Mutex::new(Doing {
                phase: Phase::New,
                since: now,
                stalled_since: None,
            }),
            closed: Notify::new(),
            has_answer: AtomicBool::new(false),
        }
    }

    /// Resolves when the connection must go.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// A request begins; it lasts until the answer is dropped, body and all.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Busy {
        self.enter(Phase::Busy);
        Busy(Arc::clone(self))
    }

    /// A body is awaited from now on, and until the mark is dropped the connection may have to give way.
    pub(crate) fn begin_waiting(self: &Arc<Self>, is_known: bool) -> Waiting {
        self.enter(match is_known {
            true => Phase::KnownWaiting,
            false => Phase::Waiting,
        });
        Waiting(Arc::clone(self))
    }

    /// The next bytes written are a handler's answer.
    pub(crate) fn begin_answer(&self) {
        self.has_answer.store(true, Ordering::Relaxed);
    }

    /// Tells it to go.
    pub(crate) fn close(&self) {
        self.closed.notify_one();
    }

    fn enter(&self, phase: Phase) {
        let mut doing = self.doing();
        doing.phase = phase;
        doing.since = Instant::now();
    }

    pub(crate) fn has_read(&self) {
        let mut doing = self.doing();
        match doing.phase {
            // The first head's time runs from connecting: one byte must not buy the whole time again.
            Phase::New => doing.phase = Phase::Head,
            Phase::Idle => {
                doing.phase = Phase::Head;
                doing.since = Instant::now();
            }
            Phase::Head | Phase::Waiting | Phase::KnownWaiting | Phase::Busy => {}
        }
    }

    fn has_written(&self, is_stalled: bool) {
        let mut doing = self.doing();
        doing.stalled_since = match (is_stalled, doing.stalled_since) {
            (false, _) => None,
            (true, None) => Some(Instant::now()),
            (true, since) => since,
        };
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_overdue(&self, now: Instant, limits: &ServeLimits) -> bool {
        let doing = *self.doing();
        let longest = match doing.phase {
            Phase::New | Phase::Head => limits.header_timeout,
            Phase::Idle => limits.idle_timeout,
            Phase::Waiting | Phase::KnownWaiting | Phase::Busy => limits.answer_timeout,
        };
        let is_over = |since: Instant, longest: Duration| now.duration_since(since) >= longest;
        is_over(doing.since, longest)
            || doing
                .stalled_since
                .is_some_and(|since| is_over(since, limits.stall_timeout))
    }

    /// Lower goes first: those that have rested for long, on which nothing is lost; heads and bodies that dribble; the
    /// silent; those that rested a moment; bodies of callers with a key. Never one at work, nor one younger than `young`: an honest head may be waiting
    /// in the socket for its turn to be read.
    pub(crate) fn eviction_rank(
        &self,
        now: Instant,
        young: Duration,
        limits: &ServeLimits,
    ) -> Option<(u8, Instant)> {
        let doing = *self.doing();
        let age = now.duration_since(doing.since);
        let rank = match doing.phase {
            Phase::Idle if age >= limits.header_timeout => 0,
            Phase::Head | Phase::Waiting => 1,
            Phase::New => 2,
            Phase::Idle => 3,
            Phase::KnownWaiting => 4,
            Phase::Busy => return None,
        };
        (age >= young).then_some((rank, doing.since))
    }
}

/// Marks a connection as at work while it lives.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// Marks a connection as one that makes us wait while it lives.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Connection>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.enter(Phase::Busy);
    }
}

/// A stream that tells its connection when bytes come and when they cannot go, and says in the contract's words what hyper
/// says by itself.
pub(crate) struct Watched<S> {
    pub(crate) stream: S,
    pub(crate) connection: Arc<Connection>,
    /// For answers that hyper writes by itself.
    pub(crate) exchange: Exchange,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection.has_read();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let is_answer = this.connection.has_answer.swap(false, Ordering::Relaxed);
        let polled = match is_answer {
            true => Pin::new(&mut this.stream).poll_write(cx, bytes),
            false => this.exchange.poll_write(&mut this.stream, cx, bytes),
        };
        if is_answer && polled.is_pending() {
            this.connection.begin_answer();
        }
        self.connection.has_written(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        if let Some(bytes) = first.filter(|bytes| self.exchange.is_needed(bytes)) {
            return self.poll_write(cx, bytes);
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        if polled.is_ready() {
            self.connection.has_answer.store(false, Ordering::Relaxed);
        }
        self.connection.has_written(polled.is_pending());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_head_has_one_time_from_connecting_and_each_later_one_its_own() {
        let start = Instant::now();
        let connection = Arc::new(Connection::new(start, None));
        let limits = ServeLimits::default();
        connection.has_read();
        assert!(connection.is_overdue(start + limits.header_timeout, &limits));
        drop(connection.begin_request());
        assert!(!connection.is_overdue(start + limits.header_timeout, &limits));
        assert!(connection.is_overdue(start + limits.idle_timeout * 2, &limits));
    }

    #[test]
    fn a_write_that_waits_too_long_is_overdue_and_one_that_moves_is_not() {
        let connection = Arc::new(Connection::new(Instant::now(), None));
        let limits = ServeLimits::default();
        let _busy = connection.begin_request();
        let later = Instant::now() + limits.stall_timeout * 2;
        connection.has_written(true);
        assert!(connection.is_overdue(later, &limits));
        connection.has_written(false);
        assert!(!connection.is_overdue(later, &limits));
    }
}
