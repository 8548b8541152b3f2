//! Guards against floods that the contract's own limits do not see: failing authentication by address,
//! reads by account. They live in this process: a guard need not be exact, only bounded.

use std::{
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};
use upscale_core::AccountId;

use crate::{api_limits::ApiLimits, error::ApiError};

/// Entries kept before those at rest are dropped; an entry is some 100 bytes.
const ENTRIES_TIDY: usize = 20_000;
/// Beyond this no one new is counted: a guard that fails open is better than memory without a bound.
const ENTRIES_MAX: usize = 100_000;
/// Dropping looks at every entry, so it is done at most this often.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Token buckets by address and by account.
pub(crate) struct Throttle {
    failing_auth: Buckets<IpAddr>,
    reads: Buckets<AccountId>,
    pages: Buckets<AccountId>,
}

/// Pages of the console a second for one account; ten times as many at once. People click, and a page that watches
/// a task asks every four seconds.
const PAGES_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// Token buckets of one kind, bounded in number.
struct Buckets<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    tidied_at: Mutex<Instant>,
}

impl Throttle {
    pub(crate) fn new(limits: &ApiLimits) -> Self {
        let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let reads = at_least_one(limits.reads_per_second);
        let burst = reads.saturating_mul(NonZeroU32::MIN.saturating_add(9));
        Self {
            failing_auth: Buckets::new(Quota::per_minute(at_least_one(
                limits.failing_auth_per_minute,
            ))),
            reads: Buckets::new(Quota::per_second(reads).allow_burst(burst)),
            pages: Buckets::new(
                Quota::per_second(PAGES_PER_SECOND)
                    .allow_burst(PAGES_PER_SECOND.saturating_mul(PAGES_PER_SECOND)),
            ),
        }
    }

    /// Counts one failing authentication; the error when there were too many.
    pub(crate) fn count_failing_auth(&self, address: IpAddr) -> Result<(), ApiError> {
        self.failing_auth.take(&address)
    }

    /// Counts one read; the error when there were too many.
    pub(crate) fn count_read(&self, account: &AccountId) -> Result<(), ApiError> {
        self.reads.take(account)
    }
}

impl Throttle {
    /// Counts one page of the console; the seconds to wait when there were too many.
    pub(crate) fn count_page(&self, account: &AccountId) -> Result<(), i64> {
        let counted = self.pages.take(account);
        counted.map_err(|error| error.retry_after_seconds().unwrap_or(1))
    }
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(quota: Quota) -> Self {
        Self {
            limiter: RateLimiter::keyed(quota),
            tidied_at: Mutex::new(Instant::now()),
        }
    }

    fn take(&self, key: &K) -> Result<(), ApiError> {
        if self.limiter.len() > ENTRIES_TIDY {
            self.tidy();
            if self.limiter.len() > ENTRIES_MAX {
                return Ok(());
            }
        }
        self.limiter.check_key(key).map_err(|not_until| {
            let wait = not_until.wait_time_from(DefaultClock::default().now());
            let retry_after_seconds = whole_seconds(wait);
            ApiError::TooFast {
                retry_after_seconds,
            }
        })
    }

    fn tidy(&self) {
        let mut tidied_at = self
            .tidied_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if tidied_at.elapsed() >= TIDY_EVERY {
            self.limiter.retain_recent();
            *tidied_at = Instant::now();
        }
    }
}

/// Rounded up, at least 1.
fn whole_seconds(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis().div_ceil(1_000).max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_whole_seconds_and_never_none() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_001, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }

    #[test]
    fn three_hundred_thousand_addresses_take_no_more_room_than_the_bound() {
        let throttle = Throttle::new(&ApiLimits::default());
        for number in 0..300_000u32 {
            let address = IpAddr::V4(number.into());
            assert!(throttle.count_failing_auth(address).is_ok());
        }
        assert!(throttle.failing_auth.limiter.len() <= ENTRIES_MAX + 1);
    }
}
