//! Is the result a picture of the source? Looked at row by row while it is written, before anything is called a
//! success: a network that broke (NaN, a flat field, a tile missing or in the wrong place) must never be charged for.

use upscale_core::Pixels;

use crate::delta_e::{delta_e_2000, lab};
use crate::shrink::Group;

/// Side of the squares that are judged one by one, in source pixels.
const BLOCK: usize = 32;
/// A square may differ by this much (root mean square, `[0, 1]`) even where the source is smooth: 15 levels, three
/// times what removing strong JPEG artefacts changes.
const ERROR_FLOOR: f64 = 0.06;
/// … and by this multiple of the source's own finest detail, which a network may take for noise and remove whole.
const ERROR_PER_DETAIL: f64 = 1.25;
/// The mean of a square may move by this much per channel where the source is smooth …
const MEAN_ERROR_FLOOR: f64 = 0.08;
/// … and by this share of its finest detail: one-pixel patterns of pure colours come back up to 0.09 off.
const MEAN_ERROR_PER_DETAIL: f64 = 0.4;
/// A square whose source varies by this much (standard deviation) …
const FLAT_SOURCE_MIN: f64 = 0.04;
/// … must keep this share of it.
const FLAT_SHARE_MIN: f64 = 0.15;
/// The result belongs to the pixel beside when that one fits with less than this share of the squared error.
const SHIFT_SHARE: f64 = 0.4;
/// Below this error (root mean square) nobody can say where a square belongs.
const SHIFT_ERROR_MIN: f64 = 0.02;
/// Mean ΔE2000 between the squares of source and result, before the balance. Pixel art of a few pure colours comes
/// back up to 5 off; photographs 0.1.
const DELTA_E_MAX: f64 = 8.0;
/// Peak signal-to-noise ratio of the shrunk result, in dB, where the source has no fine detail to lose.
const PSNR_MIN: f64 = 26.0;

/// What is wrong with a result. Positions are source pixels.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckFailure {
    /// NaN or an infinity.
    #[error("a sample of result row {row} is {value}")]
    NotFinite {
        /// Row of the result.
        row: usize,
        /// The sample.
        value: f32,
    },
    /// Flat where the source is not.
    #[error(
        "the result is flat around ({x}, {y}): deviation {found:.4}, the source's is {source_deviation:.4}"
    )]
    Flat {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Standard deviation of the shrunk result.
        found: f64,
        /// Standard deviation of the source.
        source_deviation: f64,
    },
    /// Another picture in that place.
    #[error(
        "the result is not the source around ({x}, {y}): error {error:.4}, at most {error_max:.4}"
    )]
    Differs {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Error found, `[0, 1]`.
        error: f64,
        /// Error allowed.
        error_max: f64,
    },
    /// The right picture in the wrong place.
    #[error(
        "the result is shifted by ({dx}, {dy}) around ({x}, {y}): error {error:.4} here, {shifted_error:.4} there"
    )]
    Shifted {
        /// Left edge of the square.
        x: usize,
        /// Top edge of the square.
        y: usize,
        /// Source pixels to the right.
        dx: i32,
        /// Source pixels down.
        dy: i32,
        /// Error where it stands.
        error: f64,
        /// Error where it would fit.
        shifted_error: f64,
    },
    /// Other colours over the whole picture.
    #[error("the colours moved by {delta_e:.2} ΔE2000 on average, at most {delta_e_max:.2}")]
    Colours {
        /// Mean over the squares.
        delta_e: f64,
        /// Allowed.
        delta_e_max: f64,
    },
    /// Too far from the source as a whole.
    #[error("the result, shrunk, is {psnr:.1} dB from the source, at least {psnr_min:.1}")]
    Noisy {
        /// Found, dB.
        psnr: f64,
        /// Needed, dB.
        psnr_min: f64,
    },
}

/// How far a result that passed is from its source, both shrunk to the source's size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fidelity {
    /// Mean ΔE2000 over squares of 32 × 32 source pixels.
    pub delta_e: f64,
    /// Peak signal-to-noise ratio in dB; infinite when equal.
    pub psnr: f64,
}

/// Where a neighbour may be that fits better.
const SHIFTS: [(i32, i32); 8] = [
    (-1, 0),
    (1, 0),
    (0, -1),
    (0, 1),
    (-1, -1),
    (1, -1),
    (-1, 1),
    (1, 1),
];

/// Sums over one square.
#[derive(Debug, Clone, Default)]
struct Square {
    samples: f64,
    pixels: f64,
    /// Of source and result: sums per channel, and sums of squares.
    source: [f64; 3],
    result: [f64; 3],
    source_squares: f64,
    result_squares: f64,
    error_squares: f64,
    detail_squares: f64,
    shifted: [f64; 8],
}

