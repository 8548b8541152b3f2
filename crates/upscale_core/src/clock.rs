//! Time as a value. Nothing in the workspace reads the system's clock but [`Clock::now`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Microseconds since 1970-01-01T00:00:00 UTC, as the store keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// This many seconds later (or earlier, when negative); saturates.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(
            self.0
                .saturating_add(seconds.saturating_mul(MICROS_PER_SECOND)),
        )
    }

    /// Whole seconds from `earlier` to here, rounded up; negative when `earlier` is later.
    #[must_use]
    pub const fn seconds_since(self, earlier: Self) -> i64 {
        let micros = self.0.saturating_sub(earlier.0);
        micros.div_euclid(MICROS_PER_SECOND) + (micros.rem_euclid(MICROS_PER_SECOND) != 0) as i64
    }

    /// Number of the UTC day since the epoch.
    #[must_use]
    pub const fn utc_day(self) -> i64 {
        self.unix_seconds().div_euclid(SECONDS_PER_DAY)
    }

    /// First moment of the next UTC day.
    #[must_use]
    pub const fn next_utc_day(self) -> Self {
        Self((self.utc_day() + 1) * SECONDS_PER_DAY * MICROS_PER_SECOND)
    }
}

/// Where the time comes from: the system, or a hand that tests turn.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The system's clock, in microseconds since 1970-01-01 UTC.
    System,
    /// Microseconds since the Unix epoch, moved by anyone who holds the other end.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at `start` until [`Clock::advance_seconds`] moves it.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.micros())))
    }

    /// The present moment.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since_epoch = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Manual(micros) => Timestamp(micros.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock (backwards, when negative: clocks step); the system's clock does not care.
    pub fn advance_seconds(&self, seconds: i64) {
        if let Self::Manual(micros) = self {
            micros.fetch_add(seconds.saturating_mul(MICROS_PER_SECOND), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_up_so_that_a_retry_is_never_too_early() {
        let start = Timestamp::from_micros(0);
        assert_eq!(Timestamp::from_micros(1).seconds_since(start), 1);
        assert_eq!(Timestamp::from_micros(1_000_000).seconds_since(start), 1);
        assert_eq!(start.seconds_since(Timestamp::from_micros(1_500_000)), -1);
    }

    #[test]
    fn the_day_turns_at_midnight_utc() {
        let last = Timestamp::from_micros(86_399_999_999);
        assert_eq!(last.utc_day(), 0);
        assert_eq!(last.next_utc_day().unix_seconds(), 86_400);
        assert_eq!(last.next_utc_day().utc_day(), 1);
    }
}
