//! PyTorch's container since 1.6: a zip archive whose entries are all stored as they are. So a reader needs the
//! directory and no decompressor, and what cannot be decompressed cannot explode.

use std::collections::BTreeMap;

use super::bytes::{Bytes, text};
use super::limits::{NAME_BYTES_MAX, TENSORS_MAX};
use crate::error::{ModelError, refuse};

const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
/// The end record without its comment.
const END_BYTES: usize = 22;
/// The longest comment, so the farthest that the end record stands from the end.
const COMMENT_BYTES_MAX: usize = 65_535;
/// The pickle beside the tensors' bytes; 702 tensors need 100 KB.
const PICKLE_BYTES_MAX: usize = 4 << 20;

/// The entries by the name after the archive's own folder, such as `data/12`.
pub(crate) struct Archive<'a> {
    entries: BTreeMap<&'a str, &'a [u8]>,
}

pub(crate) fn is_zip(file: &[u8]) -> bool {
    file.starts_with(LOCAL)
}

impl<'a> Archive<'a> {
    pub(crate) fn read(file: &'a [u8]) -> Result<Self, ModelError> {
        let (count, directory) = directory(file)?;
        if count > TENSORS_MAX {
            return Err(refuse(format!("{count} entries, at most {TENSORS_MAX}")));
        }
        let mut entries = BTreeMap::new();
        let mut places = Vec::new();
        let mut rest = Bytes::new(directory);
        for _ in 0..count {
            let (name, bytes) = entry(file, &mut rest)?;
            let (_, inner) = name
                .split_once('/')
                .ok_or_else(|| refuse(format!("the entry {name:?} lies in no folder")))?;
            if entries.insert(inner, bytes).is_some() {
                return Err(refuse(format!("two entries are named {inner:?}")));
            }
            places.push(bytes.as_ptr_range());
        }
        places.sort_by_key(|place| place.start);
        if places.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Err(refuse("two entries of the archive overlap"));
        }
        let archive = Self { entries };
        match archive.entries.get("byteorder") {
            Some(&order) if order != b"little" => Err(refuse("its numbers are not little-endian")),
            _ => Ok(archive),
        }
    }

    pub(crate) fn pickle(&self) -> Result<&'a [u8], ModelError> {
        let found = self.entries.get("data.pkl");
        let pickle = found.ok_or_else(|| refuse("a zip archive without data.pkl"))?;
        if pickle.len() > PICKLE_BYTES_MAX {
            let bytes = pickle.len();
            return Err(refuse(format!(
                "data.pkl has {bytes} bytes, at most {PICKLE_BYTES_MAX}"
            )));
        }
        Ok(pickle)
    }

    /// A storage's bytes.
    pub(crate) fn storage(&self, key: &str) -> Result<&'a [u8], ModelError> {
        let found = self.entries.get(format!("data/{key}").as_str());
        found
            .copied()
            .ok_or_else(|| refuse(format!("the storage data/{key} is missing")))
    }
}

/// How many entries there are, and the directory of them.
fn directory(file: &[u8]) -> Result<(usize, &[u8]), ModelError> {
    let first = file.len().saturating_sub(END_BYTES + COMMENT_BYTES_MAX);
    let tail = &file[first..];
    let end = tail.windows(END.len()).rposition(|window| window == END);
    let end = end.ok_or_else(|| refuse("a zip archive without an end"))?;
    let mut record = Bytes::new(&tail[end + END.len()..]);
    record.take(6)?;
    let (count, size, start) = (record.u16()?, record.u32()?, record.u32()?);
    let range = start.checked_add(size).and_then(|end| file.get(start..end));
    let found = range.ok_or_else(|| refuse("the directory of the zip archive lies outside it"))?;
    Ok((count, found))
}

/// The next entry of the directory: its name and its bytes.
fn entry<'a>(file: &'a [u8], rest: &mut Bytes<'a>) -> Result<(&'a str, &'a [u8]), ModelError> {
    if rest.take(4)? != CENTRAL {
        return Err(refuse("the directory of the zip archive is damaged"));
    }
    rest.take(6)?;
    let method = rest.u16()?;
    rest.take(4)?;
    let crc = u32::from_le_bytes(rest.array()?);
    let (stored, size) = (rest.u32()?, rest.u32()?);
    let (name, extra, comment) = (rest.u16()?, rest.u16()?, rest.u16()?);
    rest.take(8)?;
    let place = rest.u32()?;
    if name > NAME_BYTES_MAX {
        return Err(refuse(format!(
            "an entry's name has {name} bytes, at most {NAME_BYTES_MAX}"
        )));
    }
    let name = text(rest.take(name)?)?;
    rest.take(extra)?;
    rest.take(comment)?;
    if method != 0 || stored != size {
        return Err(refuse(format!(
            "the entry {name:?} is compressed; PyTorch stores its entries as they are"
        )));
    }
    let bytes = contents(file, place, size)?;
    check_crc(name, bytes, crc)?;
    Ok((name, bytes))
}

/// Holds an entry against the directory's CRC-32. PyTorch's own reader does not, so that a damaged download runs there
/// with wrong weights. 0 is what PyTorch writes where its user has turned the sums off (`set_crc32_options`).
fn check_crc(name: &str, bytes: &[u8], stated: u32) -> Result<(), ModelError> {
    let found = if stated == 0 {
        0
    } else {
        crc32fast::hash(bytes)
    };
    if found != stated {
        return Err(refuse(format!(
            "the entry {name:?} is damaged: its CRC-32 is {found:08x}, the archive says {stated:08x}"
        )));
    }
    Ok(())
}

fn contents(file: &[u8], place: usize, size: usize) -> Result<&[u8], ModelError> {
    let outside = || refuse("an entry lies outside the archive");
    let mut header = Bytes::new(file.get(place..).ok_or_else(outside)?);
    if header.take(4)? != LOCAL {
        return Err(refuse("an entry of the zip archive is damaged"));
    }
    header.take(22)?;
    let (name, extra) = (header.u16()?, header.u16()?);
    header.take(name + extra)?;
    header.take(size)
}
