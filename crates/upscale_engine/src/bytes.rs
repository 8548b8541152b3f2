//! Weights of one byte: each output channel of a 3x3 layer has a number of which its weights are whole multiples, -127 to
//! 127. The networks that ship are run like that on every machine, so that one with tile registers makes the same picture.
//!
//! The nine weights from one channel to another keep their sum to half a step: pictures are mostly smooth, and what a flat
//! place becomes is what shows. Rounded one by one they changed the mean of each place in a 4x4 square of the result by up to 0.05
//! levels, so they change it by 0.01 to 0.03, and all pixels by 0.12 to 0.17 (root of the mean square) instead of 0.15 to 0.21.

use std::array;

use upscale_simd::widened;

use crate::network::{Network, PICTURE};

/// The largest byte.
const BYTE_MAX: f32 = 127.0;
/// Added and taken away again, it rounds numbers below 2^51 to the nearest integer, ties to even: where the compiler may not use
/// SSE 4.1, `round_ties_even` is a call, and a network has 370,000 weights.
const TO_WHOLE: f64 = 1.5 * (1_u64 << 52) as f64;
/// Weights of a 3x3 kernel.
const TAPS: usize = 9;
/// Kernels that are rounded at a time: a vector of their numbers.
const KERNELS: usize = 8;

impl Network {
    /// The same with weights of one byte in all 3x3 layers over maps but the last, whose errors would be the picture's.
    #[must_use]
    pub fn in_bytes(mut self) -> Self {
        let last = self.layers.len().saturating_sub(1);
        for layer in self.layers.iter_mut().take(last) {
            if layer.side == 3 && layer.inputs[..] != [PICTURE] {
                let length = layer.weights.len() / layer.bias.len();
                layer.weights.chunks_mut(length).for_each(round);
            }
        }
        self
    }
}

/// The weights of an output channel: many kernels at once, and the few that are left one by one.
fn round(weights: &mut [f32]) {
    let largest = largest(weights);
    if largest > 0.0 {
        let (scale, step) = (BYTE_MAX / largest, largest / BYTE_MAX);
        let (blocks, rest) = weights.as_chunks_mut::<{ KERNELS * TAPS }>();
        widened!({
            for block in blocks {
                round_many(block, scale, step);
            }
        });
        for kernel in rest.chunks_exact_mut(TAPS) {
            let exact: [f64; TAPS] = array::from_fn(|tap| f64::from(kernel[tap] * scale));
            let bytes = rounded(exact);
            for (weight, byte) in kernel.iter_mut().zip(bytes) {
                *weight = byte as f32 * step;
            }
        }
    }
}

/// Kernels side by side, tap after tap, as `rounded` rounds each: one by one, 41,000 of them were 8 % of a small picture's time.
#[inline(always)]
fn round_many(block: &mut [f32; KERNELS * TAPS], scale: f32, step: f32) {
    let exact: [[f64; KERNELS]; TAPS] =
        array::from_fn(|tap| array::from_fn(|k| f64::from(block[k * TAPS + tap] * scale)));
    let mut bytes = exact.map(|row| row.map(|number| number + TO_WHOLE - TO_WHOLE));
    let mut off: [[f64; KERNELS]; TAPS] =
        array::from_fn(|tap| array::from_fn(|k| exact[tap][k] - bytes[tap][k]));
    let mut sums: [f64; KERNELS] = array::from_fn(|k| total(&off.map(|row| row[k])));
    while sums.iter().any(|sum| sum.abs() > 0.5) {
        let ways = sums.map(|sum| f64::from(i8::from(sum > 0.5) - i8::from(sum < -0.5)));
        let furthest = furthest_of_many(&off, &ways);
        for tap in 0..TAPS {
            for k in 0..KERNELS {
                let is_it = f64::from(u8::from(furthest[k] == tap as f64));
                bytes[tap][k] += ways[k] * is_it;
                off[tap][k] -= ways[k] * is_it;
            }
        }
        sums = array::from_fn(|k| sums[k] - ways[k]);
    }
    for (tap, row) in bytes.iter().enumerate() {
        for (k, byte) in row.iter().enumerate() {
            block[k * TAPS + tap] = *byte as f32 * step;
        }
    }
}

/// Of each kernel the tap that `furthest` finds.
#[inline(always)]
fn furthest_of_many(off: &[[f64; KERNELS]; TAPS], ways: &[f64; KERNELS]) -> [f64; KERNELS] {
    let mut most: [f64; KERNELS] = array::from_fn(|k| off[0][k] * ways[k]);
    let mut found = [0.0; KERNELS];
    for (tap, row) in off.iter().enumerate() {
        for k in 0..KERNELS {
            let one = row[k] * ways[k];
            let is_further = one > most[k];
            most[k] = if is_further { one } else { most[k] };
            found[k] = if is_further { tap as f64 } else { found[k] };
        }
    }
    found
}

