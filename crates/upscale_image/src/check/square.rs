//! One square of the picture: what is summed over it, what that says, and the verdict.
//!
//! Restoration makes a result differ from its source in two ways only. What it sharpens, a blur takes back: that part of
//! the difference is measured by regression and forgiven. What it removes is noise, which shows in the source's finest
//! detail and vanishes in the means of 4 × 4 pixels. Everything else is a fault. Limits were set on the bed of
//! `tests/pictures/restoration.rs`: the largest value that an ideal restorer reached stands beside each.

use std::ops::Range;

use super::cells::CellSums;
use super::failure::CheckFailure;
use super::filtered::FilteredRow;
use super::fit::{Fit, Position, add_sums, dot, is_grainy};
use crate::delta_e::{delta_e_2000, lab};

/// What no blur of the result explains may be this much (root mean square, `[0, 1]`) where the source is smooth: 16
/// levels, three times what removing strong JPEG artefacts changes …
const UNEXPLAINED_FLOOR: f64 = 0.062;
/// … and this multiple of the source's finest detail more, which a network may take for noise and remove whole. Ideal
/// restorers reached two thirds of both.
const UNEXPLAINED_PER_DETAIL: f64 = 0.9;
/// A result may differ by this much however that came about …
const ERROR_FLOOR: f64 = 0.06;
/// … and by this multiple of the source's finest detail: of 1,008 photographs, ideally restored, a grainy one behind JPEG
/// reaches 1.47 of it. What is more than both is restoration or a fault …
const ERROR_PER_DETAIL: f64 = 1.5;
/// … and restoration only as far as blur explains it: this share of the error may be left …
const RESTORED_UNEXPLAINED_SHARE: f64 = 0.4;
/// … with this multiple of the detail (ideal: 0.22 and 0.5) …
const RESTORED_UNEXPLAINED_PER_DETAIL: f64 = 0.5;
/// … (a result as grainy as noise: this share; ideal: 0.11) …
const GRAINY_UNEXPLAINED_SHARE: f64 = 0.3;
/// … and only where the source shows something to restore: steps from cell to cell (ideal: 4.5).
const RESTORED_PER_STEP: f64 = 6.0;
/// The means of 4 × 4 pixels may differ by this much (root mean square; ideal: 0.024, noise cut off at black) …
const CELL_ERROR_FLOOR: f64 = 0.062;
/// … by this share of the steps between them, which restoration steepens …
const CELL_ERROR_PER_STEP: f64 = 0.5;
/// … and of the finest detail: one-pixel patterns of pure colours come back up to 0.09 off.
const CELL_ERROR_PER_DETAIL: f64 = 0.4;
/// The mean of a square may move by this much per channel where the source is smooth …
const MEAN_ERROR_FLOOR: f64 = 0.08;
/// … and by this share of its finest detail.
const MEAN_ERROR_PER_DETAIL: f64 = 0.4;
/// A square whose source varies by this much from cell to cell (standard deviation) …
const FLAT_SOURCE_MIN: f64 = 0.04;
/// … must keep this share of it (ideal: 0.58).
const FLAT_SHARE_MIN: f64 = 0.3;
/// A result that fits better more than this many source pixels away, in either direction …
const SHIFT_MIN: f64 = 0.6;
/// … belongs there when that explains this much of the error (root mean square; of 1,008 photographs ideally restored one, from JPEGs, explains 0.027 and is refused) …
const SHIFT_EXPLAINED_FLOOR: f64 = 0.014;
/// … and this share of the squared error left there …
const SHIFT_EXPLAINED_SHARE: f64 = 0.25;
/// … and further away than this, where slopes hardly reach, this share (one-pixel patterns, smoothed: 0.47).
const SHIFT_FAR: f64 = 1.5;
const FAR_EXPLAINED_SHARE: f64 = 0.6;
/// … and in squares of few pixels this many times the squared error left, by their pixels. Two slopes explain 2 / n of what
/// n independent numbers differ by in the mean, 19 / n once in 12,000 squares; nine pixels beside one another are about
/// one. Of a picture of nothing but noise, 750,000 x 2, one square was called shifted without it.
const CHANCE_EXPLAINED: f64 = 19.0 * 9.0;

