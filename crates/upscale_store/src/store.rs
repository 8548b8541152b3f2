//! The store as its callers hold it, the handles of its nouns, and the ways in which a verb reaches its engine. A verb
//! stands in its noun's folder and is reached by the noun's handle: `store.tasks().claim(..)` is `claim` of
//! [`Tasks`], in `tasks/claim.rs`. What is about the store as a whole (opening, time, readiness, audit, sweep, signing
//! keys) is of [`Store`] itself. Every verb may answer
//! [`StoreError::Unavailable`] (busy, full, cut off: nothing was changed) or [`StoreError::Corrupt`] (a row that cannot
//! be); those that write also with [`StoreError::OutcomeUnknown`] (the answer to the commit was lost), and those that take
//! what a person typed with [`StoreError::Refused`] (an argument that should not have come this far).

use std::{path::Path, sync::Arc};

use tokio::sync::Notify;
use upscale_core::{AccountId, Clock, Timestamp};

use crate::{
    Accounts, Operator, Payments, SecretKeys, StoreError, StoreOptions, Tasks, Users,
    param::Param,
    postgres::{self, Begin},
    row::Row,
    sqlite,
    tx::Tx,
};

/// Everything durable but the result files. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Store {
    /// One file on this machine.
    Sqlite(sqlite::Db),
    /// A PostgreSQL server, for many machines.
    Postgres(postgres::Db),
}

impl Store {
    /// Opens (and migrates) the database `upscale.db` under `directory`, which is made where absent. Other
    /// processes may have it open.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the directory or file cannot be written.
    pub async fn open_sqlite(
        directory: &Path,
        clock: Clock,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::open_sqlite_with(directory, clock, options, sqlite::Durability::Full).await
    }