/// The check of one plane (colour, or alpha as gray), fed with groups of rows from top to bottom.
#[derive(Debug)]
pub(crate) struct OutputCheck {
    squares: Vec<Square>,
    delta_e_sum: f64,
    square_count: f64,
    error_squares: f64,
    detail_squares: f64,
    samples: f64,
}

impl OutputCheck {
    pub(crate) fn new(source: &Pixels) -> Self {
        Self {
            squares: vec![Square::default(); source.width().div_ceil(BLOCK)],
            delta_e_sum: 0.0,
            square_count: 0.0,
            error_squares: 0.0,
            detail_squares: 0.0,
            samples: 0.0,
        }
    }

    /// Takes the result rows of source row `y` and their means.
    pub(crate) fn take(
        &mut self,
        source: &Pixels,
        y: usize,
        scale: usize,
        group: &Group,
        shrunk: &[f32],
    ) -> Result<(), CheckFailure> {
        let channels = source.channels();
        check_finite(y * scale, source.width() * scale * channels, &group.rows)?;
        let rows = [y.saturating_sub(1), y, (y + 1).min(source.height() - 1)];
        let rows = rows.map(|row| padded(source.row(row), channels));
        let detail = detail(&rows, channels);
        for (index, square) in self.squares.iter_mut().enumerate() {
            let from = index * BLOCK * channels;
            let to = (from + BLOCK * channels).min(shrunk.len());
            square.add(&rows, channels, from, &shrunk[from..to], &detail[from..to]);
        }
        if (y + 1).is_multiple_of(BLOCK) || y + 1 == source.height() {
            self.judge_squares(channels, y / BLOCK * BLOCK)?;
        }
        Ok(())
    }

    /// The verdict on the whole.
    pub(crate) fn finish(self) -> Result<Fidelity, CheckFailure> {
        let delta_e = self.delta_e_sum / self.square_count.max(1.0);
        if delta_e > DELTA_E_MAX {
            return Err(CheckFailure::Colours {
                delta_e,
                delta_e_max: DELTA_E_MAX,
            });
        }
        let samples = self.samples.max(1.0);
        let decibels = |squares: f64| -10.0 * squares.log10();
        let psnr = decibels(self.error_squares / samples);
        let allowed = 10_f64.powf(-PSNR_MIN / 10.0)
            + ERROR_PER_DETAIL.powi(2) * self.detail_squares / samples;
        let psnr_min = decibels(allowed);
        if psnr < psnr_min {
            return Err(CheckFailure::Noisy { psnr, psnr_min });
        }
        Ok(Fidelity { delta_e, psnr })
    }

    fn judge_squares(&mut self, channels: usize, y: usize) -> Result<(), CheckFailure> {
        for (index, square) in self.squares.iter_mut().enumerate() {
            square.judge(index * BLOCK, y, channels)?;
            self.delta_e_sum += square.delta_e(channels);
            self.square_count += 1.0;
            self.error_squares += square.error_squares;
            self.detail_squares += square.detail_squares;
            self.samples += square.samples;
            *square = Square::default();
        }
        Ok(())
    }
}

