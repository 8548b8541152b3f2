//! A model file's way into the children of `serve`: read once, sealed in memory where no one can change it, and opened
//! by every child before its sandbox closes. Replacing or removing the file changes nothing until the next start.

use std::{
    fs::File,
    io::{Seek, Write},
    os::fd::AsRawFd,
    path::PathBuf,
};

use anyhow::Context;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Bytes that stay as they are for as long as this lives.
#[derive(Debug)]
pub(crate) struct Sealed {
    file: File,
}

impl Sealed {
    /// Keeps a copy of the bytes.
    ///
    /// # Errors
    /// When the kernel has no memory for it.
    pub(crate) fn new(bytes: &[u8]) -> anyhow::Result<Self> {
        let seal = || -> anyhow::Result<File> {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let mut file = File::from(memfd_create("upscale-model", flags)?);
            file.write_all(bytes)?;
            file.rewind()?;
            let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
            fcntl_add_seals(&file, seals)?;
            Ok(file)
        };
        let file = seal().context("the model could not be kept in memory")?;
        Ok(Self { file })
    }

    /// Where our children find it.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}
