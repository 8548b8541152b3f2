//! What SQLite's errors mean to the caller: try again later, or someone must look.

use rusqlite::ErrorCode;
use upscale_core::NoRandomness;

use crate::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(code) if may_pass(code) => Self::Unavailable(error.to_string()),
            _ => Self::Corrupt(error.to_string()),
        }
    }
}

impl From<NoRandomness> for StoreError {
    fn from(error: NoRandomness) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// What a COMMIT that failed leaves behind. Where SQLite never wrote the last frame of the transaction (another has the lock,
/// the disk is full, a reference hangs) nothing is kept. After any other error, such as a failed sync, that frame may stand in
/// the log, and a crash before the next commit brings it back.
pub(super) fn of_commit(error: rusqlite::Error) -> StoreError {
    let words = format!("COMMIT: {error}");
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::ConstraintViolation,
        ) => StoreError::Unavailable(words),
        _ => StoreError::OutcomeUnknown(words),
    }
}

/// Whether the same statement may succeed once a lock, the disk or memory is free again.
fn may_pass(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::SchemaChanged
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi::{self, Error as Code};

    use super::*;

    fn after(code: i32) -> StoreError {
        of_commit(rusqlite::Error::SqliteFailure(Code::new(code), None))
    }

    #[test]
    fn a_commit_whose_last_frame_was_never_written_is_known_to_have_failed() {
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_FULL, ffi::SQLITE_CONSTRAINT] {
            assert!(matches!(after(code), StoreError::Unavailable(_)), "{code}");
        }
    }

    #[test]
    fn a_commit_that_failed_in_any_other_way_may_be_on_the_disk() {
        for code in [
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_CORRUPT,
        ] {
            let error = after(code);
            assert!(matches!(error, StoreError::OutcomeUnknown(_)), "{code}");
        }
    }
}
