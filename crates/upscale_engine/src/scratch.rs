//! What one thread needs besides the maps, made once for all tickets of a picture.

use upscale_simd::{Ahead, Beside, Buffer, Output, SplitRows};

use crate::job::Job;
use crate::plan::Method;
use crate::products::Products;
use crate::shuffle;
use crate::winograd::TILE;

/// What one thread needs besides the maps.
pub(crate) struct Scratch {
    /// Winograd's inputs, then its products in the same place: `[position][tile][channel]`.
    pub(crate) products: Buffer,
    /// Powers of two by which tiles were scaled down to fit 16-bit integers.
    pub(crate) tile_scales: Vec<f32>,
    /// Bytes of the rows that a row of tiles reads.
    pub(crate) split: SplitRows,
    /// What is fetched while products are computed.
    pub(crate) ahead: Ahead,
    /// Rows of numbers that are packed afterwards.
    pub(crate) numbers: Vec<f32>,
    /// Rows of the matrix kernel, or gathered source pixels.
    pub(crate) rows: Vec<f32>,
    /// The last layer's rows before they are shuffled.
    pub(crate) last: Buffer,
    pub(crate) base: shuffle::BaseRows,
}

impl Scratch {
    pub(crate) fn new(job: &Job<'_>) -> Self {
        let tiles = job.extent.segment_tiles;
        let all_tiles = tiles * job.extent.task_rows;
        let tiled = job.plan.layers.iter();
        let tiled =
            tiled.filter(|layer| layer.method == Method::Winograd && layer.direct.is_none());
        let products =
            tiled.map(|layer| Products::new(all_tiles, layer.depth, layer.channels).size());
        let last = job.plan.layers.last().map_or(0, |layer| layer.channels);
        Self {
            products: Buffer::zeroed(products.max().unwrap_or(0)),
            tile_scales: Vec::new(),
            split: SplitRows::default(),
            ahead: Ahead::default(),
            numbers: Vec::new(),
            rows: Vec::new(),
            last: Buffer::zeroed(TILE * tiles * TILE * last),
            base: shuffle::BaseRows::default(),
        }
    }
}

impl Scratch {
    /// A position's rows, to be multiplied in place, and what is needed beside them; `next` is the next position's
    /// matrix.
    #[inline(always)]
    pub(crate) fn position<'a>(
        &'a mut self,
        shape: &Products,
        position: usize,
        next: &'a [f32],
    ) -> (Output<'a>, Beside<'a>) {
        let rows = Output {
            numbers: &mut self.products[shape.position(position)..],
            stride: shape.tile_stride,
        };
        let beside = Beside {
            copy: &mut self.rows,
            next,
            ahead: &mut self.ahead,
        };
        (rows, beside)
    }
}
