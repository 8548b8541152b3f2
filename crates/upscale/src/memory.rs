//! How much memory this process and its children may take together: the lowest limit of its cgroups, version 2 or 1, from
//! its own up to the root, or what the machine has.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::system::sysinfo;

/// A bound of memory, and what sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    /// The file that says so, or the machine.
    pub(crate) set_by: String,
}

/// What counts for this process.
pub(crate) fn memory_limit() -> MemoryLimit {
    let info = sysinfo();
    let machine = MemoryLimit {
        bytes: info.totalram.saturating_mul(info.mem_unit.into()),
        set_by: "this machine".to_owned(),
    };
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (cgroups, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
    let lowest = lowest(&cgroups, &mounts).filter(|limit| limit.bytes < machine.bytes);
    lowest.unwrap_or(machine)
}

/// One kind of cgroups: where its files lie, and what the limit is called there.
struct Hierarchy<'a> {
    kind: &'a str,
    file: &'static str,
}

/// cgroups(7): `memory.max` of version 2, of which the root has none; `memory.limit_in_bytes` of version 1.
fn lowest(cgroups: &str, mounts: &str) -> Option<MemoryLimit> {
    let limits = cgroups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, own) = (fields.next()?, fields.next()?);
        let hierarchy = match controllers {
            "" => Hierarchy {
                kind: "cgroup2",
                file: "memory.max",
            },
            _ if controllers.split(',').any(|name| name == "memory") => Hierarchy {
                kind: "cgroup",
                file: "memory.limit_in_bytes",
            },
            _ => return None,
        };
        lowest_upwards(&hierarchy, own, mounts)
    });
    limits.min_by_key(|limit| limit.bytes)
}

/// From the process' own cgroup up to the one that is mounted.
fn lowest_upwards(hierarchy: &Hierarchy<'_>, own: &str, mounts: &str) -> Option<MemoryLimit> {
    let (root, mount_point) = mounts.lines().find_map(|line| mount(hierarchy, line))?;
    // A container may see the path from outside beside a mount that begins at its own cgroup.
    let inside = Path::new(own).strip_prefix(root).unwrap_or(Path::new(""));
    let inside = inside.strip_prefix("/").unwrap_or(inside);
    let limits = inside.ancestors().filter_map(|folder| {
        let path: PathBuf = [Path::new(mount_point), folder, Path::new(hierarchy.file)]
            .iter()
            .collect();
        let bytes = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
        Some(MemoryLimit {
            bytes,
            set_by: path.display().to_string(),
        })
    });
    limits.min_by_key(|limit| limit.bytes)
}

/// Root and mount point of a line of `/proc/PID/mountinfo` of this kind (proc_pid_mountinfo(5)): `… root point options -
/// type source options`.
fn mount<'a>(hierarchy: &Hierarchy<'_>, line: &'a str) -> Option<(&'a str, &'a str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let is_kind = kind.next() == Some(hierarchy.kind);
    let options = kind.nth(1).unwrap_or_default();
    let has_memory = options.split(',').any(|option| option == "memory");
    let is_it = is_kind && (hierarchy.kind == "cgroup2" || has_memory);
    let mut place = place.split(' ').skip(3);
    is_it.then_some((place.next()?, place.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of cgroups in a folder, with these limits.
    fn tree(limits: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in limits {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn bytes(cgroups: &str, mounts: &str) -> Option<u64> {
        lowest(cgroups, mounts).map(|limit| limit.bytes)
    }

    #[test]
    fn the_lowest_limit_from_the_own_cgroup_to_the_root_counts() {
        let folder = tree(&[
            ("a/memory.max", "2000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/c/memory.max", "3000\n"),
            ("other/memory.max", "1\n"),
        ]);
        let at = folder.path().display();
        let mounts = format!(
            "20 1 0:1 / /proc rw - proc proc rw\n31 23 0:27 / {at} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
        );
        assert_eq!(bytes("0::/a/b/c\n", &mounts), Some(2_000));
        assert_eq!(bytes("0::/\n", &mounts), None);
        assert_eq!(bytes("0::/a/b/c\n", ""), None);
        assert_eq!(bytes("", &mounts), None);
    }

    #[test]
    fn version_1_counts_and_the_lower_of_both_does() {
        let old = tree(&[
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("unit/memory.limit_in_bytes", "5000\n"),
        ]);
        let new = tree(&[("unit/memory.max", "7000\n")]);
        let (old, new) = (old.path().display(), new.path().display());
        let mounts = format!(
            "30 23 0:26 / /nowhere rw - cgroup cgroup rw,cpu\n\
             31 23 0:27 / {old} rw - cgroup cgroup rw,memory\n\
             32 23 0:28 / {new} rw - cgroup2 none rw\n"
        );
        let both = "4:memory:/unit\n1:cpu:/\n0::/unit\n";
        assert_eq!(bytes(both, &mounts), Some(5_000));
        assert_eq!(
            bytes("4:cpu,memory:/\n", &mounts),
            Some(9_223_372_036_854_771_712)
        );
    }

    #[test]
    fn a_container_that_sees_its_path_from_outside_finds_its_own_limit() {
        let folder = tree(&[("memory.limit_in_bytes", "4096\n")]);
        let at = folder.path().display();
        let mounts = format!("31 23 0:27 /docker/1f {at} ro - cgroup cgroup rw,memory\n");
        assert_eq!(bytes("4:memory:/docker/1f\n", &mounts), Some(4_096));
        // And one whose mount is not of its own path has the mounted root's.
        assert_eq!(bytes("4:memory:/elsewhere\n", &mounts), Some(4_096));
    }

    #[test]
    fn this_machine_has_some_memory() {
        assert!(memory_limit().bytes > 64 << 20);
    }
}
