//! How long and how much a download may take. The defaults are the service's; tests use small ones.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::AttemptError;

/// Every limit of one download.
#[derive(Debug, Clone, Copy)]
pub struct FetchBudgets {
    /// For resolving one name.
    pub resolve: Duration,
    /// For TCP, over all addresses of a name.
    pub connect: Duration,
    /// For TCP to one address, where there are several.
    pub connect_one: Duration,
    /// For the TLS handshake.
    pub tls: Duration,
    /// From the request to the end of the answer's head.
    pub headers: Duration,
    /// Largest head of an answer in bytes, at least 8 KiB.
    pub header_bytes_max: usize,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// After `rate_grace`, the body must have arrived at this pace on average.
    pub bytes_per_second_min: u64,
    /// A body may start slowly for this long.
    pub rate_grace: Duration,
    /// For everything together, redirects and waiting for a permit included.
    pub total: Duration,
    /// Of it, for waiting until an address has a permit; then the attempt is given back.
    pub wait: Duration,
    /// Redirects that are followed.
    pub redirects_max: u32,
    /// Downloads at a time of this process.
    pub permits: usize,
    /// Of these, for one account whose sources answer.
    pub per_account: usize,
    /// Downloads at a time from one address.
    pub destination_permits: usize,
    /// Of these, for one account.
    pub per_destination: usize,
    /// Bytes of sources that arrive or wait for a processor, of all together.
    pub bytes_held: usize,
}

impl Default for FetchBudgets {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(3),
            connect: Duration::from_secs(5),
            connect_one: Duration::from_secs(2),
            tls: Duration::from_secs(5),
            headers: Duration::from_secs(10),
            header_bytes_max: 32 * 1024,
            idle: Duration::from_secs(5),
            bytes_per_second_min: 32 * 1024,
            rate_grace: Duration::from_secs(5),
            total: Duration::from_secs(30),
            wait: Duration::from_secs(10),
            redirects_max: 3,
            permits: 256,
            per_account: 8,
            destination_permits: 128,
            per_destination: 4,
            bytes_held: 256 * 1024 * 1024,
        }
    }
}

/// What is left of the total while a download goes from step to step.
pub(super) struct TimeLeft {
    total: Duration,
    left: Duration,
}

impl TimeLeft {
    pub(super) fn new(total: Duration) -> Self {
        Self { total, left: total }
    }

    /// Runs one step, at most for what is left.
    pub(super) async fn spend<T>(
        &mut self,
        step: impl Future<Output = Result<T, AttemptError>>,
    ) -> Result<T, AttemptError> {
        let started = Instant::now();
        let done = timeout(self.left, step).await;
        self.left = self.left.saturating_sub(started.elapsed());
        done.map_err(|_| {
            AttemptError::transient(format!(
                "The image was not downloaded within {:?}.",
                self.total
            ))
        })?
    }
}
