//! The dance: create, wait, read, download.

use std::time::{Duration, Instant};

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER},
};
use rustls::pki_types::CertificateDer;
use tokio::time::sleep;
use url::Url;

use crate::{ApiError, Error, IdempotencyKey, Order, Status, Task, backoff::wait_after, tls};

/// Longest answer to a create or a read; real ones have less than 3 KiB.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the first request of an order to its end, retries and waits included. The service ends every task within
    /// 270 s of accepting it.
    pub total: Duration,
    /// One request, from connecting to the last byte of its answer; a download may take [`Patience::total`].
    pub request: Duration,
    /// Before the first poll, and the shortest pause between two.
    pub first_poll: Duration,
    /// The longest pause between two polls.
    pub slowest_poll: Duration,
}

impl Default for Patience {
    /// The contract's: 300 s in all, polls after 3 s and up to 10 s apart; 30 s a request.
    fn default() -> Self {
        Self {
            total: Duration::from_secs(300),
            request: Duration::from_secs(30),
            first_poll: Duration::from_secs(3),
            slowest_poll: Duration::from_secs(10),
        }
    }
}

/// An accepted order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The task as it is now.
    pub task: Task,
    /// Whether an earlier request had made it: nothing more was reserved.
    pub is_replay: bool,
}

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polled {
    /// The task as it is now.
    pub task: Task,
    /// When the service expects news; absent when it is over.
    pub retry_after: Option<Duration>,
}

/// One account's key and where to use it. Cloning is cheap and shares the connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    pub(crate) patience: Patience,
}

impl Client {
    /// `base_url` is the service without `/api/v1`, such as `https://api.example.com`.
    ///
    /// # Errors
    /// [`Error::Setup`] when the address or the key cannot be one, or TLS cannot be had.
    pub fn new(base_url: &str, api_key: &str) -> Result<Self, Error> {
        Self::trusting(base_url, api_key, Vec::new())
    }

