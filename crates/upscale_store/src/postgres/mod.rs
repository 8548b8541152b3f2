//! The store in PostgreSQL 15 or newer, for many API and worker processes on many machines. Nothing about
//! money, limits or keys is remembered outside the database. Every writing verb is one transaction at READ
//! COMMITTED that locks the account's row before it reads what it decides by; so an account's creates and
//! settlements queue up behind each other, and those of different accounts never wait.

mod connection;
mod error;
mod open;
#[cfg(test)]
mod tests;
mod time;
mod tls;
mod url;

#[cfg(test)]
pub(crate) use self::open::migrate_to;
pub(crate) use self::{connection::Connection, open::Durability};

use std::sync::Arc;

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use upscale_core::Timestamp;

use self::time::Time;
use crate::{
    SecretKeys, StoreError, StoreOptions,
    param::Param,
    row::Row,
    tx::{Driver, Tx},
};

/// One database, by a pool of connections. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Db {
    pool: Pool,
    time: Time,
    options: StoreOptions,
    job_added: Arc<Notify>,
    pub(crate) secret_keys: Option<Arc<SecretKeys>>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

/// What a verb begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Single statements outside any transaction, each its own snapshot.
    Read,
    /// A transaction that ends with a commit.
    Write,
    /// One statement that writes and is committed by itself. Its `now` is [`Db::now`], not asked anew.
    Single,
    /// Several statements on one snapshot, for as long as an audit takes.
    Snapshot,
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
    pub(crate) fn job_added(&self) -> &Notify {
        &self.job_added
    }

    pub(crate) async fn run<T>(
        &self,
        begin: Begin,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tx = self.begin(begin).await?;
        let answer = verb(&mut tx).await;
        tx.end(answer).await
    }

    /// A transaction that begins with the statement that locks, and whose verb is told what that found.
    pub(crate) async fn run_locked<L, T>(
        &self,
        lock: &str,
        id: impl Param,
        parse: impl Fn(&dyn Row) -> Result<L, StoreError>,
        verb: impl AsyncFnOnce(&mut Tx, Option<L>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = Connection::take(self).await?;
        let (found, now) = connection
            .begin_locked(
                lock,
                &[&id],
                parse,
                #[cfg(test)]
                &self.faults,
            )
            .await?;
        let mut tx = self.tx(connection, now);
        let answer = verb(&mut tx, found).await;
        tx.end(answer).await
    }

    /// Writes these small tables anew: old versions of their rows are gone from their files.
    pub(crate) async fn rewrite(&self, tables: &[&str]) -> Result<(), StoreError> {
        let connection = self.pool.get().await.map_err(error::unavailable)?;
        for table in tables {
            connection
                .batch_execute(&format!("VACUUM FULL {table}"))
                .await?;
        }
        Ok(())
    }

    async fn begin(&self, begin: Begin) -> Result<Tx, StoreError> {
        let mut connection = Connection::take(self).await?;
        let now = match begin {
            Begin::Read | Begin::Single => self.now(),
            Begin::Write => connection.begin().await?,
            Begin::Snapshot => connection.begin_snapshot().await?,
        };
        let tx = self.tx(connection, now);
        // Faults are for writes: a reader's own never strike.
        #[cfg(test)]
        if matches!(begin, Begin::Read | Begin::Snapshot) {
            return Ok(tx.without_faults());
        }
        Ok(tx)
    }

    fn tx(&self, connection: Connection, now: Timestamp) -> Tx {
        Tx::new(
            Driver::Postgres(Box::new(connection)),
            now,
            self.options,
            #[cfg(test)]
            self.faults.clone(),
        )
    }
}
