//! Which of the cores that this process may use share a last-level cache, as Linux says it in `/sys`.

use std::{collections::BTreeMap, path::Path};

use rustix::thread::{CpuSet, sched_getaffinity};
use upscale_core::Domains;
use upscale_pipeline::LastLevel;

use crate::threads::threads;

const CPUS: &str = "/sys/devices/system/cpu";

/// The groups; one where the system does not tell, or where a quota allows less than the cores there are.
pub(crate) fn domains() -> Domains {
    let cores = u32::try_from(threads(None)).unwrap_or(u32::MAX);
    let found = sched_getaffinity(None).map(|allowed| {
        let allowed = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let shared = allowed.map(|cpu| {
            let cache = LastLevel::read(&Path::new(CPUS).join(format!("cpu{cpu}/cache")));
            cache.map(|cache| cache.shared_by)
        });
        group(shared.collect())
    });
    match found {
        Ok(Some(domains)) if domains.cores() == cores => domains,
        _ => Domains::new(vec![cores]),
    }
}

/// Equal lists are one group; none where a core has no list.
fn group(lists: Vec<Option<String>>) -> Option<Domains> {
    let mut groups = BTreeMap::new();
    for list in lists {
        *groups.entry(list?).or_insert(0) += 1;
    }
    Some(Domains::new(groups.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder as `/sys` has it: the caches of one core, each with its level, its size and who shares it.
    fn write(folder: &Path, caches: &[[&str; 3]]) {
        for (index, [level, size, shared]) in caches.iter().enumerate() {
            let cache = folder.join(format!("index{index}"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
            fs::write(cache.join("shared_cpu_list"), format!("{shared}\n")).unwrap();
        }
        fs::write(folder.join("uevent"), "").unwrap();
    }

    #[test]
    fn the_highest_cache_says_who_shares_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = [["1", "48K", "8"], ["1", "64K", "8"], ["2", "2048K", "8,72"]];
        write(
            folder.path(),
            &[&first[..], &[["3", "32768K", "8-15,72-79"]]].concat(),
        );
        let found = LastLevel::read(folder.path()).unwrap();
        assert_eq!((found.bytes, &*found.shared_by), (32 << 20, "8-15,72-79"));
        assert_eq!(LastLevel::read(&folder.path().join("none")), None);
    }

    #[test]
    fn cores_of_one_list_are_a_group() {
        let lists = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect();
        let two = ["0-7", "0-7", "8-15", "0-7"];
        assert_eq!(group(lists(&two)), Some(Domains::new(vec![3, 1])));
        let mut unknown: Vec<_> = lists(&two);
        unknown.push(None);
        assert_eq!(group(unknown), None);
        assert_eq!(group(Vec::new()), Some(Domains::new(vec![1])));
    }

    #[test]
    fn this_machine_has_as_many_cores_as_threads_are_started_for() {
        assert_eq!(domains().cores() as usize, threads(None));
    }
}
