//! A copy of the database of a service that runs: one snapshot, by SQLite's own online copy, while others write.

use std::{fs, path::Path};

use rusqlite::{Connection, OpenFlags, backup::Backup, backup::StepResult};

use super::open::{DATABASE_FILE, make_private, read_only};
use crate::StoreError;

/// The copy while it is being made; a crash leaves this behind, never half a database under its name.
const UNFINISHED: &str = "upscale.db.unfinished";

/// Copies the database of the directory `from` into the directory `to`, which is made where absent and must hold no
/// database; on the disk when this returns its size in bytes. Blocks for the length of the copy, writers go on.
///
/// # Errors
/// [`StoreError::Unavailable`] when there is a database in `to`, none in `from`, or one of them cannot be read or
/// written.
pub fn back_up(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let source = from.join(DATABASE_FILE);
    let (unfinished, finished) = (to.join(UNFINISHED), to.join(DATABASE_FILE));
    if !source.is_file() {
        return Err(refusal(&source, "there is no database"));
    }
    make_private(to, UNFINISHED).map_err(|error| refusal(to, error))?;
    if finished.exists() {
        return Err(refusal(&finished, "there is a database already"));
    }
    copy(&read_only(&source)?, &unfinished)?;
    let rename = fs::rename(&unfinished, &finished).and_then(|()| fs::File::open(to)?.sync_all());
    rename.map_err(|error| refusal(&finished, error))?;
    let written = fs::metadata(&finished).map_err(|error| refusal(&finished, error))?;
    Ok(written.len())
}

/// All pages in one step: a copy in several begins anew whenever another connection has written in between.
fn copy(source: &Connection, to: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(to, flags)?;
    let step = Backup::new(source, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(refusal(to, format!("the copy ended early: {step:?}")));
    }
    let sound: String = copy.query_row("PRAGMA quick_check", [], |row| row.get(0))?;
    copy.close().map_err(|(_, error)| error)?;
    if sound != "ok" {
        return Err(refusal(to, format!("the copy is damaged: {sound}")));
    }
    let synced = fs::File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| refusal(to, error))
}

fn refusal(path: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {why}", path.display()))
}
