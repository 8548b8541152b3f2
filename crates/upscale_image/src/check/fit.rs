//! What explains the difference between a square of the source and its result: a softer lens, which is what restoration
//! undoes, or another place, which is a fault. Least squares over sums of products.

/// What the sums are of: the difference (source less result), then the four forms of a [`FilteredRow`].
///
/// [`FilteredRow`]: super::filtered::FilteredRow
const TERMS: usize = 5;
const DIFFERENCE: usize = 0;
const SOFT: usize = 1;
const SOFTER: usize = 2;
const ACROSS: usize = 3;
const DOWN: usize = 4;
/// The two blurs together are taken at most this many times: once and a quarter covers a source softer than the
/// stronger of them and a result sharpened beyond the truth.
const BLUR_MAX: f64 = 1.25;
/// What the stronger blur takes from white noise is 1.41 times what the lighter takes (squared; from their kernels), from
/// photographs nearly always more than this many times.
const GRAIN_MAX: f64 = 1.7;
/// Added to every diagonal, per sample, so that a flat square divides by something.
const RIDGE: f64 = 1e-9;

/// Sums over a square.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fit {
    /// Of the rows with slopes.
    sloped: Products,
    /// Of the rows without, whose last two terms are missing.
    others: Products,
    channels: f64,
}

#[derive(Debug, Clone, Default)]
struct Products {
    /// Sums of the products of two terms; the first is not the later one.
    pairs: [[f64; TERMS]; TERMS],
    /// Sums of the terms, channel by channel.
    sums: [[f64; 3]; TERMS],
    samples: f64,
}

/// Where the result fits best.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// Source pixels to the right and down.
    pub(crate) shift: (f64, f64),
    /// Root mean square error here, whatever blur or sharpening and tint is allowed for.
    pub(crate) error: f64,
    /// The same there.
    pub(crate) shifted_error: f64,
}

impl Fit {
    /// Adds a stretch of a row of which the slopes are known, too; terms in the order of the constants.
    #[inline(always)]
    pub(crate) fn add_sloped(&mut self, terms: [&[f32]; TERMS], channels: usize) {
        self.channels = channels as f64;
        self.sloped.add(terms);
        for (sums, term) in self.sloped.sums.iter_mut().zip(terms) {
            add_sums(sums, term, channels);
        }
    }

    /// Adds a stretch of a row without slopes.
    #[inline(always)]
    pub(crate) fn add(&mut self, terms: [&[f32]; ACROSS]) {
        self.others.add(terms);
    }

    /// Samples added.
    pub(crate) fn samples(&self) -> f64 {
        (self.sloped.samples + self.others.samples).max(1.0)
    }

    /// Squared differences between source and result, summed.
    pub(crate) fn error_squares(&self) -> f64 {
        self.product(DIFFERENCE, DIFFERENCE)
    }

    /// The part of them that no blur of the result explains. Only blurs are tried, no sharpening: a result may be sharper
    /// than its source, and what it is softer by counts as an error.
    pub(crate) fn unexplained_squares(&self) -> f64 {
        let [a, b, c] = [(SOFT, SOFT), (SOFT, SOFTER), (SOFTER, SOFTER)]
            .map(|(one, other)| self.product(one, other));
        let [p, q] = [SOFT, SOFTER].map(|blur| self.product(DIFFERENCE, blur));
        let all = self.error_squares();
        let left =
            |s: f64, t: f64| all - 2.0 * (s * p + t * q) + s * s * a + 2.0 * s * t * b + t * t * c;
        let (s, t) = solve_pair([a, b, c], [p, q]);
        if s >= 0.0 && t >= 0.0 && s + t <= BLUR_MAX {
            return left(s, t).clamp(0.0, all);
        }
        // The best lies on the border of what is allowed.
        let limited = |share: f64| share.clamp(0.0, BLUR_MAX);
        let along = limited((p - q - BLUR_MAX * (b - c)) / (a - 2.0 * b + c).max(RIDGE));
        let borders = [
            left(limited(p / a), 0.0),
            left(0.0, limited(q / c)),
            left(along, BLUR_MAX - along),
        ];
        borders.into_iter().fold(all, f64::min).max(0.0)
    }

    /// What the lighter and the stronger blur take from the result, squared and summed.
    pub(crate) fn blurred_away(&self) -> [f64; 2] {
        [self.product(SOFT, SOFT), self.product(SOFTER, SOFTER)]
    }

