//! Keeps colours where they were: the slow difference between source and result is given back to the result, and what
//! was pure black or white stays so. Works on a moving window of rows, so that the result can be written while the
//! networks are still at work.
//!
//! Code values are compared, not light: a result that is sharper or less noisy than its source has another mean in
//! linear light, and to give that back cost 0.1 to 0.4 dB of luma and colour (docs/decisions/0005-colour.md).

mod pure;

use std::array;
use std::collections::VecDeque;
use std::ops::Range;

use upscale_core::Pixels;
use upscale_simd::widened;

use self::pure::{keep_pure, pure_pixels};
use crate::error::WriteError;
use crate::shrink::shrunk;
use crate::spare::Spare;

/// Half the width of the window, in source pixels (weights fall linearly to nothing at `RADIUS + 1`).
const RADIUS: usize = 8;
/// Neighbours that differ by this much count half: across an edge no one knows how the source was made small, and a
/// difference there says nothing about colour.
const EDGE: f32 = 0.05;
/// Share of a window's full weight that stands for "no difference", so that a window of nothing but edges corrects
/// little.
const DOUBT: f32 = 0.02;
/// Of a difference of this size, one level of 8 bits, half is given back; of a smaller one less, of larger ones nearly all.
/// The mean of noise and of a JPEG's errors is that large, and paper that the network cleaned would turn gray again. At
/// most some half a level is left: flat colours come back to theirs.
const LEVEL: f32 = 1.0 / 255.0;
/// No sample is moved further than this (26 levels of 8 bits); a larger difference is the check's business.
const STEP_MAX: f32 = 0.1;
/// Source pixels of a row that are corrected at a time: 384 KiB of the result at most. A row of a picture one row high is
/// a quarter of its result, and there were two of them. Shorter rows' corrections are drawn out once and not for each row of
/// the result: that took 1.29 times as long (1,000 × 750 at 4x).
const PART: usize = 8_192;

/// Where corrected rows of the result go, from left to right in parts of one row.
type Take<'a> = &'a mut dyn FnMut(&mut [f32]) -> Result<(), WriteError>;

/// Balances a whole picture in memory: `made`, rows of `scale` times the width of `source`. In place, for it may be as large
/// as a result: what is done never reaches beyond what was read.
pub fn balance(source: &Pixels, scale: usize, made: &mut [f32]) {
    let samples = source.width() * source.channels() * scale * scale;
    let (mut window, spare) = (Balance::new(scale), &mut Spare::default());
    let mut done = 0;
    for group in 0..made.len() / samples {
        let group = made[group * samples..][..samples].to_vec();
        let means = shrunk(&group, source.channels(), scale, spare);
        let kept = window.push(source, &group, means, spare, &mut |part| {
            made[done..done + part.len()].copy_from_slice(part);
            done += part.len();
            Ok(())
        });
        kept.unwrap_or_else(|_| unreachable!("nothing is written"));
    }
}

/// Differences of one source row, gathered along the row.
struct Gathered {
    /// Weighted differences, per sample.
    sums: Vec<f32>,
    /// Weights, per pixel.
    weights: Vec<f32>,
}

/// The moving window.
pub(crate) struct Balance {
    scale: usize,
    /// Groups that wait, each the result rows of one source row, the first of them for source row `next_group`.
    groups: VecDeque<Vec<f32>>,
    next_group: usize,
    /// Rows `next_spread - RADIUS` (or 0) and on.
    gathered: VecDeque<Gathered>,
    first_gathered: usize,
    /// Corrections of rows `next_group - 1` (or 0) and on, as wide as the result, or as the source if that takes more than
    /// a [`PART`].
    spread: VecDeque<Vec<f32>>,
    first_spread: usize,
    next_spread: usize,
}

impl Balance {
    pub(crate) fn new(scale: usize) -> Self {
        Self {
            scale,
            groups: VecDeque::new(),
            next_group: 0,
            gathered: VecDeque::new(),
            first_gathered: 0,
            spread: VecDeque::new(),
            first_spread: 0,
            next_spread: 0,
        }
    }

