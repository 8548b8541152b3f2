//! The driver: statements as every engine's verbs write them, run on a connection of the pool while one verb has it. No
//! answer is waited for forever.

use std::{
    error::Error as AnyError,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::BytesMut;
use deadpool_postgres::Object;
use futures_util::{
    TryStreamExt,
    future::{join, join3},
};
use tokio::time::timeout;
use tokio_postgres::{
    Error, Statement,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};
use upscale_core::Timestamp;

use super::{
    Db,
    error::{NoAnswer, unavailable},
    time::Time,
};
use crate::{
    StoreError,
    param::{Params, Value},
    row::Row,
};

/// The server's moment, in microseconds since 1970. Not now(): that is when the transaction began, and it may
/// have waited for a lock since.
const DATABASE_TIME: &str =
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
/// A server that was stopped or cut off answers nothing at all; its own timeouts (5 s) come first otherwise.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// An audit reads everything there is.
const LONG_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
const SNAPSHOT: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '10min'";

/// One verb's connection. Dropped before [`Connection::end`] (the caller went away), an open transaction is rolled
/// back by closing the connection, whatever was under way on it.
pub(crate) struct Connection {
    /// None once it went back to the pool.
    object: Option<Object>,
    is_open: bool,
    /// Answers that did not come yet, or never did: then no one knows what the connection would answer next,
    /// and it is not used again.
    outstanding: AtomicU32,
    answer_timeout: Duration,
    time: Time,
}

impl Connection {
    /// One on which nothing has been said yet.
    pub(super) async fn take(db: &Db) -> Result<Self, StoreError> {
        Ok(Self {
            object: Some(db.pool.get().await.map_err(unavailable)?),
            is_open: false,
            outstanding: AtomicU32::new(0),
            answer_timeout: ANSWER_TIMEOUT,
            time: db.time.clone(),
        })
    }

    /// Begins and reads the time in one round trip.
    pub(super) async fn begin(&mut self) -> Result<Timestamp, StoreError> {
        self.open("BEGIN").await
    }

    /// Begins a transaction that only reads, on one snapshot, with time for all of it.
    pub(super) async fn begin_snapshot(&mut self) -> Result<Timestamp, StoreError> {
        self.answer_timeout = LONG_ANSWER_TIMEOUT;
        self.open(SNAPSHOT).await
    }

    async fn open(&mut self, begin: &str) -> Result<Timestamp, StoreError> {
        self.is_open = true;
        let (begun, now) = join(self.control(begin), self.read_time()).await;
        begun?;
        now
    }

    /// Begins with the statement that locks; what that found first. BEGIN, the statement and the time once it has its lock
    /// are one round trip. What is read after this is what the last holder left.
    pub(super) async fn begin_locked<T>(
        &mut self,
        lock: &str,
        params: Params<'_>,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
        #[cfg(test)] faults: &crate::faults::Faults,
    ) -> Result<(Option<T>, Timestamp), StoreError> {
        self.prepare(&[lock, DATABASE_TIME]).await?;
        self.is_open = true;
        let locked = async {
            #[cfg(test)]
            faults.pass_statement()?;
            self.query(lock, params, 1, parse).await
        };
        // All three, then the first that failed: those behind it fail for its sake ("current transaction is aborted"), and what
        // is answered last may be seen first.
        let all = join3(self.control("BEGIN"), locked, self.read_time());
        let (begun, found, now) = all.await;
        begun?;
        Ok((found?.pop(), now?))
    }

    /// Makes statements known to the connection, a round trip each the first time: those that are joined after this
    /// are sent in the order in which they stand.
    pub(crate) async fn prepare(&self, statements: &[&str]) -> Result<(), StoreError> {
        for sql in statements {
            self.statement(sql).await?;
        }
        Ok(())
    }

    /// One that the connection knows, or a round trip later does.
    async fn statement(&self, sql: &str) -> Result<Statement, StoreError> {
        self.answered(self.object()?.prepare_cached(sql)).await
    }

    pub(crate) async fn read_time(&self) -> Result<Timestamp, StoreError> {
        if let Time::Hand(clock) = &self.time {
            return Ok(clock.now());
        }
        let object = self.object()?;
        let statement = self.statement(DATABASE_TIME).await?;
        let row = self.answered(object.query_one(&statement, &[])).await?;
        let now = Timestamp::from_micros(row.try_get(0)?);
        self.time.record(now);
        Ok(now)
    }

    /// How many rows it changed.
    pub(crate) async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        let object = self.object()?;
        let statement = self.statement(sql).await?;
        let params = values(params);
        self.answered(object.execute_raw(&statement, params)).await
    }

    /// The first rows.
    pub(crate) async fn query<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        at_most: usize,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let object = self.object()?;
        let statement = self.statement(sql).await?;
        let rows = async {
            let rows = object.query_raw(&statement, values(params)).await?;
            rows.try_collect::<Vec<_>>().await
        };
        let rows = self.answered(rows).await?;
        rows.iter().take(at_most).map(|row| parse(row)).collect()
    }

    /// Commits what succeeded and undoes what failed. Once COMMIT was sent, only the server's own refusal says that nothing
    /// was changed.
    pub(crate) async fn end<T>(
        mut self,
        answer: Result<T, StoreError>,
        #[cfg(test)] faults: &crate::faults::Faults,
    ) -> Result<T, StoreError> {
        if !self.is_open {
            return answer;
        }
        match answer {
            Ok(value) => {
                #[cfg(test)]
                faults.pass_before_commit()?;
                let committed = self.answer_to(self.object()?.batch_execute("COMMIT")).await;
                committed.map_err(NoAnswer::after_commit)?;
                #[cfg(test)]
                faults.pass_after_commit()?;
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

    async fn control(&self, sql: &str) -> Result<(), StoreError> {
        self.answered(self.object()?.batch_execute(sql)).await
    }

    async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        Ok(self.answer_to(answer).await?)
    }

    /// Waits for an answer. One that was given up stays outstanding.
    async fn answer_to<T>(
        &self,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, NoAnswer> {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        let answered = timeout(self.answer_timeout, question).await;
        let answer = answered.map_err(|_| NoAnswer::InTime(self.answer_timeout))?;
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(NoAnswer::But)
    }

    fn object(&self) -> Result<&Object, StoreError> {
        let object = self.object.as_ref();
        object.ok_or_else(|| StoreError::Unavailable("the connection is gone".to_owned()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && (self.is_open || *self.outstanding.get_mut() > 0)
        {
            // Out of the pool and closed; the server rolls back.
            drop(Object::take(object));
        }
    }
}

fn values<'a>(params: Params<'a>) -> Vec<Value<'a>> {
    params.iter().map(|param| param.value()).collect()
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        column: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn AnyError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Flag(flag) if *column == Type::BOOL => flag.to_sql(column, out),
            Self::Flag(flag) => i64::from(*flag).to_sql_checked(column, out),
            Self::Number(number) => number.to_sql_checked(column, out),
            Self::Text(text) => text.to_sql_checked(column, out),
            Self::Texts(texts) => texts.to_sql_checked(column, out),
            Self::Numbers(numbers) => numbers.to_sql_checked(column, out),
        }
    }

    /// Whether a column takes a value depends on the value: it is checked with it.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A number column, or a flag as 0 or 1.
struct Number(i64);

impl<'a> FromSql<'a> for Number {
    fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn AnyError + Sync + Send>> {
        if *column == Type::BOOL {
            return Ok(Self(bool::from_sql(column, raw)?.into()));
        }
        i64::from_sql(column, raw).map(Self)
    }

    fn accepts(column: &Type) -> bool {
        *column == Type::BOOL || <i64 as FromSql>::accepts(column)
    }
}

impl Row for tokio_postgres::Row {
    fn number_if_any(&self, column: &str) -> Result<Option<i64>, StoreError> {
        let number: Option<Number> = self.try_get(column)?;
        Ok(number.map(|Number(number)| number))
    }

    fn text_if_any(&self, column: &str) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn first_number(&self) -> Result<i64, StoreError> {
        Ok(self.try_get(0)?)
    }
}
