//! Every open connection of one listener and what it is doing, so that those which only hold a place can be
//! told from those at work: hyper has no idle time apart from its header time, no write time and no room
//! for a newcomer when slow ones fill the house.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use metrics::gauge;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use crate::serve_limits::ServeLimits;

/// What a connection is doing, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Open, and no byte of its first request has come.
    New,
    /// Bytes of a head have come, but not all.
    Head,
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
    doing: Mutex<Doing>,
    closed: Notify,
}

impl Connection {
    fn new(now: Instant) -> Self {
        Self {
            doing: Mutex::new(Doing {
                phase: Phase::New,
                since: now,
                stalled_since: None,
            }),
            closed: Notify::new(),
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

    fn enter(&self, phase: Phase) {
        let mut doing = self.doing();
        doing.phase = phase;
        doing.since = Instant::now();
    }

    fn has_read(&self) {
        let mut doing = self.doing();
        match doing.phase {
            // The first head's time runs from connecting: one byte must not buy the whole time again.
            Phase::New => doing.phase = Phase::Head,
            Phase::Idle => {
                doing.phase = Phase::Head;
                doing.since = Instant::now();
            }
            Phase::Head | Phase::Busy => {}
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

    fn is_overdue(&self, now: Instant, limits: &ServeLimits) -> bool {
        let doing = *self.doing();
        let longest = match doing.phase {
            Phase::New | Phase::Head => limits.header_timeout,
            Phase::Idle => limits.idle_timeout,
            Phase::Busy => limits.answer_timeout,
        };
        let is_over = |since: Instant, longest: Duration| now.duration_since(since) >= longest;
        is_over(doing.since, longest)
            || doing
                .stalled_since
                .is_some_and(|since| is_over(since, limits.stall_timeout))
    }

    /// Lower goes first: heads that dribble, then the silent, then those between requests; never one at work.
    /// Nor one that has just come: an honest head may be waiting in the socket for its turn to be read.
    fn eviction_rank(&self, came_before: Instant) -> Option<(u8, Instant)> {
        let doing = *self.doing();
        let rank = match doing.phase {
            Phase::Head => 0,
            Phase::New => 1,
            Phase::Idle => 2,
            Phase::Busy => return None,
        };
        (doing.since <= came_before).then_some((rank, doing.since))
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

/// The open connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<(u64, BTreeMap<u64, Arc<Connection>>)>,
}

/// Removes its connection from the list when dropped.
pub(crate) struct Place {
    pub(crate) connection: Arc<Connection>,
    number: u64,
    connections: Arc<Connections>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().1.remove(&self.number);
        gauge!("upscale_connections").decrement(1.0);
    }
}

impl Connections {
    /// A place for a newcomer; when all are taken, those that have waited longest for their clients give
    /// way. None when every one is at work or has only just come.
    pub(crate) fn take_place(self: &Arc<Self>, limits: &ServeLimits) -> Option<Place> {
        let mut open = self.lock();
        if open.1.len() >= limits.connections_max {
            make_room(&mut open.1, limits)?;
        }
        open.0 += 1;
        let number = open.0;
        let connection = Arc::new(Connection::new(Instant::now()));
        gauge!("upscale_connections").increment(1.0);
        open.1.insert(number, Arc::clone(&connection));
        Some(Place {
            connection,
            number,
            connections: Arc::clone(self),
        })
    }

    /// Closes every connection that is past a limit.
    pub(crate) fn close_overdue(&self, limits: &ServeLimits) {
        let now = Instant::now();
        for connection in self.lock().1.values() {
            if connection.is_overdue(now, limits) {
                connection.closed.notify_one();
            }
        }
    }

    /// Closes every connection, whatever it is doing.
    pub(crate) fn close_all(&self) {
        for connection in self.lock().1.values() {
            connection.closed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Arc<Connection>>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a sixteenth of the connections, so that a flood pays for one look at all of them in 64 and not in
/// each: at one look a newcomer the flood filled the system's queue, and honest clients waited in it.
fn make_room(open: &mut BTreeMap<u64, Arc<Connection>>, limits: &ServeLimits) -> Option<()> {
    let came_before = Instant::now().checked_sub(limits.newcomer_time)?;
    let mut waiting: Vec<((u8, Instant), u64)> = open
        .iter()
        .filter_map(|(number, one)| Some((one.eviction_rank(came_before)?, *number)))
        .collect();
    waiting.sort_unstable();
    waiting.truncate((limits.connections_max / 16).max(1));
    for (_, number) in &waiting {
        if let Some(connection) = open.remove(number) {
            connection.closed.notify_one();
        }
    }
    (!waiting.is_empty()).then_some(())
}

/// A stream that tells its connection when bytes come and when they cannot go.
pub(crate) struct Watched<S> {
    pub(crate) stream: S,
    pub(crate) connection: Arc<Connection>,
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
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.connection.has_written(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
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

    fn limits(newcomer_time: Duration) -> ServeLimits {
        ServeLimits {
            connections_max: 4,
            newcomer_time,
            ..ServeLimits::default()
        }
    }

    /// Whether the connection has been told to go.
    async fn is_closed(place: &Place) -> bool {
        let closed = place.connection.closed();
        tokio::time::timeout(Duration::from_millis(1), closed)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn dribblers_give_way_before_the_silent_and_these_before_the_idle_but_none_at_work() {
        let connections = Arc::new(Connections::default());
        let limits = limits(Duration::ZERO);
        let places: Vec<Place> = (0..4)
            .map(|_| connections.take_place(&limits).unwrap())
            .collect();
        let busy = places[0].connection.begin_request();
        drop(places[1].connection.begin_request());
        places[3].connection.has_read();
        let mut newcomers = Vec::new();
        for expected in [3, 2, 1] {
            let newcomer = connections.take_place(&limits).unwrap();
            newcomers.push((newcomer.connection.begin_request(), newcomer));
            assert!(is_closed(&places[expected]).await, "place {expected}");
        }
        assert!(connections.take_place(&limits).is_none(), "all are at work");
        drop(busy);
        assert!(connections.take_place(&limits).is_some());
        assert!(is_closed(&places[0]).await);
    }

    #[tokio::test]
    async fn one_that_has_just_come_does_not_give_way() {
        let connections = Arc::new(Connections::default());
        let limits = limits(Duration::from_secs(3_600));
        let mut places: Vec<Place> = (0..4)
            .map(|_| connections.take_place(&limits).unwrap())
            .collect();
        assert!(connections.take_place(&limits).is_none());
        places.pop();
        assert!(connections.take_place(&limits).is_some());
    }

    #[test]
    fn the_first_head_has_one_time_from_connecting_and_each_later_one_its_own() {
        let start = Instant::now();
        let connection = Arc::new(Connection::new(start));
        let limits = ServeLimits::default();
        connection.has_read();
        assert!(connection.is_overdue(start + limits.header_timeout, &limits));
        drop(connection.begin_request());
        assert!(!connection.is_overdue(start + limits.header_timeout, &limits));
        assert!(connection.is_overdue(start + limits.idle_timeout * 2, &limits));
    }

    #[test]
    fn a_write_that_waits_too_long_is_overdue_and_one_that_moves_is_not() {
        let connection = Arc::new(Connection::new(Instant::now()));
        let limits = ServeLimits::default();
        let _busy = connection.begin_request();
        let later = Instant::now() + limits.stall_timeout * 2;
        connection.has_written(true);
        assert!(connection.is_overdue(later, &limits));
        connection.has_written(false);
        assert!(!connection.is_overdue(later, &limits));
    }
}
