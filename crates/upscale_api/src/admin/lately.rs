//! The last day of the whole service as the overview shows it: two charts by the hour, why tasks failed, the newest tasks.

use time::{format_description::StaticFormatDescription, macros::format_description};
use upscale_core::Timestamp;
use upscale_store::{HourOfWork, Store, StoreError};

use super::rows::TaskRow;
use crate::pages::{
    chart::{Chart, Series},
    shown::{duration, moment},
};

/// Hours that are shown, the present one included.
const HOURS: i64 = 24;
/// Reasons and tasks that are shown.
const LINES_MAX: u32 = 10;
const HOUR: StaticFormatDescription = format_description!("[hour]:00");

/// What the template draws.
pub(crate) struct Lately {
    pub(crate) throughput: Chart,
    pub(crate) latency: Chart,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// Of what ended, in percent; none where nothing did.
    pub(crate) success: Option<String>,
    /// Of the last hour in which a task succeeded: the median and the slowest twentieth.
    pub(crate) took: Option<(String, String)>,
    pub(crate) failures: Vec<(String, u32)>,
    pub(crate) newest: Vec<TaskRow>,
}

impl Lately {
    pub(crate) async fn of(store: &Store) -> Result<Self, StoreError> {
        let now = store.now();
        let last = now.unix_seconds().div_euclid(3_600);
        let first = last - HOURS + 1;
        let since = Timestamp::from_micros(first.saturating_mul(3_600_000_000));
        let operator = store.operator();
        let hours = operator.list_hours(since).await?;
        let failures = operator.list_failures(since, LINES_MAX).await?;
        let newest = operator.list_newest(since, LINES_MAX).await?;
        let sum = |count: fn(&HourOfWork) -> u32| hours.iter().map(count).sum::<u32>();
        let (succeeded, failed) = (sum(|hour| hour.succeeded), sum(|hour| hour.failed));
        let took = hours.iter().rev().find_map(|hour| hour.took);
        Ok(Self {
            throughput: chart(
                "Tasks an hour",
                ["succeeded", "failed"],
                (first, last),
                |hour| {
                    let counts = of_hour(&hours, hour, |found| [found.succeeded, found.failed]);
                    counts.map(u64::from)
                },
            ),
            latency: latency(&hours, (first, last)),
            succeeded,
            failed,
            success: percent(succeeded, failed),
            took: took.map(|(median, slow)| (duration(median), duration(slow))),
            failures,
            newest: newest.iter().map(TaskRow::of).collect(),
        })
    }
}

/// Milliseconds: the median, and on top of it what the slowest twentieth took longer.
fn latency(hours: &[HourOfWork], range: (i64, i64)) -> Chart {
    let label =
        "Milliseconds to a result by the hour: median, and how much longer the slowest 5 % took";
    chart(label, ["median", "slower"], range, |hour| {
        of_hour(hours, hour, |found| {
            let (median, slow) = found.took.unwrap_or((0, 0));
            let millis = |micros: i64| u64::try_from(micros.max(0)).unwrap_or(0).div_ceil(1_000);
            [millis(median), millis(slow).saturating_sub(millis(median))]
        })
    })
}

fn of_hour<T: Default + Copy>(
    hours: &[HourOfWork],
    hour: i64,
    of: impl Fn(&HourOfWork) -> [T; 2],
) -> [T; 2] {
    let found = hours.iter().find(|found| found.hour == hour);
    found.map_or([T::default(); 2], of)
}

fn chart(
    label: &str,
    kinds: [&'static str; 2],
    (first, last): (i64, i64),
    counts: impl Fn(i64) -> [u64; 2],
) -> Chart {
    let name = |hour: i64| {
        let at = moment(hour.saturating_mul(3_600));
        at.format(HOUR).unwrap_or_default()
    };
    Chart::of(Series {
        label: label.to_owned(),
        kinds,
        steps: (first..=last)
            .map(|hour| (name(hour), counts(hour)))
            .collect(),
        unit: "",
    })
}

/// With one decimal, never rounded up to all of it.
fn percent(succeeded: u32, failed: u32) -> Option<String> {
    let all = u64::from(succeeded) + u64::from(failed);
    let permille = u64::from(succeeded) * 1_000 / all.max(1);
    (all > 0).then(|| format!("{}.{} %", permille / 10, permille % 10))
}
