//! What every handler may reach: the store, the result files, the two public addresses and the limits.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use upscale_store::{Results, Store};

use crate::{health::Readiness, results::SigningKeys, stripe::Stripe, throttle::Throttle};

/// What one request may take and how often one caller may come; the defaults are the contract's.
#[derive(Debug, Clone)]
pub struct ApiLimits {
    /// A request is answered after this long, with 504 when the store was not done.
    pub request_timeout: Duration,
    /// The create body has arrived after this long or the request ends with 400.
    pub body_timeout: Duration,
    /// Requests answered at a time; beyond, 503.
    pub answers_max: usize,
    /// Failing authentications a minute from one address before 429 takes the place of 401. A valid key is
    /// never refused for what others at its address do: many customers may share a proxy.
    pub failing_auth_per_minute: u32,
    /// Reads a second of one account before 429; ten times as many at once. 20 active tasks polled every
    /// 3 seconds are 7 a second.
    pub reads_per_second: u32,
    /// Proxies whose `X-Forwarded-For` is believed when the client's address is wanted; none by default.
    pub trusted_proxies: Vec<IpAddr>,
}

/// Failing authentications a minute from one address, unless configured otherwise.
pub const FAILING_AUTH_PER_MINUTE: u32 = 300;
/// Reads a second of one account, unless configured otherwise.
pub const READS_PER_SECOND: u32 = 100;

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(5),
            answers_max: 1_024,
            failing_auth_per_minute: FAILING_AUTH_PER_MINUTE,
            reads_per_second: READS_PER_SECOND,
            trusted_proxies: Vec::new(),
        }
    }
}

/// Shared by all requests of both listeners. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) store: Store,
    pub(crate) results: Results,
    pub(crate) base_url: Arc<str>,
    pub(crate) result_url: Arc<str>,
    pub(crate) limits: Arc<ApiLimits>,
    pub(crate) signing_keys: Arc<SigningKeys>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) stripe: Option<Arc<Stripe>>,
}

impl ApiState {
    /// `base_url` and `result_url` are what clients see, such as `https://api.example.com`, without a
    /// trailing slash (one is removed).
    #[must_use]
    pub fn new(
        store: Store,
        results: Results,
        base_url: &str,
        result_url: &str,
        limits: ApiLimits,
    ) -> Self {
        Self {
            store,
            results,
            base_url: base_url.trim_end_matches('/').into(),
            result_url: result_url.trim_end_matches('/').into(),
            throttle: Arc::new(Throttle::new(&limits)),
            places: Arc::new(Semaphore::new(limits.answers_max)),
            limits: Arc::new(limits),
            signing_keys: Arc::default(),
            readiness: Arc::default(),
            stripe: None,
        }
    }

    /// Credits can be bought from now on.
    #[must_use]
    pub fn with_stripe(mut self, stripe: Stripe) -> Self {
        self.stripe = Some(Arc::new(stripe));
        self
    }

    /// Images are made in this process: until [`ApiState::engine_checked`] hears that they are right, `/readyz`
    /// answers 503.
    pub fn expect_engine(&self) {
        self.readiness.expect_engine();
    }

    /// What came of the golden image; the reason of a failure is for the log.
    pub fn engine_checked(&self, checked: Result<(), String>) {
        self.readiness.engine_checked(checked);
    }

    /// From now on `/readyz` answers 503, so that a balancer sends no more requests here.
    pub fn begin_draining(&self) {
        self.readiness.begin_draining();
    }
}