/// Sums over one square.
#[derive(Debug, Clone, Default)]
pub(crate) struct Square {
    pub(super) pixels: f64,
    /// Of source and result, channel by channel.
    source: [f64; 3],
    result: [f64; 3],
    pub(super) cells: CellSums,
    /// Of rows three further up: a blur looks down as well.
    pub(super) fit: Fit,
    pub(super) detail_squares: f64,
}

/// What the sums of a square say. Root mean squares in `[0, 1]`.
#[derive(Debug, Clone, Copy)]
struct Measures {
    /// Difference between source and result, both at the source's size.
    error: f64,
    /// The part of it that no blur of the result explains.
    unexplained: f64,
    /// Finest detail of the source: pixels less the mean of the 3 × 3 around.
    detail: f64,
    /// Steps of the source from cell to cell.
    step: f64,
    /// Difference between the cells of source and result.
    cell_error: f64,
    /// Largest difference between the means of a channel.
    mean_error: f64,
    /// Whether the result's detail is as fine as that of noise.
    is_grainy: bool,
}

impl Square {
    /// Adds a stretch of a source row and of the result's.
    pub(crate) fn add(&mut self, source: &[f32], result: &[f32], channels: usize) {
        self.pixels += (source.len() / channels) as f64;
        add_sums(&mut self.source, source, channels);
        add_sums(&mut self.result, result, channels);
    }

    /// Adds a stretch of a filtered row, of the difference to it and of the source's finest detail.
    #[inline(always)]
    pub(crate) fn add_filtered(
        &mut self,
        row: &FilteredRow<'_>,
        difference: &[f32],
        detail: &[f32],
        stretch: Range<usize>,
        channels: usize,
    ) {
        let detail = &detail[stretch.clone()];
        self.detail_squares += dot(detail, detail);
        let terms = [difference, &row.soft, &row.softer].map(|term| &term[stretch.clone()]);
        let [difference, soft, softer] = terms;
        match &row.slopes {
            Some(slopes) => {
                let [across, down] = slopes.each_ref().map(|slope| &slope[stretch.clone()]);
                let terms = [difference, soft, softer, across, down];
                self.fit.add_sloped(terms, channels);
            }
            None => self.fit.add(terms),
        }
    }

    /// The verdict; `x` and `y` are the square's left and top edge.
    pub(crate) fn judge(&self, x: usize, y: usize) -> Result<(), CheckFailure> {
        self.judge_flatness(x, y)?;
        let measures = self.measure();
        let exceeded = measures
            .limits()
            .into_iter()
            .find(|(error, error_max)| error > error_max);
        let place = self.fit.place();
        let fits_there = place.shifted_error < measures.unexplained_max();
        if is_shifted(&place, self.pixels) && (exceeded.is_none() || fits_there) {
            return Err(CheckFailure::Shifted {
                x,
                y,
                dx: place.shift.0.round() as i32,
                dy: place.shift.1.round() as i32,
                error: place.error,
                shifted_error: place.shifted_error,
            });
        }
        match exceeded {
            Some((error, error_max)) => Err(CheckFailure::Differs {
                x,
                y,
                error,
                error_max,
            }),
            None => Ok(()),
        }
    }

    /// ΔE2000 between the mean colours of source and result.
    pub(crate) fn delta_e(&self, channels: usize) -> f64 {
        let mean = |sums: &[f64; 3]| {
            let level = |c: usize| (sums[c.min(channels - 1)] / self.pixels) as f32;
            lab([level(0), level(1), level(2)])
        };
        f64::from(delta_e_2000(mean(&self.source), mean(&self.result)))
    }

