//! The driver: statements as every engine's verbs write them, run on one connection to the file.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{
    CachedStatement, ToSql,
    types::{Null, ToSqlOutput},
};

use super::{
    error::of_commit,
    plan::{Columns, Plan, Plans},
};
use crate::{
    StoreError,
    param::{Params, Value},
    row::Row,
};

/// One connection, used by one thread. Its lock is free whenever it is asked for.
pub(crate) struct Connection(Mutex<Driven>);

struct Driven {
    connection: rusqlite::Connection,
    plans: Plans,
}

impl Connection {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        let plans = Plans::default();
        Self(Mutex::new(Driven { connection, plans }))
    }

    fn lock(&self) -> MutexGuard<'_, Driven> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no transaction is open.
    pub(super) fn is_autocommit(&self) -> bool {
        self.lock().connection.is_autocommit()
    }

    /// How many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        let Driven { connection, plans } = &mut *self.lock();
        let mut statement = bound(connection, plans.of(sql), params)?;
        Ok(statement.raw_execute()? as u64)
    }

    /// The first rows, and no further than asked.
    pub(crate) fn query<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        at_most: usize,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let Driven { connection, plans } = &mut *self.lock();
        let plan = plans.of(sql);
        let mut statement = bound(connection, plan, params)?;
        let (mut rows, mut found) = (statement.raw_query(), Vec::new());
        while found.len() < at_most
            && let Some(row) = rows.next()?
        {
            let columns = &plan.columns;
            found.push(parse(&NamedRow { row, columns })?);
        }
        Ok(found)
    }

    /// Begins, ends or marks a transaction, past the faults of tests.
    pub(super) fn control(&self, sql: &str) -> Result<(), String> {
        self.run(sql).map_err(|error| format!("{sql}: {error}"))
    }

    /// Ends a transaction for good. An error says whether its rows may be on the disk all the same.
    pub(super) fn commit(&self) -> Result<(), StoreError> {
        self.run("COMMIT").map_err(of_commit)
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        let connection = &self.lock().connection;
        let mut statement = connection.prepare_cached(sql)?;
        statement.execute([]).map(drop)
    }
}

fn bound<'a>(
    connection: &'a rusqlite::Connection,
    plan: &Plan,
    params: Params<'_>,
) -> Result<CachedStatement<'a>, StoreError> {
    let mut statement = connection.prepare_cached(&plan.sql)?;
    let (wanted, given) = (statement.parameter_count(), params.len());
    if given < wanted {
        let what = format!("{given} parameters instead of {wanted} for: {}", plan.sql);
        return Err(StoreError::Corrupt(what));
    }
    // Those past the last that stands in the text are for PostgreSQL's.
    for (before, param) in params[..wanted].iter().enumerate() {
        statement.raw_bind_parameter(before + 1, param.value())?;
    }
    Ok(statement)
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(ToSqlOutput::from(Null)),
            Self::Number(number) => number.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
            Self::Text(text) => text.to_sql(),
            Self::Texts(_) | Self::Numbers(_) => {
                let why = "there are no arrays in SQLite";
                Err(rusqlite::Error::ToSqlConversionFailure(why.into()))
            }
        }
    }
}

/// A row with what is known of its columns.
struct NamedRow<'a> {
    row: &'a rusqlite::Row<'a>,
    columns: &'a Columns,
}

impl Row for NamedRow<'_> {
    fn number_if_any(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.row.get(self.columns.place(self.row, column)?)?)
    }

    fn text_if_any(&self, column: &str) -> Result<Option<&str>, StoreError> {
        let place = self.columns.place(self.row, column)?;
        let text = self.row.get_ref(place)?.as_str_or_null();
        text.map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
    }

    fn first_number(&self) -> Result<i64, StoreError> {
        Ok(self.row.get(0)?)
    }
}
