//! The shrunk result as softer lenses would have shown it, row by row: what tells a restored picture from another one.
//! Rows are given back three late, because a blur looks down as well as up. Beyond the edges the outermost row or pixel
//! is repeated.

use std::ops::Range;

use upscale_simd::widened;

use crate::ring::Ring;
use crate::spare::Spare;

/// Pixels that are blurred at a time.
const STRETCH: usize = 4_096;
/// Rows that are kept; at least seven, for a row leans on three above and three below.
const KEPT: usize = 8;

/// A stretch of one row of the shrunk result and what regression explains the source with; interleaved.
#[derive(Debug)]
pub(crate) struct FilteredRow<'a> {
    /// The stretch itself, without a filter.
    pub(crate) result: &'a [f32],
    /// What a light blur (standard deviation 0.71 source pixels) adds.
    pub(crate) soft: Vec<f32>,
    /// What a strong blur (1.58 source pixels) adds.
    pub(crate) softer: Vec<f32>,
    /// Slopes of the lightly blurred result to the right and downwards, per source pixel. Every second row has them: a
    /// shift shows in half of the rows as well.
    pub(crate) slopes: Option<[Vec<f32>; 2]>,
}

impl FilteredRow<'_> {
    pub(crate) fn give_back(self, spare: &mut Spare) {
        spare.keep([self.soft, self.softer]);
        spare.keep(self.slopes.into_iter().flatten());
    }
}

/// The moving window.
#[derive(Debug)]
pub(crate) struct Filter {
    channels: usize,
    height: usize,
    rows: Ring<f32, KEPT>,
    /// Lightly blurred.
    soft: Ring<f32, KEPT>,
    given: usize,
}

impl Filter {
    pub(crate) fn new(channels: usize, height: usize) -> Self {
        Self {
            channels,
            height,
            rows: Ring::new(),
            soft: Ring::new(),
            given: 0,
        }
    }

    /// Takes the next row. [`Filter::pop`] must be asked before the one after it.
    pub(crate) fn push(&mut self, row: &[f32], spare: &mut Spare) {
        self.rows.next().extend_from_slice(row);
        while self.rows.is_complete(self.soft.count(), 1, self.height) {
            let y = self.soft.count();
            let around = self.rows.around(y, self.height);
            let width = row.len() / self.channels;
            let soft = self.soft.next();
            for start in (0..width).step_by(STRETCH) {
                let pixels = start..(start + STRETCH).min(width);
                let stretch = widened!(blurred(around, self.channels, &pixels, 1, spare));
                soft.extend_from_slice(&stretch);
                spare.keep([stretch]);
            }
        }
    }

    /// Number of the next row that all rows around have come for.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        if !self.soft.is_complete(self.given, 2, self.height) {
            return None;
        }
        self.given += 1;
        Some(self.given - 1)
    }

    /// Lets the rows go once all were popped and looked at: those of a picture one row high are as large as itself.
    pub(crate) fn clear_at_end(&mut self) {
        if self.given == self.height {
            (self.rows, self.soft) = (Ring::new(), Ring::new());
        }
    }

    /// The row popped last, from one pixel to another: a row of 1,500,000 pixels filtered at once takes 200 MB.
    #[inline(always)]
    pub(crate) fn stretch(&self, pixels: &Range<usize>, spare: &mut Spare) -> FilteredRow<'_> {
        let (y, channels) = (self.given - 1, self.channels);
        let soft = |y: usize| self.soft.row(y, self.height);
        let samples = pixels.start * channels..pixels.end * channels;
        let result = &self.rows.row(y, self.height)[samples.clone()];
        let far = [y.saturating_sub(2), y, y + 2].map(soft);
        let blurred = blurred(far, channels, pixels, 2, spare);
        let softer = less(&blurred, result, spare);
        spare.keep([blurred]);
        let slopes = || {
            let [above, below] = [y.saturating_sub(1), y + 1].map(soft);
            let line = around(soft(y), channels, pixels, 1, spare);
            let across = half_less(&line[2 * channels..], &line, spare);
            spare.keep([line]);
            let down = half_less(&below[samples.clone()], &above[samples.clone()], spare);
            [across, down]
        };
        FilteredRow {
            slopes: y.is_multiple_of(2).then(slopes),
            soft: less(&soft(y)[samples], result, spare),
            softer,
            result,
        }
    }
}

