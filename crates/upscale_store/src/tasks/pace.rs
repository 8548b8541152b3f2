//! The measured pace as it lies in its row, in microseconds, and counts of rows as the answers have them.

use upscale_core::SECONDS_PER_JOB_DEFAULT;

const MICROS_PER_SECOND: f64 = 1_000_000.0;

/// Seconds a job takes, from the row if there is one; the average starts at the default.
pub(crate) fn seconds_per_job(measured_micros: Option<i64>) -> f64 {
    measured_micros.map_or(SECONDS_PER_JOB_DEFAULT, |micros| {
        micros as f64 / MICROS_PER_SECOND
    })
}

/// What the row holds for this many seconds.
pub(crate) fn micros_per_job(seconds: f64) -> i64 {
    (seconds * MICROS_PER_SECOND) as i64
}

/// A count of rows as the answers have it.
pub(crate) fn whole(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
