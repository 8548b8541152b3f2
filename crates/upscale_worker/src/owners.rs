//! Which workers of this machine still run. Each holds the lock of a file that bears its name for as long as it lives;
//! the kernel releases it when the process has ended, however that came about, and never while it is merely frozen. So a
//! file whose lock is free proves a death, and what that worker had claimed need not wait for its lease. The descriptor
//! is closed on exec: a child that outlives its worker does not keep the lock.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

const SUFFIX: &str = ".lock";

/// A worker's own lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    path: PathBuf,
    _lock: File,
}

/// A worker that has ended, its lock held by us meanwhile.
#[derive(Debug)]
pub(crate) struct DeadOwner {
    pub(crate) worker: String,
    path: PathBuf,
    _lock: File,
}

impl Owner {
    /// Makes the folder where absent, and in it the file, which no one sees before its lock is held.
    ///
    /// # Errors
    /// When the folder cannot be written, or its file system knows no locks.
    pub(crate) fn begin(folder: &Path, worker: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let hidden = folder.join(format!("{worker}.new"));
        let lock = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&hidden)?;
        lock.try_lock()?;
        let path = folder.join(format!("{worker}{SUFFIX}"));
        fs::rename(&hidden, &path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Takes the file away, once nothing is claimed under its name any more. Anyone who finds it still there later removes
    /// it, so that an error is none.
    pub(crate) fn remove_file(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl DeadOwner {
    /// As [`Owner::remove_file`].
    pub(crate) fn remove_file(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Workers whose file is in the folder and whose lock is free. Blocks as long as the disk does.
///
/// # Errors
/// When the folder cannot be read; that it is not there is none.
pub(crate) fn find_dead(folder: &Path) -> io::Result<Vec<DeadOwner>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut dead = Vec::new();
    for entry in entries {
        dead.extend(dead_owner(entry?.path())?);
    }
    Ok(dead)
}

/// None where the lock is held, or the file was removed meanwhile.
fn dead_owner(path: PathBuf) -> io::Result<Option<DeadOwner>> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(worker) = name.and_then(|name| name.strip_suffix(SUFFIX)) else {
        return Ok(None);
    };
    let worker = worker.to_owned();
    let lock = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(DeadOwner {
            worker,
            path,
            _lock: lock,
        })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    fn names(dead: io::Result<Vec<DeadOwner>>) -> Vec<String> {
        let dead = dead.unwrap().into_iter();
        dead.map(|owner| owner.worker).collect()
    }

    /// As [`find_dead`], until it finds one. A child that another test has forked holds a copy of every lock until it
    /// executes its program: with six tests at a time a lock that was dropped was once still held.
    fn wait_for_dead(folder: &Path) -> io::Result<Vec<DeadOwner>> {
        let began = Instant::now();
        loop {
            let dead = find_dead(folder)?;
            if !dead.is_empty() {
                return Ok(dead);
            }
            assert!(began.elapsed() < Duration::from_secs(30), "nobody is dead");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_worker_is_dead_once_its_lock_is_free_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("owners");
        assert_eq!(
            names(find_dead(&folder)),
            [] as [&str; 0],
            "no folder, no one dead"
        );
        let [one, other] = ["one", "other"].map(|name| Owner::begin(&folder, name).unwrap());
        assert_eq!(names(find_dead(&folder)), [] as [&str; 0]);
        drop(one);
        assert_eq!(names(wait_for_dead(&folder)), ["one"]);
        let dead = wait_for_dead(&folder).unwrap();
        assert_eq!(dead[0].worker, "one", "until its file is removed");
        dead[0].remove_file();
        other.remove_file();
        drop(other);
        assert_eq!(names(find_dead(&folder)), [] as [&str; 0]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn two_who_look_at_once_do_not_both_find_the_dead() {
        let folder = tempfile::tempdir().unwrap();
        drop(Owner::begin(folder.path(), "one").unwrap());
        let first = wait_for_dead(folder.path()).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(names(find_dead(folder.path())), [] as [&str; 0]);
    }

    #[test]
    fn a_child_that_outlives_its_worker_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::begin(folder.path(), "one").unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        drop(owner);
        let dead = names(wait_for_dead(folder.path()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(dead, ["one"]);
    }

    #[test]
    fn what_is_no_lock_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "of the operator").unwrap();
        fs::write(folder.path().join("half.new"), "").unwrap();
        assert_eq!(names(find_dead(folder.path())), [] as [&str; 0]);
    }
}
