//! From when on things are old: the moments that both engines' sweeps compare with.

use upscale_core::{Timestamp, limits::CREATE_WINDOW_SECONDS};

use crate::StoreOptions;

const SECONDS_PER_HOUR: i64 = 3_600;
const SECONDS_PER_DAY: i64 = 86_400;
/// Account days forgotten in one transaction: each holds at most a day's tasks of one account.
pub(crate) const DAYS_A_PAGE: u32 = 4;

/// Files of tasks that finished until then go: no file outlives its record.
pub(crate) fn results_kept_after(now: Timestamp, options: StoreOptions) -> Timestamp {
    let hours = options
        .result_retention_hours
        .min(options.record_retention_days * 24);
    now.plus_seconds(-hours * SECONDS_PER_HOUR)
}

/// Records of days before this UTC day go.
pub(crate) fn records_kept_from_day(now: Timestamp, options: StoreOptions) -> i64 {
    now.plus_seconds(-options.record_retention_days * SECONDS_PER_DAY)
        .utc_day()
}

/// Workers silent since then, and create windows before that number, count for nothing any more.
pub(crate) fn yesterday(now: Timestamp) -> (Timestamp, i64) {
    let yesterday = now.plus_seconds(-SECONDS_PER_DAY);
    let window = yesterday.unix_seconds().div_euclid(CREATE_WINDOW_SECONDS);
    (yesterday, window)
}
