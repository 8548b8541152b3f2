//! A month of use as an inline SVG: a bar a day, succeeded below, failed on top. Sizes are attributes, for the page
//! allows no inline style; the figures stand in the bars' titles and in a table that screen readers get.

use time::{Date, Duration};
use upscale_core::{Credits, Timestamp};
use upscale_store::DayOfUse;

use super::shown::{day, moment};

/// Of the drawing, in its own units.
const WIDTH: i64 = 930;
const HEIGHT: i64 = 160;

/// What the template draws.
pub(crate) struct Chart {
    pub(crate) month: String,
    pub(crate) bars: Vec<Bar>,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    pub(crate) charged: Credits,
    /// Tasks of the fullest day: the height of the drawing.
    pub(crate) most: u32,
}

/// One day.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    pub(crate) x: i64,
    pub(crate) width: i64,
    pub(crate) succeeded_y: i64,
    pub(crate) succeeded_height: i64,
    pub(crate) failed_y: i64,
    pub(crate) failed_height: i64,
}

impl Chart {
    /// First and last UTC day of the month that this moment is in.
    pub(crate) fn month_of(now: Timestamp) -> (i64, i64) {
        let today = moment(now.unix_seconds()).date();
        let first = today - Duration::days(i64::from(today.day()) - 1);
        let days = i64::from(today.month().length(today.year()));
        let number = (first - Date::MIN).whole_days() - (moment(0).date() - Date::MIN).whole_days();
        (number, number + days - 1)
    }

    pub(crate) fn of(days: &[DayOfUse], first: i64, last: i64) -> Self {
        let of_month = days.iter().filter(|day| (first..=last).contains(&day.day));
        let sum = |count: fn(&DayOfUse) -> u32| of_month.clone().map(count).sum::<u32>();
        let (succeeded, failed) = (sum(|day| day.succeeded), sum(|day| day.failed));
        let most = of_month.clone().map(|day| day.succeeded + day.failed).max();
        let most = most.unwrap_or(0);
        let step = WIDTH / (last - first + 1).max(1);
        let bar = |number: i64| {
            let found = days.iter().find(|day| day.day == number);
            let (succeeded, failed) = found.map_or((0, 0), |day| (day.succeeded, day.failed));
            // A day of one task must be seen beside a day of thousands.
            let height = |count: u32| {
                let scaled = i64::from(count) * (HEIGHT - 2) / i64::from(most.max(1));
                scaled.max(2 * i64::from(count.min(1)))
            };
            let (below, above) = (height(succeeded), height(failed));
            Bar {
                name: day(number),
                succeeded,
                failed,
                x: (number - first) * step + 2,
                width: step - 6,
                succeeded_y: HEIGHT - below,
                succeeded_height: below,
                failed_y: HEIGHT - below - above,
                failed_height: above,
            }
        };
        Self {
            month: month_name(first),
            bars: (first..=last).map(bar).collect(),
            succeeded,
            failed,
            charged: of_month.map(|day| day.charged).sum(),
            most,
        }
    }
}

fn month_name(first: i64) -> String {
    let date = moment(first.saturating_mul(86_400)).date();
    format!("{} {}", date.month(), date.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_its_days_and_bars_fill_the_drawing_without_leaving_it() {
        // 2026-02-15.
        let now = Timestamp::from_micros(1_771_113_600_000_000);
        let (first, last) = Chart::month_of(now);
        assert_eq!(
            (day(first), day(last)),
            ("1 Feb".to_owned(), "28 Feb".to_owned())
        );
        let used = |day, succeeded, failed| DayOfUse {
            day,
            succeeded,
            failed,
            processing: 9,
            charged: Credits::from_thousandths(700 * i64::from(succeeded)),
        };
        let days = [
            used(first, 3, 1),
            used(last, 2_500, 0),
            used(last + 1, 9, 9),
        ];
        let chart = Chart::of(&days, first, last);
        assert_eq!(
            (chart.succeeded, chart.failed, chart.most),
            (2_503, 1, 2_500)
        );
        assert_eq!(chart.charged, Credits::from_thousandths(2_503 * 700));
        assert_eq!(
            (chart.month.as_str(), chart.bars.len()),
            ("February 2026", 28)
        );
        for bar in &chart.bars {
            assert!(bar.x >= 0 && bar.x + bar.width <= WIDTH && bar.failed_y >= 0);
        }
        assert_eq!(chart.bars[27].succeeded_height, HEIGHT - 2);
        assert_eq!(
            (chart.bars[0].succeeded_height, chart.bars[0].failed_height),
            (2, 2)
        );
        assert_eq!(chart.bars[1].succeeded_height, 0);
    }
}