    pub(crate) async fn open_sqlite_with(
        directory: &Path,
        clock: Clock,
        options: StoreOptions,
        durability: sqlite::Durability,
    ) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        let open = move || sqlite::Db::open(&directory, clock, options, durability);
        let opened = tokio::task::spawn_blocking(open).await;
        let db = opened.map_err(|error| StoreError::Unavailable(error.to_string()))??;
        Ok(Self::Sqlite(db))
    }

    /// Opens (and migrates) the PostgreSQL database at `address`, a libpq URL such as
    /// `postgres://user:password@host/database?sslmode=verify-full`, with at most `connections` at a time.
    /// The server's clock is the store's clock, unless `clock` is turned by hand.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the address is wrong, no one answers there, or the server is too old.
    pub async fn open_postgres(
        address: &str,
        connections: u32,
        clock: Clock,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let durability = postgres::Durability::Full;
        let db = postgres::Db::open(address, connections, clock, options, durability).await?;
        Ok(Self::Postgres(db))
    }

    /// The same store with the keys of its sealed secrets. Nothing is sealed by this: [`Store::seal_secrets`] does.
    #[must_use]
    pub fn with_secret_keys(mut self, keys: SecretKeys) -> Self {
        let keys = Some(Arc::new(keys));
        match &mut self {
            Self::Sqlite(db) => db.secret_keys = keys,
            Self::Postgres(db) => db.secret_keys = keys,
        }
        self
    }

    pub(crate) fn secret_keys(&self) -> Option<&Arc<SecretKeys>> {
        match self {
            Self::Sqlite(db) => db.secret_keys.as_ref(),
            Self::Postgres(db) => db.secret_keys.as_ref(),
        }
    }

    /// The verbs of tasks, the queue and its workers.
    #[must_use]
    pub fn tasks(&self) -> Tasks<'_> {
        Tasks { store: self }
    }

    /// The verbs of accounts: credits, keys, ledger.
    #[must_use]
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts { store: self }
    }

    /// The verbs of users: passwords, sessions.
    #[must_use]
    pub fn users(&self) -> Users<'_> {
        Users { store: self }
    }

    /// The verbs of purchases through a payment service.
    #[must_use]
    pub fn payments(&self) -> Payments<'_> {
        Payments { store: self }
    }

    /// The verbs of operators.
    #[must_use]
    pub fn operator(&self) -> Operator<'_> {
        Operator { store: self }
    }

    /// The store's time: this machine's with SQLite, the server's with PostgreSQL.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Sqlite(db) => db.now(),
            Self::Postgres(db) => db.now(),
        }
    }

    /// The options that the store was opened with.
    #[must_use]
    pub fn options(&self) -> StoreOptions {
        match self {
            Self::Sqlite(db) => db.options(),
            Self::Postgres(db) => db.options(),
        }
    }

    /// Whether a write can be committed now (readiness): commits one.
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        self.write(async |tx: &mut Tx| {
            tx.execute_one(
                "INSERT INTO probe (id, checked_at) VALUES (1, $1)
                 ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at",
                &[&tx.now],
            )
            .await
        })
        .await
        .map_err(StoreError::of_no_consequence)
    }

    /// Whether credits were ever reserved: the ledger outlives every record, so a store without a reservation has never made
    /// a result.
    pub async fn has_reserved(&self) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM ledger WHERE kind = 'reserve' LIMIT 1";
        self.read(async |tx: &mut Tx| tx.exists(sql, &[]).await)
            .await
    }

    /// Resolves when a job may be due (in-process notification); may resolve without one.
    pub async fn job_added(&self) {
        self.job_notice().notified().await;
    }

    /// Wakes anyone who waits for a job in this process.
    pub(crate) fn tell_job_added(&self) {
        self.job_notice().notify_one();
    }

    fn job_notice(&self) -> &Notify {
        match self {
            Self::Sqlite(db) => db.job_added(),
            Self::Postgres(db) => db.job_added(),
        }
    }

    /// One transaction that writes.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => db.write(verb).await,
            Self::Postgres(db) => db.run(Begin::Write, verb).await,
        }
    }

    /// The same, beginning with the statement that locks what the verb decides by; the verb is told what that found.
    pub(crate) async fn write_locked<L: Send + 'static, T: Send + 'static>(
        &self,
        lock: &'static str,
        id: impl Param + Send + 'static,
        parse: fn(&dyn Row) -> Result<L, StoreError>,
        verb: impl AsyncFnOnce(&mut Tx, Option<L>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => {
                db.write(async move |tx: &mut Tx| {
                    let found = tx.find(lock, &[&id], parse).await?;
                    verb(tx, found).await
                })
                .await
            }
            Self::Postgres(db) => db.run_locked(lock, id, parse, verb).await,
        }
    }

    /// One transaction that writes, with the account's row locked first where others write at the same time; the verb is
    /// told whether there is one. One file has one writer and nothing to lock: there the verb finds out by what it reads.
    pub(crate) async fn write_account<T: Send + 'static>(
        &self,
        account: AccountId,
        verb: impl AsyncFnOnce(&mut Tx, Option<()>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => {
                db.write(async move |tx: &mut Tx| verb(tx, Some(())).await)
                    .await
            }
            Self::Postgres(db) => {
                let lock = "SELECT 1 FROM account WHERE id = $1 FOR NO KEY UPDATE";
                db.run_locked(lock, account, |_| Ok(()), verb).await
            }
        }
    }

    /// Statements of which one writes, each committed by itself where that is less to wait for.
    pub(crate) async fn single<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => db.write(verb).await,
            Self::Postgres(db) => db.run(Begin::Single, verb).await,
        }
    }

    /// Statements that only read; on PostgreSQL each sees what is committed when it begins.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => db.read(verb).await,
            Self::Postgres(db) => db.run(Begin::Read, verb).await,
        }
    }

    /// Statements that only read, all of them the same moment.
    pub(crate) async fn snapshot<T: Send + 'static>(
        &self,
        verb: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(db) => db.read(verb).await,
            Self::Postgres(db) => db.run(Begin::Snapshot, verb).await,
        }
    }
}
