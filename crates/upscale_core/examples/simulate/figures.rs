//! What a run amounts to: waits by percentile, shares, fairness.

use crate::{
    queue::{Job, Standing},
    tally::STEP_SECONDS,
    tenants::tenancies,
    world::{Scenario, World},
};

/// A run in numbers.
pub(crate) struct Figures {
    pub(crate) wanted: u64,
    pub(crate) accepted: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// Accepted tasks that were not over in their time.
    pub(crate) missed: u64,
    /// Accepted and never ended: must be none.
    pub(crate) lost: u64,
    /// From acceptance to the first claim, sorted.
    pub(crate) waits: Vec<f64>,
    /// The same for customers who bring one at a time.
    pub(crate) waits_small: Vec<f64>,
    /// And for the hundred largest.
    pub(crate) waits_large: Vec<f64>,
    /// From acceptance to the end, sorted.
    pub(crate) turnarounds: Vec<f64>,
    /// Of tasks got against max-min fair shares, by customer.
    pub(crate) jain: f64,
    pub(crate) utilisation: f64,
    pub(crate) busiest_hour: f64,
}

const LARGEST: u32 = 100;
const STEPS_AN_HOUR: usize = (3_600 / STEP_SECONDS) as usize;

pub(crate) fn figures(world: &World, scenario: &Scenario) -> Figures {
    let jobs = &world.queue.jobs;
    let count =
        |standing: Standing| jobs.iter().filter(|job| job.standing == standing).count() as u64;
    let tenancies = tenancies(&scenario.demand);
    let is_small = |job: &Job| tenancies[job.tenant as usize].is_small();
    let (succeeded, failed) = (count(Standing::Succeeded), count(Standing::Failed));
    let missed = count(Standing::Missed);
    Figures {
        wanted: world.tally.wanted_by.iter().sum(),
        accepted: jobs.len() as u64,
        succeeded,
        failed,
        missed,
        lost: jobs.len() as u64 - succeeded - failed - missed,
        waits: sorted(jobs.iter().filter_map(wait)),
        waits_small: sorted(jobs.iter().filter(|job| is_small(job)).filter_map(wait)),
        waits_large: sorted(
            jobs.iter()
                .filter(|job| job.tenant < LARGEST)
                .filter_map(wait),
        ),
        turnarounds: sorted(jobs.iter().filter_map(turnaround)),
        jain: jain(world),
        utilisation: utilisation(world, scenario, usize::MAX),
        busiest_hour: utilisation(world, scenario, STEPS_AN_HOUR),
    }
}

pub(crate) fn wait(job: &Job) -> Option<f64> {
    let micros = job.first_claimed_at?.micros() - job.created_at.micros();
    Some(micros as f64 / 1e6)
}

fn turnaround(job: &Job) -> Option<f64> {
    let micros = job.ended_at?.micros() - job.created_at.micros();
    Some(micros as f64 / 1e6)
}

pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The value below which this share of them lies; 0 when there are none.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

/// Slots held, as a share of all: in the highest window of so many steps, or over all of the customers' time.
fn utilisation(world: &World, scenario: &Scenario, window: usize) -> f64 {
    let steps = (scenario.seconds / STEP_SECONDS) as usize;
    let busy: Vec<f64> = world.tally.steps[..steps]
        .iter()
        .map(|step| step.busy_seconds)
        .collect();
    let slots = scenario.plan.slots();
    let window = window.min(steps).max(1);
    let share = |part: &[f64]| {
        part.iter().sum::<f64>() / (slots * (part.len() as i64 * STEP_SECONDS) as f64)
    };
    busy.windows(window).map(share).fold(0.0, f64::max)
}

/// Jain's index (Jain, Chiu and Hawe, 1984) of what each customer got, in units of the max-min fair share of all
/// that was done; 1 when no one was favoured.
fn jain(world: &World) -> f64 {
    let mut got = vec![0_u64; world.tally.wanted_by.len()];
    for job in &world.queue.jobs {
        got[job.tenant as usize] += u64::from(job.standing != Standing::Missed);
    }
    let shares = fair_shares(&world.tally.wanted_by, got.iter().sum::<u64>() as f64);
    let (mut sum, mut squares, mut number) = (0.0, 0.0, 0.0);
    for (got, share) in got.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
        let part = *got as f64 / share;
        sum += part;
        squares += part * part;
        number += 1.0;
    }
    if squares == 0.0 {
        return 0.0;
    }
    sum * sum / (number * squares)
}

/// Everyone gets what they want, or the same as all others who want more (water filling).
fn fair_shares(wanted: &[u64], capacity: f64) -> Vec<f64> {
    let filled = |level: f64| {
        wanted
            .iter()
            .map(|&want| (want as f64).min(level))
            .sum::<f64>()
    };
    let (mut low, mut high) = (0.0, wanted.iter().copied().max().unwrap_or(0) as f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if filled(middle) < capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
    wanted.iter().map(|&want| (want as f64).min(high)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_shares_fill_the_small_first() {
        let shares = fair_shares(&[1, 5, 100], 14.0);
        for (share, expected) in shares.iter().zip([1.0, 5.0, 8.0]) {
            assert!((share - expected).abs() < 1e-6, "{shares:?}");
        }
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let values = sorted([3.0, 1.0, 2.0].into_iter());
        assert_eq!(percentile(&values, 0.5), 2.0);
        assert_eq!(percentile(&values, 1.0), 3.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
