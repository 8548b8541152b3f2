//! The driver: statements as every engine's verbs write them, run on one connection to the file.

use std::{
    borrow::Cow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rusqlite::{
    CachedStatement, ToSql,
    types::{Null, ToSqlOutput},
};

use crate::{
    StoreError,
    param::{Params, Value},
    row::Row,
};

/// One connection, used by one thread. Its lock is free whenever it is asked for.
pub(crate) struct Connection(Mutex<rusqlite::Connection>);

impl Connection {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        Self(Mutex::new(connection))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, rusqlite::Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        let connection = self.lock();
        Ok(bound(&connection, sql, params)?.raw_execute()? as u64)
    }

    /// The first rows, and no further than asked.
    pub(crate) fn query<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        at_most: usize,
        parse: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let connection = self.lock();
        let mut statement = bound(&connection, sql, params)?;
        let (mut rows, mut found) = (statement.raw_query(), Vec::new());
        while found.len() < at_most
            && let Some(row) = rows.next()?
        {
            found.push(parse(row)?);
        }
        Ok(found)
    }

    /// Begins, ends or marks a transaction, past the faults of tests.
    pub(super) fn control(&self, sql: &str) -> Result<(), String> {
        let connection = self.lock();
        let done = connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| format!("{sql}: {error}"))
    }
}

/// SQLite numbers `$2` and the like by where they first stand, so they are bound by their names.
fn bound<'a>(
    connection: &'a rusqlite::Connection,
    sql: &str,
    params: Params<'_>,
) -> Result<CachedStatement<'a>, StoreError> {
    let mut statement = connection.prepare_cached(&without_locks(sql))?;
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or_default();
        let number = name
            .strip_prefix('$')
            .and_then(|digits| digits.parse().ok());
        let param = number.and_then(|number: usize| params.get(number.checked_sub(1)?));
        let param =
            param.ok_or_else(|| StoreError::Corrupt(format!("no parameter {name} for: {sql}")))?;
        statement.raw_bind_parameter(index, param.value())?;
    }
    Ok(statement)
}

/// There is one writer at a time, so rows need no locks and SQLite has no words for them. A lock clause is the end of a
/// statement, or of the one query in parentheses that has one.
fn without_locks(sql: &str) -> Cow<'_, str> {
    // Every statement is looked through: from one F to the next, which costs a tenth of a search for the words.
    let start = sql.match_indices('F').map(|(at, _)| at).find(|&at| {
        let clause = &sql[at..];
        clause.starts_with("FOR UPDATE") || clause.starts_with("FOR NO KEY UPDATE")
    });
    let Some(start) = start else {
        return Cow::Borrowed(sql);
    };
    match sql[start..].find(')') {
        None => Cow::Borrowed(sql[..start].trim_end()),
        Some(length) => {
            let kept = sql[..start].trim_end();
            Cow::Owned(format!("{kept}{}", &sql[start + length..]))
        }
    }
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

impl Row for rusqlite::Row<'_> {
    fn number_if_any(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn text_if_any(&self, column: &str) -> Result<Option<&str>, StoreError> {
        let text = self.get_ref(column)?.as_str_or_null();
        text.map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
    }

    fn first_number(&self) -> Result<i64, StoreError> {
        Ok(self.get(0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::without_locks;

    #[test]
    fn a_lock_clause_is_left_out_and_nothing_else() {
        for (sql, expected) in [
            (
                "SELECT 1 FROM a WHERE b = $1",
                "SELECT 1 FROM a WHERE b = $1",
            ),
            ("SELECT 1 FROM a FOR NO KEY UPDATE OF a", "SELECT 1 FROM a"),
            (
                "SELECT (1) FROM a LIMIT 2 FOR UPDATE SKIP LOCKED",
                "SELECT (1) FROM a LIMIT 2",
            ),
            (
                "UPDATE a SET b = 1 WHERE c IN (SELECT c FROM a FOR UPDATE SKIP LOCKED) AND d = 2",
                "UPDATE a SET b = 1 WHERE c IN (SELECT c FROM a) AND d = 2",
            ),
            (
                "INSERT INTO a VALUES ($1) ON CONFLICT (b) DO UPDATE SET c = 1",
                "INSERT INTO a VALUES ($1) ON CONFLICT (b) DO UPDATE SET c = 1",
            ),
        ] {
            assert_eq!(without_locks(sql), expected);
        }
    }
}
