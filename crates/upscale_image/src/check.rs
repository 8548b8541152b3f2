//! Is the result a picture of the source? Looked at row by row while it is written, before anything is called a
//! success: a network that broke (NaN, a flat field, a tile missing or in the wrong place) must never be charged for. What
//! restores a picture, removing noise and softness, is no fault: [`square`] says how the two are told apart.

mod cells;
mod failure;
mod filtered;
mod fit;
mod parts;
mod square;

use std::ops::Range;

use upscale_core::Pixels;
use upscale_simd::widened;

use self::cells::Cells;
pub use self::failure::CheckFailure;
use self::filtered::Filter;
pub(crate) use self::filtered::around;
use self::fit::is_grainy;
use self::parts::Parts;
use self::square::Square;
use crate::shrink::shrunk;
use crate::spare::Spare;

/// Side of the squares that are judged one by one, in source pixels …
const BLOCK: usize = 32;
/// … and the least that a square at the right or at the bottom must have; with less it is judged with its neighbour.
const BLOCK_MIN: usize = 16;
/// Squares whose share of a row is looked at together.
const SQUARES_A_STRETCH: usize = 128;
/// Mean ΔE2000 between the squares of source and result, before the balance. Pixel art of a few pure colours comes
/// back up to 5 off; photographs 0.1.
const DELTA_E_MAX: f64 = 8.0;
/// Peak signal-to-noise ratio of the shrunk result, in dB, where the source has no fine detail to lose …
const PSNR_MIN: f64 = 26.0;
/// … and the multiple of its finest detail that may be lost. A result further off must be restored: blur explains all but
/// this share of the error (root mean square; pairs of camera pictures that fit badly: 0.6) …
const LOST_PER_DETAIL: f64 = 1.25;
const RESTORED_UNEXPLAINED_SHARE: f64 = 0.6;
/// … of a result as grainy as noise this share …
const GRAINY_UNEXPLAINED_SHARE: f64 = 0.3;
/// … with this multiple of the detail.
const RESTORED_UNEXPLAINED_PER_DETAIL: f64 = 0.5;
/// Two channels were swapped when that explains all but this share of the squared difference between cells …
const SWAP_SHARE_MAX: f64 = 0.6;
/// … and the difference is at least this large (root mean square): three levels, for a picture that is nearly gray.
const SWAP_ERROR_MIN: f64 = 0.012;

/// How far a result that passed is from its source, both shrunk to the source's size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fidelity {
    /// Mean ΔE2000 over squares of 32 × 32 source pixels (16 to 47 at the edges).
    pub delta_e: f64,
    /// Peak signal-to-noise ratio in dB; infinite when equal.
    pub psnr: f64,
}

/// The check of one plane (colour, or alpha as gray), fed with groups of rows from top to bottom.
#[derive(Debug)]
pub(crate) struct OutputCheck {
    columns: Parts,
    rows: Parts,
    filter: Filter,
    cells: Cells,
    squares: Vec<Square>,
    whole: Whole,
}

/// Sums over the squares that were judged.
#[derive(Debug, Default)]
struct Whole {
    pixels: f64,
    delta_e: f64,
    samples: f64,
    error_squares: f64,
    unexplained_squares: f64,
    detail_squares: f64,
    blurred_away: [f64; 2],
    cell_samples: f64,
    cell_squares: f64,
    swapped_squares: [f64; 3],
}

/// Judges a whole result in memory as [`PngWriter`] does row by row: `made`, rows of `scale` times the width of `source`
/// with as many channels.
///
/// # Errors
/// [`CheckFailure`] for the first fault found.
///
/// [`PngWriter`]: crate::PngWriter
pub fn check_result(source: &Pixels, scale: usize, made: &[f32]) -> Result<Fidelity, CheckFailure> {
    let mut check = OutputCheck::new(source);
    let spare = &mut Spare::default();
    let groups = made.chunks_exact(source.width() * source.channels() * scale * scale);
    for (y, group) in groups.enumerate() {
        let means = shrunk(group, source.channels(), scale, spare);
        check.take(source, y, scale, group, &means, spare)?;
        spare.keep([means]);
    }
    check.finish()
}

