//! What Linux says of a process.

/// A size in the text of a `/proc/…/status` file, in bytes; the file counts in KiB (proc_pid_status(5)).
pub fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
