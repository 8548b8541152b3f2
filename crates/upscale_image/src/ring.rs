//! The last rows of a plane whose rows come one after another.

use std::array;

/// `KEPT` rows, each filled again when it is that old.
#[derive(Debug)]
pub(crate) struct Ring<T, const KEPT: usize> {
    rows: [Vec<T>; KEPT],
    count: usize,
}

impl<T, const KEPT: usize> Ring<T, KEPT> {
    pub(crate) fn new() -> Self {
        Self {
            rows: array::from_fn(|_| Vec::new()),
            count: 0,
        }
    }

    /// Rows that came.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Room for the next row, empty: what it held is `KEPT` rows old.
    pub(crate) fn next(&mut self) -> &mut Vec<T> {
        let row = &mut self.rows[self.count % KEPT];
        self.count += 1;
        row.clear();
        row
    }

    /// Row `y`, or the last one of a plane of `height` rows.
    pub(crate) fn row(&self, y: usize, height: usize) -> &[T] {
        &self.rows[y.min(height - 1) % KEPT]
    }

    /// Row `y` in the middle of as many rows, an odd number, of a plane of `height` rows; beyond it are its outermost.
    pub(crate) fn around<const ROWS: usize>(&self, y: usize, height: usize) -> [&[T]; ROWS] {
        array::from_fn(|index| self.row((y + index).saturating_sub(ROWS / 2), height))
    }

    /// Row `y` to be changed.
    pub(crate) fn row_mut(&mut self, y: usize) -> &mut [T] {
        &mut self.rows[y % KEPT]
    }

    /// Whether row `y` and `reach` rows below it are there, as far as a plane of `height` rows has any.
    pub(crate) fn is_complete(&self, y: usize, reach: usize, height: usize) -> bool {
        y < height && self.count >= (y + reach + 1).min(height)
    }
}