    /// Root mean square over the samples of the fit.
    fn root(&self, squares: f64) -> f64 {
        (squares.max(0.0) / self.fit.samples()).sqrt()
    }

    fn measure(&self) -> Measures {
        let means = self.source.iter().zip(self.result);
        Measures {
            error: self.root(self.fit.error_squares()),
            unexplained: self.root(self.fit.unexplained_squares()),
            detail: self.root(self.detail_squares),
            step: self.cells.step(),
            cell_error: self.cells.error(),
            mean_error: means
                .map(|(source, result)| (source - result).abs() / self.pixels)
                .fold(0.0, f64::max),
            is_grainy: is_grainy(self.fit.blurred_away()),
        }
    }

    fn judge_flatness(&self, x: usize, y: usize) -> Result<(), CheckFailure> {
        let source_deviation = self.cells.source_deviation();
        let found = self.cells.result_deviation();
        if source_deviation > FLAT_SOURCE_MIN && found < FLAT_SHARE_MIN * source_deviation {
            return Err(CheckFailure::Flat {
                x,
                y,
                found,
                source_deviation,
            });
        }
        Ok(())
    }
}

impl Measures {
    /// Errors and what they may be at most.
    fn limits(&self) -> [(f64, f64); 4] {
        let Self { step, detail, .. } = *self;
        let error_max = ERROR_FLOOR + ERROR_PER_DETAIL * detail;
        let restored = if is_restored(self.error, self.unexplained, detail, self.is_grainy) {
            RESTORED_PER_STEP * step
        } else {
            0.0
        };
        let cell_error_max =
            CELL_ERROR_FLOOR + CELL_ERROR_PER_STEP * step + CELL_ERROR_PER_DETAIL * detail;
        let mean_error_max = MEAN_ERROR_FLOOR + MEAN_ERROR_PER_DETAIL * detail;
        [
            (self.error, error_max + restored),
            (self.unexplained, self.unexplained_max()),
            (self.cell_error, cell_error_max),
            (self.mean_error, mean_error_max),
        ]
    }

    fn unexplained_max(&self) -> f64 {
        UNEXPLAINED_FLOOR + UNEXPLAINED_PER_DETAIL * self.detail
    }
}

fn is_shifted(place: &Position, pixels: f64) -> bool {
    let distance = place.shift.0.abs().max(place.shift.1.abs());
    let share = if distance > SHIFT_FAR {
        FAR_EXPLAINED_SHARE
    } else {
        SHIFT_EXPLAINED_SHARE
    };
    let share = share.max(CHANCE_EXPLAINED / pixels);
    let shifted_squares = place.shifted_error.powi(2);
    let explained_min = SHIFT_EXPLAINED_FLOOR.powi(2) + share * shifted_squares;
    distance > SHIFT_MIN && place.error.powi(2) - shifted_squares > explained_min
}

/// Whether blur explains the error so well that it is what restoration changed. The numbers are root mean squares.
fn is_restored(error: f64, unexplained: f64, detail: f64, is_grainy: bool) -> bool {
    let share = if is_grainy {
        GRAINY_UNEXPLAINED_SHARE
    } else {
        RESTORED_UNEXPLAINED_SHARE
    };
    unexplained < share * error + RESTORED_UNEXPLAINED_PER_DETAIL * detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_explains_in_two_rows_is_no_shift_and_a_fault_is_one_in_any() {
        let place = |error, shifted_error| Position {
            shift: (0.0, 1.0),
            error,
            shifted_error,
        };
        // As a network made noise calmer, in a picture of 750,000 x 2.
        let calmed = place(0.0343, 0.0268);
        assert!(!is_shifted(&calmed, 64.0) && is_shifted(&calmed, 1024.0));
        // As a row that stands where another belongs.
        assert!(
            [32.0, 64.0, 1024.0]
                .iter()
                .all(|&pixels| is_shifted(&place(0.1, 0.02), pixels))
        );
    }
}
