//! Layers in 16-bit integers without Winograd, where the CPU multiplies bytes on tile registers: for 3x3 five times as many
//! products, each at a sixth of the cost, and no transforms; 1x1 layers have none anyway. Numbers are scaled by one number a layer, made of `ranges.rs`,
//! and rounded.
//!
//! A number that would not fit is never cut: its whole tile is scaled down by a power of two, which depends on the tile alone,
//! as in `words.rs`, so that results stay the same however a picture is cut.

mod windows;

use std::ops::Range;

use upscale_simd::{
    Ahead, ByteRows, Lanes, Line, Packing, SPLIT_MAX, SplitRows, SplitWeights, Tiles, Weight,
};

use crate::finish::{Joined, finish_row};
use crate::job::{Job, Span};
use crate::network::{Activation, Combine};
use crate::packed::{self, TileArea};
use crate::plan::PlanLayer;
use crate::winograd::TILE;
use crate::word_tiles::tile_scale;

use self::windows::Windows;

/// Layers that read fewer channels and have weights of 16 bits go through Winograd: a step of a tile register takes 64
/// channels at a time, and 32 cost as much.
const WIDE_DEPTH_MIN: usize = 48;

/// A layer's scale and weights.
pub(crate) struct Direct {
    tiles: Tiles,
    /// Multiplies an input: the scale of the maps that it reads, where those are packed.
    pub(crate) scale: f32,
    weights: SplitWeights,
    /// What sums below zero are multiplied by; 1 where [`finish_row`] has more to do than that.
    slopes: Vec<f32>,
    is_finished: bool,
    /// Channels in all and equal parts of them: one, or an input map each.
    parts: (usize, usize),
}

impl Direct {
    /// `layer`, whose input maps have `inputs` channels; its weight of a tap from an input channel to an output channel is `weight`, and its inputs are multiplied by
    /// `scale`; none where another way is faster or the layer has to stay in single precision. Weights that are bytes are
    /// multiplied as such (`bytes.rs`); the last layer of a network is always taken: through Winograd its errors would be the picture's.
    pub(crate) fn new(
        tiles: Tiles,
        (layer, is_last, inputs): (&PlanLayer, bool, &[usize]),
        scale: f32,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Option<Self> {
        let channels = layer.channels;
        let side = if layer.is_wide() { 3 } else { 1 };
        let parts = packed::parts(inputs).unwrap_or(1);
        let split = |kind| SplitWeights::new(kind, parts, (side, layer.depth, channels), &weight);
        let is_worth = is_last || layer.depth >= WIDE_DEPTH_MIN;
        let weights = split(Weight::One).or_else(|| is_worth.then(|| split(Weight::Two))?)?;
        let slopes = match &layer.activation {
            _ if !layer.combine.is_empty() => None,
            Activation::None => Some(vec![1.0; channels]),
            Activation::Relu => Some(vec![0.0; channels]),
            Activation::Prelu(slopes) => Some(slopes.clone()),
            Activation::Silu | Activation::Mish => None,
        };
        Some(Self {
            is_finished: slopes.is_some(),
            slopes: slopes.unwrap_or_else(|| vec![1.0; channels]),
            tiles,
            scale,
            parts: (layer.depth, parts),
            weights,
        })
    }

    /// Whether its sums can be packed as they come: at most slopes follow, or a map that is added.
    pub(crate) fn packs_sums(&self, layer: &PlanLayer) -> bool {
        let is_plain = layer.activation == Activation::None;
        self.is_finished || is_plain && matches!(layer.combine[..], [Combine::Add { .. }])
    }
}

/// What a thread needs to compute a segment.
pub(crate) struct Beside<'a> {
    pub(crate) split: &'a mut SplitRows,
    pub(crate) ahead: &'a mut Ahead,
    /// Rows of numbers that are packed afterwards.
    pub(crate) numbers: &'a mut Vec<f32>,
}

