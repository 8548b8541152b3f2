//! 16-bit integers in Winograd's domain: products of a 3x3 layer in half the instructions, at an eighth of an 8-bit
//! level of error (measured: `tests/networks/precision.rs`).
//!
//! Transformed inputs are multiplied by a scale per position, made of `ranges.rs`, and rounded; weights
//! by a scale per position and output channel. Sums are exact 32-bit integers and cannot overflow: inputs are at most
//! 2^15 in magnitude and the weights of one output sum up to at most [`WEIGHTS_SUM_MAX`] in magnitude. An input
//! that would not fit is never cut: its whole tile is scaled down by a power of two, which depends on the tile alone,
//! so that results stay the same however a picture is cut.

use upscale_simd::{Buffer, CHANNEL_UNIT, Computation, Kernels, Lanes};

use crate::ranges::{Ranges, WORD_MAX};
use crate::winograd::{POSITIONS, WINDOW, kernel_row};

/// 65,535 x 32,768 is below 2^31.
const WEIGHTS_SUM_MAX: f32 = 65_535.0;
/// Beyond, a weight's share of [`WEIGHTS_SUM_MAX`] is too small: such layers stay in single precision.
pub(crate) const DEPTH_MAX: usize = 64;

/// A layer's scales and weights.
pub(crate) struct Words {
    /// Multiplies a transformed input, for every position.
    pub(crate) input_scales: [f32; POSITIONS],
    /// Makes a sum a number again: `[position][output channel]`.
    pub(crate) sum_scales: Vec<f32>,
    /// For every position a matrix of pairs of neighbouring input channels, in the place of one number each.
    weights: Buffer,
    pub(crate) channels: usize,
}

impl Words {
    /// The words of layer `layer` of a network whose nine taps are `taps`, each `[panel][input channel][output channel]`;
    /// none where the layer has to stay in single precision.
    pub(crate) fn new(
        (ranges, layer): (&Ranges, usize),
        taps: &[f32],
        (panels, depth): (&[usize], usize),
        kernels: Kernels,
    ) -> Option<Self> {
        let input_scales = ranges.input_scales(layer)?;
        let channels: usize = panels.iter().sum();
        let words = Self {
            input_scales,
            sum_scales: vec![0.0; POSITIONS * channels],
            weights: Buffer::zeroed(POSITIONS * depth * channels / 2),
            channels,
        };
        kernels.call(Quantizing {
            taps,
            panels,
            depth,
            words,
        })
    }

    /// One panel of one position: `numbers` are `[input channel][output channel]`, the panel's first output channel
    /// is `first`.
    #[inline(always)]
    fn quantize<L: Lanes>(
        &mut self,
        lanes: L,
        position: usize,
        numbers: &[f32],
        (first, panel): (usize, usize),
    ) {
        let depth = numbers.len() / panel;
        let matrix = depth / 2 * self.channels;
        let pairs = &mut self.weights[position * matrix + first * depth / 2..][..panel * depth / 2];
        for at in (0..panel).step_by(L::WIDTH) {
            let scales = scales(lanes, numbers, (at, panel));
            let scale = lanes.load(&scales, 0);
            for k in 0..depth / 2 {
                let [even, odd] = lanes.load_line(numbers, 2 * k * panel + at, panel);
                let pair = lanes.pair_words(lanes.mul(even, scale), lanes.mul(odd, scale));
                lanes.store(pair, pairs, k * panel + at);
            }
            let to = position * self.channels + first + at;
            let to = &mut self.sum_scales[to..to + L::WIDTH];
            for (to, scale) in to.iter_mut().zip(scales) {
                *to = match scale {
                    0.0 => 0.0,
                    scale => 1.0 / (scale * self.input_scales[position]),
                };
            }
        }
    }

    /// A position's matrix.
    pub(crate) fn matrix(&self, position: usize) -> &[f32] {
        let len = self.weights.len() / POSITIONS;
        &self.weights[position * len..][..len]
    }
}

/// What multiplies the weights of a register of output channels, from `at` on; 0 where all of them are.
#[inline(always)]
fn scales<L: Lanes>(lanes: L, numbers: &[f32], (at, panel): (usize, usize)) -> [f32; CHANNEL_UNIT] {
    let depth = numbers.len() / panel;
    let zero = lanes.splat(0.0);
    let (mut largest, mut sum) = (zero, zero);
    for k in 0..depth {
        let magnitude = lanes.max_magnitude(lanes.load(numbers, k * panel + at), zero);
        largest = lanes.max(largest, magnitude);
        sum = lanes.add(sum, magnitude);
    }
    // Every rounding may add a half.
    let sum_max = lanes.splat(WEIGHTS_SUM_MAX - depth as f32);
    let scale = lanes.min(
        lanes.div(lanes.splat(WORD_MAX), largest),
        lanes.div(sum_max, sum),
    );
    let mut scales = [0.0; CHANNEL_UNIT];
    lanes.store(scale, &mut scales, 0);
    scales.map(|scale| if scale.is_finite() { scale } else { 0.0 })
}

