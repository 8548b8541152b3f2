//! One `serve` for each data directory, unless all of them agree to share it: a second one would split the work and the
//! settings in two without anyone having said so.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

const FILE_NAME: &str = "serve.lock";
/// One that was killed holds its lock until the kernel has ended it, which a busy disk may delay: who restarts it must not
/// have to do so twice.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Held until it is dropped, by this process alone: children do not inherit it.
#[derive(Debug)]
pub(crate) struct ServeLock {
    _lock: File,
}

impl ServeLock {
    /// Makes the directory where absent, for its owner alone. `shared` lets in who asks for the same.
    ///
    /// # Errors
    /// When another `serve` works there, or the directory cannot be written.
    pub(crate) async fn take(directory: &Path, shared: bool) -> anyhow::Result<Self> {
        Self::take_within(directory, shared, WAIT_MAX).await
    }

    async fn take_within(
        directory: &Path,
        shared: bool,
        wait_max: Duration,
    ) -> anyhow::Result<Self> {
        let shown = directory.display();
        let mut lock = open(directory).with_context(|| format!("the data directory {shown}"))?;
        let begun = Instant::now();
        loop {
            let tried = match shared {
                true => lock.try_lock_shared(),
                false => lock.try_lock(),
            };
            match tried {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < wait_max => {
                    sleep(LOOK_AGAIN).await;
                }
                Err(TryLockError::WouldBlock) => bail!("{}", refusal(directory)),
                Err(TryLockError::Error(error)) => {
                    // A file system without locks has no database of ours either; that error says more.
                    tracing::warn!(directory = %shown, %error, "no lock: a second serve would not be noticed");
                    break;
                }
            }
        }
        let written = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.with_context(|| format!("the data directory {shown}"))?;
        Ok(Self { _lock: lock })
    }
}

fn open(directory: &Path) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(directory.join(FILE_NAME))
}

fn refusal(directory: &Path) -> String {
    let holder = fs::read_to_string(directory.join(FILE_NAME)).unwrap_or_default();
    let holder = match holder.trim().parse::<u32>() {
        Ok(id) => format!("process {id}"),
        Err(_) => "another process".to_owned(),
    };
    format!(
        "{holder} already runs `serve` on the data directory {}: stop it first, or start both with --share-data",
        directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(directory: &Path, shared: bool) -> anyhow::Result<ServeLock> {
        ServeLock::take_within(directory, shared, Duration::ZERO).await
    }

    #[tokio::test]
    async fn a_directory_has_one_serve_or_several_that_all_agree() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("data");
        let alone = take(&directory, false).await.unwrap();
        for shared in [false, true] {
            let refused = take(&directory, shared).await.unwrap_err();
            let words = format!("{refused:#}");
            assert!(
                words.contains(&format!("process {}", std::process::id())),
                "{words}"
            );
            assert!(words.contains("data directory"), "{words}");
        }
        drop(alone);
        let _one = take(&directory, true).await.unwrap();
        let _other = take(&directory, true).await.unwrap();
        assert!(take(&directory, false).await.is_err());
    }
}
