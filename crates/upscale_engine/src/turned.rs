//! Pictures a few pixels wide and very high are upscaled lying on their side, by a network whose kernels lie there with
//! them: rows of tiles that hold one to three columns cost 1.6 times what the same pixels cost as one to three lines.
//! By the definition the result is the same; its last bits are not, and depend on the picture's size alone.

use std::ops::ControlFlow;

use upscale_core::{Pixels, Rows};

use crate::error::UpscaleError;
use crate::executor::Executor;
use crate::network::{Activation, Layer, Network, PICTURE};
use crate::orientation::Orientation;
use crate::ranges::Ranges;
use crate::run::{Cancelled, Sink};
use crate::upscale::rows_of;
use crate::winograd::TILE;

/// The widest picture that lying down makes cheaper, in pixels.
const WIDTH_MAX: usize = 3;
/// The least height, in pixels: below, a picture keeps the bits it had, for there is little to save.
const HEIGHT_MIN: usize = 4_000;
/// Source rows that lie down at a time, a multiple of every tile and [`Network::unshuffle`]; their result takes at most
/// 15 MB.
const BLOCK_ROWS: usize = 24_576;

/// Whether a picture is upscaled lying down, should its network be one that can.
pub(crate) fn suits(source: &Pixels) -> bool {
    source.width() <= WIDTH_MAX && source.height() >= HEIGHT_MIN
}

impl Network {
    /// What makes of a picture exchanged along its diagonal the result exchanged along its diagonal. None for a network
    /// whose last layer, or whose squares of source pixels, another map is joined to.
    pub(crate) fn turned(&self) -> Option<Self> {
        let last = self.layers.last()?;
        let joins_squares = |layer: &Layer| layer.combine.iter().any(|c| c.map() == PICTURE);
        let is_joined = !last.combine.is_empty() && self.last_shuffle() > 1;
        if is_joined || self.unshuffle > 1 && self.layers.iter().any(joins_squares) {
            return None;
        }
        let mut network = self.clone();
        for layer in &mut network.layers {
            turn_taps(layer);
            if layer.is_interleaved {
                // Right of the first pixel becomes below it.
                layer.inputs.swap(1, 2);
            }
            if layer.inputs.contains(&PICTURE) {
                turn_inputs(layer, self.unshuffle);
            }
        }
        let shuffle = self.last_shuffle();
        turn_outputs(network.layers.last_mut()?, shuffle);
        network.ranges = self.ranges.clone().map(Ranges::turned);
        Some(network)
    }
}

/// `[row][column]` of every kernel becomes `[column][row]`.
fn turn_taps(layer: &mut Layer) {
    let side = layer.side;
    for kernel in layer.weights.chunks_exact_mut(side * side) {
        let taps = kernel.to_vec();
        for (at, tap) in kernel.iter_mut().enumerate() {
            *tap = taps[exchanged(at, side)];
        }
    }
}

/// The first channels that a layer reads are squares of source pixels, row by row.
fn turn_inputs(layer: &mut Layer, side: usize) {
    let taps = layer.side * layer.side;
    let read = layer.weights.len() / layer.bias.len();
    for weights in layer.weights.chunks_exact_mut(read) {
        let before = weights.to_vec();
        let kernels = weights.chunks_exact_mut(taps).take(3 * side * side);
        for (channel, kernel) in kernels.enumerate() {
            let from = exchanged(channel, side) * taps;
            kernel.copy_from_slice(&before[from..from + taps]);
        }
    }
}

/// The channels that a layer writes are squares of result pixels, row by row.
fn turn_outputs(layer: &mut Layer, side: usize) {
    let count = layer.bias.len();
    let read = layer.weights.len() / count;
    let order = || (0..count).map(|channel| exchanged(channel, side));
    let weights = order().flat_map(|from| &layer.weights[from * read..(from + 1) * read]);
    layer.weights = weights.copied().collect();
    layer.bias = order().map(|from| layer.bias[from]).collect();
    if let Activation::Prelu(slopes) = &mut layer.activation {
        *slopes = order().map(|from| slopes[from]).collect();
    }
}

/// Squares of `side` x `side`, one after another: where in its square stands what stood at `at`, once it is turned.
fn exchanged(at: usize, side: usize) -> usize {
    let (square, place) = (at / (side * side), at % (side * side));
    square * side * side + place % side * side + place / side
}

/// Upscales `source` with `executor`, which runs a turned network: block after block, each with as many rows around it
/// as the network sees (`reach`, in source pixels).
pub(crate) fn upscale(
    (executor, scale, reach): (&Executor, usize, usize),
    source: &Pixels,
    threads: usize,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let height = source.height();
    // Whole tiles: a block's tiles are those of the whole.
    let halo = reach.next_multiple_of(TILE * 8);
    for start in (0..height).step_by(BLOCK_ROWS) {
        let end = (start + BLOCK_ROWS).min(height);
        let above = start.saturating_sub(halo);
        let lying = Orientation::TRANSPOSED.of(&rows_of(source, above..(end + halo).min(height)));
        let samples = upscale_whole(executor, &lying, threads, cancelled)?;
        let size = (lying.width() * scale, lying.height() * scale);
        let made = Pixels::new(size.0, size.1, source.channels(), samples)
            .unwrap_or_else(|_| unreachable!("the sink was given all rows"));
        let upright = Orientation::TRANSPOSED.of(&made);
        let row_samples = upright.width() * upright.channels();
        let wanted = (start - above) * scale * row_samples..(end - above) * scale * row_samples;
        let rows = Rows {
            first_row: start * scale,
            row_count: (end - start) * scale,
            row_samples,
            samples: &upright.samples()[wanted],
        };
        if sink(rows).is_break() {
            return Err(UpscaleError::Cancelled);
        }
    }
    Ok(())
}

