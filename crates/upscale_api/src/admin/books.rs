//! Whether the books balance, as `upscale audit` says it. Reading them takes some tens of microseconds a task, so the
//! last answer is shown for a minute, or for twenty times as long as it took, and a slow one does not hold a page up.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use upscale_core::Timestamp;
use upscale_store::{AuditReport, Store};

/// An answer is good for this long.
const FRESH_SECONDS: i64 = 60;
/// And for this many times as long as it took.
const REST_FACTOR: u32 = 20;
/// How long a page waits for a new one.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What was found, and when.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) at: Timestamp,
    pub(crate) took: Duration,
    /// Or why nothing could be found out.
    pub(crate) report: Result<AuditReport, String>,
}

/// The last answer, and whether a new one is being made.
#[derive(Default)]
pub(crate) struct Books {
    state: Mutex<State>,
    done: Notify,
}

#[derive(Default)]
struct State {
    last: Option<Checked>,
    is_running: bool,
}

impl Books {
    /// The last answer, made anew where it is old; none while the first one takes long.
    pub(crate) async fn look(self: &Arc<Self>, store: &Store) -> Option<Checked> {
        let done = self.done.notified();
        if self.begin(store.now()) {
            let (books, store) = (Arc::clone(self), store.clone());
            tokio::spawn(async move { books.check(&store).await });
            let _ = tokio::time::timeout(WAIT_MAX, done).await;
        }
        self.state().last.clone()
    }

    fn begin(&self, now: Timestamp) -> bool {
        let mut state = self.state();
        let is_fresh = state.last.as_ref().is_some_and(|last| {
            let rest = (last.took * REST_FACTOR).as_secs();
            let good_for = FRESH_SECONDS.max(i64::try_from(rest).unwrap_or(i64::MAX));
            (0..good_for).contains(&now.seconds_since(last.at))
        });
        if is_fresh || state.is_running {
            return false;
        }
        state.is_running = true;
        true
    }

    async fn check(&self, store: &Store) {
        let begun = Instant::now();
        let report = store.audit(None).await.map_err(|error| error.to_string());
        let checked = Checked {
            at: store.now(),
            took: begun.elapsed(),
            report,
        };
        *self.state() = State {
            last: Some(checked),
            is_running: false,
        };
        self.done.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
