//! How many threads a command computes on.

/// As many as were asked for, or one per core.
pub(crate) fn threads(asked: Option<u32>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked
        .and_then(|threads| usize::try_from(threads).ok())
        .unwrap_or_else(cores)
}