fn upscale_whole(
    executor: &Executor,
    source: &Pixels,
    threads: usize,
    cancelled: Cancelled<'_>,
) -> Result<Vec<f32>, UpscaleError> {
    let mut samples = Vec::new();
    let mut keep = |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    executor.upscale(source, threads, &mut keep, cancelled)?;
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineOptions};
    use crate::executor::Precision;
    use crate::kernel_set::KernelSet;
    use crate::reference;
    use crate::shapes::{Random, Shape};

    const RRDB: Shape = Shape::Rrdb {
        channels: 4,
        growth: 2,
        blocks: 1,
    };
    const COMPACT: Shape = Shape::Compact {
        channels: 8,
        convs: 2,
    };

    const EDSR: Shape = Shape::Edsr {
        channels: 8,
        blocks: 1,
    };

    fn picture(width: usize, height: usize, channels: usize) -> Pixels {
        let mut random = Random(3);
        let samples = (0..width * height * channels).map(|_| random.unit());
        Pixels::new(width, height, channels, samples.collect()).unwrap()
    }

    fn networks() -> Vec<Network> {
        let tiers = ["f", "s"].map(|name| Shape::parse(name).unwrap());
        let shapes = tiers.into_iter().chain([RRDB, COMPACT, EDSR]);
        let both = shapes.flat_map(|shape| [2, 4].map(|scale| shape.network(scale, 5)));
        both.collect()
    }

    #[test]
    fn a_turned_network_makes_the_turned_result_by_the_definition() {
        for network in networks() {
            let source = picture(11, 8, 3);
            let turned = network.turned().unwrap();
            let expected = reference::upscale(&network, &source, &|| false);
            let given =
                reference::upscale(&turned, &Orientation::TRANSPOSED.of(&source), &|| false);
            let (width, height) = (11 * network.scale, 8 * network.scale);
            for (at, expected) in expected.iter().enumerate() {
                let (pixel, c) = (at / 3, at % 3);
                let (x, y) = (pixel % width, pixel / width);
                let given = given[(x * height + y) * 3 + c];
                assert!((given - expected).abs() < 1e-12, "{} {x} {y}", network.name);
            }
        }
    }

    #[test]
    fn a_network_whose_end_is_joined_to_another_map_stays_as_it_is() {
        let mut network = COMPACT.network(2, 5);
        let last = network.layers.last_mut().unwrap();
        last.combine.push(crate::network::Combine::Add {
            map: last.output,
            scale: 1.0,
        });
        assert!(network.turned().is_none());
    }

    fn rows(network: &Network, source: &Pixels, threads: usize) -> Vec<f32> {
        let options = EngineOptions {
            threads,
            precision: Precision::Exact,
            kernels: Some(KernelSet::best()),
            ..EngineOptions::default()
        };
        let scale = upscale_core::Scale::ALL;
        let scale = scale
            .into_iter()
            .find(|scale| scale.factor() == network.scale);
        let (x2, x4) = (COMPACT.network(2, 5), COMPACT.network(4, 5));
        let engine = match network.scale {
            2 => Engine::of(network.clone(), x4, options),
            _ => Engine::of(x2, network.clone(), options),
        };
        let mut samples = Vec::new();
        let mut next_row = 0;
        let mut sink = |rows: Rows<'_>| {
            assert_eq!(rows.first_row, next_row);
            next_row += rows.row_count;
            samples.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        };
        let unknown = upscale_core::Condition::UNKNOWN;
        let engine = engine.unwrap();
        engine
            .upscale(source, scale.unwrap(), unknown, &mut sink)
            .unwrap();
        samples
    }

    /// The second height is of more than one block. Part of the rows stand in for all: the definition is slow.
    #[test]
    fn a_picture_lying_down_is_the_one_that_stands_whatever_the_threads() {
        for network in networks() {
            for (width, height, channels) in [(1, 25_000, 1), (2, HEIGHT_MIN, 3), (3, 4_001, 3)] {
                let source = picture(width, height, channels);
                assert!(suits(&source));
                let given = rows(&network, &source, 1);
                assert!(given == rows(&network, &source, 3), "threads");
                let row = width * network.scale * channels;
                assert_eq!(given.len(), row * height * network.scale);
                for first in [0, height / 2 / 4 * 4, height - 16, 24_576 - 32] {
                    let above = first.saturating_sub(network.reach()) / 4 * 4;
                    let below = (first + 16 + network.reach()).min(height);
                    if first + 16 > height {
                        continue;
                    }
                    let crop = rows_of(&source, above..below);
                    let expected = reference::upscale(&network, &crop, &|| false);
                    let skipped = (first - above) * network.scale * row;
                    let place = first * network.scale * row;
                    let pairs = given[place..].iter().zip(&expected[skipped..]);
                    for (given, expected) in pairs.take(16 * network.scale * row) {
                        let apart = (f64::from(*given) - expected).abs();
                        assert!(apart < 1e-5, "{} {width} {first}: {apart}", network.name);
                    }
                }
            }
        }
    }

    #[test]
    fn others_stand() {
        for (width, height) in [(4, 100_000), (1, HEIGHT_MIN - 1), (HEIGHT_MIN, 1)] {
            assert!(!suits(&picture(width, height, 1)), "{width} x {height}");
        }
    }
}
