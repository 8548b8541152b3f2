//! What one verb may do to the database: run statements, lock, read its time. The verbs are written once, over this;
//! beneath it stand two thin drivers. Every statement passes here, so that a test can fail the N-th.
//!
//! Statements say `$1`, rows are read by name. On SQLite a future of this is never pending: the thread that owns the
//! connection drives it to its end. On PostgreSQL statements that are joined are sent together and cost one round trip;
//! they are sent in their order where the connection knows them ([`Tx::prepare`]).

use std::sync::Arc;

use futures_util::future::try_join;
use upscale_core::{AccountId, TaskId, Timestamp};

use crate::{
    StoreError, StoreOptions,
    param::{Param, Params},
    postgres,
    row::Row,
    sqlite,
};

/// One verb's view: inside a savepoint or a transaction when it writes, of committed rows when it reads.
pub(crate) struct Tx {
    driver: Driver,
    /// The moment the verb began, or when it got the account's lock; the same for all it writes after.
    pub(crate) now: Timestamp,
    pub(crate) options: StoreOptions,
    #[cfg(test)]
    faults: crate::faults::Faults,
}

/// Who runs the statements. The connection to the file is behind a lock that no one ever waits for: it makes the futures
/// of the verbs `Send`, which PostgreSQL's callers need and the writing thread does not.
pub(crate) enum Driver {
    /// The file, in the hands of one of its threads.
    Sqlite(Arc<sqlite::Connection>),
    /// A connection of the pool.
    Postgres(Box<postgres::Connection>),
}

/// What a reference names; each kind has locks of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    /// Of a purchase by hand or a payment: the same name space.
    Payment,
    /// Of an operator's adjustment.
    Adjustment,
}

impl Tx {
    pub(crate) fn new(
        driver: Driver,
        now: Timestamp,
        options: StoreOptions,
        #[cfg(test)] faults: crate::faults::Faults,
    ) -> Self {
        Self {
            driver,
            now,
            options,
            #[cfg(test)]
            faults,
        }
    }

    #[cfg(test)]
    pub(crate) fn without_faults(mut self) -> Self {
        self.faults = crate::faults::Faults::default();
        self
    }