    /// The same, trusting further root certificates (DER) beside the platform's.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn trusting(base_url: &str, api_key: &str, roots: Vec<Vec<u8>>) -> Result<Self, Error> {
        let base = Url::parse(base_url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = base.ok_or_else(|| {
            Error::Setup(format!(
                "{base_url:?} is no address such as https://api.example.com"
            ))
        })?;
        let no_key = |_| Error::Setup("an API key has visible ASCII characters only".to_owned());
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {api_key}")).map_err(no_key)?;
        authorization.set_sensitive(true);
        let roots = roots.into_iter().map(CertificateDer::from).collect();
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(roots)?)
            .user_agent(concat!("upscale-client-rust/", env!("CARGO_PKG_VERSION")))
            // A key must not follow a redirect to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| Error::Setup(error.to_string()))?;
        Ok(Self {
            http,
            base,
            authorization,
            patience: Patience::default(),
        })
    }

    /// With other limits of time.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Orders and waits for the end under a key of its own.
    ///
    /// # Errors
    /// [`Error::Failed`] when the task failed; [`Error::GaveUp`] holds the id and the key when time ran out; the rest as
    /// [`Client::create`].
    pub async fn upscale(&self, order: &Order) -> Result<Task, Error> {
        let key = IdempotencyKey::mint()?;
        let started = Instant::now();
        let created = self.create(order, &key).await?;
        self.until_over(created.task, Some(&key), started).await
    }

    /// Creates the task, or finds the one that this key made before. Retries what is temporary.
    ///
    /// # Errors
    /// [`Error::Refused`] with the service's words, or [`Error::Unreachable`]; after a temporary one the same order may
    /// be sent under the same key again.
    pub async fn create(&self, order: &Order, key: &IdempotencyKey) -> Result<Created, Error> {
        let url = self.api_url("upscales")?;
        let request = || {
            self.request(Method::POST, url.clone())
                .header("Idempotency-Key", key.as_str())
                .header("Content-Type", "application/json")
                .body(serde_json::to_vec(order).unwrap_or_default())
        };
        let started = Instant::now();
        let answer = self.persist(request, started).await?;
        if answer.status != StatusCode::ACCEPTED {
            return Err(answer.unexpected("a create"));
        }
        Ok(Created {
            is_replay: answer.headers.contains_key("Idempotent-Replayed"),
            task: answer.task()?,
        })
    }

    /// Reads the task once. Retries what is temporary.
    ///
    /// # Errors
    /// [`Error::Refused`] (404 when there is no such task of this account), [`Error::Unreachable`].
    pub async fn read(&self, id: &str) -> Result<Polled, Error> {
        self.read_since(id, Instant::now()).await
    }

    /// Waits for the task's end, polling as the service asks: first after 3 s, later up to 10 s apart.
    ///
    /// # Errors
    /// As [`Client::upscale`].
    pub async fn wait(&self, id: &str) -> Result<Task, Error> {
        let started = Instant::now();
        let task = self.read_since(id, started).await?.task;
        self.until_over(task, None, started).await
    }

    /// Waits for the end of a task that is known already, such as what [`Client::create`] gave.
    ///
    /// # Errors
    /// As [`Client::upscale`].
    pub async fn finish(&self, task: Task, key: &IdempotencyKey) -> Result<Task, Error> {
        self.until_over(task, Some(key), Instant::now()).await
    }

    async fn until_over(
        &self,
        mut task: Task,
        key: Option<&IdempotencyKey>,
        started: Instant,
    ) -> Result<Task, Error> {
        let (first, slowest) = (self.patience.first_poll, self.patience.slowest_poll);
        let mut pause = first;
        while !task.is_over() {
            self.pause(pause, started, &task.id, key).await?;
            let polled = self.read_since(&task.id, started).await?;
            let asked = polled.retry_after.unwrap_or(pause.mul_f64(1.5));
            pause = asked.min(slowest).max(first);
            task = polled.task;
        }
        match task.status {
            Status::Failed(failure) => Err(Error::Failed {
                id: task.id,
                failure,
            }),
            _ => Ok(task),
        }
    }

    async fn read_since(&self, id: &str, started: Instant) -> Result<Polled, Error> {
        let url = self.api_url(&format!("upscales/{id}"))?;
        let request = || self.request(Method::GET, url.clone());
        let answer = self.persist(request, started).await?;
        if answer.status != StatusCode::OK {
            return Err(answer.unexpected("a read"));
        }
        Ok(Polled {
            retry_after: answer.retry_after,
            task: answer.task()?,
        })
    }

    /// Sends until the answer is no temporary failure, or patience ends: then the last failure is the answer.
    async fn persist(
        &self,
        request: impl Fn() -> RequestBuilder,
        started: Instant,
    ) -> Result<Answer, Error> {
        let mut tries = 0;
        loop {
            let failure = match self.send(request()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_temporary() => error,
                Err(error) => return Err(error),
            };
            let wait = wait_after(tries, failure.retry_after())?;
            if started.elapsed() + wait > self.patience.total {
                return Err(failure);
            }
            sleep(wait).await;
            tries += 1;
        }
    }

    async fn pause(
        &self,
        pause: Duration,
        started: Instant,
        id: &str,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), Error> {
        if started.elapsed() + pause > self.patience.total {
            return Err(Error::gave_up(id, key, started.elapsed()));
        }
        sleep(pause).await;
        Ok(())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, Error> {
        let mut response = request.timeout(self.patience.request).send().await?;
        let retry_after = retry_after(&response);
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(Error::Unexpected(format!(
                    "more than {ANSWER_BYTES_MAX} bytes"
                )));
            }
        }
        if status.is_client_error() || status.is_server_error() {
            return Err(ApiError::read(status.as_u16(), retry_after, &body).into());
        }
        Ok(Answer {
            status,
            headers,
            retry_after,
            body,
        })
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http
            .request(method, url)
            .header(AUTHORIZATION, self.authorization.clone())
    }

    /// Below the base address, whether or not that ends in a slash.
    fn api_url(&self, path: &str) -> Result<Url, Error> {
        let base = self.base.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/api/v1/{path}"))
            .map_err(|error| Error::Setup(error.to_string()))
    }
}

/// An answer that is no failure.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl Answer {
    fn task(&self) -> Result<Task, Error> {
        let sha256 = self.headers.get("X-Result-Sha256");
        let sha256 = sha256.and_then(|value| value.to_str().ok());
        Task::read(&self.body, sha256.map(str::to_owned))
    }

    fn unexpected(&self, what: &str) -> Error {
        Error::Unexpected(format!("{what} was answered {}", self.status))
    }
}

pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.parse().ok().map(Duration::from_secs)
}
