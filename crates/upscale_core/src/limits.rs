//! Every number of the contract, once. Other rooms refer to these; none repeats one.

use crate::{Credits, Parameters, Scale};

/// Largest source file, inclusive: 20 × 1024² bytes.
pub const SOURCE_BYTES_MAX: u64 = 20 * 1024 * 1024;
/// Largest create body, inclusive.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// One megapixel as the contract counts it.
pub const MEGAPIXEL: u64 = 1_000_000;
/// Create requests an account may send in one fixed minute, whatever their answer.
pub const CREATE_REQUESTS_PER_MINUTE: u32 = 60;
/// Length of the create-request window.
pub const CREATE_WINDOW_SECONDS: i64 = 60;
/// Tasks of one account that may be processing at a time.
pub const ACTIVE_TASKS_MAX: u32 = 20;
/// Tasks of one account accepted in one UTC day.
pub const DAILY_TASKS_MAX: u32 = 2_500;
/// Limits an operator may set for one account in place of the three above; each is 1 to this.
pub const ACCOUNT_LIMIT_MAX: u32 = 1_000_000;
/// Price of one successful upscale ordered now, 2x and 4x alike: 0.7 credit. What a task that is there costs is its
/// own [`crate::Task::price`].
pub const PRICE: Credits = Credits::from_thousandths(700);
/// Shortest `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_CHARS_MIN: usize = 8;
/// Longest `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 128;
/// Longest `image_url`, in bytes.
pub const SOURCE_URL_BYTES_MAX: usize = 2_048;
/// A task is terminal this long after acceptance unless configured otherwise; clients give up at 300 s.
pub const DEADLINE_SECONDS: i64 = 270;
/// A request that asks to be held until its task is over (`Prefer: wait=N`) is held this long at most.
pub const WAIT_SECONDS_MAX: u64 = 30;
/// A claim is lost this long after its last heartbeat.
pub const LEASE_SECONDS: i64 = 60;
/// A worker renews its claims this often; four beats fit into a lease.
pub const HEARTBEAT_SECONDS: i64 = 15;
/// Crashes of a task's own child after which it fails and is refunded. Attempts that ended with their process or their
/// lease are interruptions: they are not held against the image.
pub const CRASHES_MAX: u32 = 2;
/// Interruptions after which an image is processed with no other beside it.
pub const INTERRUPTIONS_BEFORE_ALONE: u32 = 2;
/// From the first transient failure of a task (source 5xx, timeouts) on, it is tried again for this long; a failure after
/// that fails it and refunds. An outage of 30 s passes, and two thirds of the deadline are left to the work.
pub const TRANSIENT_SECONDS_MAX: i64 = 90;
/// Longest delay before another attempt, and so the longest `Retry-After` of a source that is waited for whole.
pub const RETRY_DELAY_SECONDS_MAX: i64 = 60;
/// Result URLs are valid this long; every GET mints a new one.
pub const RESULT_URL_SECONDS: i64 = 3_600;
/// A replaced signing key still checks URLs this long: their hour, and a minute for processes that have not yet
/// noticed the new key and sign with the old one.
pub const SIGNING_KEY_OVERLAP_SECONDS: i64 = RESULT_URL_SECONDS + 60;
/// Result files are kept this long unless configured otherwise.
pub const RESULT_RETENTION_HOURS: i64 = 48;
/// No configuration may keep result files for less than this.
pub const RESULT_RETENTION_HOURS_MIN: i64 = 24;
/// Task records live this long.
pub const RECORD_RETENTION_DAYS: i64 = 90;
/// Idempotency keys live so many times as long as their records, and answer with what is left of their tasks: a clock that is
/// ahead by a record's life must not charge a key twice.
pub const KEYS_OUTLIVE_RECORDS: i64 = 2;
/// A result that is past its retention is removed no earlier than this after that was first seen.
pub const RESULT_DUE_SECONDS: i64 = 3_600;
/// The store's clock is looked at this often while the service runs.
pub const CLOCK_LOOK_SECONDS: i64 = 60;
/// Two looks in a row further apart than this are a step of the clock, or a service that was off.
pub const CLOCK_AHEAD_SECONDS_MAX: i64 = 3_600;
/// A clock that is this far behind its last look stepped back; processes of one service differ by less.
pub const CLOCK_BACK_SECONDS_MAX: i64 = 60;
/// After a step of the clock nothing is deleted until the service has run for this long.
pub const DELETION_PAUSE_SECONDS: i64 = 3_600;
/// A result file that no task names is an orphan of a lost attempt and is removed after this long.
pub const ORPHAN_SECONDS: i64 = 3_600;
/// First and longest polling interval offered to clients, in seconds.
pub const POLL_SECONDS: std::ops::RangeInclusive<i64> = 3..=10;
/// Longest message of a failed task, in bytes.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 500;
/// Longest reference of a payment, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 200;
/// Longest reason of an operator's action, in characters.
pub const REASON_CHARS_MAX: usize = 500;
/// Orders of credits one account may begin within an hour: each makes a session at the payment service.
pub const CHECKOUTS_PER_HOUR: u32 = 20;
/// API keys of one account that work at a time; a rotated key counts until its overlap is over.
pub const LIVE_KEYS_MAX: u32 = 50;
/// A revoked key is listed this long after its revocation; then it is forgotten, and refused as any unknown key is.
pub const REVOKED_KEY_DAYS: i64 = 90;
/// Longest account or key name, in characters.
pub const NAME_CHARS_MAX: usize = 100;

/// Largest source frame whatever is ordered, inclusive, in pixels (width × height).
pub const SOURCE_PIXELS_MAX: u64 = source_pixels_max(Parameters::at(Scale::X2));

/// Largest source frame, inclusive, in pixels (width × height).
#[must_use]
pub const fn source_pixels_max(parameters: Parameters) -> u64 {
    match (parameters.scale, parameters.face_enhance) {
        (Scale::X2, false) => 1_500_000,
        (Scale::X2, true) => 800_000,
        (Scale::X4, false) => 750_000,
        (Scale::X4, true) => 500_000,
    }
}

/// Longest side of a thumbnail in pixels: shown at half of it, for screens with two dots a pixel.
pub const THUMBNAIL_SIDE_MAX: u32 = 160;
/// Largest thumbnail in bytes, inclusive: 160 × 160 samples of noise, and the frame of a PNG.
pub const THUMBNAIL_BYTES_MAX: u32 = 80_000;