/// To the nearest integers; where their sum is off by more than a half, those are rounded the other way that cost least.
/// What was rounded to the largest byte stays: it was rounded up, or not at all.
fn rounded(exact: [f64; TAPS]) -> [f64; TAPS] {
    let mut bytes = exact.map(|number| number + TO_WHOLE - TO_WHOLE);
    let mut off: [f64; TAPS] = array::from_fn(|tap| exact[tap] - bytes[tap]);
    let mut sum = total(&off);
    while sum.abs() > 0.5 {
        let (way, furthest) = (sum.signum(), furthest(&off, sum.signum()));
        bytes[furthest] += way;
        off[furthest] -= way;
        sum -= way;
    }
    bytes
}

/// In pairs: one after the other would be nine waits. Exact in any order, for numbers of 24 bits that are below 1 and no
/// smaller than 2^-27.
#[inline(always)]
fn total(off: &[f64; TAPS]) -> f64 {
    let [a, b, c, d, e, f, g, h, i] = *off;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + i
}

/// The first of those that are furthest off in this direction, 1 or -1.
fn furthest(off: &[f64; TAPS], way: f64) -> usize {
    let mut found = 0;
    for (tap, one) in off.iter().enumerate() {
        if one * way > off[found] * way {
            found = tap;
        }
    }
    found
}

fn largest(weights: &[f32]) -> f32 {
    let magnitudes = weights.iter().map(|weight| weight.abs());
    magnitudes.fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Activation, Base};
    use crate::shapes::Random;

    /// A layer over the picture, two over maps.
    fn network() -> Network {
        let mut random = Random(5);
        let mut some = |count: usize| (0..count).map(|_| random.unit() - 0.5).collect::<Vec<_>>();
        let mut network = Network::empty("a", 2, Base::Bicubic);
        let mut map = PICTURE;
        for (inputs, outputs) in [(3, 4), (4, 5), (5, 12)] {
            let conv = (some(inputs * outputs * 9), some(outputs));
            map = network.push(&[map], conv, Activation::None, &[]);
        }
        network
    }

    #[test]
    fn layers_over_maps_have_bytes_and_the_first_and_the_last_keep_theirs() {
        let (before, after) = (network(), network().in_bytes());
        for kept in [0, 2] {
            assert_eq!(before.layers[kept].weights, after.layers[kept].weights);
        }
        let (before, after) = (&before.layers[1], &after.layers[1]);
        assert_eq!(after.bias, before.bias);
        for (before, after) in before.weights.chunks(36).zip(after.weights.chunks(36)) {
            let step = largest(before) / 127.0;
            for (before, after) in before.iter().zip(after) {
                assert!((before - after).abs() < 1.001 * step);
                assert!((after / step - (after / step).round()).abs() < 1e-4);
            }
            for (before, after) in before.chunks(TAPS).zip(after.chunks(TAPS)) {
                let sums = [before, after].map(|kernel| kernel.iter().sum::<f32>());
                assert!((sums[0] - sums[1]).abs() < 0.501 * step);
            }
        }
        assert_ne!(after.weights, before.weights);
    }

    #[test]
    fn many_kernels_are_rounded_as_one_is() {
        let mut random = Random(11);
        // Near 127 and near nothing, ties among them.
        let mut some = |size: f32| {
            let tie = random.unit() < 0.1;
            let number = (2.0 * random.unit() - 1.0) * size;
            if tie { number.round() + 0.5 } else { number }
        };
        let sizes = [126.0, 3.0, 0.6, 1e-6];
        for size in sizes.into_iter().cycle().take(4_000) {
            let mut block: [f32; KERNELS * TAPS] = array::from_fn(|_| some(size));
            let one_by_one: Vec<f32> = block
                .chunks_exact(TAPS)
                .flat_map(|kernel| rounded(array::from_fn(|tap| f64::from(kernel[tap]))))
                .map(|byte| byte as f32)
                .collect();
            round_many(&mut block, 1.0, 1.0);
            assert_eq!(block[..], one_by_one[..]);
        }
    }

    #[test]
    fn zeros_stay_zeros_and_the_largest_stay_bytes() {
        let mut weights = [0.0; TAPS];
        round(&mut weights);
        assert_eq!(weights, [0.0; TAPS]);
        let most = [
            127.0, -127.0, 126.6, 126.6, 126.6, -126.6, 126.6, 126.6, 0.3,
        ];
        let bytes = rounded(most);
        assert!(bytes.iter().all(|byte| byte.abs() <= 127.0), "{bytes:?}");
        // 1.3 too much in all: the first of those that were rounded up goes back.
        assert_eq!(bytes[2], 126.0);
    }
}
