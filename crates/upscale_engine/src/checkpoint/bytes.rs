//! A hostile file read from front to back: every step says what it wanted when the bytes run out.

use crate::error::{ModelError, refuse};

/// What is left to read.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ModelError> {
        let left = self.rest.len();
        let split = self.rest.split_at_checked(count);
        let (taken, rest) =
            split.ok_or_else(|| refuse(format!("{count} bytes are announced, {left} are left")))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| refuse("too few bytes"))
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ModelError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<usize, ModelError> {
        self.array().map(|bytes| u16::from_le_bytes(bytes).into())
    }

    pub(crate) fn u32(&mut self) -> Result<usize, ModelError> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    /// A count of eight bytes, signed as PyTorch writes them.
    pub(crate) fn count(&mut self) -> Result<usize, ModelError> {
        let number = i64::from_le_bytes(self.array()?);
        usize::try_from(number).map_err(|_| refuse(format!("{number} is no count")))
    }

    /// Text up to the end of the line, of at most `most` bytes.
    pub(crate) fn line(&mut self, most: usize) -> Result<&'a str, ModelError> {
        let end = self
            .rest
            .iter()
            .take(most + 1)
            .position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| refuse(format!("a name has more than {most} bytes")))?;
        let line = self.take(end)?;
        self.take(1)?;
        text(line)
    }
}

pub(crate) fn text(bytes: &[u8]) -> Result<&str, ModelError> {
    str::from_utf8(bytes).map_err(|_| refuse("a text is not UTF-8"))
}
