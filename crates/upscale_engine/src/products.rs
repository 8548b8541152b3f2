//! Where a product of Winograd's stands in memory: `[position][tile][channel]`.

use crate::winograd::POSITIONS;

/// Positions lie three cache lines apart from a round number: 64 streams would else fall on the same cache sets.
const POSITION_PAD: usize = 48;

/// How the products of a run of tiles lie in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Products {
    pub(crate) tiles: usize,
    pub(crate) tile_stride: usize,
    position_stride: usize,
}

impl Products {
    /// For tiles that read `depth` numbers a pixel and write `channels`.
    pub(crate) fn new(tiles: usize, depth: usize, channels: usize) -> Self {
        let tile_stride = depth.max(channels);
        Self {
            tiles,
            tile_stride,
            position_stride: tiles * tile_stride + POSITION_PAD,
        }
    }

    /// As many of these tiles, one row of tiles: the positions lie as far apart.
    pub(crate) fn of_row(&self, tiles: usize) -> Self {
        Self { tiles, ..*self }
    }

    /// Numbers that all of them need.
    pub(crate) fn size(&self) -> usize {
        POSITIONS * self.position_stride
    }

    /// Where a position begins.
    #[inline(always)]
    pub(crate) fn position(&self, position: usize) -> usize {
        position * self.position_stride
    }
}
