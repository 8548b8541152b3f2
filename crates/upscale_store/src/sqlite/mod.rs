//! The store in one SQLite file: one writing thread with group commit, a few reading threads. Nothing about
//! money, limits or keys is remembered outside the file, so that other processes may write it too.

mod accounts;
mod audit;
mod backup;
mod claim;
mod create_task;
mod error;
mod find_task;
mod history;
mod keys;
mod lease;
mod ledger;
mod open;
mod operator;
mod operator_tasks;
mod payments;
mod purchase;
mod queue_facts;
mod rate_window;
mod readers;
mod reap;
mod rows;
mod sessions;
mod settle;
mod signing_keys;
mod sweep;
mod task_rows;
#[cfg(test)]
mod tests;
mod tx;
mod users;
mod workers;
mod writer;

pub use self::backup::back_up;
pub(crate) use self::open::Durability;

use std::sync::Arc;

use tokio::sync::Notify;
use upscale_core::{Clock, Timestamp};

use self::{readers::Readers, tx::Tx, writer::Writer};
use crate::{StoreError, StoreOptions};

/// One database file, open. Cheap to clone; its threads end with the last clone.
#[derive(Debug, Clone)]
pub struct Db {
    writer: Writer,
    readers: Readers,
    job_added: Arc<Notify>,
    clock: Clock,
    options: StoreOptions,
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

    /// One permit is kept when nobody waits, so a job added just before is not slept through.
    pub(crate) async fn job_added(&self) {
        self.job_added.notified().await;
    }

    pub(crate) async fn check_writable(&self) -> Result<(), StoreError> {
        self.write(|tx| {
            tx.execute_one(
                "INSERT INTO probe (id, checked_at) VALUES (1, ?1)
                 ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at",
                [tx.now.micros()],
            )
        })
        .await
    }

    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.write(operation).await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read(query).await
    }
}
