//! What follows a failed attempt: another one, or the end. The worker reports what happened; this decides.

use crate::limits::{CRASHES_MAX, RETRY_DELAY_SECONDS_MAX, TRANSIENT_SECONDS_MAX};

/// Why an attempt did not produce a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailure {
    /// Trying again cannot help: the source says no, is no image, is over a cap, is forbidden.
    Permanent,
    /// It may pass: timeouts, source 5xx or 429, or this machine, such as a child that was killed for memory.
    Transient,
    /// The child crashed on this image. An attempt that ended with its process or its lease is none: see
    /// [`after_interruption_millis`].
    Crash,
    /// Others were first, and nothing went wrong: the attempt counts as nothing.
    Busy,
}

/// The failures of a task so far, the one just now among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// Attempts that failed for a reason that may pass.
    pub transient: u32,
    /// Crashes of the task's own child.
    pub crashes: u32,
    /// Since the first transient one; 0 when it is this one.
    pub failing_for_seconds: i64,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Give the job back, to be taken after this many milliseconds.
    RetryAfterMillis(u64),
    /// The task fails for good and is refunded.
    Fail,
}

/// Base and cap of the back-off in milliseconds; equal jitter over `base × 2ⁿ` (AWS architecture blog,
/// "Exponential Backoff And Jitter"). Full jitter went down to nothing: four tries were over within 4 s.
const BACKOFF_BASE_MILLIS: u64 = 1_000;
const BACKOFF_CAP_MILLIS: u64 = 20_000;
/// Before an attempt that gave way to others is made again, the same jitter aside.
const BUSY_MILLIS: u64 = 2_000;
const LONGEST_MILLIS: u64 = RETRY_DELAY_SECONDS_MAX as u64 * 1_000;

/// `retry_after_millis` is what the source asked for, at most a minute of which is waited. `random` is uniform in
/// [0, 1).
#[must_use]
pub fn after_failure(
    failure: AttemptFailure,
    failures: Failures,
    retry_after_millis: u64,
    random: f64,
) -> NextStep {
    let ended = match failure {
        AttemptFailure::Permanent => true,
        AttemptFailure::Transient => failures.failing_for_seconds >= TRANSIENT_SECONDS_MAX,
        AttemptFailure::Crash => failures.crashes >= CRASHES_MAX,
        AttemptFailure::Busy => false,
    };
    if ended {
        return NextStep::Fail;
    }
    let ceiling = match failure {
        AttemptFailure::Busy => BUSY_MILLIS,
        _ => backoff_millis(failures),
    };
    let half = ceiling / 2;
    let delay = half + (half as f64 * random.clamp(0.0, 1.0)) as u64;
    NextStep::RetryAfterMillis(delay.max(retry_after_millis.min(LONGEST_MILLIS)))
}

/// Milliseconds until a task is due again whose process died, `interruptions` times so far: at once after the first.
/// The cause is not known, so it never fails the task. Should the image be the cause, the growing delay leaves the
/// machine to others, and the deadline ends it.
#[must_use]
pub fn after_interruption_millis(interruptions: u32) -> u64 {
    match interruptions.saturating_sub(2) {
        _ if interruptions < 2 => 0,
        doublings => (BACKOFF_BASE_MILLIS << doublings.min(16)).min(BACKOFF_CAP_MILLIS),
    }
}

fn backoff_millis(failures: Failures) -> u64 {
    let exponent = failures
        .transient
        .saturating_add(failures.crashes)
        .saturating_sub(1)
        .min(16);
    (BACKOFF_BASE_MILLIS << exponent).min(BACKOFF_CAP_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DEADLINE_SECONDS;

    fn after(failure: AttemptFailure, [transient, crashes]: [u32; 2], random: f64) -> NextStep {
        let failures = Failures {
            transient,
            crashes,
            failing_for_seconds: 0,
        };
        after_failure(failure, failures, 0, random)
    }

    #[test]
    fn permanent_failures_end_at_once_and_transient_ones_when_their_time_is_up() {
        assert_eq!(
            after(AttemptFailure::Permanent, [0, 0], 0.5),
            NextStep::Fail
        );
        let at = |failing_for_seconds| {
            let failures = Failures {
                transient: 9,
                failing_for_seconds,
                ..Failures::default()
            };
            after_failure(AttemptFailure::Transient, failures, 0, 0.0)
        };
        assert_eq!(at(89), NextStep::RetryAfterMillis(10_000));
        assert_eq!(at(90), NextStep::Fail);
        // A clock that stepped back says nothing against the source.
        assert_eq!(at(-5), NextStep::RetryAfterMillis(10_000));
    }

    #[test]
    fn a_source_that_is_gone_for_thirty_seconds_is_asked_again_after_them() {
        for random in [0.0, 0.5, 1.0] {
            let mut failures = Failures::default();
            let mut millis = 0;
            while millis <= 30_000 {
                failures.transient += 1;
                failures.failing_for_seconds = millis as i64 / 1_000;
                match after_failure(AttemptFailure::Transient, failures, 0, random) {
                    NextStep::RetryAfterMillis(delay) => millis += delay,
                    NextStep::Fail => panic!("after {millis} ms"),
                }
            }
            assert!(millis < 60_000, "the next try came after {millis} ms");
        }
    }

    #[test]
    fn an_interrupted_task_is_due_at_once_the_first_time_and_at_most_18_times_within_its_deadline()
    {
        let delays = [1, 2, 3, 4, 5, 6, 7, u32::MAX].map(after_interruption_millis);
        let expected = [0, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000];
        assert_eq!(delays, expected);
        let waited = (1..=18).map(after_interruption_millis).sum::<u64>();
        assert!(waited as i64 > DEADLINE_SECONDS * 1_000, "{waited} ms");
    }

    #[test]
    fn two_crashes_of_its_own_child_fail_a_task() {
        assert_eq!(
            after(AttemptFailure::Crash, [0, 1], 1.0),
            NextStep::RetryAfterMillis(1_000)
        );
        assert_eq!(after(AttemptFailure::Crash, [0, 2], 1.0), NextStep::Fail);
    }

    #[test]
    fn who_gave_way_is_never_failed_for_it() {
        assert_eq!(
            after(AttemptFailure::Busy, [50, 2], 1.0),
            NextStep::RetryAfterMillis(2_000)
        );
    }

    #[test]
    fn the_back_off_doubles_is_jittered_by_half_and_capped() {
        let transient = |n, random| after(AttemptFailure::Transient, [n, 0], random);
        assert_eq!(transient(3, 1.0), NextStep::RetryAfterMillis(4_000));
        assert_eq!(transient(3, 0.5), NextStep::RetryAfterMillis(3_000));
        assert_eq!(transient(3, 0.0), NextStep::RetryAfterMillis(2_000));
        assert_eq!(transient(40, 1.0), NextStep::RetryAfterMillis(20_000));
        assert_eq!(
            after(AttemptFailure::Transient, [3, 1], 1.0),
            NextStep::RetryAfterMillis(8_000)
        );
    }

    #[test]
    fn a_source_says_when_it_may_be_asked_again_up_to_a_minute() {
        let asked = |millis| {
            let failures = Failures {
                transient: 1,
                ..Failures::default()
            };
            after_failure(AttemptFailure::Transient, failures, millis, 1.0)
        };
        assert_eq!(asked(500), NextStep::RetryAfterMillis(1_000));
        assert_eq!(asked(7_000), NextStep::RetryAfterMillis(7_000));
        assert_eq!(asked(3_600_000), NextStep::RetryAfterMillis(60_000));
    }
}