impl OutputCheck {
    pub(crate) fn new(source: &Pixels) -> Self {
        let columns = Parts::new(source.width(), BLOCK, BLOCK_MIN);
        Self {
            columns,
            rows: Parts::new(source.height(), BLOCK, BLOCK_MIN),
            filter: Filter::new(source.channels(), source.height()),
            cells: Cells::new(source),
            squares: vec![Square::default(); columns.count()],
            whole: Whole::default(),
        }
    }

    /// Takes the result rows of source row `y` and their means.
    pub(crate) fn take(
        &mut self,
        source: &Pixels,
        y: usize,
        scale: usize,
        group: &[f32],
        shrunk: &[f32],
        spare: &mut Spare,
    ) -> Result<(), CheckFailure> {
        let channels = source.channels();
        check_finite(y * scale, source.width() * scale * channels, group)?;
        self.filter.push(shrunk, spare);
        while let Some(y) = self.filter.pop() {
            self.take_filtered(source, y, spare);
        }
        self.filter.clear_at_end();
        let own = source.row(y);
        for (index, square) in self.squares.iter_mut().enumerate() {
            let stretch = samples(&self.columns, index, channels);
            square.add(&own[stretch.clone()], &shrunk[stretch], channels);
        }
        let (columns, squares) = (&self.columns, &mut self.squares);
        self.cells.add(y, own, shrunk, |cell| {
            squares[columns.holding(cell.x)].cells.add(cell);
        });
        match self.rows.ending_at(y) {
            Some(row) => self.judge_squares(channels, self.rows.range(row).start)?,
            None => return Ok(()),
        }
        if y + 1 == source.height() {
            // 40 MB of them where a picture is 1,500,000 pixels wide.
            self.squares = Vec::new();
        }
        Ok(())
    }

    /// The verdict on the whole.
    pub(crate) fn finish(self) -> Result<Fidelity, CheckFailure> {
        let whole = self.whole;
        let delta_e = whole.delta_e / whole.pixels.max(1.0);
        if delta_e > DELTA_E_MAX {
            return Err(CheckFailure::Colours {
                delta_e,
                delta_e_max: DELTA_E_MAX,
            });
        }
        whole.judge_channels()?;
        whole.judge_noise()?;
        Ok(Fidelity {
            delta_e,
            psnr: decibels(whole.error_squares / whole.samples.max(1.0)),
        })
    }

    fn take_filtered(&mut self, source: &Pixels, y: usize, spare: &mut Spare) {
        let channels = source.channels();
        let rows = [y.saturating_sub(1), y, (y + 1).min(source.height() - 1)];
        let rows = rows.map(|row| source.row(row));
        for (part, squares) in self.squares.chunks_mut(SQUARES_A_STRETCH).enumerate() {
            let first = part * SQUARES_A_STRETCH;
            let start = self.columns.range(first).start;
            let pixels = start..self.columns.range(first + squares.len() - 1).end;
            let row = widened!(self.filter.stretch(&pixels, spare));
            let detail = widened!(detail(rows, channels, &pixels, spare));
            let own = &rows[1][start * channels..pixels.end * channels];
            let pairs = own.iter().zip(row.result);
            let difference = spare.filled(pairs.map(|(source, result)| source - result));
            for (index, square) in squares.iter_mut().enumerate() {
                let columns = self.columns.range(first + index);
                let stretch = (columns.start - start) * channels..(columns.end - start) * channels;
                widened!(square.add_filtered(&row, &difference, &detail, stretch, channels));
            }
            spare.keep([difference, detail]);
            row.give_back(spare);
        }
    }

    fn judge_squares(&mut self, channels: usize, y: usize) -> Result<(), CheckFailure> {
        for (index, square) in self.squares.iter_mut().enumerate() {
            square.judge(self.columns.range(index).start, y)?;
            self.whole.add(square, channels);
            *square = Square::default();
        }
        Ok(())
    }
}

