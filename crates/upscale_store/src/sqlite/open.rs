//! Opens the file: makes it private to its owner, brings its tables up to date, starts the threads.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Notify;
use upscale_core::Clock;

use super::{
    Connection as Driven, Db,
    readers::{Readers, Reading},
    writer::{Writer, Writing},
};
use crate::{
    StoreError, StoreOptions,
    signing_key::{FIRST_SIGNING_KEY, new_signing_key},
};

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

pub(super) const FILE_NAME: &str = "upscale.db";
/// How long another process may hold the write lock before a write gives up; within a request's 10 s.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The same while the file is opened. Who was killed holds his lock until the kernel has finished his sync, and a busy disk
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
        make_private(directory, FILE_NAME).map_err(|error| {
            let shown = directory.display();
            StoreError::Unavailable(format!("{shown}: {error}"))
        })?;
        let path = directory.join(FILE_NAME);
        let connection = migrated(directory, &path, durability)?;
        #[cfg(test)]
        let faults = crate::faults::Faults::default();
        let writer = Writer::start(Writing {
            connection: Arc::new(Driven::new(connection)),
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
            #[cfg(test)]
            faults,
        })
    }
}

/// The file holds the secret that signs result URLs: nobody but its owner reads it. SQLite gives its
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
    let unavailable = |error: std::io::Error| StoreError::Unavailable(error.to_string());
    let lock = private_file(&directory.join("upscale.db-migrate")).map_err(unavailable)?;
    lock.lock().map_err(unavailable)?;
    let mut connection = connect(path)?;
    connection.busy_timeout(OPEN_BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "synchronous", durability.as_pragma())?;
    // Where fsync does not reach the platter (macOS), this does; elsewhere it changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    embedded::migrations::runner()
        .run(&mut connection)
        .map_err(|error| StoreError::Unavailable(format!("migration failed: {error}")))?;
    ensure_signing_key(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
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
