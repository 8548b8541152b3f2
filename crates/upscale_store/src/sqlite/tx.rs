//! What one operation may do to the database: run statements and read its time. Every statement of the
//! engine passes here, so that a test can fail the N-th.

use rusqlite::{Connection, Params, Row};
use upscale_core::Timestamp;

use crate::{StoreError, StoreOptions};

/// One operation's view: inside a savepoint when it writes, inside a snapshot when it reads.
pub(super) struct Tx<'a> {
    connection: &'a Connection,
    /// The moment the operation began; the same for all it writes.
    pub(super) now: Timestamp,
    pub(super) options: StoreOptions,
    #[cfg(test)]
    faults: &'a crate::faults::Faults,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        now: Timestamp,
        options: StoreOptions,
        #[cfg(test)] faults: &'a crate::faults::Faults,
    ) -> Self {
        Self {
            connection,
            now,
            options,
            #[cfg(test)]
            faults,
        }
    }

    /// Runs one statement; how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// Runs one statement that must change exactly one row.
    pub(super) fn execute_one(&self, sql: &str, params: impl Params) -> Result<(), StoreError> {
        match self.execute(sql, params)? {
            1 => Ok(()),
            rows => Err(StoreError::Corrupt(format!(
                "{rows} rows changed instead of one by: {sql}"
            ))),
        }
    }

    /// The first row, if there is one.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        parse: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(parse).transpose()
    }

    /// The first row's first column, which must be there: counts and sums.
    pub(super) fn number(&self, sql: &str, params: impl Params) -> Result<i64, StoreError> {
        let number = self.find(sql, params, |row| Ok(row.get(0)?))?;
        number.ok_or_else(|| StoreError::Corrupt(format!("no row from: {sql}")))
    }

    /// Every row.
    pub(super) fn list<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut parse: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        #[cfg(test)]
        self.faults.pass_statement()?;
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(parse(row)?);
        }
        Ok(found)
    }
}
