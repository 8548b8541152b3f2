//! What is found out once about a statement's text and kept with its connection: the text that SQLite takes, and where
//! its columns stand.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

/// Texts kept at most: four times those there are, so that a text made anew for each call could not fill the memory.
const KEPT_MAX: usize = 1_024;

/// The plans of one connection, by the text as the verbs write it.
#[derive(Default)]
pub(super) struct Plans {
    places: HashMap<Box<str>, usize>,
    plans: Vec<Plan>,
}

/// One statement.
pub(super) struct Plan {
    /// Without lock clauses, and with `?1` for `$1`: SQLite numbers `$1` by where it first stands, and `?1` as it says.
    pub(super) sql: Box<str>,
    pub(super) columns: Columns,
}

/// Where columns were last found, by a number made of their names. A guess, to be checked by the name that stands there:
/// another process may change the tables, and two names may make one number.
pub(super) struct Columns([Cell<u8>; 256]);

impl Plans {
    pub(super) fn of(&mut self, sql: &str) -> &Plan {
        let known = self.places.get(sql).copied();
        let place = known.unwrap_or_else(|| self.add(sql));
        &self.plans[place]
    }

    fn add(&mut self, sql: &str) -> usize {
        if self.plans.len() == KEPT_MAX {
            *self = Self::default();
        }
        self.plans.push(Plan {
            sql: numbered(&without_locks(sql)).into(),
            columns: Columns([const { Cell::new(0) }; 256]),
        });
        let place = self.plans.len() - 1;
        self.places.insert(sql.into(), place);
        place
    }
}

impl Columns {
    /// The column's number in this row.
    pub(super) fn place(&self, row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<usize> {
        let statement: &rusqlite::Statement<'_> = row.as_ref();
        let guess = &self.0[usize::from(number_of(column))];
        let place = usize::from(guess.get());
        if statement
            .column_name(place)
            .is_ok_and(|name| name == column)
        {
            return Ok(place);
        }
        let place = statement.column_index(column)?;
        guess.set(u8::try_from(place).unwrap_or_default());
        Ok(place)
    }
}

fn number_of(column: &str) -> u8 {
    column.bytes().fold(0, |number: u8, byte| {
        number.wrapping_mul(31).wrapping_add(byte)
    })
}

/// No statement holds a dollar sign and a digit in a literal.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('$');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_parameter = part.starts_with(|first: char| first.is_ascii_digit());
        numbered.push(if is_parameter { '?' } else { '$' });
        numbered.push_str(part);
    }
    numbered
}

/// There is one writer at a time, so rows need no locks and SQLite has no words for them. A lock clause is the end of a
/// statement, or of the one query in parentheses that has one.
fn without_locks(sql: &str) -> Cow<'_, str> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_parameter_keeps_its_number_wherever_it_stands() {
        for (sql, expected) in [
            ("SELECT $2, $10, $1", "SELECT ?2, ?10, ?1"),
            ("SELECT '$' || $1 || '$'", "SELECT '$' || ?1 || '$'"),
            ("SELECT 1", "SELECT 1"),
        ] {
            assert_eq!(numbered(sql), expected);
        }
    }

    #[test]
    fn a_column_is_found_wherever_it_moves_to() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut plans = Plans::default();
        let plan = plans.of("the same for all of these");
        // Both names make one number: 31 * 'a' + 'p' = 31 * 'b' + 'Q'.
        assert_eq!(number_of("ap"), number_of("bQ"));
        for columns in [
            "7 AS ap, 8 AS bQ",
            "8 AS bQ, 7 AS ap",
            "0 AS c, 8 AS bQ, 7 AS ap",
        ] {
            let mut statement = connection.prepare(&format!("SELECT {columns}")).unwrap();
            let mut rows = statement.query([]).unwrap();
            let row = rows.next().unwrap().unwrap();
            for (column, expected) in [("ap", 7), ("bQ", 8), ("bQ", 8), ("ap", 7)] {
                let place = plan.columns.place(row, column).unwrap();
                assert_eq!(row.get::<_, i64>(place).unwrap(), expected, "{columns}");
            }
            assert!(plan.columns.place(row, "d").is_err());
        }
    }

    #[test]
    fn plans_are_kept_up_to_a_limit() {
        let mut plans = Plans::default();
        for n in 0..3 * KEPT_MAX {
            let sql = format!("SELECT {n}");
            assert_eq!(*plans.of(&sql).sql, *sql);
            assert_eq!(*plans.of(&sql).sql, *sql);
            assert!(plans.plans.len() <= KEPT_MAX && plans.places.len() <= KEPT_MAX);
        }
    }
}
