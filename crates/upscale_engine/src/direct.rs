//! Layers in 16-bit integers without Winograd, where the CPU multiplies bytes on tile registers: for 3x3 five times as many
//! products, each at a sixth of the cost, and no transforms; 1x1 layers have none anyway. Numbers are scaled by one number a layer, made of `ranges.rs`,
//! and rounded.
//!
//! A number that would not fit is never cut: its whole tile is scaled down by a power of two, which depends on the tile alone,
//! as in `words.rs`, so that results stay the same however a picture is cut.

use std::ops::Range;

use upscale_simd::{
    Ahead, Lanes, Line, ReadLease, SPLIT_MAX, SplitRows, SplitWeights, Tiles, Weight,
};

use crate::finish::{Joined, finish_row};
use crate::job::{Job, Span};
use crate::network::Activation;
use crate::plan::PlanLayer;
use crate::winograd::TILE;
use crate::word_tiles::tile_scale;

/// Layers that read fewer channels and have weights of 16 bits go through Winograd: a step of a tile register takes 64
/// channels at a time, and 32 cost as much.
const WIDE_DEPTH_MIN: usize = 48;

/// A layer's scale and weights.
pub(crate) struct Direct {
    tiles: Tiles,
    /// Multiplies an input.
    scale: f32,
    weights: SplitWeights,
    /// What sums below zero are multiplied by; 1 where [`finish_row`] has more to do than that.
    slopes: Vec<f32>,
    is_finished: bool,
}

impl Direct {
    /// `layer`, whose weight of a tap from an input channel to an output channel is `weight`, and whose inputs are multiplied by
    /// `scale`; none where another way is faster or the layer has to stay in single precision. Weights that are bytes are
    /// multiplied as such (`bytes.rs`); the last layer of a network is always taken: through Winograd its errors would be the picture's.
    pub(crate) fn new(
        tiles: Tiles,
        (layer, is_last): (&PlanLayer, bool),
        scale: f32,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Option<Self> {
        let channels = layer.channels;
        let side = if layer.is_wide() { 3 } else { 1 };
        let split = |kind| SplitWeights::new(kind, (side, layer.depth, channels), &weight);
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
            weights,
        })
    }
}

/// The rows that a row of tiles reads of each input map, and what they are to the layer.
struct Windows<'a> {
    /// Rows, place of the first tile's window in them (in numbers), and channels.
    maps: Vec<(Vec<ReadLease<'a>>, usize, usize)>,
    /// Rows that are needed: as many as come out, and those around them.
    rows: usize,
    /// Rows and pixels that are read around those that come out, on both sides together.
    around: usize,
    depth: usize,
}

impl<'a> Windows<'a> {
    /// What `rows` rows of the tiles from `first_tile` on read.
    fn new(
        (job, span, layer): (&'a Job<'_>, &Span, &PlanLayer),
        first_tile: usize,
        rows: usize,
    ) -> Self {
        let around = if layer.is_wide() { 2 } else { 0 };
        let maps = layer.inputs.iter().map(|&map| {
            let channels = job.plan.maps[map];
            let first = job.place(job.plan.factors[map], first_tile * TILE) - around / 2;
            let rows = match layer.is_wide() {
                true => job.window(layer, map, span.tile_row).into(),
                false => job.rows(map, span.tile_row).into(),
            };
            (rows, first * channels, channels)
        });
        Self {
            maps: maps.collect(),
            rows: rows + around,
            around,
            depth: layer.depth,
        }
    }

    /// The pixels of a map from `first` on, in each row.
    fn pixels(
        &self,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, usize, &[f32], usize)> {
        let mut channel = 0;
        self.maps.iter().flat_map(move |(rows, at, channels)| {
            let start = at + first * channels;
            let from = channel;
            channel += channels;
            let rows = rows.iter().take(self.rows).enumerate();
            rows.map(move |(row, numbers)| {
                (
                    row,
                    from,
                    &numbers[start..start + count * channels],
                    *channels,
                )
            })
        })
    }

    /// What `count` pixels from `first` on are made of, as bytes; gives the largest magnitude, scaled.
    fn split(
        &self,
        direct: &Direct,
        scale: f32,
        (first, count): (usize, usize),
        to: &mut SplitRows,
    ) -> f32 {
        let count = count + self.around;
        to.resize(self.rows, count, self.depth);
        let mut largest = 0.0_f32;
        for (row, channel, numbers, channels) in self.pixels(first, count) {
            let found = direct
                .tiles
                .split((numbers, channels), scale, to, (row, channel));
            largest = if found > largest || found.is_nan() {
                found
            } else {
                largest
            };
        }
        largest
    }
}

/// One segment of one row of tiles: sums, finished, into `rows`; `place` is the first pixel's in the rows of maps that join.
#[inline(always)]
pub(crate) fn row<L: Lanes>(
    lanes: L,
    (job, span, layer, direct): (&Job<'_>, &Span, &PlanLayer, &Direct),
    (tiles, width): (&Range<usize>, usize),
    (split, ahead): (&mut SplitRows, &mut Ahead),
    (joined, place, rows): (&[Joined<'_>], usize, &mut [&mut [f32]]),
) {
    let windows = Windows::new((job, span, layer), tiles.start, rows.len());
    let largest = windows.split(direct, direct.scale, (0, width), split);
    let fits = largest <= SPLIT_MAX;
    let all = (layer, direct, direct.scale);
    convolve(all, (rows, width), (split, ahead));
    if !fits {
        scale_tiles_down(&windows, (layer, direct), width, (split, ahead), rows);
    }
    if direct.is_finished {
        return;
    }
    for (row, output) in rows.iter_mut().enumerate() {
        let output = &mut output[..width * layer.channels];
        finish_row(lanes, layer, output, joined, row, place);
    }
}

/// All output channels of some rows; as many after another as have weights that stay in the first cache.
fn convolve(
    (layer, direct, scale): (&PlanLayer, &Direct, f32),
    (rows, width): (&mut [&mut [f32]], usize),
    (split, ahead): (&SplitRows, &mut Ahead),
) {
    let (tiles, weights) = (direct.tiles, &direct.weights);
    let line = Line {
        scale,
        bias: &layer.bias,
        slopes: &direct.slopes,
    };
    for blocks in weights.groups() {
        for (pair, rows) in rows.chunks_mut(2).enumerate() {
            let place = (2 * pair, blocks.clone());
            tiles.convolve(split, weights, line, place, (rows, width), ahead);
        }
    }
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
        convolve((layer, direct, scale), (&mut rows, count), (scratch, ahead));
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
