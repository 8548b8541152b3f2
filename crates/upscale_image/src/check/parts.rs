//! A side of a picture cut into parts of one length. A sliver at the end belongs to the part before it: too few samples
//! say too little to condemn a picture by.

/// The parts of one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    length: usize,
    side: usize,
    count: usize,
}

impl Parts {
    /// Parts of `side` pixels; what is left at the end is a part of its own from `least` pixels on. At least one part.
    pub(crate) fn new(length: usize, side: usize, least: usize) -> Self {
        Self {
            length,
            side,
            count: ((length + side - least) / side).max(1),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Which part pixel `at` lies in.
    pub(crate) fn holding(&self, at: usize) -> usize {
        (at / self.side).min(self.count - 1)
    }

    /// Pixels of part `index`.
    pub(crate) fn range(&self, index: usize) -> std::ops::Range<usize> {
        let end = if index + 1 == self.count {
            self.length
        } else {
            (index + 1) * self.side
        };
        index * self.side..end
    }

    /// The part whose last pixel is `at`.
    pub(crate) fn ending_at(&self, at: usize) -> Option<usize> {
        let part = self.holding(at);
        (self.range(part).end == at + 1).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn parts_cover_every_length_once_and_none_is_a_sliver() {
        for length in 1..200 {
            let parts = Parts::new(length, 32, 16);
            let mut next = 0;
            for index in 0..parts.count() {
                let range = parts.range(index);
                assert_eq!(range.start, next);
                assert!(
                    range.len() >= 16.min(length) && range.len() < 48,
                    "{length}"
                );
                assert!(range.clone().all(|at| parts.holding(at) == index));
                assert_eq!(parts.ending_at(range.end - 1), Some(index));
                next = range.end;
            }
            assert_eq!(next, length);
        }
    }
}
