//! The store in one SQLite file: one writing thread with group commit, a few reading threads. Nothing about
//! money, limits or keys is remembered outside the file, so that other processes may write it too.

mod abort;
mod backup;
mod connection;
mod error;
mod open;
mod opened_file;
mod plan;
mod readers;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(test)]
pub(crate) use self::open::migrate_to;
pub use self::{backup::back_up, open::DATABASE_FILE};
pub(crate) use self::{connection::Connection, open::Durability};

use std::{
    path::Path,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;
use upscale_core::{Clock, Timestamp};

use self::{readers::Readers, writer::Writer};
use crate::{SecretKeys, StoreError, StoreOptions, tx::Tx};

/// One database file, open. Cheap to clone; its threads end with the last clone.
#[derive(Debug, Clone)]
pub struct Db {
    writer: Writer,
    readers: Readers,
    job_added: Arc<Notify>,
    clock: Clock,
    options: StoreOptions,
    path: Arc<Path>,
    pub(crate) secret_keys: Option<Arc<SecretKeys>>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl Db {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn options(&self) -> StoreOptions {
        self.options
    }

    /// One permit is kept when no one waits, so a job added just before is not slept through.
    pub(crate) fn job_added(&self) -> &Notify {
        &self.job_added
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let operation = move |tx: &mut Tx| drive(pin!(verb(tx)));
        self.writer.write(operation).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let query = move |tx: &mut Tx| drive(pin!(verb(tx)));
        self.readers.read(query).await
    }
}

impl Db {
    /// Makes the file anew of what it holds, so that nothing is left in its free room or in its log.
    pub(crate) async fn rewrite(&self) -> Result<(), StoreError> {
        let path = Arc::clone(&self.path);
        let done = tokio::task::spawn_blocking(move || open::rewrite(&path)).await;
        done.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }
}

/// Runs a verb to its end on this thread: no statement here is ever waited for. It stays where it is: some are of
/// several kilobytes.
fn drive<T>(verb: Pin<&mut impl Future<Output = Result<T, StoreError>>>) -> Result<T, StoreError> {
    let waited = "a verb waited for something that is not the file";
    match verb.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(StoreError::Corrupt(waited.to_owned())),
    }
}