impl Whole {
    fn add(&mut self, square: &Square, channels: usize) {
        self.pixels += square.pixels;
        self.delta_e += square.delta_e(channels) * square.pixels;
        self.samples += square.fit.samples();
        self.error_squares += square.fit.error_squares();
        self.unexplained_squares += square.fit.unexplained_squares();
        self.detail_squares += square.detail_squares;
        let [soft, softer] = square.fit.blurred_away();
        self.blurred_away = [self.blurred_away[0] + soft, self.blurred_away[1] + softer];
        self.cell_samples += square.cells.samples();
        self.cell_squares += square.cells.error_squares;
        let swapped = self.swapped_squares.iter_mut();
        swapped
            .zip(square.cells.swapped_squares)
            .for_each(|(sum, more)| *sum += more);
    }

    /// Nearly gray pictures move little when two channels change places; the order that fits better gives it away.
    fn judge_channels(&self) -> Result<(), CheckFailure> {
        let root = |squares: f64| (squares / self.cell_samples.max(1.0)).sqrt();
        let swapped = self
            .swapped_squares
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        let error = root(self.cell_squares);
        let is_gray = swapped == 0.0;
        if !is_gray && error > SWAP_ERROR_MIN && swapped < SWAP_SHARE_MAX * self.cell_squares {
            return Err(CheckFailure::Swapped {
                error,
                swapped_error: root(swapped),
            });
        }
        Ok(())
    }

    fn judge_noise(&self) -> Result<(), CheckFailure> {
        let mean = |squares: f64| squares / self.samples.max(1.0);
        let [error, unexplained, detail] = [
            self.error_squares,
            self.unexplained_squares,
            self.detail_squares,
        ]
        .map(mean);
        let allowed = 10_f64.powf(-PSNR_MIN / 10.0) + LOST_PER_DETAIL.powi(2) * detail;
        let share = if is_grainy(self.blurred_away) {
            GRAINY_UNEXPLAINED_SHARE
        } else {
            RESTORED_UNEXPLAINED_SHARE
        };
        let explained = share * error.sqrt() + RESTORED_UNEXPLAINED_PER_DETAIL * detail.sqrt();
        let is_restored = unexplained.sqrt() < explained;
        if error > allowed && (unexplained > allowed || !is_restored) {
            return Err(CheckFailure::Noisy {
                psnr: decibels(error),
                psnr_min: decibels(allowed),
            });
        }
        Ok(())
    }
}

fn decibels(squares: f64) -> f64 {
    -10.0 * squares.log10()
}

/// Samples of a row that part `index` of its columns holds.
fn samples(columns: &Parts, index: usize, channels: usize) -> Range<usize> {
    let pixels = columns.range(index);
    pixels.start * channels..pixels.end * channels
}

/// The largest exponent is that of infinities and NaN; whole numbers compare in vectors.
fn check_finite(first_row: usize, row_samples: usize, rows: &[f32]) -> Result<(), CheckFailure> {
    let magnitude = |sample: &f32| sample.to_bits() & 0x7fff_ffff;
    let largest = widened!(rows.iter().map(magnitude).fold(0, u32::max));
    if f32::from_bits(largest).is_finite() {
        return Ok(());
    }
    let at = rows
        .iter()
        .position(|sample| !sample.is_finite())
        .unwrap_or(0);
    Err(CheckFailure::NotFinite {
        row: first_row + at / row_samples,
        value: rows[at],
    })
}

/// The middle row, from one pixel to another, less the mean of the 3 × 3 pixels around.
#[inline(always)]
fn detail(
    rows: [&[f32]; 3],
    channels: usize,
    pixels: &Range<usize>,
    spare: &mut Spare,
) -> Vec<f32> {
    let [above, own, below] = rows.map(|row| around(row, channels, pixels, 1, spare));
    let columns = above.iter().zip(&own).zip(&below);
    let columns = spare.filled(columns.map(|((a, b), c)| a + b + c));
    let near = columns
        .iter()
        .zip(&columns[channels..])
        .zip(&columns[2 * channels..]);
    let pairs = own[channels..].iter().zip(near);
    let detail = pairs.map(|(own, ((a, b), c))| own - (a + b + c) * (1.0 / 9.0));
    let detail = spare.filled(detail);
    spare.keep([above, own, below, columns]);
    detail
}
