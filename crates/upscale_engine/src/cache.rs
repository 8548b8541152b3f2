//! How much of the last-level cache a core has when all of them work: bands of rows are cut so that they stay in it.

use std::sync::OnceLock;

static SHARE_BYTES: OnceLock<usize> = OnceLock::new();

/// Notes how much of the last-level cache each core has, once per process; without it bands are cut for 12 MiB. The rows of a
/// picture are the same, whatever the bands.
pub fn note_cache_share(bytes: usize) {
    SHARE_BYTES.get_or_init(|| bytes);
}

/// What was noted.
pub(crate) fn share_bytes() -> Option<usize> {
    SHARE_BYTES.get().copied()
}
