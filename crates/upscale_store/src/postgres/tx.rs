//! A connection while one verb has it: statements, the database's time, the end. Every statement of the engine
//! passes here, so that a test can fail the N-th and none waits for ever. Statements that are joined are sent
//! together and cost one round trip: a lock is held for the fewer. They are sent in their order where the connection
//! knows them ([`Tx::prepare`]).

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use deadpool_postgres::Object;
use futures_util::{
    future::{join, try_join},
    try_join,
};
use tokio::time::timeout;
use tokio_postgres::{Error, Row, types::ToSql};
use upscale_core::{AccountId, Timestamp};

use super::{Db, error::unavailable, time::Time};
use crate::{StoreError, StoreOptions};

/// The server's moment, in microseconds since 1970. Not now(): that is when the transaction began, and it may
/// have waited for a lock since.
const DATABASE_TIME: &str =
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
/// A server that was stopped or cut off answers nothing at all; its own timeouts (5 s) come first otherwise.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// An audit reads everything there is.
const LONG_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What a verb begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// Single statements outside any transaction.
    Read,
    /// A transaction that ends with a commit.
    Write,
    /// One writing statement, a transaction by itself.
    Single,
    /// One snapshot for several reads, with time for all of them.
    Snapshot,
}

/// One verb's connection. Dropped before [`Tx::end`] (the caller went away), an open transaction is rolled
/// back by closing the connection, whatever was under way on it.
pub(super) struct Tx {
    /// None once it went back to the pool.
    connection: Option<Object>,
    is_open: bool,
    /// Answers that did not come yet, or never did: then nobody knows what the connection would answer next,
    /// and it is not used again.
    outstanding: AtomicU32,
    answer_timeout: Duration,
    time: Time,
    /// The database's time when the verb began, or when it got the account's lock.
    pub(super) now: Timestamp,
    pub(super) options: StoreOptions,
    #[cfg(test)]
    faults: crate::faults::Faults,
}

impl Tx {
    pub(super) async fn begin(db: &Db, begin: Begin) -> Result<Self, StoreError> {
        let mut tx = Self::take(db).await?;
        // Faults are for writes: a reader's own never strike.
        #[cfg(test)]
        if matches!(begin, Begin::Read | Begin::Snapshot) {
            tx.faults = crate::faults::Faults::default();
        }
        match begin {
            Begin::Read | Begin::Single => {}
            Begin::Write => tx.open("BEGIN").await?,
            Begin::Snapshot => {
                tx.answer_timeout = LONG_ANSWER_TIMEOUT;
                tx.open("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '10min'")
                    .await?;
            }
        }
        Ok(tx)
    }

    /// A writing transaction that begins with the statement that locks; what that found first. BEGIN, the statement
    /// and the time once it has its lock are one round trip. What is read after this is what the last holder left.
    pub(super) async fn begin_locked<T>(
        db: &Db,
        lock: &str,
        params: Params<'_>,
        parse: impl FnOnce(&Row) -> Result<T, StoreError>,
    ) -> Result<(Self, Option<T>), StoreError> {
        let mut tx = Self::take(db).await?;
        tx.prepare(&[lock, DATABASE_TIME]).await?;
        tx.is_open = true;
        let (_, found, now) = try_join!(
            tx.control("BEGIN"),
            tx.find(lock, params, parse),
            tx.read_time()
        )?;
        tx.now = now;
        Ok((tx, found))
    }

