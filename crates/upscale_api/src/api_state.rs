//! What every handler may reach: the store, the result files, the two public addresses and the limits.

use std::sync::Arc;

use upscale_core::ResultFile;
use upscale_store::{Results, Store};

use crate::{
    api_limits::ApiLimits,
    error::ApiError,
    health::SandboxBody,
    permits::Permits,
    readiness::Readiness,
    refusal_log::RefusalLog,
    results::{ResultDelivery, SigningKeys},
    storage_watch::StorageWatch,
    stripe::Stripe,
    throttle::Throttle,
    waiting::Waiting,
};

/// Shared by all requests of all listeners. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) store: Store,
    pub(crate) results: Results,
    pub(crate) base_url: Arc<str>,
    pub(crate) result_url: Arc<str>,
    pub(crate) delivery: ResultDelivery,
    pub(crate) limits: Arc<ApiLimits>,
    pub(crate) signing_keys: Arc<SigningKeys>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) storage: Arc<StorageWatch>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) refusals: Arc<RefusalLog>,
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
            delivery: ResultDelivery::default(),
            throttle: Arc::new(Throttle::new(&limits)),
            permits: Arc::new(Permits::new(&limits.permits)),
            waiting: Arc::default(),
            refusals: Arc::new(RefusalLog::new(limits.refusal_lines_per_second)),
            limits: Arc::new(limits),
            signing_keys: Arc::default(),
            readiness: Arc::default(),
            storage: Arc::default(),
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

    /// Which parts of the sandbox hold where this process decodes images, and which are missing: `/readyz` names them.
    pub fn sandbox_checked(&self, holds: Vec<&'static str>, missing: Vec<&'static str>) {
        self.readiness
            .sandbox_checked(SandboxBody { holds, missing });
    }

    /// From now on `/readyz` answers 503, so that a balancer sends no more requests here, and no request is held for its
    /// task any longer.
    pub fn begin_draining(&self) {
        self.readiness.begin_draining();
        self.waiting.end();
    }

    /// Whether this process can take requests: what `/readyz` says.
    ///
    /// # Errors
    /// Why not.
    pub async fn check_ready(&self) -> Result<(), String> {
        let ready = async {
            self.readiness.check(&self.store).await?;
            self.storage.check()
        };
        ready.await.map_err(|error| error.to_string())
    }

    /// A new URL for this file, good for an hour from now.
    pub(crate) async fn mint_result_url(&self, file: &ResultFile) -> Result<String, ApiError> {
        let path = self.signing_keys.sign(&self.store, &file.name).await?;
        Ok(format!("{}{path}", self.result_url))
    }
}
