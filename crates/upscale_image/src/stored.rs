//! What deflate made larger, written again without it: noise in 16 bits grows by a quarter, and the largest results would
//! be over every limit.

use std::io::{Cursor, Write};

use png::{Compression, Decoder, DecodingError, EncodingError};

use crate::decoded::Source;
use crate::error::WriteError;
use crate::to_png::{Encoded, open};

/// A file without compression is larger than its rows by their filter bytes and by less than one part in so many:
/// headers of blocks and chunks.
const OVERHEAD_PARTS: usize = 1_000;

/// `png`, or the same picture without compression where that is smaller. `png` is what a [`PngWriter`] wrote for
/// `source` at `scale`. So no result has more bytes than its samples, one for every row, 0.1 % of both, and the chunks
/// before the picture.
///
/// # Errors
/// [`WriteError::Encode`]; also where `png` is no such file.
///
/// [`PngWriter`]: crate::PngWriter
pub fn store_if_smaller(
    png: Vec<u8>,
    source: &Source,
    scale: usize,
) -> Result<Vec<u8>, WriteError> {
    let mut reader = Decoder::new(Cursor::new(&png)).read_info().map_err(read)?;
    let (width, height) = reader.info().size();
    let row_bytes = reader.output_line_size(width).unwrap_or(usize::MAX);
    let rows_bytes = row_bytes.saturating_add(1).saturating_mul(height as usize);
    let stored_bytes = rows_bytes.saturating_add(rows_bytes / OVERHEAD_PARTS);
    if png.len() <= stored_bytes {
        return Ok(png);
    }
    let stored = Encoded::with_room(stored_bytes);
    let mut writer = open(&stored, source, scale, Compression::NoCompression)?;
    while let Some(row) = reader.next_row().map_err(read)? {
        writer.write_all(row.data()).map_err(EncodingError::from)?;
    }
    writer.finish()?;
    Ok(stored.take())
}

fn read(error: DecodingError) -> WriteError {
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    EncodingError::from(error).into()
}
