//! One account at one service: how requests are sent, tried again and understood. What they ask for stands in
//! `upscales.rs`.

use std::time::{Duration, Instant};

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER},
};
use rustls::pki_types::CertificateDer;
use tokio::time::sleep;
use url::Url;

use crate::{Error, ErrorKind, StatusError, Task, Upscales, backoff::wait_after, tls};

/// Longest answer to a create or a read; real ones have less than 3 KiB.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// One request, from connecting to the last byte of its answer, besides the time for which it asks to be held.
const REQUEST: Duration = Duration::from_secs(30);
/// The contract's: the service ends every task within 270 s of accepting it.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Enough for a service that restarts in half a minute: the pauses before them are 33 s together on average.
const MAX_RETRIES: u32 = 10;

/// One account's key and where to use it. Cloning is cheap and shares the connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    pub(crate) timeout: Duration,
    max_retries: u32,
}

impl Client {
    /// `base_url` is the service without `/api/v1`, such as `https://api.example.com`.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] when the address or the key cannot be one, or TLS cannot be had.
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
            ErrorKind::Setup(format!(
                "{base_url:?} is no address such as https://api.example.com"
            ))
        })?;
        let no_key =
            |_| ErrorKind::Setup("an API key has visible ASCII characters only".to_owned());
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
            .map_err(|error| ErrorKind::Setup(error.to_string()))?;
        Ok(Self {
            http,
            base,
            authorization,
            timeout: TIMEOUT,
            max_retries: MAX_RETRIES,
        })
    }

    /// How long one call may take, from its first request to its end, retries and waiting included; 300 s by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often one request is sent again after what is temporary; 10 by default, and never beyond the timeout.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// The tasks of this account: create, retrieve, wait, run, download.
    #[must_use]
    pub fn upscales(&self) -> Upscales<'_> {
        Upscales { client: self }
    }

    /// Sends until the answer is no temporary failure, or tries or time are used up: then the last failure is the
    /// answer. A request that asks to be held has that time besides.
    pub(crate) async fn persist(
        &self,
        request: impl Fn() -> RequestBuilder,
        held: Duration,
        started: Instant,
    ) -> Result<Answer, Error> {
        let mut tries = 0;
        loop {
            let failure = match self.send(request().timeout(REQUEST + held)).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_temporary() && tries < self.max_retries => error,
                Err(error) => return Err(error),
            };
            let wait = wait_after(tries, failure.retry_after())?;
            if started.elapsed() + wait > self.timeout {
                return Err(failure);
            }
            sleep(wait).await;
            tries += 1;
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, Error> {
        let began = Instant::now();
        let mut response = request.send().await?;
        let retry_after = retry_after(&response);
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_BYTES_MAX {
                let what = format!("more than {ANSWER_BYTES_MAX} bytes");
                return Err(ErrorKind::UnexpectedResponse(what).into());
            }
        }
        if status.is_client_error() || status.is_server_error() {
            return Err(StatusError::read(status.as_u16(), retry_after, &body).into());
        }
        Ok(Answer {
            status,
            headers,
            retry_after,
            body,
            took: began.elapsed(),
        })
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http
            .request(method, url)
            .header(AUTHORIZATION, self.authorization.clone())
    }

    /// Below the base address, whether or not that ends in a slash.
    pub(crate) fn api_url(&self, path: &str) -> Result<Url, Error> {
        let base = self.base.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/api/v1/{path}"))
            .map_err(|error| ErrorKind::Setup(error.to_string()).into())
    }
}

/// An answer that is no failure.
pub(crate) struct Answer {
    status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) retry_after: Option<Duration>,
    body: Vec<u8>,
    took: Duration,
}

impl Answer {
    pub(crate) fn task(&self, expected: StatusCode) -> Result<Task, Error> {
        if self.status != expected {
            let what = format!("answered {}, not {expected}", self.status);
            return Err(ErrorKind::UnexpectedResponse(what).into());
        }
        let sha256 = self.headers.get("X-Result-Sha256");
        let sha256 = sha256.and_then(|value| value.to_str().ok());
        Task::read(&self.body, sha256.map(str::to_owned))
    }

    /// Whether the service held the request as it was asked to. One that says so and comes at once is not believed:
    /// asking it again at once would be a loop without a pause.
    pub(crate) fn was_held(&self) -> bool {
        self.headers.contains_key("Preference-Applied") && self.took >= Duration::from_millis(500)
    }
}

pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.parse().ok().map(Duration::from_secs)
}