    /// Where the result fits best, for shifts of up to some two pixels: as far as slopes reach.
    pub(crate) fn place(&self) -> Position {
        let matrix = std::array::from_fn(|row| {
            let column = |column: usize| (column + 1) % TERMS;
            std::array::from_fn(|at| self.centred(row + 1, column(at)))
        });
        let target = |term: usize| self.centred(DIFFERENCE, term);
        let all = target(DIFFERENCE);
        let left = |taken: &[f64]| {
            let explained = taken
                .iter()
                .zip(SOFT..)
                .map(|(taken, term)| taken * target(term));
            let squares = (all - explained.sum::<f64>()).clamp(0.0, all.max(0.0));
            (squares / self.sloped.samples.max(1.0)).sqrt()
        };
        let blurs = [(SOFT, SOFT), (SOFT, SOFTER), (SOFTER, SOFTER)];
        let blurs = blurs.map(|(one, other)| self.centred(one, other));
        let here = solve_pair(blurs, [target(SOFT), target(SOFTER)]);
        let there = solve(matrix);
        Position {
            shift: (-there[ACROSS - 1], -there[DOWN - 1]),
            error: left(&[here.0, here.1]),
            shifted_error: left(&there),
        }
    }

    /// Of all rows.
    fn product(&self, one: usize, other: usize) -> f64 {
        self.sloped.product(one, other) + self.others.product(one, other)
    }

    /// Of the rows with slopes, around each channel's own mean: a tint looks like no shift.
    fn centred(&self, one: usize, other: usize) -> f64 {
        let pairs = self.sloped.sums[one].iter().zip(self.sloped.sums[other]);
        let of_means: f64 = pairs.map(|(a, b)| a * b).sum();
        self.sloped.product(one, other) - of_means * self.channels / self.sloped.samples.max(1.0)
    }
}

impl Products {
    #[inline(always)]
    fn add<const GIVEN: usize>(&mut self, terms: [&[f32]; GIVEN]) {
        self.samples += terms[DIFFERENCE].len() as f64;
        for (one, pairs) in self.pairs.iter_mut().enumerate().take(GIVEN) {
            for (other, pair) in pairs.iter_mut().enumerate().take(GIVEN).skip(one) {
                *pair += dot(terms[one], terms[other]);
            }
        }
    }

    fn product(&self, one: usize, other: usize) -> f64 {
        let (one, other) = (one.min(other), one.max(other));
        let ridge = if one == other && one != DIFFERENCE {
            RIDGE * self.samples
        } else {
            0.0
        };
        self.pairs[one][other] + ridge
    }
}

/// Whether a picture's detail is as fine as that of noise, given what the two blurs take from it.
pub(crate) fn is_grainy([soft, softer]: [f64; 2]) -> bool {
    softer < GRAIN_MAX * soft
}

/// Two unknowns: the matrix is `[[a, b], [b, c]]`.
fn solve_pair([a, b, c]: [f64; 3], [p, q]: [f64; 2]) -> (f64, f64) {
    let determinant = (a * c - b * b).max(f64::MIN_POSITIVE);
    ((p * c - q * b) / determinant, (q * a - p * b) / determinant)
}

