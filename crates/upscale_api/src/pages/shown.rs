//! Values of the domain as people read them: times in UTC, how long, how large.

use std::fmt;

use time::{
    OffsetDateTime,
    format_description::{StaticFormatDescription, well_known::Rfc3339},
    macros::format_description,
};
use upscale_core::{Credits, RefundStatus, Task, TaskState, Timestamp};

/// A moment: `26 Nov 2026, 14:05` for people and RFC 3339 for machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) text: String,
    pub(crate) machine: String,
}

const TEXT: StaticFormatDescription =
    format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute]:[second]");
const DATE: StaticFormatDescription =
    format_description!("[day padding:none] [month repr:short] [year]");
const DAY: StaticFormatDescription = format_description!("[day padding:none] [month repr:short]");

impl Moment {
    pub(crate) fn of(at: Timestamp) -> Self {
        let moment = moment(at.unix_seconds());
        Self {
            text: moment.format(TEXT).unwrap_or_default(),
            machine: moment.format(&Rfc3339).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Times beyond the year 9999 are shown as the epoch: nothing of ours is so late.
pub(crate) fn moment(unix_seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix_seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// `26 Nov` of a UTC day's number.
pub(crate) fn day(number: i64) -> String {
    moment(number.saturating_mul(86_400))
        .format(DAY)
        .unwrap_or_default()
}

/// `12,345.6`: a number of ours with commas between its thousands.
pub(crate) fn grouped(number: impl fmt::Display) -> String {
    let text = number.to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// How long before `now` that was: `5 minutes ago`; a date, where it is more than four weeks.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.seconds_since(at).max(0);
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        86_400..2_419_200 => (seconds / 86_400, "day"),
        _ => return moment(at.unix_seconds()).format(DATE).unwrap_or_default(),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// `840 ms`, `3.2 s`, `4 min 10 s`.
pub(crate) fn duration(micros: i64) -> String {
    let millis = micros.max(0) / 1_000;
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// `812 B`, `1.4 MB`: decimal, as file managers count.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{}.{} kB", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{} MB", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Also the name of its colour.
pub(crate) fn state_word(state: &TaskState) -> &'static str {
    match state {
        TaskState::Processing => "processing",
        TaskState::Succeeded(_) => "succeeded",
        TaskState::Failed { .. } => "failed",
    }
}

/// Why a task failed, if it did.
pub(crate) fn failure(state: &TaskState) -> Option<String> {
    match state {
        TaskState::Failed { message, .. } => Some(message.as_str().to_owned()),
        _ => None,
    }
}

/// What became of a task's credits.
pub(crate) fn money(task: &Task) -> String {
    let price = task.price;
    match &task.state {
        TaskState::Processing => format!("{price} reserved"),
        TaskState::Succeeded(_) => format!("{price} charged"),
        TaskState::Failed {
            refund: RefundStatus::Pending,
            ..
        } => "refund under way".to_owned(),
        TaskState::Failed {
            refund: RefundStatus::Refunded,
            ..
        } => format!("{} charged, {price} returned", Credits::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_people_write_them() {
        let at = Moment::of(Timestamp::from_micros(1_767_268_800_000_000));
        assert_eq!(at.text, "1 Jan 2026, 12:00:00");
        assert_eq!(at.machine, "2026-01-01T12:00:00Z");
        assert_eq!(day(20_454), "1 Jan");
        assert_eq!(
            ["0", "999", "1000", "-1234567.8", "123456"].map(grouped),
            ["0", "999", "1,000", "-1,234,567.8", "123,456"]
        );
        assert_eq!(
            [999_999, 1_000_000, 59_999_999, 250_000_000].map(duration),
            ["999 ms", "1.0 s", "59.9 s", "4 min 10 s"]
        );
        let now = Timestamp::from_micros(1_767_268_800_000_000);
        let then = |seconds: i64| ago(now.plus_seconds(-seconds), now);
        assert_eq!(
            [-5, 59, 60, 7_199, 86_400, 172_800, 2_419_200].map(then),
            [
                "just now",
                "just now",
                "1 minute ago",
                "1 hour ago",
                "1 day ago",
                "2 days ago",
                "4 Dec 2025"
            ]
        );
        assert_eq!(
            [812, 1_450, 20_971_520].map(bytes),
            ["812 B", "1.4 kB", "20.9 MB"]
        );
    }
}
