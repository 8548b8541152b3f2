//! Whether a new task is accepted, from facts gathered under the account's lock. Pure, so that the store's
//! two engines and a simulation decide alike.

use crate::{Credits, Timestamp, limits};

/// What one account may do; the contract's, unless an operator set others for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountLimits {
    /// Create requests in one fixed minute, whatever their answer.
    pub create_requests_per_minute: u32,
    /// Tasks processing at a time.
    pub active_tasks: u32,
    /// Tasks accepted in one UTC day.
    pub daily_tasks: u32,
}

/// What an operator set for one account; none of a number is the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimits {
    /// In place of 60 create requests a minute.
    pub create_requests_per_minute: Option<u32>,
    /// In place of 20 active tasks.
    pub active_tasks: Option<u32>,
    /// In place of 2,500 tasks a UTC day.
    pub daily_tasks: Option<u32>,
}

impl OwnLimits {
    /// What the account may do.
    #[must_use]
    pub fn effective(self) -> AccountLimits {
        let contract = AccountLimits::default();
        AccountLimits {
            create_requests_per_minute: self
                .create_requests_per_minute
                .unwrap_or(contract.create_requests_per_minute),
            active_tasks: self.active_tasks.unwrap_or(contract.active_tasks),
            daily_tasks: self.daily_tasks.unwrap_or(contract.daily_tasks),
        }
    }
}

impl Default for AccountLimits {
    fn default() -> Self {
        Self {
            create_requests_per_minute: limits::CREATE_REQUESTS_PER_MINUTE,
            active_tasks: limits::ACTIVE_TASKS_MAX,
            daily_tasks: limits::DAILY_TASKS_MAX,
        }
    }
}

/// What the create transaction knows about the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountFacts {
    /// Tasks of the account that have not ended.
    pub active_tasks: u32,
    /// Tasks accepted this UTC day.
    pub accepted_today: u32,
    /// Credits that are neither reserved nor spent.
    pub available: Credits,
    /// What it may do.
    pub limits: AccountLimits,
}

/// What is known about the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueFacts {
    /// Jobs that wait or are being worked on, anyone who's they are and wherever they stand.
    pub open_jobs: u32,
    /// Jobs that live workers take at a time; 0 when none has reported lately.
    pub live_slots: u32,
    /// Measured seconds a job takes a slot (moving average, see [`next_pace`]); the default before any was
    /// measured. How many megapixels a source has is not known when its task is created, so the mean job stands
    /// for seconds a megapixel times the mean of megapixels.
    pub seconds_per_job: f64,
    /// Seconds from acceptance to the deadline.
    pub deadline_seconds: i64,
}

/// The answer to a create whose key is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Reserve and queue it.
    Accept,
    /// As many are active as may be: try when one completes.
    ActiveLimit {
        /// Estimate of the next completion, 1–30.
        retry_after_seconds: i64,
    },
    /// As many were accepted today as may be: try after midnight UTC.
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
/// Part of the deadline a prediction may fill. The rest (108 s of 270) is for those who are let past a job
/// afterwards (38 s at most), or for a crashed attempt (its lease of 60 s) and the job itself; the simulation
/// (docs/simulation.md) shows that it is enough.
const DEADLINE_SHARE: f64 = 0.6;
/// How far behind a job stands for each task its account already has active, in its place and in its admission.
const SECONDS_BEHIND_PER_ACTIVE_TASK: i64 = 2;
/// Active tasks that put a job further behind. An account whose own limit is above the contract's stands no further
/// back than others: the time that is kept for those let past a job was simulated with this many.
const ACTIVE_TASKS_COUNTED_MAX: u32 = limits::ACTIVE_TASKS_MAX - 1;
/// Weight of one more job in the moving average: half of it is older than eleven jobs.
const PACE_WEIGHT: f64 = 1.0 / 16.0;

/// Decides about a task of this price in the contract's order: active, day, credits, then capacity.
#[must_use]
pub fn admit(
    account: AccountFacts,
    queue: QueueFacts,
    price: Credits,
    now: Timestamp,
) -> Admission {
    if account.active_tasks >= account.limits.active_tasks {
        let retry_after_seconds = seconds_within(queue.seconds_per_job, 30);
        return Admission::ActiveLimit {
            retry_after_seconds,
        };
    }
    if account.accepted_today >= account.limits.daily_tasks {
        let retry_after_seconds = now.next_utc_day().seconds_since(now).max(1);
        return Admission::DailyLimit {
            retry_after_seconds,
        };
    }
    if account.available < price {
        return Admission::InsufficientCredits;
    }
    let over = seconds_until_done(account, queue) - admission_limit_seconds(queue.deadline_seconds);
    if over > 0.0 {
        return Admission::Overloaded {
            retry_after_seconds: seconds_within(over, 60),
        };
    }
    Admission::Accept
}

/// When a task accepted now is over at the latest. All open jobs count, those it would be taken before as
/// well: they were promised the same deadline, and anyone who is let past them must leave them the time. A place
/// further back counts as time, so that when room gets scarce it goes to those who hold least of it.
fn seconds_until_done(account: AccountFacts, queue: QueueFacts) -> f64 {
    predicted_seconds(queue) + seconds_behind(account.active_tasks) as f64
}

fn seconds_behind(active_tasks: u32) -> i64 {
    SECONDS_BEHIND_PER_ACTIVE_TASK * i64::from(active_tasks.min(ACTIVE_TASKS_COUNTED_MAX))
}

/// Seconds until all open jobs and one more would be finished, every slot busy. Without a live worker the
/// queue is taken to have one slot: it may be starting, and the deadline refunds what it cannot do.
#[must_use]
pub fn predicted_seconds(queue: QueueFacts) -> f64 {
    let rounds = f64::from(queue.open_jobs.saturating_add(1)) / f64::from(queue.live_slots.max(1));
    rounds.ceil() * queue.seconds_per_job
}