/// Four unknowns, the right side in the last column. No pivots: the matrix is symmetrical and positive.
fn solve(mut matrix: [[f64; TERMS]; TERMS - 1]) -> [f64; TERMS - 1] {
    for pivot in 0..matrix.len() {
        let row = matrix[pivot];
        for below in matrix.iter_mut().skip(pivot + 1) {
            let factor = below[pivot] / row[pivot];
            below
                .iter_mut()
                .zip(row)
                .for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solution = [0.0; TERMS - 1];
    for row in (0..solution.len()).rev() {
        let known: f64 = matrix[row].iter().zip(solution).map(|(a, x)| a * x).sum();
        solution[row] = (matrix[row][TERMS - 1] - known) / matrix[row][row];
    }
    solution
}

/// Sum of products, in eight lanes so that it becomes vectors.
#[inline(always)]
pub(crate) fn dot(first: &[f32], second: &[f32]) -> f64 {
    let mut lanes = [0.0_f32; 8];
    let (first_chunks, second_chunks) = (first.chunks_exact(8), second.chunks_exact(8));
    let rest = first_chunks
        .remainder()
        .iter()
        .zip(second_chunks.remainder());
    let rest: f32 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in first_chunks.zip(second_chunks) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    f64::from(lanes.iter().sum::<f32>() + rest)
}

/// Adds a row of interleaved samples to sums per channel.
#[inline(always)]
pub(super) fn add_sums(sums: &mut [f64; 3], row: &[f32], channels: usize) {
    // Twenty-four lanes hold whole pixels of one channel or of three.
    let mut lanes = [0.0_f32; 24];
    for chunk in row.chunks(lanes.len()) {
        lanes
            .iter_mut()
            .zip(chunk)
            .for_each(|(lane, sample)| *lane += sample);
    }
    for pixel in lanes.chunks_exact(channels) {
        sums.iter_mut()
            .zip(pixel)
            .for_each(|(sum, lane)| *sum += f64::from(*lane));
    }
}

#[cfg(test)]
mod tests {
    use super::Fit;
    use crate::check::filtered::Filter;
    use crate::spare::Spare;

    const SIDE: usize = 32;

    fn wave(x: f32, y: f32) -> f32 {
        0.5 + 0.2 * (0.9 * x + 0.2 * y).sin() + 0.2 * (0.3 * x - 0.7 * y).cos()
    }

    /// A fit of `source` to the result that `wave` is; both of one channel.
    fn fitted(source: impl Fn(f32, f32) -> f32) -> Fit {
        let row = |y: usize, level: &dyn Fn(f32, f32) -> f32| -> Vec<f32> {
            (0..SIDE).map(|x| level(x as f32, y as f32)).collect()
        };
        let (mut filter, mut fit) = (Filter::new(1, SIDE), Fit::default());
        let spare = &mut Spare::default();
        for y in 0..SIDE {
            filter.push(&row(y, &wave), spare);
            while let Some(y) = filter.pop() {
                let found = filter.stretch(&(0..SIDE), spare);
                let source = row(y, &source);
                let pairs = source.iter().zip(found.result);
                let difference: Vec<f32> = pairs.map(|(a, b)| a - b).collect();
                match &found.slopes {
                    Some([across, down]) => {
                        fit.add_sloped([&difference, &found.soft, &found.softer, across, down], 1)
                    }
                    None => fit.add([&difference, &found.soft, &found.softer]),
                }
            }
        }
        fit
    }

    #[test]
    fn a_source_that_is_softer_is_explained_and_one_that_is_sharper_is_not() {
        // Gaussians of 1.2 pixels, by what they leave of each wave.
        let left = |pace: f32| (-0.72 * pace * pace).exp();
        let soft = |x: f32, y: f32| {
            let [first, second] = [left(0.85_f32.sqrt()), left(0.58_f32.sqrt())];
            let slow = (0.3 * x - 0.7 * y).cos();
            0.5 + 0.2 * first * (0.9 * x + 0.2 * y).sin() + 0.2 * second * slow
        };
        let fit = fitted(soft);
        let share = fit.unexplained_squares() / fit.error_squares();
        assert!(share < 0.06, "{share}");
        let sharp = fitted(|x, y| 2.0 * wave(x, y) - soft(x, y));
        assert!(sharp.unexplained_squares() > 0.99 * sharp.error_squares());
    }

    #[test]
    fn another_picture_is_explained_by_no_blur() {
        let fit = fitted(|x, y| 0.5 + 0.3 * (0.5 * x + 0.6 * y).sin());
        assert!(fit.unexplained_squares() > 0.5 * fit.error_squares());
    }

    #[test]
    fn a_shift_is_found_where_it_is_and_nowhere_else() {
        for (dx, dy) in [(1.0_f32, 0.0_f32), (0.0, -1.0), (-1.0, 1.0)] {
            // The source lies at the place that the result belongs to.
            let place = fitted(|x, y| wave(x - dx, y - dy)).place();
            let (right, down) = (place.shift.0 as f32, place.shift.1 as f32);
            assert!(
                (right - dx).abs() < 0.35 && (down - dy).abs() < 0.35,
                "{place:?}"
            );
            assert!(place.shifted_error < 0.4 * place.error, "{place:?}");
        }
        let place = fitted(|x, y| 0.8 * wave(x, y) + 0.1).place();
        assert!(
            place.shift.0.abs() < 0.2 && place.shift.1.abs() < 0.2,
            "{place:?}"
        );
    }
}