/// One segment of one row of tiles: sums, finished, into `rows`, packed where their map is; `place` is the first pixel's in the rows of maps
/// that join.
#[inline(always)]
pub(crate) fn row<L: Lanes>(
    lanes: L,
    of: (&Job<'_>, &Span, &PlanLayer, &Direct),
    (tiles, width): (&Range<usize>, usize),
    beside: &mut Beside<'_>,
    (place, rows): (usize, &mut [&mut [f32]]),
) {
    let (job, span, layer, direct) = of;
    let tiles = &TileArea {
        rows: span.tile_rows(),
        columns: tiles.clone(),
    };
    let packed = job.plan.packed[layer.output];
    if let Some(scale) = packed.filter(|_| direct.packs_sums(layer)) {
        let to = (place, &mut *rows);
        if pack_sums(of, (tiles, width), beside, to, scale) {
            return;
        }
    }
    let mut made = std::mem::take(beside.numbers);
    let row_len = packed.map(|_| width * layer.channels);
    let mut to = packed::rows_of_numbers(rows, &mut made, row_len);
    numbers(lanes, of, (tiles, width), beside, (place, &mut to));
    if packed.is_some() {
        let map = (layer.output, layer.channels);
        job.packed.store(direct.tiles, tiles, map, (&made, rows));
    }
    *beside.numbers = made;
}

/// The sums, packed with `scale` as they come; whether that is all of it. It is not where something that is read or written does not fit.
fn pack_sums(
    (job, span, layer, direct): (&Job<'_>, &Span, &PlanLayer, &Direct),
    (tiles, width): (&TileArea, usize),
    beside: &mut Beside<'_>,
    (place, rows): (usize, &mut [&mut [f32]]),
    scale: f32,
) -> bool {
    let added = match layer.combine[..] {
        [Combine::Add { map, scale }] => match job.plan.packed[map] {
            Some(packed) => Some((map, packed, scale)),
            None => return false,
        },
        _ => None,
    };
    let windows = Windows::new((job, span, layer), tiles, rows.len());
    let joined = added.iter().map(|(map, ..)| *map);
    if windows.has_scaled || job.packed.has_scaled(joined, tiles) {
        return false;
    }
    let Some(input) = windows.bytes(direct, width, beside.split) else {
        return false;
    };
    let added =
        added.map(|(map, scale, factor)| (job.rows(layer, map, span.tile_row), scale, factor));
    let start = place * job.plan.pitch(layer.output);
    let packing = |first: usize| Packing {
        scale,
        joined: added
            .as_ref()
            .map(|(rows, scale, factor)| upscale_simd::Joined {
                rows: [first, first + 1].map(|row| &rows[row.min(TILE - 1)][start..]),
                scale: *scale,
                factor: *factor,
            }),
    };
    let all = (layer, direct, direct.scale);
    let input = (&input, &mut *beside.ahead);
    convolve(all, (rows, width), input, |row| Some(packing(row))) <= SPLIT_MAX
}

/// The same as numbers.
#[inline(always)]
fn numbers<L: Lanes>(
    lanes: L,
    (job, span, layer, direct): (&Job<'_>, &Span, &PlanLayer, &Direct),
    (tiles, width): (&TileArea, usize),
    beside: &mut Beside<'_>,
    (place, rows): (usize, &mut [&mut [f32]]),
) {
    let windows = Windows::new((job, span, layer), tiles, rows.len());
    let all = (layer, direct, direct.scale);
    let largest = match windows.packed() {
        Some(input) => {
            convolve(all, (rows, width), (&input, beside.ahead), |_| None);
            0.0
        }
        None => {
            let largest = windows.split(direct, direct.scale, (0, width), beside.split);
            let input = beside.split.rows();
            convolve(all, (rows, width), (&input, beside.ahead), |_| None);
            largest
        }
    };
    let fits = largest <= SPLIT_MAX;
    if !fits {
        let scratch = (&mut *beside.split, &mut *beside.ahead);
        scale_tiles_down(&windows, (layer, direct), width, scratch, rows);
    }
    if direct.is_finished {
        return;
    }
    let joined = Joined::all(job, span, layer, (place, width));
    for (row, output) in rows.iter_mut().enumerate() {
        let output = &mut output[..width * layer.channels];
        finish_row(lanes, layer, output, &joined, row, place);
    }
}

/// All output channels of some rows; as many after another as have weights that stay in the first cache. `packing` is that of
/// a row and the next.
fn convolve<'a>(
    (layer, direct, scale): (&PlanLayer, &Direct, f32),
    (rows, width): (&mut [&mut [f32]], usize),
    (input, ahead): (&ByteRows<'_>, &mut Ahead),
    packing: impl Fn(usize) -> Option<Packing<'a>>,
) -> f32 {
    let (tiles, weights) = (direct.tiles, &direct.weights);
    let line = Line {
        scale,
        bias: &layer.bias,
        slopes: &direct.slopes,
    };
    let mut largest = 0.0_f32;
    for blocks in weights.groups() {
        for (pair, rows) in rows.chunks_mut(2).enumerate() {
            let (place, to) = ((2 * pair, blocks.clone()), (rows, width));
            let line = (line, packing(2 * pair));
            largest = largest.max(tiles.convolve(input, weights, line, place, to, ahead));
        }
    }
    largest
}

/// Computes those tiles anew whose inputs do not fit.
fn scale_tiles_down(
    windows: &Windows<'_>,
    (layer, direct): (&PlanLayer, &Direct),
    width: usize,
    (scratch, ahead): (&mut SplitRows, &mut Ahead),
    rows: &mut [&mut [f32]],
) {
    for x in (0..width).step_by(TILE) {
        let count = TILE.min(width - x);
        let largest = windows.split(direct, direct.scale, (x, count), scratch);
        let factor = tile_scale(largest, SPLIT_MAX);
        if factor == 1.0 {
            continue;
        }
        let scale = direct.scale * factor;
        windows.split(direct, scale, (x, count), scratch);
        let rows = rows.iter_mut().map(|row| &mut row[x * layer.channels..]);
        let mut rows: Vec<&mut [f32]> = rows.collect();
        let all = (layer, direct, scale);
        convolve(all, (&mut rows, count), (&scratch.rows(), ahead), |_| None);
    }
}

#[cfg(test)]
mod tests {
    use upscale_core::Pixels;
    use upscale_simd::Kernels;

    use crate::kernel_set::KernelSet;
    use crate::plan::{Method, PlanLayer};
    use crate::shapes::Shape;
    use crate::trials::{noise, plans, run};

    fn here() -> Option<Kernels> {
        let kernels = KernelSet::Amx.kernels();
        if kernels.is_none() {
            eprintln!("left out: this CPU or system has no tile registers");
        }
        kernels
    }

    fn furthest(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        let differ = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        differ.fold(0.0, |most, one| {
            if one.is_nan() {
                one
            } else {
                f32::max(most, one)
            }
        })
    }

    /// Concatenated and joined maps, PReLU, thin pictures, and what is narrower than a block of pixels.
    #[test]
    fn integers_are_close_to_single_precision() {
        let Some(kernels) = here() else { return };
        let compact = Shape::Compact {
            channels: 64,
            convs: 3,
        };
        let rrdb = Shape::Rrdb {
            channels: 64,
            growth: 32,
            blocks: 1,
        };
        // Its last layer but one joins four maps by a 1x1.
        let s = Shape::parse("s").unwrap();
        for (shape, has_points) in [(compact, false), (rrdb, false), (s, true)] {
            let [exact, integers] = plans(&shape.network(2, 1), kernels);
            let mut direct = integers.layers.iter();
            let is_on_tiles = |layer: &PlanLayer| {
                layer.direct.is_some() && (layer.method == Method::Point) == has_points
            };
            assert!(direct.any(is_on_tiles), "{shape:?}");
            for (width, height) in [(61, 40), (16, 6), (1, 50), (50, 1), (1, 1), (7, 13)] {
                let source = noise(width, height, 1.0);
                let differ = furthest(&run(&exact, &source), &run(&integers, &source));
                assert!(differ < 1e-3, "{shape:?}, {width} x {height}: {differ}");
            }
        }
    }

    /// What is bright beyond all scales costs its own tile some bits, and its neighbours none.
    #[test]
    fn numbers_beyond_all_scales_are_not_cut() {
        let Some(kernels) = here() else { return };
        let shape = Shape::Compact {
            channels: 64,
            convs: 3,
        };
        let bright = noise(20, 20, 50.0);
        for shape in [shape, Shape::parse("s").unwrap()] {
            let [exact, integers] = plans(&shape.network(4, 1), kernels);
            let differ = furthest(&run(&exact, &bright), &run(&integers, &bright));
            assert!(differ < 0.05, "{shape:?}: {differ}");
        }
        let [exact, integers] = plans(&shape.network(4, 1), kernels);
        let usual = noise(60, 60, 1.0);
        let mut samples = usual.samples().to_vec();
        samples[..3].fill(50.0);
        let one = Pixels::new(60, 60, 3, samples).unwrap();
        let (given, before) = (run(&integers, &one), run(&integers, &usual));
        let differ = furthest(&run(&exact, &one), &given);
        assert!(differ < 0.05, "{differ}");
        // Four layers of 3x3, in tiles of six: nothing reaches further than pixel 24 of the source.
        let row = 60 * 4 * 3;
        assert_eq!(given[30 * 4 * row..], before[30 * 4 * row..]);
    }
}
