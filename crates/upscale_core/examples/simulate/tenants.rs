//! Customers: how much each wants in a day, in how large a pile at a time, and when.

use std::f64::consts::TAU;

use crate::dice::Dice;

/// What all customers together are like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) tenants: usize,
    /// Tasks a day of the largest, before the limit of a day; the n-th wants n to the -0.75 of what the first
    /// would without this cap.
    pub(crate) largest: f64,
    /// Tasks a day of all.
    pub(crate) a_day: f64,
    /// 0 for a load that is the same all day; 2.6 makes the busiest hour 3.8 times the mean.
    pub(crate) peakedness: f64,
}

const DAY_SECONDS: f64 = 86_400.0;
/// The hour of the day's peak.
const PEAK_HOUR: f64 = 15.0;
/// Piles a large customer brings in a day.
const PILES_A_DAY: f64 = 12.0;
/// Customers below this many tasks a day bring one at a time.
const SMALL: f64 = 40.0;
/// Seconds of the finest step of the day's curve.
const STEP_SECONDS: f64 = 60.0;

/// One customer's wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenancy {
    pub(crate) tasks_a_day: f64,
    /// Mean size of a pile.
    pub(crate) pile: f64,
}

impl Tenancy {
    pub(crate) fn is_small(&self) -> bool {
        self.tasks_a_day < SMALL
    }
}

/// Every customer, largest first, scaled so that all together want what the demand says.
pub(crate) fn tenancies(demand: &Demand) -> Vec<Tenancy> {
    let wants = |scale: f64| {
        (1..=demand.tenants).map(move |rank| {
            let tasks = scale * (rank as f64).powf(-0.75);
            tasks.min(demand.largest)
        })
    };
    let (mut low, mut high) = (0.0, demand.a_day);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if wants(middle).sum::<f64>() < demand.a_day {
            low = middle;
        } else {
            high = middle;
        }
    }
    let tenancy = |tasks_a_day: f64| Tenancy {
        tasks_a_day,
        pile: if tasks_a_day < SMALL {
            1.0
        } else {
            tasks_a_day / PILES_A_DAY
        },
    };
    wants(high).map(tenancy).collect()
}

/// The day's load as a multiple of its mean (von Mises' curve, peak at 15:00), and its sum, to throw times from.
pub(crate) struct DayCurve {
    steps: Vec<f64>,
    mean: f64,
}

impl DayCurve {
    pub(crate) fn new(peakedness: f64) -> Self {
        let step = |index: usize| {
            let hour = index as f64 * STEP_SECONDS / 3_600.0;
            (peakedness * ((hour - PEAK_HOUR) / 24.0 * TAU).cos()).exp()
        };
        let steps: Vec<f64> = (0..(DAY_SECONDS / STEP_SECONDS) as usize)
            .map(step)
            .collect();
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        Self { steps, mean }
    }

    /// Load at this second of the day as a multiple of the mean.
    pub(crate) fn at(&self, second: f64) -> f64 {
        let index = (second.rem_euclid(DAY_SECONDS) / STEP_SECONDS) as usize;
        self.steps[index.min(self.steps.len() - 1)] / self.mean
    }

    /// Seconds until a customer's next pile: thinned by the curve (Lewis and Shedler, 1979).
    pub(crate) fn next_pile(&self, tenancy: &Tenancy, second: f64, dice: &mut Dice) -> f64 {
        let highest = self.steps.iter().copied().fold(0.0, f64::max) / self.mean;
        let mean_gap = DAY_SECONDS * tenancy.pile / tenancy.tasks_a_day / highest;
        let mut wait = 0.0;
        loop {
            wait += dice.exponential(mean_gap);
            if dice.happens(self.at(second + wait) / highest) {
                return wait;
            }
        }
    }
}

/// Tasks in one pile, at least 1.
pub(crate) fn pile_size(tenancy: &Tenancy, dice: &mut Dice) -> u32 {
    if tenancy.pile <= 1.0 {
        return 1;
    }
    1 + dice.exponential(tenancy.pile - 1.0).round() as u32
}

/// Megapixels of a source: most are small, the caps of 1.5 (2x) and 0.75 (4x) cut the rest.
pub(crate) fn megapixels(dice: &mut Dice) -> f64 {
    let cap = if dice.happens(0.6) { 1.5 } else { 0.75 };
    dice.lognormal(0.6, 0.7).clamp(0.01, cap)
}
