//! Whether results could be stored now: writes a few bytes where they go, and waits no longer than a few seconds.

use std::{fs, io, os::unix::fs::OpenOptionsExt, path::Path, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{Results, Storage, cannot_read};
use crate::StoreError;

/// A storage that takes longer for a few bytes is of no use for a result.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// No result: sweeps and listings leave it alone.
pub(super) const FILE_NAME: &str = "probe";

impl Results {
    /// Writes a few bytes under a name of its own, always the same one: in a bucket one object that stays, in a directory
    /// a file that is removed at once and not synced. One at a time in a directory: a disk that hangs holds one thread.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when they could not be written within three seconds.
    pub async fn probe(&self) -> Result<(), StoreError> {
        let tried = timeout(WAIT_MAX, self.write_probe()).await;
        tried.unwrap_or_else(|_| {
            let what = format!("the storage did not answer within {WAIT_MAX:?}");
            Err(StoreError::Unavailable(what))
        })
    }

    async fn write_probe(&self) -> Result<(), StoreError> {
        let directory = match &self.storage {
            Storage::Bucket(bucket) => return bucket.probe().await,
            Storage::Directory(directory) => Arc::clone(directory),
        };
        let Ok(alone) = Arc::clone(&self.probing).try_lock_owned() else {
            let what = "an earlier write has not come back".to_owned();
            return Err(StoreError::Unavailable(what));
        };
        let tried = tokio::task::spawn_blocking(move || {
            let _alone = alone;
            write_and_remove(&directory).map_err(|error| cannot_read(&directory, &error))
        });
        let tried = tried.await;
        tried.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }
}

/// Several processes may do so at once: what is gone already is as good as removed.
fn write_and_remove(directory: &Path) -> io::Result<()> {
    let path = directory.join(FILE_NAME);
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    io::Write::write_all(&mut file, FILE_NAME.as_bytes())?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_that_is_gone_cannot_be_written_and_one_that_is_back_can() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("results");
        let results = Results::local(&directory).unwrap();
        results.probe().await.unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "no trace");
        fs::remove_dir(&directory).unwrap();
        let gone = results.probe().await;
        assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
        assert!(!directory.exists(), "what is gone is not made anew");
        fs::create_dir(&directory).unwrap();
        results.probe().await.unwrap();
    }

    #[tokio::test]
    async fn while_one_try_hangs_no_other_begins() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::local(folder.path()).unwrap();
        let hangs = results.probing.lock().await;
        let second = results.probe().await;
        assert!(
            matches!(second, Err(StoreError::Unavailable(_))),
            "{second:?}"
        );
        drop(hangs);
        results.probe().await.unwrap();
    }
}
