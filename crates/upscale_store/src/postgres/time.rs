//! The store's time here is the database server's: machines' clocks differ, and a lease that one machine
//! writes is read by another. Tests turn a hand instead.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use upscale_core::{Clock, Timestamp};

/// Where the engine's time comes from.
#[derive(Debug, Clone)]
pub(super) enum Time {
    /// The server's clock, read by every writing transaction; in between it runs on with this machine's
    /// monotonic clock.
    Database(Arc<LastRead>),
    /// The hand of a test.
    Hand(Clock),
}

/// What the server's clock said last, as the moment at which this process' count began.
#[derive(Debug)]
pub(super) struct LastRead {
    started: Instant,
    started_at_micros: AtomicI64,
}

impl Time {
    /// The system's clock means the server's, taken from this machine until the first answer.
    pub(super) fn new(clock: Clock) -> Self {
        match clock {
            Clock::System => Self::Database(Arc::new(LastRead {
                started: Instant::now(),
                started_at_micros: AtomicI64::new(clock.now().micros()),
            })),
            Clock::Manual(_) => Self::Hand(clock),
        }
    }

    /// For what needs no transaction; within the time of an answer of the server's clock.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Database(last) => {
                let started_at = last.started_at_micros.load(Ordering::Relaxed);
                Timestamp::from_micros(started_at.saturating_add(last.elapsed_micros()))
            }
            Self::Hand(clock) => clock.now(),
        }
    }

    /// The server has just said this.
    pub(super) fn record(&self, now: Timestamp) {
        if let Self::Database(last) = self {
            let started_at = now.micros().saturating_sub(last.elapsed_micros());
            last.started_at_micros.store(started_at, Ordering::Relaxed);
        }
    }
}

impl LastRead {
    fn elapsed_micros(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_said_last_counts_and_runs_on() {
        let time = Time::new(Clock::System);
        let far = Timestamp::from_micros(4_000_000_000_000_000);
        time.record(far);
        let (first, second) = (time.now(), time.now());
        assert!(first >= far && second >= first);
        assert!(second < far.plus_seconds(3_600), "an hour for two reads");
        time.record(far.plus_seconds(-7_200));
        assert!(
            time.now() < far.plus_seconds(-3_600),
            "a step back is followed"
        );
    }
}
