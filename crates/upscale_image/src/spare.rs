//! Rows that are done with, to be filled again: on its way through check and balance every source row takes some
//! forty of them, and in a picture one pixel wide, of 1,500,000 rows, a sixth of that time went into their memory.

/// Longer rows are let go: in a picture one row high they are as large as itself.
const SAMPLES_MAX: usize = 32_768;
/// More need not wait to be filled.
const ROWS_MAX: usize = 32;

/// The rows that are kept.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<Vec<f32>>);

impl Spare {
    /// An empty row.
    pub(crate) fn row(&mut self) -> Vec<f32> {
        self.0.pop().unwrap_or_default()
    }

    /// A row of zeros.
    pub(crate) fn zeros(&mut self, samples: usize) -> Vec<f32> {
        let mut row = self.row();
        row.resize(samples, 0.0);
        row
    }

    /// A row of those samples.
    #[inline(always)]
    pub(crate) fn filled(&mut self, samples: impl Iterator<Item = f32>) -> Vec<f32> {
        let mut row = self.row();
        row.extend(samples);
        row
    }

    /// Takes rows back.
    pub(crate) fn keep(&mut self, rows: impl IntoIterator<Item = Vec<f32>>) {
        for mut row in rows {
            if row.capacity() <= SAMPLES_MAX && self.0.len() < ROWS_MAX {
                row.clear();
                self.0.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_empty_and_a_long_one_not_at_all() {
        let mut spare = Spare::default();
        let row = spare.filled([1.0, 2.0].into_iter());
        let place = row.as_ptr();
        spare.keep([vec![0.0; SAMPLES_MAX + 1], row]);
        let again = spare.zeros(2);
        assert_eq!((again.as_ptr(), again), (place, vec![0.0; 2]));
        assert_eq!(spare.row().capacity(), 0);
        spare.keep((0..2 * ROWS_MAX).map(|_| Vec::with_capacity(1)));
        assert_eq!(spare.0.len(), ROWS_MAX);
    }
}
