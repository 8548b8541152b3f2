//! Whether this process can take requests: it can commit a write, its engine has passed the golden image, and it is not on
//! its way out.

use std::sync::{
    OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Mutex;
use upscale_core::Timestamp;
use upscale_store::Store;

use crate::{error::ApiError, health::SandboxBody};

/// A probe that anyone may send must not become a write each: one answer serves for this long.
const FRESH_MICROS: i64 = 1_000_000;

/// Where the engine of this process stands.
#[derive(Debug, Clone, Default)]
enum Engine {
    /// No image is made here.
    #[default]
    None,
    Checking,
    Right,
    Wrong(String),
}

/// What the last checks said.
#[derive(Default)]
pub(crate) struct Readiness {
    is_draining: AtomicBool,
    engine: std::sync::Mutex<Engine>,
    sandbox: OnceLock<SandboxBody>,
    last: Mutex<Option<(Timestamp, Result<(), ApiError>)>>,
}

impl Readiness {
    pub(crate) fn begin_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect_engine(&self) {
        self.set_engine(Engine::Checking);
    }

    pub(crate) fn engine_checked(&self, checked: Result<(), String>) {
        self.set_engine(checked.map_or_else(Engine::Wrong, |()| Engine::Right));
    }

    /// Asked once, at the start.
    pub(crate) fn sandbox_checked(&self, sandbox: SandboxBody) {
        self.sandbox.get_or_init(|| sandbox);
    }

    pub(crate) fn sandbox(&self) -> Option<SandboxBody> {
        self.sandbox.get().cloned()
    }

    fn set_engine(&self, engine: Engine) {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = engine;
    }

    fn check_engine(&self) -> Result<(), ApiError> {
        let engine = self
            .engine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let detail = match engine {
            Engine::None | Engine::Right => return Ok(()),
            Engine::Checking => "the golden image is not done".to_owned(),
            Engine::Wrong(reason) => reason,
        };
        Err(ApiError::Unavailable {
            retry_after_seconds: 1,
            detail,
        })
    }

    pub(crate) async fn check(&self, store: &Store) -> Result<(), ApiError> {
        if self.is_draining.load(Ordering::Relaxed) {
            return Err(ApiError::Unavailable {
                retry_after_seconds: 1,
                detail: "draining".to_owned(),
            });
        }
        self.check_engine()?;
        let mut last = self.last.lock().await;
        let now = store.now();
        if let Some((at, answer)) = last.as_ref()
            && (0..FRESH_MICROS).contains(&(now.micros() - at.micros()))
        {
            return answer.clone();
        }
        let answer = store.check_writable().await.map_err(ApiError::from);
        *last = Some((now, answer.clone()));
        answer
    }
}