    /// A connection, on which nothing has been said yet.
    async fn take(db: &Db) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Some(db.pool.get().await.map_err(unavailable)?),
            is_open: false,
            outstanding: AtomicU32::new(0),
            answer_timeout: ANSWER_TIMEOUT,
            time: db.time.clone(),
            now: db.time.now(),
            options: db.options,
            #[cfg(test)]
            faults: db.faults.clone(),
        })
    }

    /// Makes statements known to the connection, a round trip each the first time: those that are joined after this
    /// are sent in the order in which they stand.
    pub(super) async fn prepare(&self, statements: &[&str]) -> Result<(), StoreError> {
        let connection = self.connection()?;
        for sql in statements {
            self.answered(connection.prepare_cached(sql)).await?;
        }
        Ok(())
    }

    /// Begins and reads the time in one round trip.
    async fn open(&mut self, begin: &str) -> Result<(), StoreError> {
        self.is_open = true;
        let (begun, now) = join(
            self.answered(self.connection()?.batch_execute(begin)),
            self.read_time(),
        )
        .await;
        begun?;
        self.now = now?;
        Ok(())
    }

    async fn read_time(&self) -> Result<Timestamp, StoreError> {
        if let Time::Hand(clock) = &self.time {
            return Ok(clock.now());
        }
        let connection = self.connection()?;
        let statement = self
            .answered(connection.prepare_cached(DATABASE_TIME))
            .await?;
        let row = self.answered(connection.query_one(&statement, &[])).await?;
        let now = Timestamp::from_micros(row.try_get(0)?);
        self.time.record(now);
        Ok(now)
    }

    /// Waits for the account's row and holds it to the end of the transaction: what is read after this is what
    /// the last holder left, and `now` is not before it. NO KEY: rows that only refer to the account do not wait.
    pub(super) async fn lock_account(&mut self, account: &AccountId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM account WHERE id = $1 FOR NO KEY UPDATE";
        let (locked, now) = try_join(
            self.find(sql, &[&account.as_str()], |_| Ok(())),
            self.read_time(),
        )
        .await?;
        self.now = now;
        Ok(locked.is_some())
    }

    /// Locks the accounts' rows in the order of their ids, so that two transactions cannot wait for each other.
    pub(super) async fn lock_accounts(&mut self, accounts: &[String]) -> Result<(), StoreError> {
        let sql = "SELECT 1 FROM account WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        let (_, now) = try_join(self.list(sql, &[&accounts], |_| Ok(())), self.read_time()).await?;
        self.now = now;
        Ok(())
    }

    /// Runs one statement; how many rows it changed.
    pub(super) async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        let connection = self.connection()?;
        let statement = self.answered(connection.prepare_cached(sql)).await?;
        self.answered(connection.execute(&statement, params)).await
    }

    /// Runs one statement that must change exactly one row.
    pub(super) async fn execute_one(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<(), StoreError> {
        match self.execute(sql, params).await? {
            1 => Ok(()),
            rows => Err(StoreError::Corrupt(format!(
                "{rows} rows changed instead of one by: {sql}"
            ))),
        }
    }

    /// The first row, if there is one.
    pub(super) async fn find<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        parse: impl FnOnce(&Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let rows = self.query(sql, params).await?;
        rows.first().map(parse).transpose()
    }

    /// The first row's first column, which must be there: counts and sums.
    pub(super) async fn number(&self, sql: &str, params: Params<'_>) -> Result<i64, StoreError> {
        let number = self.find(sql, params, |row| Ok(row.try_get(0)?)).await?;
        number.ok_or_else(|| StoreError::Corrupt(format!("no row from: {sql}")))
    }

    /// Every row.
    pub(super) async fn list<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        parse: impl FnMut(&Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.query(sql, params).await?.iter().map(parse).collect()
    }

    async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        let connection = self.connection()?;
        let statement = self.answered(connection.prepare_cached(sql)).await?;
        self.answered(connection.query(&statement, params)).await
    }

    /// Commits what succeeded and undoes what failed. An error of the commit itself leaves the outcome unknown.
    pub(super) async fn end<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if !self.is_open {
            return result;
        }
        match result {
            Ok(value) => {
                self.commit().await?;
                self.is_open = false;
                Ok(value)
            }
            Err(error) => {
                // Where an answer was lost the connection is closed, which undoes as well.
                if *self.outstanding.get_mut() == 0 {
                    self.is_open = self.control("ROLLBACK").await.is_err();
                }
                Err(error)
            }
        }
    }

    async fn commit(&self) -> Result<(), StoreError> {
        #[cfg(test)]
        self.faults.pass_before_commit()?;
        self.control("COMMIT").await?;
        #[cfg(test)]
        self.faults.pass_after_commit()?;
        Ok(())
    }

    async fn control(&self, sql: &str) -> Result<(), StoreError> {
        self.answered(self.connection()?.batch_execute(sql)).await
    }

    /// Waits for an answer. One that was given up stays outstanding.
    async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        let answered = timeout(self.answer_timeout, answer).await;
        let answer = answered.map_err(|_| {
            let seconds = self.answer_timeout.as_secs();
            StoreError::Unavailable(format!("the database did not answer within {seconds} s"))
        })?;
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        Ok(answer?)
    }

    fn connection(&self) -> Result<&Object, StoreError> {
        let connection = self.connection.as_ref();
        connection.ok_or_else(|| StoreError::Unavailable("the connection is gone".to_owned()))
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && (self.is_open || *self.outstanding.get_mut() > 0)
        {
            // Out of the pool and closed; the server rolls back.
            drop(Object::take(connection));
        }
    }
}