    /// One of two texts, where the engines' SQL truly differs.
    pub(crate) fn dialect<'a>(&self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match &self.driver {
            Driver::Sqlite(_) => sqlite,
            Driver::Postgres(_) => postgres,
        }
    }

    /// Whether other transactions write at the same time: then rows are locked, and dead ones stand in the way of walks.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.driver, Driver::Postgres(_))
    }

    /// Runs one statement; how many rows it changed.
    pub(crate) async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        match &self.driver {
            Driver::Sqlite(connection) => connection.execute(sql, params),
            Driver::Postgres(connection) => connection.execute(sql, params).await,
        }
    }

    /// Runs one statement that must change exactly one row.
    pub(crate) async fn execute_one(
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
    pub(crate) async fn find<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(sql, params, 1, parse).await?.pop())
    }

    /// The first row's first column, which must be there: counts and sums.
    pub(crate) async fn number(&self, sql: &str, params: Params<'_>) -> Result<i64, StoreError> {
        let number = self.find(sql, params, |row| row.first_number()).await?;
        number.ok_or_else(|| StoreError::Corrupt(format!("no row from: {sql}")))
    }

    /// Whether there is a row.
    pub(crate) async fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool, StoreError> {
        Ok(self.find(sql, params, |_| Ok(())).await?.is_some())
    }

    /// Every row.
    pub(crate) async fn list<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.query(sql, params, usize::MAX, parse).await
    }

    async fn query<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        at_most: usize,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        match &self.driver {
            Driver::Sqlite(connection) => connection.query(sql, params, at_most, parse),
            Driver::Postgres(connection) => connection.query(sql, params, at_most, parse).await,
        }
    }

    /// Every row of those that `= ANY($1)` names, `params` being `$2` and on: one statement on PostgreSQL, one for each on
    /// SQLite, which knows no arrays.
    pub(crate) async fn list_each<T>(
        &self,
        sql: &str,
        each: &[&str],
        params: Params<'_>,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        if self.is_shared() {
            return self.list(sql, &with(&each, params), parse).await;
        }
        let (sql, mut found) = (sql.replace("= ANY($1)", "= $1"), Vec::new());
        for one in each {
            found.extend(self.list(&sql, &with(one, params), &parse).await?);
        }
        Ok(found)
    }

    /// Changes every row of those that `= ANY($1)` names, as [`Tx::list_each`]; how many.
    pub(crate) async fn execute_each(
        &self,
        sql: &str,
        each: &[&str],
        params: Params<'_>,
    ) -> Result<u64, StoreError> {
        if self.is_shared() {
            return self.execute(sql, &with(&each, params)).await;
        }
        let (sql, mut changed) = (sql.replace("= ANY($1)", "= $1"), 0);
        for one in each {
            changed += self.execute(&sql, &with(one, params)).await?;
        }
        Ok(changed)
    }

    /// Makes statements known to the connection, a round trip each the first time: those that are joined after this
    /// are sent in the order in which they stand.
    pub(crate) async fn prepare(&self, statements: &[&str]) -> Result<(), StoreError> {
        match &self.driver {
            Driver::Sqlite(_) => Ok(()),
            Driver::Postgres(connection) => connection.prepare(statements).await,
        }
    }

    /// Waits for the account's row and holds it to the end of the transaction: what is read after this is what
    /// the last holder left, and `now` is not before it. NO KEY: rows that only refer to the account do not wait.
    /// False when there is no such account.
    pub(crate) async fn lock_account(&mut self, account: &AccountId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM account WHERE id = $1 FOR NO KEY UPDATE";
        let (is_there, now) = try_join(self.exists(sql, &[account]), self.read_time()).await?;
        self.now = now;
        Ok(is_there)
    }

    /// Locks the accounts' rows in the order of their ids, so that two transactions cannot wait for each other.
    pub(crate) async fn lock_accounts(&mut self, accounts: &[&str]) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        let sql = "SELECT 1 FROM account WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        let (_, now) = try_join(self.list(sql, &[&accounts], |_| Ok(())), self.read_time()).await?;
        self.now = now;
        Ok(())
    }

    /// Locks the accounts of these tasks.
    pub(crate) async fn lock_owners(&mut self, tasks: &[TaskId]) -> Result<(), StoreError> {
        if tasks.is_empty() || !self.is_shared() {
            return Ok(());
        }
        let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        let sql = "SELECT DISTINCT account_id FROM task WHERE id = ANY($1)";
        let owners = self
            .list(sql, &[&&tasks[..]], |row| row.string("account_id"))
            .await?;
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        self.lock_accounts(&owners).await
    }

    /// One transaction at a time for this reference: it may arrive for two accounts at once, and an account's lock does
    /// not keep those apart. Two references with one hash only wait for each other.
    pub(crate) async fn lock_reference(
        &self,
        kind: Reference,
        reference: &str,
    ) -> Result<(), StoreError> {
        let lock = match kind {
            Reference::Payment => "SELECT pg_advisory_xact_lock(1, hashtext($1))",
            Reference::Adjustment => "SELECT pg_advisory_xact_lock(2, hashtext($1))",
        };
        if self.is_shared() {
            self.execute(lock, &[&reference]).await?;
        }
        Ok(())
    }

    /// One writer of this small table at a time; reads go on.
    pub(crate) async fn lock_signing_keys(&self) -> Result<(), StoreError> {
        if self.is_shared() {
            let lock = "LOCK TABLE signing_key IN SHARE ROW EXCLUSIVE MODE";
            self.execute(lock, &[]).await?;
        }
        Ok(())
    }

    async fn read_time(&self) -> Result<Timestamp, StoreError> {
        match &self.driver {
            Driver::Sqlite(_) => Ok(self.now),
            Driver::Postgres(connection) => connection.read_time().await,
        }
    }

    /// Commits what succeeded and undoes what failed, on PostgreSQL; the file's writing thread does so itself. An error
    /// of the commit says whether its outcome is known.
    pub(crate) async fn end<T>(self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        match self.driver {
            Driver::Sqlite(_) => answer,
            Driver::Postgres(connection) => {
                connection
                    .end(
                        answer,
                        #[cfg(test)]
                        &self.faults,
                    )
                    .await
            }
        }
    }
}

fn with<'a>(first: &'a dyn Param, params: Params<'a>) -> Vec<&'a dyn Param> {
    std::iter::once(first)
        .chain(params.iter().copied())
        .collect()
}
