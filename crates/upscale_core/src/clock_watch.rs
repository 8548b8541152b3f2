//! Whether a clock may decide that things are old. One that was set wrong for a few seconds must not delete for good, so
//! after a step of the clock nothing is deleted until the service has run for an hour.

use crate::{
    Timestamp,
    limits::{
        CLOCK_AHEAD_SECONDS_MAX, CLOCK_BACK_SECONDS_MAX, CLOCK_LOOK_SECONDS, DELETION_PAUSE_SECONDS,
    },
};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// What is remembered from one look at the clock to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockWatch {
    /// What the clock said at the last look.
    pub seen_at: Timestamp,
    /// For how long the service has still to run before anything is deleted, in microseconds, ≥ 0.
    pub pause_micros: i64,
}

impl ClockWatch {
    /// The first look, at a store that is empty or holds something that another clock has dated.
    #[must_use]
    pub fn begin(now: Timestamp, is_empty: bool) -> Self {
        let pause_seconds = if is_empty { 0 } else { DELETION_PAUSE_SECONDS };
        Self {
            seen_at: now,
            pause_micros: pause_seconds * MICROS_PER_SECOND,
        }
    }

    /// After a further look, and by how many seconds the clock stepped, if it did. A service that was off for more than an
    /// hour looks like a clock that stepped ahead: it is treated alike. Only time between looks that follow each other as
    /// they should counts as time the service ran.
    #[must_use]
    pub fn look(self, now: Timestamp) -> (Self, Option<i64>) {
        let passed = now.micros().saturating_sub(self.seen_at.micros());
        let running = -CLOCK_BACK_SECONDS_MAX * MICROS_PER_SECOND
            ..=CLOCK_AHEAD_SECONDS_MAX * MICROS_PER_SECOND;
        let is_step = !running.contains(&passed);
        let ran = passed.clamp(0, 2 * CLOCK_LOOK_SECONDS * MICROS_PER_SECOND);
        let pause_micros = match is_step {
            true => DELETION_PAUSE_SECONDS * MICROS_PER_SECOND,
            false => (self.pause_micros - ran).max(0),
        };
        let next = Self {
            seen_at: now,
            pause_micros,
        };
        (next, is_step.then(|| passed.div_euclid(MICROS_PER_SECOND)))
    }

    /// Whole seconds that the service has still to run before anything is deleted, rounded up.
    #[must_use]
    pub fn pause_seconds(self) -> i64 {
        (self.pause_micros.max(0) + MICROS_PER_SECOND - 1) / MICROS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 86_400;
    const NOON: Timestamp = Timestamp::from_micros(1_767_268_800_000_000);

    /// Looks every minute for this long.
    fn run(mut watch: ClockWatch, seconds: i64) -> ClockWatch {
        for _ in 0..seconds / CLOCK_LOOK_SECONDS {
            let (next, step) = watch.look(watch.seen_at.plus_seconds(CLOCK_LOOK_SECONDS));
            assert_eq!(step, None);
            watch = next;
        }
        watch
    }

    #[test]
    fn a_clock_that_runs_pauses_nothing() {
        let watch = ClockWatch::begin(NOON, true);
        assert_eq!(run(watch, DAY).pause_seconds(), 0);
    }

    #[test]
    fn a_step_ahead_or_back_pauses_for_an_hour_of_running() {
        let watch = ClockWatch::begin(NOON, true);
        for step in [HOUR + 1, 3 * DAY, 100 * DAY, -61, -DAY] {
            let (stepped, reported) = watch.look(NOON.plus_seconds(step));
            assert_eq!((stepped.pause_seconds(), reported), (HOUR, Some(step)));
            assert_eq!(run(stepped, HOUR - 60).pause_seconds(), 60);
            assert_eq!(run(stepped, HOUR).pause_seconds(), 0);
        }
    }

    #[test]
    fn a_clock_that_is_set_right_again_pauses_anew() {
        let watch = ClockWatch::begin(NOON, true);
        let (wrong, _) = watch.look(NOON.plus_seconds(3 * DAY));
        let wrong = run(wrong, HOUR - 60);
        let (right, reported) = wrong.look(NOON.plus_seconds(HOUR));
        assert!(reported.is_some_and(|step| step < 0));
        assert_eq!(right.pause_seconds(), HOUR);
    }

    #[test]
    fn time_that_the_service_was_off_does_not_count() {
        let (paused, _) = ClockWatch::begin(NOON, true).look(NOON.plus_seconds(DAY));
        let off_for_an_hour = paused.seen_at.plus_seconds(HOUR);
        let (watch, step) = paused.look(off_for_an_hour);
        assert_eq!(step, None);
        assert_eq!(watch.pause_seconds(), HOUR - 2 * CLOCK_LOOK_SECONDS);
    }

    #[test]
    fn a_little_back_and_forth_of_several_processes_is_no_step() {
        let (watch, step) = ClockWatch::begin(NOON, true).look(NOON.plus_seconds(-1));
        assert_eq!((watch.pause_seconds(), step), (0, None));
    }

    #[test]
    fn what_another_clock_has_dated_is_left_alone_for_an_hour() {
        assert_eq!(ClockWatch::begin(NOON, false).pause_seconds(), HOUR);
    }
}
