//! Whether a new task is accepted, from facts gathered under the account's lock. Pure, so that the store's
//! two engines and a simulation decide alike.

use crate::{Credits, Timestamp, limits};

/// What the create transaction knows about the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountFacts {
    /// Tasks processing now.
    pub active_tasks: u32,
    /// Tasks accepted this UTC day.
    pub accepted_today: u32,
    /// Credits that are neither reserved nor spent.
    pub available: Credits,
}

/// What is known about the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueFacts {
    /// Jobs that are being worked on or would be taken before the new one, by their place in the queue.
    pub jobs_ahead: u32,
    /// Jobs that live workers take at a time; 0 when none has reported lately.
    pub live_slots: u32,
    /// Measured seconds a job takes (moving average); the default before any was measured.
    pub seconds_per_job: f64,
    /// Seconds from acceptance to the deadline.
    pub deadline_seconds: i64,
}

/// The answer to a create whose key is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Reserve and queue it.
    Accept,
    /// 20 are active: try when one completes.
    ActiveLimit {
        /// Estimate of the next completion, 1–30.
        retry_after_seconds: i64,
    },
    /// 2,500 accepted today: try after midnight UTC.
    DailyLimit {
        /// Until 00:00 UTC, ≥ 1.
        retry_after_seconds: i64,
    },
    /// Fewer credits than the price.
    InsufficientCredits,
    /// It would not be finished inside its deadline: nothing is reserved.
    Overloaded {
        /// Estimate of when there is room, 1–60.
        retry_after_seconds: i64,
    },
}

/// Seconds assumed per job until one was measured.
pub const SECONDS_PER_JOB_DEFAULT: f64 = 3.0;
/// Part of the deadline a prediction may fill; the rest is for downloads, retries and a crashed attempt.
const DEADLINE_SHARE: f64 = 0.6;

/// Decides in the contract's order: active, day, credits, then capacity.
#[must_use]
pub fn admit(account: AccountFacts, queue: QueueFacts, now: Timestamp) -> Admission {
    if account.active_tasks >= limits::ACTIVE_TASKS_MAX {
        let retry_after_seconds = seconds_within(queue.seconds_per_job, 30);
        return Admission::ActiveLimit {
            retry_after_seconds,
        };
    }
    if account.accepted_today >= limits::DAILY_TASKS_MAX {
        let retry_after_seconds = now.next_utc_day().seconds_since(now).max(1);
        return Admission::DailyLimit {
            retry_after_seconds,
        };
    }
    if account.available < limits::PRICE {
        return Admission::InsufficientCredits;
    }
    let over = predicted_seconds(queue) - queue.deadline_seconds as f64 * DEADLINE_SHARE;
    if over > 0.0 {
        return Admission::Overloaded {
            retry_after_seconds: seconds_within(over, 60),
        };
    }
    Admission::Accept
}

/// Seconds until a job added now would be finished, every slot busy in order. Without a live worker the
/// queue is taken to have one slot: it may be starting, and the deadline refunds what it cannot do.
#[must_use]
pub fn predicted_seconds(queue: QueueFacts) -> f64 {
    let turns = f64::from(queue.jobs_ahead.saturating_add(1)) / f64::from(queue.live_slots.max(1));
    turns.ceil() * queue.seconds_per_job
}

/// Whole seconds a client should wait before its next poll: 3 at first, up to 10.
#[must_use]
pub fn poll_after_seconds(created_at: Timestamp, now: Timestamp) -> i64 {
    let age = now.seconds_since(created_at).max(0);
    (*limits::POLL_SECONDS.start() + age / 5)
        .clamp(*limits::POLL_SECONDS.start(), *limits::POLL_SECONDS.end())
}

/// A job's place in the queue: a burst of one account interleaves with newcomers instead of starving
/// them, two seconds behind for each task the account already has active.
#[must_use]
pub fn priority_at(created_at: Timestamp, active_tasks: u32) -> Timestamp {
    created_at.plus_seconds(2 * i64::from(active_tasks))
}

fn seconds_within(seconds: f64, longest: i64) -> i64 {
    (seconds.ceil() as i64).clamp(1, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(43_200_000_000);

    fn account(active_tasks: u32, accepted_today: u32, thousandths: i64) -> AccountFacts {
        AccountFacts {
            active_tasks,
            accepted_today,
            available: Credits::from_thousandths(thousandths),
        }
    }

    fn queue(jobs_ahead: u32, live_slots: u32) -> QueueFacts {
        QueueFacts {
            jobs_ahead,
            live_slots,
            seconds_per_job: 4.0,
            deadline_seconds: limits::DEADLINE_SECONDS,
        }
    }

    #[test]
    fn the_last_of_each_limit_is_accepted_and_the_next_is_not() {
        assert_eq!(
            admit(account(19, 2_499, 700), queue(19, 2), NOON),
            Admission::Accept
        );
        assert_eq!(
            admit(account(20, 2_500, 0), queue(20, 2), NOON),
            Admission::ActiveLimit {
                retry_after_seconds: 4
            }
        );
        assert_eq!(
            admit(account(0, 2_500, 0), queue(0, 2), NOON),
            Admission::DailyLimit {
                retry_after_seconds: 43_200
            }
        );
        assert_eq!(
            admit(account(0, 0, 699), queue(0, 2), NOON),
            Admission::InsufficientCredits
        );
    }

    #[test]
    fn a_backlog_that_would_pass_the_deadline_is_turned_away_before_anything_is_reserved() {
        // 162 s of 270 may be predicted: 40 turns of 4 s pass, 41 do not.
        assert_eq!(
            admit(account(0, 0, 700), queue(79, 2), NOON),
            Admission::Accept
        );
        assert_eq!(
            admit(account(0, 0, 700), queue(80, 2), NOON),
            Admission::Overloaded {
                retry_after_seconds: 2
            }
        );
        assert_eq!(
            admit(account(0, 0, 700), queue(1_000, 0), NOON),
            Admission::Overloaded {
                retry_after_seconds: 60
            }
        );
    }

    #[test]
    fn polling_starts_at_3_seconds_and_ends_at_10() {
        assert_eq!(poll_after_seconds(NOON, NOON), 3);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(12)), 5);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(200)), 10);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(-200)), 3);
    }
}
