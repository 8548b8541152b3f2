//! How many connections this process may hold: the system's limit of open files, raised as far as it lets us.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use upscale_api::ServeLimits;

/// For the database, result files, children's pipes, downloads and a good rest.
const OTHER_FILES: u64 = 512;
/// Three listeners of as many connections each: API, results, console.
const LISTENERS: u64 = 3;

/// Open connections of each listener: what the service likes, or what the system's hard limit leaves. Many systems
/// start a process with a soft limit of 1,024, which any process may raise.
pub(crate) fn connections_max() -> usize {
    let wished = ServeLimits::default().connections_max;
    let needed = LISTENERS * wished as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let current = limit.current.unwrap_or(u64::MAX);
    let mut granted = current;
    if current < needed {
        let raised = Rlimit {
            current: Some(needed.min(most)),
            maximum: limit.maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => granted = needed.min(most),
            Err(error) => tracing::warn!(%error, current, "the limit of open files stays low"),
        }
    }
    let left = granted.saturating_sub(OTHER_FILES) / LISTENERS;
    wished.min(usize::try_from(left.max(64)).unwrap_or(wished))
}