/// A quarter, a half and a quarter of the pixels `reach` apart, down and across.
#[inline(always)]
fn blurred(
    rows: [&[f32]; 3],
    channels: usize,
    pixels: &Range<usize>,
    reach: usize,
    spare: &mut Spare,
) -> Vec<f32> {
    let lines = rows.map(|row| around(row, channels, pixels, reach, spare));
    let [above, own, below] = &lines;
    let sides = above.iter().zip(below);
    let column = own.iter().zip(sides);
    let column = spare.filled(column.map(|(b, (a, c))| 0.5 * b + 0.25 * (a + c)));
    spare.keep(lines);
    let (own, right) = (&column[reach * channels..], &column[2 * reach * channels..]);
    let sides = column.iter().zip(right);
    let row = own.iter().zip(sides);
    let row = spare.filled(row.map(|(b, (a, c))| 0.5 * b + 0.25 * (a + c)));
    spare.keep([column]);
    row
}

#[inline(always)]
fn half_less(more: &[f32], less: &[f32], spare: &mut Spare) -> Vec<f32> {
    let pairs = more.iter().zip(less);
    spare.filled(pairs.map(|(more, less)| 0.5 * (more - less)))
}

#[inline(always)]
fn less(more: &[f32], less: &[f32], spare: &mut Spare) -> Vec<f32> {
    let pairs = more.iter().zip(less);
    spare.filled(pairs.map(|(more, less)| more - less))
}

/// Those pixels of a row and `reach` more on both sides, the row's first and last one repeated beyond its ends.
pub(crate) fn around(
    row: &[f32],
    channels: usize,
    pixels: &Range<usize>,
    reach: usize,
    spare: &mut Spare,
) -> Vec<f32> {
    let width = row.len() / channels;
    let (start, end) = (
        pixels.start.saturating_sub(reach),
        (pixels.end + reach).min(width),
    );
    let mut samples = spare.row();
    samples.reserve((pixels.len() + 2 * reach) * channels);
    let (first, last) = (&row[..channels], &row[row.len() - channels..]);
    (pixels.start..start + reach).for_each(|_| samples.extend_from_slice(first));
    samples.extend_from_slice(&row[start * channels..end * channels]);
    (end..pixels.end + reach).for_each(|_| samples.extend_from_slice(last));
    samples
}

#[cfg(test)]
mod tests {
    use super::{Filter, Spare};

    fn plane(width: usize, height: usize) -> Vec<Vec<f32>> {
        let level = |x: usize, y: usize| ((x * 37 + y * 71 + x * y * 13) % 17) as f32 / 16.0;
        let row = |y| (0..width).map(|x| level(x, y)).collect();
        (0..height).map(row).collect()
    }

    /// The obvious version: a quarter, a half and a quarter of the pixels `reach` apart, both ways.
    fn blurred(plane: &[Vec<f32>], reach: usize) -> Vec<Vec<f32>> {
        let near = |at: usize, step: usize, length: usize| {
            (at + step * reach).saturating_sub(reach).min(length - 1)
        };
        let weights = [0.25, 0.5, 0.25];
        let pixel = |x: usize, y: usize| -> f32 {
            let parts = (0..9).map(|at| {
                let row = &plane[near(y, at / 3, plane.len())];
                weights[at / 3] * weights[at % 3] * row[near(x, at % 3, row.len())]
            });
            parts.sum()
        };
        let row = |y| (0..plane[0].len()).map(|x| pixel(x, y)).collect();
        (0..plane.len()).map(row).collect()
    }

    #[test]
    fn rows_come_once_in_order_and_as_the_obvious_version_has_them() {
        for (width, height) in (1..8).flat_map(|w| (1..12).map(move |h| (w, h))) {
            let plane = plane(width, height);
            let soft = blurred(&plane, 1);
            let softer = blurred(&soft, 2);
            let (mut filter, mut spare) = (Filter::new(1, height), Spare::default());
            let mut next = 0;
            for row in &plane {
                filter.push(row, &mut spare);
                while let Some(y) = filter.pop() {
                    assert_eq!(y, next);
                    for x in 0..width {
                        // Alone, and as the last of a stretch that begins before it.
                        for start in [x, x.saturating_sub(3)] {
                            let found = filter.stretch(&(start..x + 1), &mut spare);
                            let at = x - start;
                            assert_eq!(found.slopes.is_some(), next % 2 == 0);
                            let own = plane[next][x];
                            assert_eq!(found.result[at], own);
                            assert!((found.soft[at] + own - soft[next][x]).abs() < 1e-5);
                            assert!((found.softer[at] + own - softer[next][x]).abs() < 1e-5);
                            if let Some([across, down]) = &found.slopes {
                                let below = soft[(next + 1).min(height - 1)][x];
                                let above = soft[next.saturating_sub(1)][x];
                                assert!((down[at] - 0.5 * (below - above)).abs() < 1e-5);
                                let right = soft[next][(x + 1).min(width - 1)];
                                let left = soft[next][x.saturating_sub(1)];
                                assert!((across[at] - 0.5 * (right - left)).abs() < 1e-5);
                            }
                            found.give_back(&mut spare);
                        }
                    }
                    next += 1;
                }
            }
            assert_eq!(next, height);
        }
    }
}
