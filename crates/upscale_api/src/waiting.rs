//! Requests that are held until their task is over, at the caller's own wish (`Prefer: wait=N`). All of them share one look
//! at the store every tenth of a second, so that a thousand cost neither a thread nor a query each. A look asks for the
//! state and not for news of it: what ended while the database could not be reached is found by the next one.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, request::Parts},
    response::Response,
};
use metrics::{counter, gauge};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};
use upscale_core::{Task, TaskId, TaskState};
use upscale_store::Store;

use crate::{
    api_state::ApiState,
    client_address::client_address,
    permits::{Owner, Permit},
    prefer::asked_wait,
    request_context::RequestContext,
};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// Between two looks: a twentieth of a second is what waiting adds on average.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A store that answers slowly is left alone for so many times as long as it took.
const REST_PER_LOOK: u32 = 4;

/// How long a request asks to be held, and from where it came.
pub(crate) struct Wish {
    wait: Option<Duration>,
    address: IpAddr,
}

impl Wish {
    /// As the headers say it.
    pub(crate) fn of(headers: &HeaderMap, address: IpAddr) -> Self {
        Self {
            wait: asked_wait(headers),
            address,
        }
    }
}

impl FromRequestParts<ApiState> for Wish {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Infallible> {
        let address = client_address(parts, &state.limits.trusted_proxies);
        Ok(Self::of(&parts.headers, address))
    }
}

/// A task at the end of a wait, which may not be its own.
pub(crate) struct Held {
    pub(crate) task: Task,
    /// The wish as it was granted.
    granted: Option<Duration>,
}

impl Held {
    /// Says that the wish was granted (RFC 7240 section 3); says nothing to who had none.
    pub(crate) fn write(&self, response: &mut Response) {
        let applied = self.granted.map(|wait| format!("wait={}", wait.as_secs()));
        if let Some(value) = applied.and_then(|text| HeaderValue::try_from(text).ok()) {
            response.headers_mut().insert(PREFERENCE_APPLIED, value);
        }
    }
}

/// The tasks that requests of this process are held for.
#[derive(Default)]
pub(crate) struct Waiting {
    watched: Mutex<Watched>,
    has_ended: watch::Sender<bool>,
}

#[derive(Default)]
struct Watched {
    tasks: HashMap<TaskId, watch::Sender<Option<Task>>>,
    /// Whether the look is running.
    is_looked_at: bool,
}

impl ApiState {
    /// Requests that are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.permits.waiting.taken()
    }

    /// Gives the task back once it is over, or when the time is, or when the process drains. At once where that was not
    /// asked, and where as many are held as may be: then it is as if it had not been asked.
    pub(crate) async fn hold(&self, context: &RequestContext, wish: &Wish, task: Task) -> Held {
        let not_granted = |task| Held {
            task,
            granted: None,
        };
        let Some(wait) = wish.wait else {
            return not_granted(task);
        };
        let granted = Some(wait);
        if task.state != TaskState::Processing {
            return Held { task, granted };
        }
        let Some(_permits) = self.take_permits(&task, wish.address) else {
            return not_granted(task);
        };
        let began = Instant::now();
        let _ = context.held_until.set(began + wait);
        let held = Counted::begin();
        let ended = self.waiting.wait(&self.store, task.id, began + wait).await;
        drop(held);
        let _ = context.held.set(began.elapsed());
        match ended {
            Wait::Ended(task) => Held { task, granted },
            Wait::InVain => Held { task, granted },
            Wait::Drained => not_granted(task),
        }
    }

    fn take_permits(&self, task: &Task, address: IpAddr) -> Option<[Permit; 2]> {
        let permits = &self.permits;
        let of_account = permits.waiting.take(Owner::Account(task.account_id)).ok()?;
        let of_address = permits.waiting_of_address.take(Owner::Address(address));
        Some([of_account, of_address.ok()?])
    }
}

/// How a wait ended.
enum Wait {
    Ended(Task),
    /// The task goes on.
    InVain,
    /// The process stops.
    Drained,
}

/// Counts one that is held while it lives.
struct Counted;

impl Counted {
    fn begin() -> Self {
        gauge!("upscale_requests_held").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        gauge!("upscale_requests_held").decrement(1.0);
    }
}

impl Waiting {
    /// No request is held from now on.
    pub(crate) fn end(&self) {
        self.has_ended.send_replace(true);
    }

    async fn wait(self: &Arc<Self>, store: &Store, task: TaskId, until: Instant) -> Wait {
        let mut draining = self.has_ended.subscribe();
        let mut news = self.watch(store, task);
        let over = async {
            let task = news.wait_for(Option::is_some).await.ok()?.clone()?;
            Some(Wait::Ended(task))
        };
        let ended = tokio::select! {
            ended = timeout_at(until, over) => ended.ok().flatten(),
            _ = draining.wait_for(|has_ended| *has_ended) => Some(Wait::Drained),
        };
        ended.unwrap_or(Wait::InVain)
    }

    /// Hears when the task is over. The first to wait starts the looking.
    fn watch(self: &Arc<Self>, store: &Store, task: TaskId) -> watch::Receiver<Option<Task>> {
        let mut watched = self.lock();
        let news = watched.tasks.entry(task).or_default().subscribe();
        if !watched.is_looked_at {
            watched.is_looked_at = true;
            tokio::spawn(look_while_anyone_waits(Arc::clone(self), store.clone()));
        }
        news
    }

    /// Which tasks are waited for now: those with no waiter left are forgotten.
    fn list(&self) -> Vec<TaskId> {
        let mut watched = self.lock();
        watched.tasks.retain(|_, news| !news.is_closed());
        watched.is_looked_at = !watched.tasks.is_empty();
        watched.tasks.keys().copied().collect()
    }

    fn tell(&self, ended: Vec<Task>) {
        let mut watched = self.lock();
        for task in ended {
            if let Some(news) = watched.tasks.remove(&task.id) {
                news.send_replace(Some(task));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one that looks for all of them.
async fn look_while_anyone_waits(waiting: Arc<Waiting>, store: Store) {
    let (mut rest, mut is_failing) = (LOOK_EVERY, false);
    loop {
        sleep(rest).await;
        let tasks = waiting.list();
        if tasks.is_empty() {
            return;
        }
        let began = Instant::now();
        counter!("upscale_waiting_looks_total").increment(1);
        match store.tasks().list_ended(tasks).await {
            Ok(ended) => {
                is_failing = false;
                waiting.tell(ended);
            }
            Err(error) if !is_failing => {
                is_failing = true;
                tracing::warn!(%error, "tasks that requests wait for cannot be looked at");
            }
            Err(_) => {}
        }
        rest = LOOK_EVERY.max(began.elapsed() * REST_PER_LOOK);
    }
}