/// The 64 matrices of a layer, transformed and rounded; a row of positions at a time, which stays in the second cache.
struct Quantizing<'a> {
    taps: &'a [f32],
    panels: &'a [usize],
    depth: usize,
    words: Words,
}

impl Computation for Quantizing<'_> {
    /// None where a number is not finite.
    type Output = Option<Words>;

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) -> Option<Words> {
        // No row of the transform adds up to more than 1: what it makes of finite weights is finite.
        if !self.taps.iter().all(|number| number.is_finite()) {
            return None;
        }
        let matrix = self.depth * self.words.channels;
        let mut numbers = vec![0.0; WINDOW * matrix];
        for row in 0..WINDOW {
            transform_row(lanes, self.taps, row, (&mut numbers, matrix));
            for (column, numbers) in numbers.chunks_exact(matrix).enumerate() {
                let position = row * WINDOW + column;
                let mut first = 0;
                for &panel in self.panels {
                    let numbers = &numbers[first * self.depth..][..panel * self.depth];
                    self.words
                        .quantize(lanes, position, numbers, (first, panel));
                    first += panel;
                }
            }
        }
        Some(self.words)
    }
}

/// One row of positions of a layer's weights: eight matrices, one after another.
#[inline(always)]
pub(crate) fn transform_row<L: Lanes>(
    lanes: L,
    taps: &[f32],
    row: usize,
    (numbers, matrix): (&mut [f32], usize),
) {
    for at in (0..matrix).step_by(L::WIDTH) {
        let kernels = lanes.load_line(taps, at, matrix);
        let line = kernel_row(lanes, kernels, row);
        lanes.store_line(line, WINDOW, numbers, (at, matrix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::fast_plan;
    use crate::kernel_set::KernelSet;
    use crate::plan::Plan;
    use crate::shapes::Random;
    use crate::trials::{SPOILT, SUITED, noise, plans, run};
    use crate::word_tiles::tile_scale;

    /// Scales from a picture whose colours go to 1.
    fn plan_in_words(kernels: Kernels) -> Plan {
        let [_, integers] = plans(&SUITED.network(4, 1), kernels);
        integers
    }

    fn words(plan: &Plan) -> Vec<(usize, &Words)> {
        let layers = plan.layers.iter();
        let words = layers.filter_map(|layer| Some((layer.channels, layer.words.as_ref()?)));
        words.collect()
    }

    /// Pairs and scales of a panel by the definition, one channel after another.
    fn plain(numbers: &[f32], panel: usize, input_scale: f32) -> (Vec<u32>, Vec<f32>) {
        let depth = numbers.len() / panel;
        let (mut pairs, mut sum_scales) = (vec![0; numbers.len() / 2], Vec::new());
        for n in 0..panel {
            let column: Vec<f32> = numbers.iter().skip(n).step_by(panel).copied().collect();
            let largest = column.iter().fold(0.0_f32, |found, w| found.max(w.abs()));
            let sum: f32 = column.iter().map(|w| w.abs()).sum();
            let scale = (WORD_MAX / largest).min((WEIGHTS_SUM_MAX - depth as f32) / sum);
            let scale = if scale.is_finite() { scale } else { 0.0 };
            for (k, two) in column.chunks(2).enumerate() {
                let [even, odd] = [0, 1].map(|i| (two[i] * scale).round_ties_even() as i16 as u16);
                pairs[k * panel + n] = u32::from(odd) << 16 | u32::from(even);
            }
            let back = 1.0 / (scale * input_scale);
            sum_scales.push(if scale == 0.0 { 0.0 } else { back });
        }
        (pairs, sum_scales)
    }

    struct OnePanel<'a>(Words, &'a [f32], usize);

    impl Computation for OnePanel<'_> {
        type Output = Words;

        #[inline(always)]
        fn run<L: Lanes>(mut self, lanes: L) -> Words {
            self.0.quantize(lanes, 0, self.1, (0, self.2));
            self.0
        }
    }

    #[test]
    fn every_set_makes_the_plain_ones_weights() {
        const PANEL: usize = 32;
        for depth in [16, 48, 64] {
            let mut random = Random(5);
            let mut numbers: Vec<f32> = (0..depth * PANEL).map(|_| random.unit() - 0.5).collect();
            // Nothing, one large number, and numbers whose halves round to even.
            for k in 0..depth {
                numbers[k * PANEL] = 0.0;
                numbers[k * PANEL + 1] = if k == 3 { -7.0 } else { 0.0 };
                numbers[k * PANEL + 17] = k as f32 - 8.5;
            }
            let (pairs, sum_scales) = plain(&numbers, PANEL, 3.0);
            for set in KernelSet::ALL.into_iter().filter_map(KernelSet::kernels) {
                let words = Words {
                    input_scales: [3.0; POSITIONS],
                    sum_scales: vec![0.0; POSITIONS * PANEL],
                    weights: Buffer::zeroed(POSITIONS * depth * PANEL / 2),
                    channels: PANEL,
                };
                let made = set.call(OnePanel(words, &numbers, PANEL));
                let given: Vec<u32> = made.matrix(0).iter().map(|pair| pair.to_bits()).collect();
                assert_eq!(given, pairs, "{set:?}, {depth} deep");
                assert_eq!(made.sum_scales[..PANEL], sum_scales, "{set:?}");
            }
        }
    }

    #[test]
    fn no_sum_can_overflow() {
        let kernels = KernelSet::Portable.kernels().unwrap();
        let plan = plan_in_words(kernels);
        assert_eq!(words(&plan).len(), 3);
        for (channels, words) in words(&plan) {
            for position in 0..POSITIONS {
                // The portable set's panels are 8 wide.
                for panel in words
                    .matrix(position)
                    .chunks(words.matrix(0).len() / channels * 8)
                {
                    for n in 0..8 {
                        let pairs = panel.iter().skip(n).step_by(8).map(|pair| pair.to_bits());
                        let halves = pairs.flat_map(|pair| [pair as i16, (pair >> 16) as i16]);
                        let sum: i64 = halves.map(|half| i64::from(half).abs()).sum();
                        assert!(sum <= 65_535, "{sum} at {position}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_set_has_the_same_sums_as_the_plain_one() {
        let source = noise(37, 23, 1.0);
        let fast = KernelSet::ALL.into_iter().filter_map(KernelSet::kernels);
        // With tile registers no layer goes through Winograd: `direct.rs` has its own.
        let fast = fast.filter(|kernels| kernels.has_words() && kernels.tiles().is_none());
        let plain = KernelSet::Portable.kernels();
        let outputs = fast.chain(plain);
        let outputs: Vec<_> = outputs
            .map(|kernels| run(&plan_in_words(kernels), &source))
            .collect();
        for output in &outputs {
            // Sets that multiply and add in one step round other inputs than the plain one: a level is 4e-3.
            let worst = output.iter().zip(&outputs[0]).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < 1e-3);
        }
    }

    #[test]
    fn numbers_beyond_all_scales_are_not_cut() {
        let kernels = KernelSet::Portable.kernels().unwrap();
        let exact = Plan::new(&SUITED.network(4, 1).unfolded(), kernels);
        let fast = plan_in_words(kernels);
        // Fifty times as bright as anything that scales were made for, and back below 1 by a base that is nearest.
        let source = noise(20, 20, 50.0);
        let (given, expected) = (run(&fast, &source), run(&exact, &source));
        let differ = given.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(differ.fold(0.0, f32::max) < 0.2);
        assert_eq!(tile_scale(32_767.0, WORD_MAX), 1.0);
        assert_eq!(tile_scale(32_768.0, WORD_MAX), 0.5);
        assert!(tile_scale(f32::INFINITY, WORD_MAX).is_nan());
    }

    #[test]
    fn a_network_that_words_would_spoil_stays_in_single_precision() {
        let kernels = KernelSet::best().kernels().unwrap();
        let spoilt = fast_plan(&SPOILT.network(2, 1).unfolded(), kernels);
        let in_integers = |plan: &Plan| {
            let layers = plan.layers.iter();
            layers.filter(|layer| layer.is_in_integers()).count()
        };
        assert_eq!(in_integers(&spoilt), 0);
        if kernels.has_words() {
            let fast = fast_plan(&SUITED.network(4, 1).unfolded(), kernels);
            // Tile registers take the last one too.
            assert_eq!(
                in_integers(&fast),
                3 + usize::from(kernels.tiles().is_some())
            );
        }
    }
}
