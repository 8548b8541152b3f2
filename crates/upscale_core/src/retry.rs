//! What follows a failed attempt: another one, or the end. The worker reports what happened; this decides.

use crate::limits;

/// Why an attempt did not produce a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailure {
    /// Trying again cannot help: the source says no, is no image, is over a cap, is forbidden.
    Permanent,
    /// It may pass: timeouts, source 5xx or 429, storage errors.
    Transient,
    /// The attempt vanished: the child crashed or was killed, or a lease ran out.
    Crash,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Give the job back, to be taken after this many milliseconds.
    RetryAfterMillis(u64),
    /// Fail and refund.
    Fail,
}

/// Base and cap of the back-off in milliseconds; full jitter over `base × 2ⁿ` (AWS architecture blog,
/// "Exponential Backoff And Jitter").
const BACKOFF_BASE_MILLIS: u64 = 1_000;
const BACKOFF_CAP_MILLIS: u64 = 20_000;

/// `transient_failures` and `crashes` count this failure too. `random` is uniform in [0, 1).
#[must_use]
pub fn after_failure(
    failure: AttemptFailure,
    transient_failures: u32,
    crashes: u32,
    random: f64,
) -> NextStep {
    let ended = match failure {
        AttemptFailure::Permanent => true,
        AttemptFailure::Transient => transient_failures >= limits::TRANSIENT_FAILURES_MAX,
        AttemptFailure::Crash => crashes >= limits::CRASHES_MAX,
    };
    if ended {
        return NextStep::Fail;
    }
    let exponent = transient_failures
        .saturating_add(crashes)
        .saturating_sub(1)
        .min(16);
    let ceiling = (BACKOFF_BASE_MILLIS << exponent).min(BACKOFF_CAP_MILLIS);
    NextStep::RetryAfterMillis((ceiling as f64 * random.clamp(0.0, 1.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_failures_end_at_once_and_transient_ones_at_the_fourth() {
        assert_eq!(
            after_failure(AttemptFailure::Permanent, 0, 0, 0.5),
            NextStep::Fail
        );
        for n in 1..4 {
            assert!(matches!(
                after_failure(AttemptFailure::Transient, n, 0, 0.5),
                NextStep::RetryAfterMillis(_)
            ));
        }
        assert_eq!(
            after_failure(AttemptFailure::Transient, 4, 0, 0.5),
            NextStep::Fail
        );
    }

    #[test]
    fn two_crashes_are_poison() {
        assert_eq!(
            after_failure(AttemptFailure::Crash, 0, 1, 1.0),
            NextStep::RetryAfterMillis(1_000)
        );
        assert_eq!(
            after_failure(AttemptFailure::Crash, 0, 2, 1.0),
            NextStep::Fail
        );
    }

    #[test]
    fn the_back_off_doubles_is_jittered_and_capped() {
        assert_eq!(
            after_failure(AttemptFailure::Transient, 3, 0, 1.0),
            NextStep::RetryAfterMillis(4_000)
        );
        assert_eq!(
            after_failure(AttemptFailure::Transient, 3, 0, 0.25),
            NextStep::RetryAfterMillis(1_000)
        );
        assert_eq!(
            after_failure(AttemptFailure::Transient, 3, 1, 1.0),
            NextStep::RetryAfterMillis(8_000)
        );
    }
}
