//! How many connections and files this process may hold: the system's limit of open files, raised as far as it lets us, and
//! shared out below it. Who is refused a permit is told so; who is refused a descriptor is not even accepted.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use upscale_api::{PermitLimits, ServeLimits};

/// For the database, children's pipes, sources' downloads and a good rest.
const OTHER_FILES: u64 = 512;
/// Listeners of as many connections each: API, results, console.
const LISTENERS: u64 = 3;
/// Connections of a listener inside: operators with a browser or two, or the programs that read metrics.
pub(crate) const INSIDE_CONNECTIONS: usize = 64;
/// The operators' console and the metrics.
const INSIDE_LISTENERS: u64 = 2;
/// Fewer connections a listener are no service.
const CONNECTIONS_MIN: u64 = 64;
/// Fewer files are no service: connections, the database's threads, children's pipes.
const FILES_MIN: u64 = 256;
/// Result files sent at a time, in connections of one listener: each is one more descriptor.
const CONNECTIONS_PER_DOWNLOAD: u64 = 4;

/// What the listeners of customers may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFiles {
    /// Connections of each listener.
    pub(crate) connections: usize,
    /// Result files being sent.
    pub(crate) downloads: usize,
}

/// What the service likes, or what the system's hard limit leaves. Many systems start a process with a soft limit of
/// 1,024, which any process may raise.
pub(crate) fn budget() -> OpenFiles {
    shared_out(raise_limit())
}

/// Raises the limit as far as the system lets us.
///
/// # Errors
/// When that is too little for any service.
pub(crate) fn check() -> anyhow::Result<u64> {
    let granted = raise_limit();
    anyhow::ensure!(
        granted >= FILES_MIN,
        "this process may open {granted} files at a time, but the service needs at least {FILES_MIN} ({} recommended). Raise the limit: `ulimit -n` in a shell, LimitNOFILE= of a systemd unit, --ulimit nofile= of docker",
        needed()
    );
    Ok(granted)
}

/// How many may be open now.
fn raise_limit() -> u64 {
    let needed = needed();
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
    granted
}

/// Files for all that may be open at a time.
fn needed() -> u64 {
    let connections = ServeLimits::default().connections_max as u64;
    let downloads = PermitLimits::default().downloads as u64;
    LISTENERS * connections + downloads + inside_and_others()
}

fn inside_and_others() -> u64 {
    OTHER_FILES + INSIDE_LISTENERS * INSIDE_CONNECTIONS as u64
}

fn shared_out(granted: u64) -> OpenFiles {
    let wished = ServeLimits::default().connections_max as u64;
    let left = granted.saturating_sub(inside_and_others());
    let parts = LISTENERS * CONNECTIONS_PER_DOWNLOAD + 1;
    let connections = (left / parts * CONNECTIONS_PER_DOWNLOAD).clamp(CONNECTIONS_MIN, wished);
    let downloads = connections / CONNECTIONS_PER_DOWNLOAD;
    let files = |count| usize::try_from(count).unwrap_or(usize::MAX);
    OpenFiles {
        connections: files(connections),
        downloads: files(downloads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_downloads_stay_below_the_limit_of_files() {
        for (granted, connections, downloads) in [
            (u64::MAX, 4_096, 1_024),
            (needed(), 4_096, 1_024),
            (4_096, 1_060, 265),
            (2_048, 432, 108),
            (1_024, 116, 29),
            // Too few for any service: the least there is.
            (16, 64, 16),
        ] {
            let found = shared_out(granted);
            let expected = OpenFiles {
                connections,
                downloads,
            };
            assert_eq!(found, expected, "{granted}");
            let all = LISTENERS as usize * connections + downloads;
            assert!(granted < 1_024 || all as u64 + inside_and_others() <= granted);
        }
        assert_eq!(needed(), 13_952);
    }
}