    /// Takes the next group and its means; hands the rows that are done to `take`, in order.
    ///
    /// # Errors
    /// The first of `take`.
    pub(crate) fn push(
        &mut self,
        source: &Pixels,
        group: &[f32],
        means: Vec<f32>,
        spare: &mut Spare,
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        let y = self.next_group + self.groups.len();
        self.gathered.push_back(gather(source, y, &means, spare));
        spare.keep([means]);
        let known = self.first_gathered + self.gathered.len();
        while self.next_spread < known
            && (self.next_spread + RADIUS < known || known == source.height())
        {
            let row = self.spread_row(source, spare);
            self.spread.push_back(row);
            self.next_spread += 1;
            let keep_from = self.next_spread.saturating_sub(RADIUS);
            while self.first_gathered < keep_from {
                let gone = self.gathered.pop_front();
                spare.keep(gone.into_iter().flat_map(|row| [row.sums, row.weights]));
                self.first_gathered += 1;
            }
        }
        if self.next_spread == source.height() {
            self.gathered.clear();
        }
        self.give_back(source, group, spare, take)
    }

    /// Hands on the groups whose corrections are known. `newest` is copied only if it has to wait: where a picture is one
    /// row high, it is the whole result.
    fn give_back(
        &mut self,
        source: &Pixels,
        newest: &[f32],
        spare: &mut Spare,
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        while self.is_known(source) {
            let Some(group) = self.groups.pop_front() else {
                return self.hand_on(source, newest, spare, take);
            };
            self.hand_on(source, &group, spare, take)?;
            spare.keep([group]);
        }
        let mut waiting = spare.row();
        waiting.extend_from_slice(newest);
        self.groups.push_back(waiting);
        Ok(())
    }

    /// Corrects the result rows of the next source row, part by part, and hands them on.
    fn hand_on(
        &mut self,
        source: &Pixels,
        group: &[f32],
        spare: &mut Spare,
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        let pure = pure_pixels(source, self.next_group);
        let block_samples = self.scale * source.channels();
        let [mut part, mut above, mut below] = array::from_fn(|_| spare.row());
        for (index, row) in group.chunks_exact(group.len() / self.scale).enumerate() {
            for (at, made) in row.chunks(PART * block_samples).enumerate() {
                let first = at * PART;
                let columns = first..first + made.len() / block_samples;
                part.clear();
                part.extend_from_slice(made);
                self.correct(source, index, &columns, &mut part, [&mut above, &mut below]);
                keep_pure(
                    pure.get(columns).unwrap_or_default(),
                    block_samples,
                    &mut part,
                );
                take(&mut part)?;
            }
        }
        spare.keep([part, above, below]);
        self.forget_corrections(spare);
        Ok(())
    }

    /// Whether the corrections around the next group are there.
    fn is_known(&self, source: &Pixels) -> bool {
        self.next_group + 1 < self.next_spread || self.next_spread == source.height()
    }

    /// The next group is done: what no later one needs can be filled again.
    fn forget_corrections(&mut self, spare: &mut Spare) {
        self.next_group += 1;
        while self.first_spread + 1 < self.next_group {
            spare.keep(self.spread.pop_front());
            self.first_spread += 1;
        }
    }

    /// Corrections of row `next_spread`, gathered down the window; drawn out to the result's width unless that takes more
    /// than a part.
    fn spread_row(&self, source: &Pixels, spare: &mut Spare) -> Vec<f32> {
        let (y, width, channels) = (self.next_spread, source.width(), source.channels());
        let full = ((RADIUS + 1) * (RADIUS + 1)) as f32;
        let mut sums = spare.zeros(width * channels);
        let mut weights = spare.row();
        weights.resize(width, DOUBT * full * full);
        for (offset, row) in self.gathered.iter().enumerate() {
            let distance = (self.first_gathered + offset).abs_diff(y);
            if distance > RADIUS {
                continue;
            }
            let share = (RADIUS + 1 - distance) as f32;
            widened!({
                add_share(&mut sums, share, &row.sums);
                add_share(&mut weights, share, &row.weights);
            });
        }
        by_pixel(&mut sums, channels, &weights, |sum, weight| {
            given_back(sum / weight)
        });
        spare.keep([weights]);
        if width > PART {
            return sums;
        }
        let mut row = spare.row();
        stretch(&sums, &(0..width), channels, self.scale, &mut row);
        spare.keep([sums]);
        row
    }