/// Longest prediction that is still accepted.
#[must_use]
pub fn admission_limit_seconds(deadline_seconds: i64) -> f64 {
    deadline_seconds as f64 * DEADLINE_SHARE
}

/// Takes a job that held its slot for `seconds` into the moving average; what is no number changes nothing, and
/// no job takes longer than the deadline lets it.
#[must_use]
pub fn next_pace(seconds_per_job: f64, seconds: f64, deadline_seconds: i64) -> f64 {
    if !seconds.is_finite() {
        return seconds_per_job;
    }
    seconds_per_job + (seconds.clamp(0.0, deadline_seconds as f64) - seconds_per_job) * PACE_WEIGHT
}

/// Whole seconds a client should wait before its next poll: 3 at first, up to 10.
#[must_use]
pub fn poll_after_seconds(created_at: Timestamp, now: Timestamp) -> i64 {
    let age = now.seconds_since(created_at).max(0);
    (*limits::POLL_SECONDS.start() + age / 5)
        .clamp(*limits::POLL_SECONDS.start(), *limits::POLL_SECONDS.end())
}

/// A job's place in the queue: a burst of one account interleaves with newcomers instead of starving
/// them, two seconds behind for each task the account already has active. After at most 38 s no one new is
/// let past it.
#[must_use]
pub fn priority_at(created_at: Timestamp, active_tasks: u32) -> Timestamp {
    created_at.plus_seconds(seconds_behind(active_tasks))
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
            limits: AccountLimits::default(),
        }
    }

    fn queue(open_jobs: u32, live_slots: u32) -> QueueFacts {
        QueueFacts {
            open_jobs,
            live_slots,
            seconds_per_job: 4.0,
            deadline_seconds: limits::DEADLINE_SECONDS,
        }
    }

    #[test]
    fn the_last_of_each_limit_is_accepted_and_the_next_is_not() {
        assert_eq!(
            admit(account(19, 2_499, 700), queue(19, 2), limits::PRICE, NOON),
            Admission::Accept
        );
        assert_eq!(
            admit(account(20, 2_500, 0), queue(20, 2), limits::PRICE, NOON),
            Admission::ActiveLimit {
                retry_after_seconds: 4
            }
        );
        assert_eq!(
            admit(account(0, 2_500, 0), queue(0, 2), limits::PRICE, NOON),
            Admission::DailyLimit {
                retry_after_seconds: 43_200
            }
        );
        assert_eq!(
            admit(account(0, 0, 699), queue(0, 2), limits::PRICE, NOON),
            Admission::InsufficientCredits
        );
    }

    #[test]
    fn limits_of_an_accounts_own_take_the_place_of_the_contracts() {
        let with = |active_tasks, daily_tasks| AccountLimits {
            active_tasks,
            daily_tasks,
            ..AccountLimits::default()
        };
        let admit = |active, today, limits| {
            let facts = AccountFacts {
                limits,
                ..account(active, today, 700)
            };
            admit(facts, queue(0, 2), limits::PRICE, NOON)
        };
        assert_eq!(admit(40, 2_999, with(41, 3_000)), Admission::Accept);
        assert!(matches!(
            admit(41, 0, with(41, 3_000)),
            Admission::ActiveLimit { .. }
        ));
        assert!(matches!(
            admit(0, 3, with(41, 3)),
            Admission::DailyLimit { .. }
        ));
        assert!(matches!(
            admit(1, 0, with(1, 3)),
            Admission::ActiveLimit { .. }
        ));
        // No one stands further back than 38 s, whatever his limit.
        assert_eq!(priority_at(NOON, 500), NOON.plus_seconds(38));
    }

    #[test]
    fn a_backlog_that_would_pass_the_deadline_is_turned_away_before_anything_is_reserved() {
        // 162 s of 270 may be predicted: 40 rounds of 4 s pass, 41 do not.
        assert_eq!(
            admit(account(0, 0, 700), queue(79, 2), limits::PRICE, NOON),
            Admission::Accept
        );
        assert_eq!(
            admit(account(0, 0, 700), queue(80, 2), limits::PRICE, NOON),
            Admission::Overloaded {
                retry_after_seconds: 2
            }
        );
        assert_eq!(
            admit(account(0, 0, 700), queue(1_000, 0), limits::PRICE, NOON),
            Admission::Overloaded {
                retry_after_seconds: 60
            }
        );
    }

    #[test]
    fn scarce_room_goes_to_those_who_hold_least_of_it() {
        // 30 rounds of 4 s leave 42 s: more than 19 active tasks are behind by; 35 rounds leave 22 s.
        let accepts = |active, open| {
            admit(account(active, 0, 700), queue(open, 2), limits::PRICE, NOON) == Admission::Accept
        };
        assert!(accepts(19, 59));
        assert!(accepts(11, 69));
        assert!(!accepts(12, 69));
        assert!(accepts(0, 69));
    }

    #[test]
    fn the_pace_moves_by_a_sixteenth_and_only_by_numbers() {
        assert_eq!(next_pace(4.0, 20.0, 270), 5.0);
        assert_eq!(next_pace(4.0, -1.0, 270), 3.75);
        assert_eq!(next_pace(14.0, 1e9, 270), 30.0);
        assert_eq!(next_pace(4.0, f64::NAN, 270), 4.0);
    }

    #[test]
    fn polling_starts_at_3_seconds_and_ends_at_10() {
        assert_eq!(poll_after_seconds(NOON, NOON), 3);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(12)), 5);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(200)), 10);
        assert_eq!(poll_after_seconds(NOON, NOON.plus_seconds(-200)), 3);
    }
}
