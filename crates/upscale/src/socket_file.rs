//! A Unix socket that no one else can open at any moment: it is made in a folder that only we may enter, given its
//! permissions there, and moved to its name when it listens. The move also replaces what a killed process left behind.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener as StdListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use tokio::net::UnixListener;
use upscale_core::random_token;

/// The name of a socket that listens; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

/// Listens at this path with these permissions. Its folder must be there. Must be called within a runtime.
///
/// # Errors
/// When another process listens there, when something stands there that is no socket, or when it cannot be made.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    check_free(path)?;
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    let name = random_token().map_err(io::Error::other)?;
    // Short, for a socket's path has 107 bytes at most.
    let hidden = folder
        .unwrap_or(Path::new("."))
        .join(format!(".{}", &name[..8]));
    DirBuilder::new().mode(0o700).create(&hidden)?;
    let made = make(&hidden.join("s"), path, mode);
    let _ = fs::remove_dir_all(&hidden);
    made
}

fn make(hidden: &Path, path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let listener = StdListener::bind(hidden)?;
    fs::set_permissions(hidden, Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let file = SocketFile {
        path: path.to_owned(),
        inode: fs::metadata(hidden)?.ino(),
    };
    fs::rename(hidden, path)?;
    Ok((listener, file))
}

/// Free is also where a socket stands that no one listens at any more.
fn check_free(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let message = "the path exists and is not a socket; it was left alone";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        )),
    }
}

impl Drop for SocketFile {
    /// Only our own: a successor may have put its socket there.
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[tokio::test]
    async fn a_socket_has_its_permissions_and_goes_with_its_process() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("admin.sock");
        for mode in [0o600, 0o660] {
            let (_listener, file) = listen(&path, mode).unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, mode);
            assert_eq!(names(folder.path()), ["admin.sock"], "nothing else is left");
            UnixStream::connect(&path).unwrap();
            drop(file);
            assert_eq!(names(folder.path()), [] as [&str; 0]);
        }
    }

    #[tokio::test]
    async fn what_a_killed_process_left_is_replaced_and_what_lives_is_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("admin.sock");
        drop(StdListener::bind(&path).unwrap());
        let (_listener, file) = listen(&path, 0o600).unwrap();
        let refused = listen(&path, 0o600).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse, "{refused}");
        // A successor's file is not ours to remove.
        fs::remove_file(&path).unwrap();
        let _successor = StdListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "of someone").unwrap();
        let refused = listen(&path, 0o600).unwrap_err();
        assert!(refused.to_string().contains("not a socket"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "of someone");
        let nowhere = listen(&folder.path().join("no/folder/s"), 0o600).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