    /// Corrects what row `index` of the next group has of the source pixels `columns`.
    fn correct(
        &self,
        source: &Pixels,
        index: usize,
        columns: &Range<usize>,
        part: &mut [f32],
        drawn_out: [&mut Vec<f32>; 2],
    ) {
        let last = source.height() - 1;
        let (above, below, share) = between(self.next_group, index, self.scale, last);
        let [into_above, into_below] = drawn_out;
        let above = self.corrections(source, above, columns, into_above);
        let below = self.corrections(source, below, columns, into_below);
        widened!({
            for (sample, (above, below)) in part.iter_mut().zip(above.iter().zip(below)) {
                let step = above + (below - above) * share;
                *sample = sample.clamp(0.0, 1.0) + step.clamp(-STEP_MAX, STEP_MAX);
            }
        });
    }

    /// Corrections of row `y`, as wide as the result's pixels of the source pixels `columns`: from `into` where they are
    /// drawn out for each part.
    fn corrections<'a>(
        &'a self,
        source: &Pixels,
        y: usize,
        columns: &Range<usize>,
        into: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let row = &self.spread[y - self.first_spread];
        if source.width() <= PART {
            return row;
        }
        stretch(row, columns, source.channels(), self.scale, into);
        into
    }
}

/// The part of a difference that is given back: with the gain of Wiener's filter, [`LEVEL`] being the noise.
#[inline(always)]
fn given_back(difference: f32) -> f32 {
    let square = difference * difference;
    difference * square / (square + LEVEL * LEVEL)
}

#[inline(always)]
fn add_share(sums: &mut [f32], share: f32, row: &[f32]) {
    for (sum, more) in sums.iter_mut().zip(row) {
        *sum += share * more;
    }
}

/// Differences of row `y` times their weights, summed along the row under a triangle.
fn gather(source: &Pixels, y: usize, found: &[f32], spare: &mut Spare) -> Gathered {
    let channels = source.channels();
    let own = smoothness(source, y, spare);
    let mut differences = spare.row();
    differences.extend_from_slice(source.row(y));
    widened!({
        for (code, found) in differences.iter_mut().zip(found) {
            *code -= found;
        }
    });
    by_pixel(&mut differences, channels, &own, |sum, weight| sum * weight);
    let gathered = Gathered {
        sums: under_triangle(&differences, channels, spare),
        weights: under_triangle(&own, 1, spare),
    };
    spare.keep([own, differences]);
    gathered
}

/// Every sample joined with its pixel's own number.
fn by_pixel(samples: &mut [f32], channels: usize, own: &[f32], join: impl Fn(f32, f32) -> f32) {
    widened!(match channels {
        1 => join_pixels::<1>(samples, own, join),
        _ => join_pixels::<3>(samples, own, join),
    });
}

#[inline(always)]
fn join_pixels<const CHANNELS: usize>(
    samples: &mut [f32],
    own: &[f32],
    join: impl Fn(f32, f32) -> f32,
) {
    let (pixels, _) = samples.as_chunks_mut::<CHANNELS>();
    for (pixel, own) in pixels.iter_mut().zip(own) {
        *pixel = pixel.map(|sample| join(sample, *own));
    }
}

/// Sums along a row of `channels` samples a pixel, each pixel counted `RADIUS + 1 - distance` times: a box of
/// `RADIUS + 1` pixels, twice.
fn under_triangle(row: &[f32], channels: usize, spare: &mut Spare) -> Vec<f32> {
    let margin = RADIUS * channels;
    let mut padded = spare.zeros(row.len() + 2 * margin);
    padded[margin..][..row.len()].copy_from_slice(row);
    let boxed = match channels {
        1 => boxed::<1>,
        _ => boxed::<3>,
    };
    let mut twice = [spare.row(), spare.row()];
    let [once, sums] = &mut twice;
    boxed(&padded, once);
    boxed(once, sums);
    let [once, sums] = twice;
    spare.keep([padded, once]);
    sums
}

