//! Whether results can be stored: tried in the background and remembered, so that no request waits for a storage that
//! hangs. While it is known that they cannot, the process is not ready and takes no new tasks, for each would be upscaled
//! in vain.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use metrics::gauge;
use tokio::time::sleep;
use upscale_store::StoreError;

use crate::{api_state::ApiState, error::ApiError};

/// Between two tries while results can be stored.
const WHILE_UP: Duration = Duration::from_secs(5);
/// Between two tries while they cannot, and before the second one that confirms an outage.
const WHILE_DOWN: Duration = Duration::from_secs(1);
/// What who is refused is told to wait.
const RETRY_AFTER_SECONDS: i64 = 5;

/// What the last try said; usable until one said otherwise.
#[derive(Debug, Default)]
pub(crate) struct StorageWatch {
    outage: Mutex<Option<String>>,
}

impl StorageWatch {
    /// # Errors
    /// [`ApiError::Unavailable`] while results cannot be stored.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*outage {
            None => Ok(()),
            Some(why) => Err(ApiError::Unavailable {
                retry_after_seconds: RETRY_AFTER_SECONDS,
                detail: format!("results cannot be stored: {why}"),
            }),
        }
    }

    /// Logged when it changes.
    fn tried(&self, tried: Result<(), StoreError>) {
        gauge!("upscale_storage_up").set(f64::from(u8::from(tried.is_ok())));
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match (&tried, outage.is_some()) {
            (Err(error), false) => {
                tracing::error!(%error, "results cannot be stored: no new tasks are taken");
            }
            (Ok(()), true) => tracing::info!("results can be stored again"),
            _ => {}
        }
        *outage = tried.err().map(|error| error.to_string());
    }
}

impl ApiState {
    /// Tries the storage once, for a few seconds at most, and goes by what that says.
    pub async fn try_storage(&self) {
        self.storage.tried(self.results.probe().await);
    }

    /// Goes on trying it, until this future is dropped. One failure is no outage: a second one follows at once.
    pub async fn watch_storage(&self) {
        loop {
            let is_up = self.storage.check().is_ok();
            sleep(if is_up { WHILE_UP } else { WHILE_DOWN }).await;
            let tried = self.results.probe().await;
            if tried.is_err() && is_up {
                sleep(WHILE_DOWN).await;
                self.try_storage().await;
            } else {
                self.storage.tried(tried);
            }
        }
    }
}
