//! From when on things are old: the moments that both engines' sweeps compare with.

use upscale_core::{
    Timestamp,
    limits::{CREATE_WINDOW_SECONDS, KEYS_OUTLIVE_RECORDS, REVOKED_KEY_DAYS},
};

use crate::StoreOptions;

const SECONDS_PER_HOUR: i64 = 3_600;
const SECONDS_PER_DAY: i64 = 86_400;
/// Account days forgotten in one transaction: each holds at most a day's tasks of one account.
pub(crate) const DAYS_A_PAGE: u32 = 4;
/// Idempotency keys forgotten in one transaction.
pub(crate) const KEYS_A_PAGE: u32 = 1_000;

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

/// Idempotency keys of days before this UTC day go.
pub(crate) fn keys_kept_from_day(now: Timestamp, options: StoreOptions) -> i64 {
    let days = options.record_retention_days * KEYS_OUTLIVE_RECORDS;
    now.plus_seconds(-days * SECONDS_PER_DAY).utc_day()
}

/// Keys that were revoked until then go.
pub(crate) fn revoked_keys_kept_after(now: Timestamp) -> Timestamp {
    now.plus_seconds(-REVOKED_KEY_DAYS * SECONDS_PER_DAY)
}

/// Workers silent since then, and create windows before that number, count for nothing any more.
pub(crate) fn yesterday(now: Timestamp) -> (Timestamp, i64) {
    let yesterday = now.plus_seconds(-SECONDS_PER_DAY);
    let window = yesterday.unix_seconds().div_euclid(CREATE_WINDOW_SECONDS);
    (yesterday, window)
}