/// Sums of `RADIUS + 1` pixels in a row; `RADIUS` pixels fewer. In 64 bits, so that what a running sum takes in it also
/// loses again. All channels of a pixel at once: each sum waits for the one before.
fn boxed<const CHANNELS: usize>(row: &[f32], sums: &mut Vec<f32>) {
    let (pixels, _) = row.as_chunks::<CHANNELS>();
    let (first, _) = pixels.split_at(RADIUS + 1);
    let mut sum: [f64; CHANNELS] =
        array::from_fn(|c| first.iter().map(|pixel| f64::from(pixel[c])).sum());
    sums.reserve(row.len() - RADIUS * CHANNELS);
    sums.extend(sum.map(|sum| sum as f32));
    for (gone, new) in pixels.iter().zip(&pixels[RADIUS + 1..]) {
        sum = array::from_fn(|c| sum[c] + (f64::from(new[c]) - f64::from(gone[c])));
        sums.extend(sum.map(|sum| sum as f32));
    }
}

/// Of every pixel of row `y`: 1 where the source is smooth, falling with the largest difference to its four
/// neighbours.
fn smoothness(source: &Pixels, y: usize, spare: &mut Spare) -> Vec<f32> {
    let row = source.row(y);
    let mut largest = spare.zeros(row.len());
    let mut shares = spare.row();
    let beside = [
        source.row(y.saturating_sub(1)),
        source.row((y + 1).min(source.height() - 1)),
    ];
    let channels = source.channels();
    let (left, right) = (&row[..row.len() - channels], &row[channels..]);
    widened!({
        for other in beside {
            widen(&mut largest, row, other);
        }
        widen(&mut largest[..left.len()], left, right);
        widen(&mut largest[channels..], right, left);
        match channels {
            1 => smooth_shares::<1>(&largest, &mut shares),
            _ => smooth_shares::<3>(&largest, &mut shares),
        }
    });
    spare.keep([largest]);
    shares
}

#[inline(always)]
fn smooth_shares<const CHANNELS: usize>(largest: &[f32], shares: &mut Vec<f32>) {
    let (pixels, _) = largest.as_chunks::<CHANNELS>();
    let most = pixels
        .iter()
        .map(|pixel| pixel.iter().fold(0.0_f32, |most, sample| most.max(*sample)));
    shares.extend(most.map(|most| 1.0 / (1.0 + (most / EDGE) * (most / EDGE))));
}

#[inline(always)]
fn widen(largest: &mut [f32], row: &[f32], other: &[f32]) {
    for ((most, a), b) in largest.iter_mut().zip(row).zip(other) {
        *most = most.max((a - b).abs());
    }
}

/// The two source pixels around result pixel `index` of source pixel `own`, and the second's share.
fn between(own: usize, index: usize, scale: usize, last: usize) -> (usize, usize, f32) {
    let offset = (index as f32 + 0.5) / scale as f32 - 0.5;
    if offset < 0.0 {
        (own.saturating_sub(1), own, 1.0 + offset)
    } else {
        (own, (own + 1).min(last), offset)
    }
}

/// Pixels `columns` of a row of `channels` samples a pixel, drawn out `scale` times, linearly.
fn stretch(
    row: &[f32],
    columns: &Range<usize>,
    channels: usize,
    scale: usize,
    wide: &mut Vec<f32>,
) {
    wide.resize(columns.len() * channels * scale, 0.0);
    match channels {
        1 => stretch_pixels::<1>(row, columns, scale, wide),
        _ => stretch_pixels::<3>(row, columns, scale, wide),
    }
}

/// The number of channels is known when this is compiled.
fn stretch_pixels<const CHANNELS: usize>(
    row: &[f32],
    columns: &Range<usize>,
    scale: usize,
    wide: &mut [f32],
) {
    let (pixels, _) = row.as_chunks::<CHANNELS>();
    let (blocks, _) = wide.as_chunks_mut::<CHANNELS>();
    for (x, block) in columns.clone().zip(blocks.chunks_exact_mut(scale)) {
        for (index, pixel) in block.iter_mut().enumerate() {
            let (left, right, share) = between(x, index, scale, pixels.len() - 1);
            let (left, right) = (pixels[left], pixels[right]);
            *pixel = array::from_fn(|c| left[c] + (right[c] - left[c]) * share);
        }
    }
}
