//! What SQLite's errors mean to the caller: try again later, or somebody must look.

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
