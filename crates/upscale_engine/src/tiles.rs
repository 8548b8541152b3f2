//! A run of tiles through Winograd's transforms: map rows to `[position][tile][channel]`, and back to rows.

use upscale_simd::{Lanes, ReadLease};

use crate::finish::{Joined, finish_line};
use crate::plan::PlanLayer;
use crate::winograd::{POSITIONS, TILE, WINDOW, inputs, outputs};
use crate::words;

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
    pub(crate) fn new(layer: &PlanLayer, tiles: usize) -> Self {
        let tile_stride = layer.depth.max(layer.channels);
        Self {
            tiles,
            tile_stride,
            position_stride: tiles * tile_stride + POSITION_PAD,
        }
    }

    /// Numbers that a layer's products need for that many tiles.
    pub(crate) fn size(layer: &PlanLayer, tiles: usize) -> usize {
        POSITIONS * Self::new(layer, tiles).position_stride
    }

    /// Where a position begins.
    #[inline(always)]
    pub(crate) fn position(&self, position: usize) -> usize {
        position * self.position_stride
    }
}

/// Bt d B of every tile. The first tile's window begins at `place` (in numbers) of rows with `channels` channels;
/// the results stand at channel `first` of each tile. With `ENLARGED` 2 every number is read as two in its row, the
/// rows being given twice by the caller.
#[inline(always)]
pub(crate) fn transform_inputs<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    products: &mut [f32],
    first: usize,
) {
    for tile in 0..shape.tiles {
        let start = place + tile * TILE / ENLARGED * channels;
        let end = start + (WINDOW / ENLARGED + ENLARGED - 1) * channels;
        let rows: [&[f32]; WINDOW] = std::array::from_fn(|row| &window[row][start..end]);
        for channel in (0..channels).step_by(L::WIDTH) {
            let to = tile * shape.tile_stride + first + channel;
            transform_input::<L, ENLARGED>(
                lanes,
                shape,
                &rows,
                (channel, channels),
                &mut products[to..],
            );
        }
    }
}

/// Rows first, then columns. The intermediate is written out in full: an array that is filled in a loop is
/// cleared beforehand, which took 5 % of the whole time.
#[inline(always)]
fn transform_input<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    rows: &[&[f32]; WINDOW],
    at: (usize, usize),
    to: &mut [f32],
) {
    let half = [
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[0], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[1], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[2], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[3], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[4], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[5], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[6], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[7], at)),
    ];
    let stride = shape.position(WINDOW);
    for column in 0..WINDOW {
        let line = inputs(lanes, crosswise(&half, column));
        lanes.store_line(line, WINDOW, to, (shape.position(column), stride));
    }
}

/// Eight neighbours in a row: each number once, or twice but for the outermost.
#[inline(always)]
pub(crate) fn columns<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    row: &[f32],
    (channel, channels): (usize, usize),
) -> [L::V; WINDOW] {
    if ENLARGED == 1 {
        return lanes.load_line(row, channel, channels);
    }
    let [a, b, c, d, e] = lanes.load_line(row, channel, channels);
    [a, b, b, c, c, d, d, e]
}

/// The `index`-th of each of eight lines.
#[inline(always)]
pub(crate) fn crosswise<V: Copy, const N: usize>(
    lines: &[[V; N]; WINDOW],
    index: usize,
) -> [V; WINDOW] {
    let [a, b, c, d, e, f, g, h] = lines;
    [
        a[index], b[index], c[index], d[index], e[index], f[index], g[index], h[index],
    ]
}

/// At m A of every tile, finished (`tile_scales` are those of products in 16-bit integers), into rows of `layer.channels` channels; columns from `width` on, and rows that
/// are not there, lie outside the picture. `place` is the first pixel's place in the rows of joining maps.
#[inline(always)]
pub(crate) fn transform_outputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    (products, tile_scales, width): (&[f32], &[f32], usize),
    layer: &PlanLayer,
    joined: &[Joined<'_>],
    place: usize,
    rows: &mut [&mut [f32]],
) {
    for tile in 0..shape.tiles {
        let columns = (width - tile * TILE).min(TILE);
        for channel in (0..layer.channels).step_by(L::WIDTH) {
            let from = &products[tile * shape.tile_stride + channel..];
            let half = match &layer.words {
                None => output_columns(lanes, shape, from),
                Some(words) => words::output_columns(lanes, shape, from, (words, channel)),
            };
            for (row, output) in rows.iter_mut().enumerate() {
                let mut line = outputs(lanes, crosswise(&half, row));
                if layer.words.is_some() {
                    let scale = lanes.splat(1.0 / tile_scales[tile]);
                    let bias = lanes.load(&layer.bias, channel);
                    for value in &mut line {
                        *value = lanes.fma(*value, scale, bias);
                    }
                }
                let pixel = tile * TILE * layer.channels + channel;
                let at = (row, place * layer.channels + pixel, channel);
                finish_line(lanes, layer, joined, at, &mut line, columns);
                lanes.store_line(line, columns, output, (pixel, layer.channels));
            }
        }
    }
}

#[inline(always)]
fn output_columns<L: Lanes>(lanes: L, shape: &Products, from: &[f32]) -> [[L::V; TILE]; WINDOW] {
    let (step, stride) = (shape.position(1), shape.position(WINDOW));
    [
        outputs(lanes, lanes.load_line(from, 0, stride)),
        outputs(lanes, lanes.load_line(from, step, stride)),
        outputs(lanes, lanes.load_line(from, 2 * step, stride)),
        outputs(lanes, lanes.load_line(from, 3 * step, stride)),
        outputs(lanes, lanes.load_line(from, 4 * step, stride)),
        outputs(lanes, lanes.load_line(from, 5 * step, stride)),
        outputs(lanes, lanes.load_line(from, 6 * step, stride)),
        outputs(lanes, lanes.load_line(from, 7 * step, stride)),
    ]
}
