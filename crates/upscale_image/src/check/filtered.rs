//! The shrunk result as softer lenses would have shown it, row by row: what tells a restored picture from another one.
//! Rows are given back three late, because a blur looks down as well as up. Beyond the edges the outermost row or pixel
//! is repeated.

/// Rows that are kept; at least seven, for a row leans on three above and three below.
const KEPT: usize = 8;

/// One row of the shrunk result and what regression explains the source with; all as wide as the source, interleaved.
#[derive(Debug)]
pub(crate) struct FilteredRow {
    /// Its number.
    pub(crate) y: usize,
    /// As it came.
    pub(crate) result: Vec<f32>,
    /// What a light blur (standard deviation 0.71 source pixels) adds.
    pub(crate) soft: Vec<f32>,
    /// What a strong blur (1.58 source pixels) adds.
    pub(crate) softer: Vec<f32>,
    /// Slopes of the lightly blurred result to the right and downwards, per source pixel. Every second row has them: a
    /// shift shows in half of the rows as well.
    pub(crate) slopes: Option<[Vec<f32>; 2]>,
}

/// The moving window.
#[derive(Debug)]
pub(crate) struct Filter {
    channels: usize,
    height: usize,
    rows: Ring,
    /// Lightly blurred.
    soft: Ring,
    given: usize,
}

/// The last rows of a plane.
#[derive(Debug, Default)]
struct Ring {
    rows: [Vec<f32>; KEPT],
    count: usize,
}

impl Ring {
    fn push(&mut self, row: Vec<f32>) {
        self.rows[self.count % KEPT] = row;
        self.count += 1;
    }

    /// Row `y`, or the last one of a plane of `height` rows.
    fn row(&self, y: usize, height: usize) -> &[f32] {
        &self.rows[y.min(height - 1) % KEPT]
    }
}

impl Filter {
    pub(crate) fn new(channels: usize, height: usize) -> Self {
        Self {
            channels,
            height,
            rows: Ring::default(),
            soft: Ring::default(),
            given: 0,
        }
    }

    /// Takes the next row. [`Filter::pop`] must be asked before the one after it.
    pub(crate) fn push(&mut self, row: &[f32]) {
        self.rows.push(row.to_vec());
        while is_complete(&self.rows, self.soft.count, 1, self.height) {
            let y = self.soft.count;
            let around = [y.saturating_sub(1), y, y + 1].map(|y| self.rows.row(y, self.height));
            self.soft.push(blurred(around, self.channels, 1));
        }
    }

    /// The next row that all rows around have come for.
    pub(crate) fn pop(&mut self) -> Option<FilteredRow> {
        if !is_complete(&self.soft, self.given, 2, self.height) {
            return None;
        }
        let y = self.given;
        self.given += 1;
        let soft = |y: usize| self.soft.row(y, self.height);
        let result = self.rows.row(y, self.height);
        let [above, below] = [y.saturating_sub(1), y + 1].map(soft);
        let slopes = || {
            [
                slope_across(soft(y), self.channels),
                half_less(below, above),
            ]
        };
        let far = [y.saturating_sub(2), y, y + 2].map(soft);
        Some(FilteredRow {
            y,
            soft: less(soft(y), result),
            softer: less(&blurred(far, self.channels, 2), result),
            slopes: y.is_multiple_of(2).then(slopes),
            result: result.to_vec(),
        })
    }
}

/// Whether row `y` and `reach` rows below it are there, as far as the plane has any.
fn is_complete(ring: &Ring, y: usize, reach: usize, height: usize) -> bool {
    y < height && ring.count >= (y + reach + 1).min(height)
}

/// A quarter, a half and a quarter of the pixels `reach` apart, down and across.
fn blurred(rows: [&[f32]; 3], channels: usize, reach: usize) -> Vec<f32> {
    let [above, own, below] = rows;
    let sides = above.iter().zip(below);
    let column = own.iter().zip(sides);
    let column: Vec<f32> = column.map(|(b, (a, c))| 0.5 * b + 0.25 * (a + c)).collect();
    let padded = padded(&column, channels, reach);
    let right = &padded[2 * reach * channels..];
    let sides = padded.iter().zip(right);
    let row = column.iter().zip(sides);
    row.map(|(b, (a, c))| 0.5 * b + 0.25 * (a + c)).collect()
}

fn slope_across(row: &[f32], channels: usize) -> Vec<f32> {
    let padded = padded(row, channels, 1);
    half_less(&padded[2 * channels..], &padded)
}

fn half_less(more: &[f32], less: &[f32]) -> Vec<f32> {
    let pairs = more.iter().zip(less);
    pairs.map(|(more, less)| 0.5 * (more - less)).collect()
}

fn less(more: &[f32], less: &[f32]) -> Vec<f32> {
    let pairs = more.iter().zip(less);
    pairs.map(|(more, less)| more - less).collect()
}

/// A row with its first and last pixel repeated `reach` times.
pub(crate) fn padded(row: &[f32], channels: usize, reach: usize) -> Vec<f32> {
    let (first, last) = (&row[..channels], &row[row.len() - channels..]);
    let mut padded = Vec::with_capacity(row.len() + 2 * reach * channels);
    (0..reach).for_each(|_| padded.extend_from_slice(first));
    padded.extend_from_slice(row);
    (0..reach).for_each(|_| padded.extend_from_slice(last));
    padded
}

#[cfg(test)]
mod tests {
    use super::Filter;

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
            let mut filter = Filter::new(1, height);
            let mut next = 0;
            for row in &plane {
                filter.push(row);
                while let Some(found) = filter.pop() {
                    assert_eq!(found.y, next);
                    assert_eq!(found.slopes.is_some(), next % 2 == 0);
                    for x in 0..width {
                        let own = plane[next][x];
                        assert!((found.soft[x] + own - soft[next][x]).abs() < 1e-5);
                        assert!((found.softer[x] + own - softer[next][x]).abs() < 1e-5);
                        if let Some([_, down]) = &found.slopes {
                            let below = soft[(next + 1).min(height - 1)][x];
                            let above = soft[next.saturating_sub(1)][x];
                            assert!((down[x] - 0.5 * (below - above)).abs() < 1e-5);
                        }
                    }
                    next += 1;
                }
            }
            assert_eq!(next, height);
        }
    }
}
