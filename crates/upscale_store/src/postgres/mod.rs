//! The store in PostgreSQL 15 or newer, for many API and worker processes on many machines. Nothing about
//! money, limits or keys is remembered outside the database. Every writing verb is one transaction at READ
//! COMMITTED that locks the account's row before it reads what it decides by; so an account's creates and
//! settlements queue up behind each other, and those of different accounts never wait.

mod accounts;
mod audit;
mod claim;
mod create_task;
mod error;
mod find_task;
mod history;
mod keys;
mod lease;
mod ledger;
mod old_transactions;
mod open;
mod operator;
mod operator_tasks;
mod payments;
mod purchase;
mod queue_facts;
mod rate_window;
mod reap;
mod rows;
mod sessions;
mod settle;
mod signing_keys;
mod sweep;
mod task_rows;
#[cfg(test)]
mod tests;
mod time;
mod tls;
mod tx;
mod url;
mod users;
mod workers;

pub(crate) use self::open::Durability;

use std::sync::Arc;

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use upscale_core::Timestamp;

use self::{
    time::Time,
    tx::{Begin, Tx},
};
use crate::{StoreError, StoreOptions};

/// One database, by a pool of connections. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Db {
    pool: Pool,
    time: Time,
    options: StoreOptions,
    job_added: Arc<Notify>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl Db {
    pub(crate) fn now(&self) -> Timestamp {
        self.time.now()
    }

    pub(crate) fn options(&self) -> StoreOptions {
        self.options
    }

    /// By a verb of this process; jobs of other processes are found by polling. No NOTIFY: its commits queue
    /// up behind one lock of the whole server.
    pub(crate) async fn job_added(&self) {
        self.job_added.notified().await;
    }

    pub(crate) async fn check_writable(&self) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let sql = "INSERT INTO probe (id, checked_at) VALUES (1, $1)
                   ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at";
        let written = tx.execute_one(sql, &[&tx.now.micros()]).await;
        tx.end(written).await
    }

    /// A transaction that writes; [`Tx::end`] commits it.
    async fn begin(&self) -> Result<Tx, StoreError> {
        Tx::begin(self, Begin::Write).await
    }

    /// One statement that writes and is committed by itself. Its `now` is [`Db::now`], not asked anew.
    async fn single(&self) -> Result<Tx, StoreError> {
        Tx::begin(self, Begin::Single).await
    }

    /// Single statements, each its own snapshot.
    async fn read(&self) -> Result<Tx, StoreError> {
        Tx::begin(self, Begin::Read).await
    }

    /// Several statements on one snapshot, for as long as an audit takes.
    async fn snapshot(&self) -> Result<Tx, StoreError> {
        Tx::begin(self, Begin::Snapshot).await
    }
}