/// The largest exponent is that of infinities and NaN; whole numbers compare in vectors.
fn check_finite(first_row: usize, row_samples: usize, rows: &[f32]) -> Result<(), CheckFailure> {
    let magnitude = |sample: &f32| sample.to_bits() & 0x7fff_ffff;
    let largest = rows.iter().map(magnitude).fold(0, u32::max);
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

/// A row with its first and last pixel repeated once.
fn padded(row: &[f32], channels: usize) -> Vec<f32> {
    let mut padded = row[..channels].to_vec();
    padded.extend_from_slice(row);
    padded.extend_from_slice(&row[row.len() - channels..]);
    padded
}

/// The middle row less the mean of the 3 × 3 pixels around.
fn detail(rows: &[Vec<f32>; 3], channels: usize) -> Vec<f32> {
    let [above, own, below] = rows;
    let columns: Vec<f32> = above
        .iter()
        .zip(own)
        .zip(below)
        .map(|((a, b), c)| a + b + c)
        .collect();
    let inner = &own[channels..own.len() - channels];
    let around = columns
        .iter()
        .zip(&columns[channels..])
        .zip(&columns[2 * channels..]);
    inner
        .iter()
        .zip(around)
        .map(|(own, ((a, b), c))| own - (a + b + c) / 9.0)
        .collect()
}

/// Sum of squared differences, in eight lanes so that it becomes vectors.
fn squared_distance(first: &[f32], second: &[f32]) -> f64 {
    let mut lanes = [0.0_f32; 8];
    let (first_chunks, second_chunks) = (first.chunks_exact(8), second.chunks_exact(8));
    let rest = first_chunks
        .remainder()
        .iter()
        .zip(second_chunks.remainder());
    let rest: f32 = rest.map(|(a, b)| (a - b) * (a - b)).sum();
    for (a, b) in first_chunks.zip(second_chunks) {
        for lane in 0..8 {
            let distance = a[lane] - b[lane];
            lanes[lane] += distance * distance;
        }
    }
    f64::from(lanes.iter().sum::<f32>() + rest)
}

impl Square {
    /// Adds one row: `found` is the shrunk result, `rows` the padded source around it, both from sample `from` on.
    fn add(
        &mut self,
        rows: &[Vec<f32>; 3],
        channels: usize,
        from: usize,
        found: &[f32],
        detail: &[f32],
    ) {
        let source_at = |dx: i32, dy: i32| {
            let start = from + channels * (1 + dx) as usize;
            &rows[(1 + dy) as usize][start..start + found.len()]
        };
        let own = source_at(0, 0);
        self.samples += found.len() as f64;
        self.pixels += (found.len() / channels) as f64;
        for (at, (own, found)) in own.iter().zip(found).enumerate() {
            self.source[at % channels] += f64::from(*own);
            self.result[at % channels] += f64::from(*found);
        }
        let none = [0.0; BLOCK * 3];
        let none = &none[..found.len()];
        self.source_squares += squared_distance(own, none);
        self.result_squares += squared_distance(found, none);
        self.detail_squares += squared_distance(detail, none);
        self.error_squares += squared_distance(found, own);
        for (sum, (dx, dy)) in self.shifted.iter_mut().zip(SHIFTS) {
            *sum += squared_distance(found, source_at(dx, dy));
        }
    }

    fn judge(&self, x: usize, y: usize, channels: usize) -> Result<(), CheckFailure> {
        let error = (self.error_squares / self.samples).sqrt();
        self.judge_place(x, y, error)?;
        let source_deviation = self.deviation(&self.source, self.source_squares, channels);
        let found = self.deviation(&self.result, self.result_squares, channels);
        let detail = (self.detail_squares / self.samples).sqrt();
        let smooth = source_deviation > ERROR_PER_DETAIL * detail;
        if smooth && source_deviation > FLAT_SOURCE_MIN && found < FLAT_SHARE_MIN * source_deviation
        {
            return Err(CheckFailure::Flat {
                x,
                y,
                found,
                source_deviation,
            });
        }
        let error_max = ERROR_FLOOR + ERROR_PER_DETAIL * detail;
        let mean_error = (0..channels)
            .map(|c| (self.source[c] - self.result[c]).abs() / self.pixels)
            .fold(0.0, f64::max);
        let differs = |error, error_max| CheckFailure::Differs {
            x,
            y,
            error,
            error_max,
        };
        if error > error_max {
            return Err(differs(error, error_max));
        }
        let mean_error_max = MEAN_ERROR_FLOOR + MEAN_ERROR_PER_DETAIL * detail;
        if mean_error > mean_error_max {
            return Err(differs(mean_error, mean_error_max));
        }
        Ok(())
    }

    fn judge_place(&self, x: usize, y: usize, error: f64) -> Result<(), CheckFailure> {
        if error < SHIFT_ERROR_MIN {
            return Ok(());
        }
        for (squares, (dx, dy)) in self.shifted.iter().zip(SHIFTS) {
            if *squares < SHIFT_SHARE * self.error_squares {
                return Err(CheckFailure::Shifted {
                    x,
                    y,
                    dx,
                    dy,
                    error,
                    shifted_error: (squares / self.samples).sqrt(),
                });
            }
        }
        Ok(())
    }

    /// Around each channel's own mean.
    fn deviation(&self, sums: &[f64; 3], squares: f64, channels: usize) -> f64 {
        let of_means: f64 = sums[..channels]
            .iter()
            .map(|sum| sum * sum / self.pixels)
            .sum();
        ((squares - of_means).max(0.0) / self.samples).sqrt()
    }

    fn delta_e(&self, channels: usize) -> f64 {
        let mean = |sums: &[f64; 3]| {
            let level = |c: usize| (sums[c.min(channels - 1)] / self.pixels) as f32;
            lab([level(0), level(1), level(2)])
        };
        f64::from(delta_e_2000(mean(&self.source), mean(&self.result)))
    }
}
