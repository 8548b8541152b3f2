//! The first page: what to do first, what there is, how it went, what runs now.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::Credits;
use upscale_store::{DayOfUse, TaskFilter};

use super::{
    error::ConsoleError,
    page::{Layout, show},
    session::SignedIn,
    shown::{day, duration, grouped},
    start::Start,
    state::ConsoleState,
    tasks::TaskRow,
};
use crate::pages::{
    chart::{Chart, Series},
    query::{Asked, PageQuery, read},
};

/// An account may run more than anyone looks at; the others stand under Tasks.
const RUNNING_SHOWN: u32 = 20;
/// Latencies that the percentiles are of, at most: enough for the slowest twentieth.
const LATENCIES_MAX: u32 = 1_000;

/// Days that the figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(i64);

impl Period {
    const EVERY: [Self; 3] = [Self(7), Self(30), Self(90)];
}

impl Asked for Period {
    fn parse(text: &str) -> Option<Self> {
        Self::EVERY
            .into_iter()
            .find(|period| period.0.to_string() == text)
    }
}

/// `?days=`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    #[serde(deserialize_with = "read")]
    days: Option<Period>,
}

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage {
    layout: Layout,
    start: Option<Start>,
    available: String,
    /// Tasks that this pays for.
    tasks_left: String,
    reserved: String,
    /// Below zero: a payment went back whose credits were spent.
    is_owing: bool,
    /// An audit found its books wrong.
    is_stopped: bool,
    active: u32,
    active_max: String,
    today: String,
    today_max: String,
    periods: [Period; 3],
    period: Period,
    used: Use,
    running: Vec<TaskRow>,
}

/// What the period used.
struct Use {
    succeeded: u32,
    failed: u32,
    charged: Credits,
    /// Of what ended, in percent; none where nothing did.
    success: Option<String>,
    /// Median and 95th percentile from acceptance to result.
    latency: Option<(String, String)>,
    chart: Chart,
}

/// `GET /`.
pub(crate) async fn overview(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(wanted): PageQuery<Wanted>,
) -> Result<Response, ConsoleError> {
    let (store, account) = (&state.api.store, &who.session.user.account_id);
    let standing = store
        .accounts()
        .find(account)
        .await?
        .ok_or(ConsoleError::NotFound)?;
    let now = store.now();
    let period = wanted.days.unwrap_or(Period(30));
    let first = now.utc_day() - period.0 + 1;
    let days = store.tasks().list_days(account, first).await?;
    let latencies = store.tasks().list_latencies(account, first, LATENCIES_MAX);
    let latencies = latencies.await?;
    let running = store
        .tasks()
        .list(account, TaskFilter::Processing, None, RUNNING_SHOWN);
    let may = standing.own_limits.effective();
    let page = OverviewPage {
        layout: Layout::new(&who.visitor, "/", "Overview"),
        start: Start::of(&state, account, standing.activated_at.is_some()).await?,
        available: grouped(standing.available),
        // Below zero it pays for none.
        tasks_left: grouped(
            (standing.available.thousandths() / store.options().price.thousandths()).max(0),
        ),
        reserved: grouped(standing.reserved),
        is_owing: standing.available < Credits::ZERO,
        is_stopped: standing.stopped,
        active: standing.active_tasks,
        active_max: grouped(may.active_tasks),
        today: grouped(standing.accepted_today),
        today_max: grouped(may.daily_tasks),
        periods: Period::EVERY,
        period,
        used: Use::of(&days, (first, now.utc_day()), latencies),
        running: running
            .await?
            .iter()
            .map(|record| TaskRow::of(record, now))
            .collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

impl Use {
    fn of(days: &[DayOfUse], (first, last): (i64, i64), latencies: Vec<i64>) -> Self {
        let sum = |count: fn(&DayOfUse) -> u32| days.iter().map(count).sum::<u32>();
        let (succeeded, failed) = (sum(|day| day.succeeded), sum(|day| day.failed));
        let steps = (first..=last).map(|number| {
            let found = days.iter().find(|day| day.day == number);
            let counts = found.map_or([0, 0], |day| [day.succeeded.into(), day.failed.into()]);
            (day(number), counts)
        });
        Self {
            succeeded,
            failed,
            charged: days.iter().map(|day| day.charged).sum(),
            success: percent(succeeded, succeeded + failed),
            latency: percentiles(latencies),
            chart: Chart::of(Series {
                label: format!("Tasks a day, {} to {}", day(first), day(last)),
                kinds: ["succeeded", "failed"],
                steps: steps.collect(),
                unit: "",
            }),
        }
    }
}

/// With one decimal, never rounded up to all of it.
fn percent(part: u32, whole: u32) -> Option<String> {
    let permille = u64::from(part) * 1_000 / u64::from(whole.max(1));
    let text = match permille % 10 {
        0 => format!("{} %", permille / 10),
        rest => format!("{}.{rest} %", permille / 10),
    };
    (whole > 0).then_some(text)
}

/// The median and the value that 95 of 100 do not exceed.
fn percentiles(mut micros: Vec<i64>) -> Option<(String, String)> {
    micros.sort_unstable();
    let at = |share: usize| {
        let place = (micros.len() * share).div_ceil(100).saturating_sub(1);
        micros.get(place).copied().map(duration)
    };
    Some((at(50)?, at(95)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_there_is() {
        let of = |count: i64| percentiles((1..=count).rev().map(|one| one * 1_000_000).collect());
        assert_eq!(of(0), None);
        let text = |seconds: i64| duration(seconds * 1_000_000);
        assert_eq!(of(1), Some((text(1), text(1))));
        assert_eq!(of(100), Some((text(50), text(95))));
    }

    #[test]
    fn a_rate_is_all_only_where_nothing_failed() {
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(7, 7).as_deref(), Some("100 %"));
        assert_eq!(percent(99_999, 100_000).as_deref(), Some("99.9 %"));
        assert_eq!(percent(1, 3).as_deref(), Some("33.3 %"));
    }
}
