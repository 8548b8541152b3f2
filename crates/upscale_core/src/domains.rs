//! Cores that share a last-level cache, and how many images are best done at a time on them: an image's threads read what one
//! another wrote a moment ago, so they belong where one cache holds it.

/// What a thread costs all others of its image: the second made Compact at 256 x 256 1.95 times as fast, not twice (a Xeon).
const LOSS_PER_THREAD: f64 = 0.026;

/// The cores of each group that shares a last-level cache: a socket of many, one of a few dies on others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains(Vec<u32>);

impl Domains {
    /// Groups of so many cores; one core where there are none.
    #[must_use]
    pub fn new(mut cores: Vec<u32>) -> Self {
        cores.retain(|cores| *cores > 0);
        if cores.is_empty() {
            cores.push(1);
        }
        Self(cores)
    }

    /// All cores.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.0.iter().sum()
    }

    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The most threads that each of so many images can have with none of them in two groups; where there are fewer
    /// images than groups, each has as many whole groups as the others.
    #[must_use]
    pub fn threads(&self, images: u32) -> u32 {
        let groups = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let images = images.max(1);
        if images < groups {
            let smallest = self.0.iter().min().copied().unwrap_or(1);
            return smallest * (groups / images);
        }
        let largest = self.0.iter().max().copied().unwrap_or(1);
        let fit = |threads: u32| self.0.iter().map(|cores| cores / threads).sum::<u32>();
        let threads = (1..=largest).rev().find(|&threads| fit(threads) >= images);
        threads.unwrap_or(1)
    }

    /// How many images at a time, `most` at most, are the most images an hour.
    #[must_use]
    pub fn images(&self, most: u32) -> u32 {
        let counts = 1..=most.min(self.cores()).max(1);
        let best = counts.max_by(|a, b| self.rate(*a).total_cmp(&self.rate(*b)));
        best.unwrap_or(1)
    }

    /// Images in the time in which one thread alone does one.
    fn rate(&self, images: u32) -> f64 {
        let (images, threads) = (f64::from(images), f64::from(self.threads(images)));
        images * threads / (1.0 + LOSS_PER_THREAD * (threads - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(cores: &[u32], most: u32) -> (u32, u32) {
        let domains = Domains::new(cores.to_vec());
        let images = domains.images(most);
        (images, domains.threads(images))
    }

    #[test]
    fn a_core_for_each_image_where_memory_allows_it() {
        for cores in [&[1][..], &[2], &[32], &[28, 28], &[8; 8], &[8, 8, 6]] {
            let all = cores.iter().sum();
            assert_eq!(choose(cores, u32::MAX), (all, 1), "{cores:?}");
            assert_eq!(choose(cores, all), (all, 1), "{cores:?}");
        }
    }

    #[test]
    fn fewer_images_share_the_cores_and_none_stands_in_two_groups() {
        for (cores, most, expected) in [
            // One socket: all images that fit, or one fewer where that leaves no core idle.
            (&[32][..], 3, (3, 10)),
            (&[32], 1, (1, 32)),
            (&[8], 5, (4, 2)),
            // Two sockets: an image each rather than three, one of which would be in both.
            (&[32, 32], 3, (2, 32)),
            (&[32, 32], 9, (8, 8)),
            // EPYC with eight dies of eight cores.
            (&[8; 8], 12, (8, 8)),
            (&[8; 8], 16, (16, 4)),
            (&[8; 8], 40, (32, 2)),
            (&[8; 8], 4, (4, 16)),
        ] {
            assert_eq!(choose(cores, most), expected, "{cores:?}, {most} fit");
        }
    }

    #[test]
    fn there_is_always_one_image_of_one_thread() {
        assert_eq!(choose(&[], 0), (1, 1));
        assert_eq!(choose(&[0, 0], 7), (1, 1));
        let domains = Domains::new(vec![4, 4]);
        assert_eq!(
            [0, 1, 2, 3, 8, 9, 99].map(|n| domains.threads(n)),
            [8, 8, 4, 2, 1, 1, 1]
        );
    }

    #[test]
    fn no_choice_has_more_threads_than_cores() {
        for cores in [&[1][..], &[6], &[28, 28], &[8; 8], &[16, 8], &[3, 5, 7]] {
            for most in 1..80 {
                let (images, threads) = choose(cores, most);
                assert!(images <= most && images * threads <= cores.iter().sum());
            }
        }
    }
}
