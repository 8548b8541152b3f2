//! Results made sharper: some of what is finer than a Gaussian takes is added once more, within what there is around each
//! pixel, so that edges become steeper and get no rims. Works on a moving window of rows. `training/upscale_training/edges.py`
//! has the same on a whole picture.
//!
//! On pairs from real cameras fine detail costs less likeness so than by weights that draw it: with 0.6 of the crisp ones
//! and this step `crisp` is 0.06 to 0.08 dB nearer to the originals than with 0.78 of them and none, and has a tenth more of
//! it (`training/upscale_training/look_gates.py`, decision 44).

use std::array;

use upscale_simd::widened;

use crate::brightness::{add_brightness, brighten};
use crate::check::around;
use crate::error::WriteError;
use crate::folded::fold;
use crate::gaussian::{across_wide, down, taps};
use crate::groups::{Take, Waiting};
use crate::ring::Ring;
use crate::spare::Spare;

/// Deviation of the Gaussian and its reach, in result pixels at 4x. With a deviation of 2, fine detail costs more decibels.
const FINE: f32 = 1.0;
const FINE_REACH: usize = 3;
const FINE_TAPS: usize = 2 * FINE_REACH + 1;
/// Pixels to each side among which a pixel stays.
const REACH: usize = 2;
const BESIDE: usize = 2 * REACH + 1;
/// Result rows that are kept: those of a group, and as many before and after it as the Gaussian reaches, in whole groups.
const ROWS: usize = 16;

/// The moving window: 7 MiB for the widest source whose edges are laid, at 4x.
pub(crate) struct Sharpen {
    amount: f32,
    scale: usize,
    channels: usize,
    /// Of the result.
    height: usize,
    taps: [f32; FINE_TAPS],
    /// Brightness of result rows; blurred, its highest and its lowest among [`REACH`], all three across.
    plain: Ring<f32, ROWS>,
    blurred: Ring<f32, ROWS>,
    highest: Ring<f32, ROWS>,
    lowest: Ring<f32, ROWS>,
    /// One waits for the next at 4x, two at 2x.
    waiting: Waiting<4>,
}

impl Sharpen {
    /// Of a result `scale` times as large as a source of `height` rows, in pixels of 1 or 3 samples: adds `amount` times what
    /// is fine; none where that is 0.
    pub(crate) fn new(height: usize, channels: usize, scale: usize, amount: f32) -> Option<Self> {
        (amount > 0.0).then(|| Self {
            amount,
            scale,
            channels,
            height: height * scale,
            taps: taps(FINE),
            plain: Ring::new(),
            blurred: Ring::new(),
            highest: Ring::new(),
            lowest: Ring::new(),
            waiting: Waiting::new(),
        })
    }

    /// Takes the next group and its means; hands those that are done to `take`, in order.
    ///
    /// # Errors
    /// The first of `take`.
    pub(crate) fn push(
        &mut self,
        group: &[f32],
        means: Vec<f32>,
        spare: &mut Spare,
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        for row in group.chunks_exact(group.len() / self.scale) {
            self.add_row(row, spare);
        }
        self.waiting.push(group, means);
        while let Some(next) = self.known() {
            self.sharpen(next, spare);
            self.waiting.hand_on(spare, take)?;
        }
        Ok(())
    }

    /// The next group, if all that its rows lean on is there.
    fn known(&self) -> Option<usize> {
        let next = self.waiting.first();
        let last = next * self.scale + self.scale - 1;
        let is_complete = self.plain.is_complete(last, FINE_REACH, self.height);
        is_complete.then_some(next)
    }

    fn add_row(&mut self, row: &[f32], spare: &mut Spare) {
        let plain = self.plain.next();
        add_brightness(row, self.channels, plain);
        let wide = around(plain, 1, &(0..plain.len()), FINE_REACH, spare);
        across_wide(&wide, &self.taps, self.blurred.next());
        let near = &wide[FINE_REACH - REACH..][..plain.len() + 2 * REACH];
        let beside = array::from_fn(|index| &near[index..]);
        add_highest(beside, self.highest.next());
        add_lowest(beside, self.lowest.next());
        spare.keep([wide]);
    }

    /// Sharpens the rows of a group.
    fn sharpen(&mut self, group: usize, spare: &mut Spare) {
        let (scale, channels) = (self.scale, self.channels);
        for row in 0..scale {
            let steps = self.steps(group * scale + row, spare);
            let samples = steps.len() * channels;
            let pixels = &mut self.waiting.rows_mut(group)[row * samples..][..samples];
            widened!(brighten(pixels, channels, &steps));
            spare.keep([steps]);
        }
    }

    /// By how much each pixel of result row `y` becomes brighter.
    fn steps(&self, y: usize, spare: &mut Spare) -> Vec<f32> {
        let mut steps = spare.row();
        down(&self.blurred, [y, self.height], &self.taps, &mut steps);
        let (mut highest, mut lowest) = (spare.row(), spare.row());
        add_highest(self.highest.around(y, self.height), &mut highest);
        add_lowest(self.lowest.around(y, self.height), &mut lowest);
        let plain = self.plain.row(y, self.height);
        widened!(step(&mut steps, plain, [&highest, &lowest], self.amount));
        spare.keep([highest, lowest]);
        steps
    }
}

fn add_highest(rows: [&[f32]; BESIDE], highest: &mut Vec<f32>) {
    let higher = |highest, _, sample| if sample > highest { sample } else { highest };
    fold(rows, highest, f32::NEG_INFINITY, higher);
}

fn add_lowest(rows: [&[f32]; BESIDE], lowest: &mut Vec<f32>) {
    let lower = |lowest, _, sample| if sample < lowest { sample } else { lowest };
    fold(rows, lowest, f32::INFINITY, lower);
}

/// Blurred brightness to steps.
#[inline(always)]
fn step(blurred: &mut [f32], plain: &[f32], [highest, lowest]: [&[f32]; 2], amount: f32) {
    let limits = highest.iter().zip(lowest);
    for ((blurred, plain), (highest, lowest)) in blurred.iter_mut().zip(plain).zip(limits) {
        let sharp = plain + amount * (plain - *blurred);
        *blurred = sharp.max(*lowest).min(*highest) - plain;
    }
}

#[cfg(test)]
mod tests;
