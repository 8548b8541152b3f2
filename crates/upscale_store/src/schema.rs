//! Which schema a database has, and whether this program knows it.

use crate::StoreError;

/// The newest migration of an engine.
pub(crate) fn newest(runner: &refinery::Runner) -> i64 {
    let versions = runner.get_migrations().iter();
    versions
        .map(|migration| i64::from(migration.version()))
        .max()
        .unwrap_or_default()
}

/// Refuses a database that a newer program has changed: this one would not understand what it holds.
pub(crate) fn check_schema(found: Option<i64>, known: i64) -> Result<(), StoreError> {
    match found {
        Some(found) if found > known => Err(StoreError::Unavailable(format!(
            "the database was changed by a newer upscale: its schema is version {found}, and this program knows up to {known}. Run the newer program, or restore the backup from before the upgrade"
        ))),
        _ => Ok(()),
    }
}
