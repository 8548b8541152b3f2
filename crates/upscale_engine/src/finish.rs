//! What happens to a layer's sums before they are stored: activation, then the maps that join.

use upscale_simd::Lanes;

use crate::job::{Job, Row, Span};
use crate::network::{Activation, Combine};
use crate::plan::PlanLayer;
use crate::sigmoid::{mish, sigmoid};
use crate::winograd::TILE;

/// A map that joins, with its rows for one row of tiles.
pub(crate) struct Joined<'a> {
    combine: Combine,
    rows: [Row<'a>; TILE],
}

impl<'a> Joined<'a> {
    /// All maps that join a layer, as numbers: of those that are packed, the `width` pixels from `place` in their rows on.
    pub(crate) fn all(
        job: &'a Job<'_>,
        span: &Span,
        layer: &PlanLayer,
        (place, width): (usize, usize),
    ) -> Vec<Self> {
        let joined = layer.combine.iter().map(|&combine| {
            let map = combine.map();
            let mut rows = job.rows(layer, map, span.tile_row).map(Row::Whole);
            if job.plan.packed[map].is_some() {
                for (row, lease) in rows.iter_mut().enumerate() {
                    let y = span.tile_row * TILE + row;
                    *lease = Row::Part(job.numbers(map, (place, y), (&*lease, width)));
                }
            }
            Self { combine, rows }
        });
        joined.collect()
    }
}

/// Finishes the first `count` of `N` neighbouring pixels: channels from `channel` on of row `row`; `at` is the
/// first one's place (pixel and channel) in the rows of joining maps.
#[inline(always)]
pub(crate) fn finish_line<L: Lanes, const N: usize>(
    lanes: L,
    layer: &PlanLayer,
    joined: &[Joined<'_>],
    (row, at, channel): (usize, usize, usize),
    line: &mut [L::V; N],
    count: usize,
) {
    activate(lanes, layer, channel, line);
    for one in joined {
        let from = &one.rows[row];
        for (x, value) in line.iter_mut().enumerate() {
            if x < count {
                let other = lanes.load(from, at + x * layer.channels);
                *value = join(lanes, one.combine, *value, other);
            }
        }
    }
}

#[inline(always)]
fn activate<L: Lanes, const N: usize>(
    lanes: L,
    layer: &PlanLayer,
    channel: usize,
    line: &mut [L::V; N],
) {
    let zero = lanes.splat(0.0);
    match &layer.activation {
        Activation::None => {}
        Activation::Relu => {
            for value in line {
                *value = lanes.max(*value, zero);
            }
        }
        Activation::Prelu(slopes) => {
            let slope = lanes.load(slopes, channel);
            for value in line {
                let positive = lanes.max(*value, zero);
                *value = lanes.fma(lanes.min(*value, zero), slope, positive);
            }
        }
        Activation::Silu => {
            for value in line {
                *value = lanes.mul(*value, sigmoid(lanes, *value));
            }
        }
        Activation::Mish => {
            for value in line {
                *value = mish(lanes, *value);
            }
        }
    }
}

#[inline(always)]
fn join<L: Lanes>(lanes: L, combine: Combine, value: L::V, other: L::V) -> L::V {
    match combine {
        Combine::Add { scale, .. } => lanes.fma(value, lanes.splat(scale), other),
        Combine::Gate { .. } => {
            let gate = lanes.sub(sigmoid(lanes, value), lanes.splat(0.5));
            lanes.mul(lanes.add(value, other), gate)
        }
    }
}

/// Finishes a run of pixels that a direct product left in the output row; `place` is their place in map rows.
#[inline(always)]
pub(crate) fn finish_row<L: Lanes>(
    lanes: L,
    layer: &PlanLayer,
    output: &mut [f32],
    joined: &[Joined<'_>],
    row: usize,
    place: usize,
) {
    if layer.activation == Activation::None && joined.is_empty() {
        return;
    }
    for (pixel, values) in output.chunks_exact_mut(layer.channels).enumerate() {
        let at = (place + pixel) * layer.channels;
        for channel in (0..layer.channels).step_by(L::WIDTH) {
            let mut line = [lanes.load(values, channel)];
            let place = (row, at + channel, channel);
            finish_line(lanes, layer, joined, place, &mut line, 1);
            lanes.store(line[0], values, channel);
        }
    }
}
