//! Pixels as bytes: where they stand, in a thread's own rows or in those of a map.

use super::bytes::{Bytes, bytes_of};
use super::{Chunks, PIXEL_UNIT, ROW_BYTES};

/// Where the bytes of a pixel stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    /// Bytes from the beginning of one pixel to that of the next.
    pub(super) pixel: usize,
    /// Bytes from its high bytes to its low ones.
    pub(super) low: usize,
}

impl Layout {
    /// Of pixels of their own, the low bytes right behind the high ones.
    pub(super) fn packed(channels: usize) -> Self {
        Self {
            pixel: 2 * plane(channels),
            low: plane(channels),
        }
    }

    /// Where so many pixels with that many bytes of each kind end; beyond all memory if need be.
    pub(super) fn end(self, pixels: usize, bytes: usize) -> usize {
        match pixels {
            0 => 0,
            _ => (pixels - 1)
                .saturating_mul(self.pixel)
                .saturating_add(self.low)
                .saturating_add(bytes),
        }
    }
}

/// Numbers in whose place a packed pixel of so many channels stands: half as many, and what fills it up to whole cache lines.
#[must_use]
pub fn packed_pitch(channels: usize) -> usize {
    Layout::packed(channels).pixel / size_of::<f32>()
}

/// Room for so many bytes so that no chunk of them lies in two cache lines.
pub(super) fn plane(channels: usize) -> usize {
    match channels {
        ..=16 => 16,
        17..=32 => 32,
        _ => channels.saturating_add(ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES,
    }
}

/// Rows of pixels split into bytes: each has the high bytes of all its parts, then the low ones.
#[derive(Default)]
pub struct SplitRows {
    bytes: Bytes,
    rows: usize,
    row_bytes: usize,
    pixel: usize,
    /// Channels of a part.
    part: usize,
}

impl SplitRows {
    /// Makes room for `rows` rows of `width` pixels of `parts` parts with `depth` channels in all, and for what is read beyond the last one.
    pub fn resize(&mut self, rows: usize, width: usize, (depth, parts): (usize, usize)) {
        (self.rows, self.part) = (rows, depth / parts);
        self.pixel = plane(self.part).saturating_mul(2 * parts);
        let row_bytes = width.saturating_add(PIXEL_UNIT).saturating_mul(self.pixel);
        self.row_bytes = row_bytes.saturating_add(ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
        let bytes = self.row_bytes.saturating_mul(rows);
        if self.bytes.len() < bytes {
            self.bytes = Bytes::zeroed(bytes);
        }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout {
            pixel: self.pixel,
            low: self.pixel / 2,
        }
    }

    /// The bytes of a row from channel `first` of the first pixel on, where each pixel has room for so many.
    pub(super) fn pixels_mut(
        &mut self,
        row: usize,
        (first, channels): (usize, usize),
    ) -> &mut [i8] {
        let at = first / self.part * plane(self.part) + first % self.part;
        assert!(row < self.rows && at + channels <= self.pixel / 2);
        &mut self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes][at..]
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> ByteRows<'_> {
        let plane = plane(self.part);
        let row = |part: usize, row: usize| {
            &self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes][part * plane..]
        };
        let parts = 0..self.pixel / 2 / plane.max(1);
        let parts = parts.map(|part| (0..self.rows).map(|at| row(part, at)).collect());
        ByteRows {
            parts: parts.collect(),
            layout: self.layout(),
            channels: self.part,
        }
    }
}

/// Rows of pixels in bytes, wherever they stand: those of each part.
pub struct ByteRows<'a> {
    pub(super) parts: Vec<Vec<&'a [i8]>>,
    pub(super) layout: Layout,
    /// Of a part.
    channels: usize,
}

impl<'a> ByteRows<'a> {
    /// Packed rows of maps with so many channels each, as [`super::Tiles::pack`] leaves them; each begins with a pixel.
    pub fn packed(maps: impl Iterator<Item = Vec<&'a [f32]>>, channels: usize) -> Self {
        let parts = maps.map(|rows| rows.into_iter().map(bytes_of).collect());
        Self {
            parts: parts.collect(),
            layout: Layout::packed(channels),
            channels,
        }
    }

    /// Whether these are so many channels, chunks of them and pixels, with a row of that number.
    pub(super) fn has(&self, depth: usize, chunks: Chunks, (row, pixels): (usize, usize)) -> bool {
        let count = self.parts.len().saturating_mul(self.channels);
        let all = self
            .parts
            .len()
            .saturating_mul(self.channels.div_ceil(ROW_BYTES));
        let end = self.layout.end(pixels, plane(self.channels));
        let is_whole = |rows: &Vec<&[i8]>| {
            let mut rows = rows.iter().take(row.saturating_add(1));
            rows.len() > row && rows.all(|row| row.len() >= end)
        };
        count == depth
            && all == chunks.count
            && chunks.channels == self.channels.min(ROW_BYTES)
            && self.parts.iter().all(is_whole)
    }
}
