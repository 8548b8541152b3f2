//! How much of something that many share one of them may hold.

/// What one party may hold of a pool in which `free` are left: one part in `parts` of what is free, at least 1 and at
/// most `most`; whether one is free is for the pool to say. The more a pool is used, the less a further party is given,
/// so a newcomer finds something free. Dynamic thresholds: A. K. Choudhury and E. L. Hahne, "Dynamic queue length
/// thresholds for shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998.
#[must_use]
pub fn fair_share(most: usize, free: usize, parts: usize) -> usize {
    most.min((free / parts.max(1)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `parties` hold in the end when each takes all that it may, one at a time and in turn.
    fn taken(all: usize, parties: usize, most: usize) -> Vec<usize> {
        let mut held = vec![0; parties];
        loop {
            let before = held.clone();
            for party in 0..parties {
                let free = all - held.iter().sum::<usize>();
                if free > 0 && held[party] < fair_share(most, free, 8) {
                    held[party] += 1;
                }
            }
            if held == before {
                return held;
            }
        }
    }

    #[test]
    fn one_party_alone_has_all_that_it_may_use_and_never_the_pool() {
        assert_eq!(taken(256, 1, 8), [8]);
        // An eighth of what is left, not of all.
        assert_eq!(taken(64, 1, 1_000), [7]);
    }

    #[test]
    fn fifty_greedy_parties_leave_room_for_a_newcomer() {
        let held = taken(256, 50, 8);
        let free = 256 - held.iter().sum::<usize>();
        assert!(free >= 8, "{free} of 256 are free: {held:?}");
        assert!(held.iter().all(|&held| held >= 1));
        assert!(fair_share(8, free, 8) >= 1);
    }

    #[test]
    fn a_share_is_at_least_one_and_at_most_the_cap() {
        for (most, free, parts, expected) in [
            (10, 0, 8, 1),
            (10, 7, 8, 1),
            (10, 16, 8, 2),
            (10, 4_096, 8, 10),
            (10, 5, 0, 5),
        ] {
            assert_eq!(fair_share(most, free, parts), expected);
        }
    }
}
