//! The last-level cache, as Linux describes it in `/sys`.

use std::{fs, path::Path};

/// One core stands for all.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

/// The highest of one core's caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastLevel {
    /// Its size.
    pub bytes: usize,
    /// The cores that share it, such as `0-7,64-71`.
    pub shared_by: String,
}

impl LastLevel {
    /// Reads a folder such as `/sys/devices/system/cpu/cpu0/cache`; none where the system does not tell.
    #[must_use]
    pub fn read(caches: &Path) -> Option<Self> {
        let caches = fs::read_dir(caches).ok()?.flatten();
        let levels = caches.filter_map(|cache| {
            let read = |name: &str| fs::read_to_string(cache.path().join(name)).ok();
            let level: u32 = read("level")?.trim().parse().ok()?;
            let kilobytes: usize = read("size")?.trim().strip_suffix('K')?.parse().ok()?;
            Some((level, kilobytes << 10, read("shared_cpu_list")?))
        });
        levels.max().map(|(_, bytes, shared)| Self {
            bytes,
            shared_by: shared.trim().to_owned(),
        })
    }

    /// What each of its cores has of it when all work.
    fn share_bytes(&self) -> Option<usize> {
        self.bytes.checked_div(count(&self.shared_by)?)
    }
}

/// How much of the last-level cache a core of this machine has when all of them work; none where the system does not tell. To be
/// asked before a sandbox closes `/sys`.
#[must_use]
pub fn cache_share_bytes() -> Option<usize> {
    LastLevel::read(Path::new(CACHES))?.share_bytes()
}

/// How many cores a list names.
fn count(list: &str) -> Option<usize> {
    let runs = list.split(',').map(|run| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    });
    runs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_so_many_cores() {
        for (list, cores) in [("0", 1), ("0-1", 2), ("0-7,64-71", 16), ("3,5,9-10", 4)] {
            assert_eq!(count(list), Some(cores), "{list}");
        }
        for list in ["", "a", "7-0", "0-", "1,"] {
            assert_eq!(count(list), None, "{list}");
        }
    }

    #[test]
    fn cores_that_share_a_cache_have_equal_parts() {
        let cache = |shared: &str| LastLevel {
            bytes: 32 << 20,
            shared_by: shared.to_owned(),
        };
        assert_eq!(cache("0-7").share_bytes(), Some(4 << 20));
        assert_eq!(cache("0-7,64-71").share_bytes(), Some(2 << 20));
        assert_eq!(cache("").share_bytes(), None);
    }
}
