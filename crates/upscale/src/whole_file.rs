//! Files that are read whole within a limit, and written so that no one sees half of one.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

/// A whole file of at most `bytes_max` bytes; `hint` says after the number what can be done about it.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64, hint: &str) -> anyhow::Result<Vec<u8>> {
    let shown = || path.display().to_string();
    let mut bytes = Vec::new();
    let file = fs::File::open(path).with_context(shown)?;
    // One byte more than allowed tells a longer file from one of exactly that size.
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .with_context(shown)?;
    if bytes.len() as u64 > bytes_max {
        bail!("{} has more than {bytes_max} bytes{hint}", path.display());
    }
    Ok(bytes)
}

/// Makes the folder of a file that is written later, and tries to write there: that it cannot be is learnt before the work.
pub(crate) fn check_writable(path: &Path) -> anyhow::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let tried = unfinished_in(folder);
    tried.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn unfinished_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".upscale-")
        .tempfile_in(folder)
}

/// Beside the target first, then renamed onto it: anyone who looks sees the old file or the whole new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        let mut file = unfinished_in(folder_of(path))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        make_readable(file.as_file())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("{} was not written", path.display()))
}

/// Temporary files are their owner's alone; a result is an ordinary file.
fn make_readable(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}
