//! Rows of a result as they come, taken together to those of one source row: what check and balance work on.

use std::collections::VecDeque;

use crate::error::WriteError;
use crate::ring::Ring;
use crate::spare::Spare;

/// Where groups go: the rows of each, and its means.
pub(crate) type Take<'a> =
    &'a mut dyn FnMut(&[f32], Vec<f32>, &mut Spare) -> Result<(), WriteError>;

/// What has come of a source row whose result rows are not all there.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Samples of the result rows that belong to one source row.
    samples: usize,
    pending: Vec<f32>,
}

impl Groups {
    /// Groups of so many samples.
    pub(crate) fn new(samples: usize) -> Self {
        Self {
            samples,
            pending: Vec::new(),
        }
    }

    /// Hands each group that is complete to `take`, in order. Those that `rows` hold whole are not copied: where a picture
    /// is one row high, a group is the whole result.
    pub(crate) fn push(
        &mut self,
        mut rows: &[f32],
        take: &mut dyn FnMut(&[f32]) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        while !rows.is_empty() {
            let missing = self.samples - self.pending.len();
            let (more, rest) = rows.split_at(missing.min(rows.len()));
            rows = rest;
            if more.len() == self.samples {
                take(more)?;
                continue;
            }
            self.pending.extend_from_slice(more);
            if self.pending.len() == self.samples {
                take(&self.pending)?;
                self.pending.clear();
            }
        }
        Ok(())
    }
}

/// Groups that wait for those after them, `KEPT` at most, and their means.
#[derive(Debug)]
pub(crate) struct Waiting<const KEPT: usize> {
    groups: Ring<f32, KEPT>,
    means: VecDeque<Vec<f32>>,
}

impl<const KEPT: usize> Waiting<KEPT> {
    pub(crate) fn new() -> Self {
        Self {
            groups: Ring::new(),
            means: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, group: &[f32], means: Vec<f32>) {
        self.groups.next().extend_from_slice(group);
        self.means.push_back(means);
    }

    /// The number of the group that came first; of the next to come where none waits.
    pub(crate) fn first(&self) -> usize {
        self.groups.count() - self.means.len()
    }

    /// The rows of group `number`, to be changed.
    pub(crate) fn rows_mut(&mut self, number: usize) -> &mut [f32] {
        self.groups.row_mut(number)
    }

    /// Hands the first group on.
    ///
    /// # Errors
    /// That of `take`.
    pub(crate) fn hand_on(&mut self, spare: &mut Spare, take: Take<'_>) -> Result<(), WriteError> {
        let first = self.first();
        let means = self.means.pop_front().unwrap_or_default();
        take(self.groups.row_mut(first), means, spare)
    }
}

#[cfg(test)]
mod tests {
    use super::Groups;

    #[test]
    fn groups_come_whole_and_in_order_however_their_rows_came() {
        let all: Vec<f32> = (0..60_u8).map(f32::from).collect();
        for piece in 1..=60 {
            let mut groups = Groups::new(12);
            let mut taken = Vec::new();
            for rows in all.chunks(piece) {
                let mut take = |group: &[f32]| {
                    assert_eq!(group.len(), 12);
                    taken.extend_from_slice(group);
                    Ok(())
                };
                groups.push(rows, &mut take).unwrap();
            }
            assert_eq!(taken, all, "{piece}");
        }
    }
}
