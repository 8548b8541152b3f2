//! What PostgreSQL's errors mean to the caller: try again later, or someone must look.

use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::StoreError;

/// Classes of errors that pass: connection, transaction rollback (deadlock), resources (full disk, memory,
/// connections), operator intervention (shutdown, statement timeout), system (input/output).
const PASSING_CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];
/// Single codes that pass: a lock waited for too long; a server that became a standby; a session that idled
/// in its transaction; a statement sent behind another that failed, whose answer may be read first.
const PASSING: [SqlState; 4] = [
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    SqlState::IN_FAILED_SQL_TRANSACTION,
];

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let words = in_full(&error);
        match error.code() {
            Some(code) if !may_pass(code) => Self::Corrupt(words),
            // Without a code it never reached the server or the answer never came; but a value that cannot be
            // read as what the column should hold is ours to look at.
            None if is_conversion(&words) => Self::Corrupt(words),
            _ => Self::Unavailable(words),
        }
    }
}

/// Why a question to the server has no good answer.
pub(super) enum NoAnswer {
    /// None came for this long.
    InTime(Duration),
    /// The server's own error, or that of a connection which ended.
    But(tokio_postgres::Error),
}

/// Of anything but a commit: the transaction is undone by the server or with its connection.
impl From<NoAnswer> for StoreError {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::InTime(wait_max) => Self::Unavailable(silence(wait_max)),
            NoAnswer::But(error) => error.into(),
        }
    }
}

impl NoAnswer {
    /// Of a commit. Only an ERROR of the server's says that it rolled back: it sends a FATAL when the session ends,
    /// which may be after the commit.
    pub(super) fn after_commit(self) -> StoreError {
        let error = match self {
            Self::InTime(wait_max) => return StoreError::OutcomeUnknown(silence(wait_max)),
            Self::But(error) => error,
        };
        let reported = error.as_db_error();
        let is_undone = reported.is_some_and(|reported| {
            reported.parsed_severity() == Some(Severity::Error)
                && *reported.code() != SqlState::TRANSACTION_RESOLUTION_UNKNOWN
        });
        match is_undone {
            true => error.into(),
            false => StoreError::OutcomeUnknown(in_full(&error)),
        }
    }
}

fn silence(wait_max: Duration) -> String {
    let seconds = wait_max.as_secs();
    format!("the database did not answer within {seconds} s")
}

pub(super) fn unavailable(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => StoreError::Unavailable(in_full(&error)),
        other => StoreError::Unavailable(format!("no connection to the database: {other}")),
    }
}

/// Whether a statement was undone because another session had what it locks, wherever in the error that is said.
pub(super) fn is_lock_not_got(error: &(dyn std::error::Error + 'static)) -> bool {
    let code = error.downcast_ref().and_then(tokio_postgres::Error::code);
    let codes = [
        &SqlState::LOCK_NOT_AVAILABLE,
        &SqlState::T_R_DEADLOCK_DETECTED,
    ];
    code.is_some_and(|code| codes.contains(&code)) || error.source().is_some_and(is_lock_not_got)
}

fn may_pass(code: &SqlState) -> bool {
    PASSING.contains(code) || PASSING_CLASSES.contains(&&code.code()[..2])
}

fn is_conversion(words: &str) -> bool {
    ["error serializing", "error deserializing", "invalid column"]
        .iter()
        .any(|start| words.starts_with(start))
}

/// The error and what caused it: the client's own words leave out the server's. Of the server's only code and
/// message: its detail and hint quote rows, which hold idempotency keys and customers' URLs, and this is logged.
pub(super) fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = match error.downcast_ref::<DbError>() {
        Some(reported) => format!("{} {}", reported.code().code(), reported.message()),
        None => error.to_string(),
    };
    if let Some(cause) = error.source() {
        words = format!("{words}: {}", in_full(cause));
    }
    words
}
