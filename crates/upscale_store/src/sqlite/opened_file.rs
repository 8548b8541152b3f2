//! The database's file as it was opened. One that was moved away, or that another took the place of, still takes writes
//! through the descriptors that are open, and no one finds them again: writing stops instead.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::StoreError;

/// Where it is and which it is.
pub(super) struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OpenedFile {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Whether the path still leads to it.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let path = self.path.display();
        let words = match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => return Ok(()),
            Ok(_) => format!(
                "{path} is another file than the one that was opened: nothing more is written. Put the first one back, or restart the service to use this one"
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => format!(
                "{path} is gone: nothing more is written. Put it back, or stop the service and restore a backup"
            ),
            Err(error) => format!("{path}: {error}"),
        };
        Err(StoreError::Unavailable(words))
    }
}
