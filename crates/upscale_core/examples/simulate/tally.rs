//! What is counted while the world runs; everything about single tasks is read from their rows afterwards.

use upscale_core::{Admission, Timestamp};

use crate::queue::{Answer, Tenant};

/// Length of one step of the curves.
pub(crate) const STEP_SECONDS: i64 = 300;

#[derive(Default, Clone)]
pub(crate) struct Step {
    pub(crate) wanted: u64,
    pub(crate) put_off: u64,
    pub(crate) busy_seconds: f64,
}

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) steps: Vec<Step>,
    pub(crate) wanted_by: Vec<u64>,
    pub(crate) creates: u64,
    pub(crate) put_off: u64,
    pub(crate) over_active: u64,
    pub(crate) over_rate: u64,
    pub(crate) over_day: u64,
    pub(crate) deaths: u64,
    pub(crate) stalls: u64,
    pub(crate) leases_lost: u64,
    pub(crate) stale_finishes: u64,
    pub(crate) failed_attempts: u64,
}

impl Tally {
    pub(crate) fn new(tenants: usize, seconds: i64) -> Self {
        Self {
            steps: vec![Step::default(); (seconds / STEP_SECONDS) as usize + 2],
            wanted_by: vec![0; tenants],
            ..Self::default()
        }
    }

    /// The step of a moment; what happens after the last one counts to it.
    pub(crate) fn step_of(&self, at: Timestamp) -> usize {
        ((at.unix_seconds() / STEP_SECONDS) as usize).min(self.steps.len() - 1)
    }

    pub(crate) fn wanted(&mut self, tenant: Tenant, tasks: u32, now: Timestamp) {
        let step = self.step_of(now);
        self.steps[step].wanted += u64::from(tasks);
        self.wanted_by[tenant as usize] += u64::from(tasks);
    }

    pub(crate) fn answered(&mut self, answer: Answer, now: Timestamp) {
        self.creates += 1;
        match answer {
            Answer::CreateRate(_) => self.over_rate += 1,
            Answer::Refused(Admission::ActiveLimit { .. }) => self.over_active += 1,
            Answer::Refused(Admission::Overloaded { .. }) => {
                self.put_off += 1;
                let step = self.step_of(now);
                self.steps[step].put_off += 1;
            }
            Answer::Accepted(_) | Answer::Refused(_) => {}
        }
    }

    /// Wishes beyond the limit of a day.
    pub(crate) fn given_up(&mut self, tasks: u32) {
        self.over_day += u64::from(tasks);
    }

    /// A slot was held from then until now; counted where it ended.
    pub(crate) fn busy(&mut self, from: Timestamp, now: Timestamp) {
        let step = self.step_of(now);
        self.steps[step].busy_seconds += (now.micros() - from.micros()) as f64 / 1e6;
    }
}
