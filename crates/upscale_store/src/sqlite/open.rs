//! Opens the file: makes it private to its owner, brings its tables up to date, starts the threads.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Notify;
use upscale_core::Clock;

use super::{
    Connection as Driven, Db,
    opened_file::OpenedFile,
    readers::{Readers, Reading},
    writer::{Writer, Writing},
};
use crate::{
    StoreError, StoreOptions,
    schema::{check_schema, newest},
    signing_key::{FIRST_SIGNING_KEY, new_signing_key},
};

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// The database in its data directory.
pub const DATABASE_FILE: &str = "upscale.db";
/// How long another process may hold the write lock before a write gives up; within a request's 10 s.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The same while the file is opened. A killed process holds its lock until the kernel has finished its sync, and a busy disk
/// may take seconds for that: a service that gives up meanwhile would have to be started again by hand.
const OPEN_BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// Reads at a time; each connection keeps at most 2 MB of pages.
const READERS: usize = 4;
/// Statements a connection keeps prepared; the verbs have about a hundred.
const PREPARED_MAX: usize = 160;
/// The log file is cut back to this after a checkpoint, should a long read have let it grow.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// How much of a commit must be on the disk before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Synced: the product's way.
    Full,
    /// Left to the kernel: for tests that make thousands of databases and lose no power.
    #[cfg(test)]
    Off,
}

impl Db {
    /// Blocks: call it off the async threads.
    pub(crate) fn open(
        directory: &Path,
        clock: Clock,
        options: StoreOptions,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        make_private(directory, DATABASE_FILE).map_err(|error| {
            let shown = directory.display();
            StoreError::Unavailable(format!("{shown}: {error}"))
        })?;
        let path = directory.join(DATABASE_FILE);
        let connection = migrated(directory, &path, durability)?;
        #[cfg(test)]
        let faults = crate::faults::Faults::default();
        let writer = Writer::start(Writing {
            connection: Arc::new(Driven::new(connection)),
            file: OpenedFile::at(&path).map_err(unavailable)?,
            clock: clock.clone(),
            options,
            #[cfg(test)]
            faults: faults.clone(),
        })?;
        let reading = |_| {
            Ok(Reading {
                connection: Arc::new(Driven::new(read_only(&path)?)),
                clock: clock.clone(),
                options,
            })
        };
        let readers = Readers::start(
            (0..durability.readers())
                .map(reading)
                .collect::<Result<_, StoreError>>()?,
        )?;
        Ok(Self {
            writer,
            readers,
            job_added: Arc::new(Notify::new()),
            clock,
            options,
            path: path.into(),
            secret_keys: None,
            #[cfg(test)]
            faults,
        })
    }
}

/// Copies what the file holds into a new one and back (VACUUM), then empties the log. Others read meanwhile; writes wait.
pub(super) fn rewrite(path: &Path) -> Result<(), StoreError> {
    let connection = connect(path)?;
    connection.busy_timeout(OPEN_BUSY_TIMEOUT)?;
    connection.execute_batch("VACUUM")?;
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy {
        let what = "another process reads the log, which could not be emptied";
        return Err(StoreError::Unavailable(what.to_owned()));
    }
    Ok(())
}

/// The file holds the secret that signs result URLs: no one but its owner reads it. SQLite gives its
/// log the same permissions.
pub(super) fn make_private(directory: &Path, file: &str) -> std::io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    private_file(&directory.join(file)).map(drop)
}

fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Two processes that open a new file at once must not both make its tables: one waits at a lock file.
fn migrated(
    directory: &Path,
    path: &Path,
    durability: Durability,
) -> Result<Connection, StoreError> {
    let lock = private_file(&directory.join("upscale.db-migrate")).map_err(unavailable)?;
    lock.lock().map_err(unavailable)?;
    let mut connection = connect(path)?;
    prepare(&connection, durability).map_err(|error| in_words(path, error))?;
    let migrations = embedded::migrations::runner();
    check_schema(find_schema(&connection)?, newest(&migrations))?;
    migrations.run(&mut connection).map_err(|error| {
        StoreError::Unavailable(format!("{}: migration failed: {error}", path.display()))
    })?;
    ensure_signing_key(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn unavailable(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Sets what every connection that writes needs, and reads the file's list of tables: one that is no database shows here.
fn prepare(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    connection.busy_timeout(OPEN_BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "synchronous", durability.as_pragma())?;
    // Where fsync does not reach the platter (macOS), this does; elsewhere it changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// What an operator can do about a file that cannot be opened.
fn in_words(path: &Path, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(format!(
            "{} is damaged or no database ({error}). Nothing was changed. Restore it from a backup; `upscale backup` makes them",
            path.display()
        )),
        _ => error.into(),
    }
}

/// Makes the tables as a program of this schema knows them.
#[cfg(test)]
pub(crate) fn migrate_to(file: &mut Connection, schema: i32) -> Result<(), refinery::Error> {
    let migrations = embedded::migrations::runner().set_target(refinery::Target::Version(schema));
    migrations.run(file).map(drop)
}

/// The newest migration that was made; none in a new file.
fn find_schema(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let history = "SELECT count(*) FROM sqlite_schema WHERE name = 'refinery_schema_history'";
    if connection.query_row(history, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let newest = "SELECT max(version) FROM refinery_schema_history";
    Ok(connection.query_row(newest, [], |row| row.get(0))?)
}

/// Runs under the migration lock, so two processes cannot make two.
fn ensure_signing_key(connection: &Connection) -> Result<(), StoreError> {
    let (id, secret) = new_signing_key()?;
    connection.execute(FIRST_SIGNING_KEY, [id, secret])?;
    Ok(())
}

pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    // No mutex: each connection belongs to one thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_MAX);
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

impl Durability {
    fn readers(self) -> usize {
        match self {
            Self::Full => READERS,
            #[cfg(test)]
            Self::Off => 1,
        }
    }

    fn as_pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            #[cfg(test)]
            Self::Off => "OFF",
        }
    }
}
