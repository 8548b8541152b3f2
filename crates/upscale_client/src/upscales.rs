//! What can be done with tasks: create one, retrieve it, wait for its end, or all of it at once.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, StatusCode};
use tokio::time::sleep;

use crate::{
    Client, Error, ErrorKind, Failed, IdempotencyKey, Order, Succeeded, Task, client::Answer,
};

/// The service holds a request this long at most.
const HELD_MAX: Duration = Duration::from_secs(30);
/// Where the service holds nothing: before the first poll, and the shortest pause between two.
const FIRST_POLL: Duration = Duration::from_secs(3);
/// The longest pause between two polls.
const SLOWEST_POLL: Duration = Duration::from_secs(10);

/// A task that the service accepted; it may not have begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The task as it is now.
    pub task: Task,
    /// Whether an earlier request had made it: nothing more was reserved.
    pub is_replay: bool,
}

/// The tasks of one account; of [`Client::upscales`].
#[derive(Debug, Clone, Copy)]
pub struct Upscales<'a> {
    pub(crate) client: &'a Client,
}

/// A task and what its answer said of the next one.
struct Poll {
    task: Task,
    /// To be slept before the next.
    pause: Duration,
}

impl Upscales<'_> {
    /// Orders and waits for the end, under a key that is minted for it and stands on every error.
    ///
    /// # Errors
    /// [`ErrorKind::TaskFailed`] when the task failed; [`ErrorKind::PollTimeout`] holds its id when time ran out; the
    /// rest as [`Upscales::create`].
    pub async fn run(self, order: &Order) -> Result<Succeeded, Error> {
        self.run_as(order, &IdempotencyKey::mint()?).await
    }

    /// The same under the caller's own key, which may have been used for this order before.
    ///
    /// # Errors
    /// As [`Upscales::run`].
    pub async fn run_as(self, order: &Order, key: &IdempotencyKey) -> Result<Succeeded, Error> {
        let started = Instant::now();
        let ended = async {
            let held = self.hold(started);
            let answer = self.send_order(order, key, held, started).await?;
            let task = answer.task(StatusCode::ACCEPTED)?;
            self.until_over(reading(&answer, task, FIRST_POLL), started)
                .await
        };
        ended.await.map_err(|error| error.under(key))
    }

    /// Creates the task, or finds the one that this key made before, and does not wait for its end. What is temporary is
    /// tried again under the same key, so nothing is paid twice.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] with the service's words, or [`ErrorKind::Connection`]; after a temporary one the same order
    /// may be sent under the same key again.
    pub async fn create(self, order: &Order, key: &IdempotencyKey) -> Result<Created, Error> {
        let created = async {
            let started = Instant::now();
            let answer = self.send_order(order, key, Duration::ZERO, started).await?;
            Ok(Created {
                is_replay: answer.headers.contains_key("Idempotent-Replayed"),
                task: answer.task(StatusCode::ACCEPTED)?,
            })
        };
        created.await.map_err(|error: Error| error.under(key))
    }

    /// Reads the task once, as it is now.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] (404 when there is no such task of this account), [`ErrorKind::Connection`].
    pub async fn retrieve(self, id: &str) -> Result<Task, Error> {
        let read = self.read(id, Duration::ZERO, FIRST_POLL, Instant::now());
        Ok(read.await?.task)
    }

    /// Waits for the task's end. The service holds the question until then; where it does not, it is asked again as it says:
    /// first after 3 s, later up to 10 s apart.
    ///
    /// # Errors
    /// As [`Upscales::run`].
    pub async fn wait(self, id: &str) -> Result<Succeeded, Error> {
        let started = Instant::now();
        let first = self
            .read(id, self.hold(started), FIRST_POLL, started)
            .await?;
        self.until_over(first, started).await
    }

    async fn until_over(self, mut last: Poll, started: Instant) -> Result<Succeeded, Error> {
        loop {
            let id = match last.task {
                Task::Succeeded(done) => return Ok(done),
                Task::Failed(Failed { id, failure }) => {
                    return Err(ErrorKind::TaskFailed { id, failure }.into());
                }
                Task::Processing(task) => task.id,
            };
            if started.elapsed() + last.pause >= self.client.timeout {
                let waited = started.elapsed();
                return Err(ErrorKind::PollTimeout { id, waited }.into());
            }
            sleep(last.pause).await;
            last = self
                .read(&id, self.hold(started), last.pause, started)
                .await?;
        }
    }

    async fn read(
        self,
        id: &str,
        held: Duration,
        pause: Duration,
        started: Instant,
    ) -> Result<Poll, Error> {
        let url = self.client.api_url(&format!("upscales/{id}"))?;
        let request = || asking(self.client.request(Method::GET, url.clone()), held);
        let answer = self.client.persist(request, held, started).await?;
        let task = answer.task(StatusCode::OK)?;
        Ok(reading(&answer, task, pause))
    }

    async fn send_order(
        self,
        order: &Order,
        key: &IdempotencyKey,
        held: Duration,
        started: Instant,
    ) -> Result<Answer, Error> {
        let url = self.client.api_url("upscales")?;
        let request = || {
            asking(self.client.request(Method::POST, url.clone()), held)
                .header("Idempotency-Key", key.as_str())
                .header("Content-Type", "application/json")
                .body(serde_json::to_vec(order).unwrap_or_default())
        };
        self.client.persist(request, held, started).await
    }

    /// How long the next request may be held: whole seconds of what is left.
    fn hold(self, started: Instant) -> Duration {
        let left = self.client.timeout.saturating_sub(started.elapsed());
        Duration::from_secs(left.min(HELD_MAX).as_secs())
    }
}

fn asking(request: RequestBuilder, held: Duration) -> RequestBuilder {
    match held.as_secs() {
        0 => request,
        seconds => request.header("Prefer", format!("wait={seconds}")),
    }
}

/// After a request that was held the next follows at once; else after what the service asks for.
fn reading(answer: &Answer, task: Task, pause: Duration) -> Poll {
    let asked = answer.retry_after.unwrap_or(pause.mul_f64(1.5));
    let pause = match answer.was_held() {
        true => Duration::ZERO,
        false => asked.min(SLOWEST_POLL).max(FIRST_POLL),
    };
    Poll { task, pause }
}
