//! Machines: slots that hold claims, die, stall and come back. What an attempt takes and how it ends is thrown
//! when it is claimed.

use upscale_core::{AttemptFailure, Timestamp, limits};

use crate::{
    dice::Dice,
    queue::{Job, JobId},
    tenants::megapixels,
};

/// What the fleet is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FleetPlan {
    pub(crate) machines: usize,
    pub(crate) slots_each: u32,
    /// Seconds a slot computes for a megapixel of source.
    pub(crate) seconds_per_megapixel: f64,
    /// A machine dies once in this many hours.
    pub(crate) hours_between_deaths: f64,
    /// And stands still, for 5 to 180 s, once in this many.
    pub(crate) hours_between_stalls: f64,
}

/// A thousand slots of one core each.
pub(crate) const FLEET: FleetPlan = FleetPlan {
    machines: 250,
    slots_each: 4,
    seconds_per_megapixel: 32.0,
    hours_between_deaths: 48.0,
    hours_between_stalls: 24.0,
};

/// How an attempt will end if nothing happens to its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Fails(AttemptFailure),
    /// The worker cuts it just before the deadline.
    Cut,
}

/// A job under way.
pub(crate) struct Claim {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) fate: Fate,
    pub(crate) claimed_at: Timestamp,
    pub(crate) ends_at: Timestamp,
    /// Micros that its machine stood still meanwhile.
    pub(crate) stood_still: i64,
}

pub(crate) struct Machine {
    pub(crate) is_alive: bool,
    /// Its slots are among those that admission counts on.
    pub(crate) counts: bool,
    pub(crate) stalled_until: Timestamp,
    pub(crate) claims: Vec<Claim>,
    /// Its computing time as a multiple of the mean.
    pub(crate) slowness: f64,
}

impl FleetPlan {
    pub(crate) fn slots(&self) -> f64 {
        self.machines as f64 * f64::from(self.slots_each)
    }

    /// Seconds that a job holds a slot, on average over a hundred thousand.
    pub(crate) fn mean_job_seconds(&self) -> f64 {
        let mut dice = Dice::new(1);
        let mut one = || {
            let slowness = Machine::new(&mut dice).slowness;
            download_seconds(&mut dice)
                + megapixels(&mut dice) * self.seconds_per_megapixel * slowness
        };
        (0..100_000).map(|_| one()).sum::<f64>() / 100_000.0
    }
}

fn download_seconds(dice: &mut Dice) -> f64 {
    dice.lognormal(0.6, 0.9).min(DOWNLOAD_SECONDS_MAX)
}

/// Worker rule: work is cut this long before a task's deadline.
const DEADLINE_MARGIN_SECONDS: i64 = 2;
/// Longest download, by the worker's budget.
const DOWNLOAD_SECONDS_MAX: f64 = 30.0;
/// Shares of attempts whose source fails for now, whose source is no good, whose child crashes.
const TRANSIENT_SHARE: f64 = 0.01;
const PERMANENT_SHARE: f64 = 0.008;
const CRASH_SHARE: f64 = 0.0005;

impl Machine {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        Self {
            is_alive: true,
            counts: true,
            stalled_until: Timestamp::from_micros(0),
            claims: Vec::new(),
            slowness: dice.between(0.8, 1.25),
        }
    }

    /// Another one in its place; whether it counts stays as it is.
    pub(crate) fn reboot(&mut self, dice: &mut Dice) {
        *self = Self {
            counts: self.counts,
            ..Self::new(dice)
        };
    }

    pub(crate) fn can_take(&self, plan: FleetPlan, now: Timestamp) -> bool {
        self.is_alive && self.stalled_until <= now && self.claims.len() < plan.slots_each as usize
    }

    /// Throws what becomes of an attempt and when.
    pub(crate) fn begin(
        &mut self,
        (id, job): (JobId, &Job),
        plan: FleetPlan,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Timestamp {
        let download = download_seconds(dice);
        let computing = job.megapixels * plan.seconds_per_megapixel * self.slowness;
        let thrown = dice.unit();
        let (fate, seconds) = if thrown < TRANSIENT_SHARE {
            (Fate::Fails(AttemptFailure::Transient), download)
        } else if thrown < TRANSIENT_SHARE + PERMANENT_SHARE {
            (Fate::Fails(AttemptFailure::Permanent), download)
        } else if thrown < TRANSIENT_SHARE + PERMANENT_SHARE + CRASH_SHARE {
            (Fate::Fails(AttemptFailure::Crash), download)
        } else {
            (Fate::Done, download + computing)
        };
        let cut_at = job.deadline_at.plus_seconds(-DEADLINE_MARGIN_SECONDS);
        let ends_at = after(now, seconds);
        let (fate, ends_at) = if ends_at > cut_at {
            (Fate::Cut, cut_at.max(now))
        } else {
            (fate, ends_at)
        };
        self.claims.push(Claim {
            job: id,
            attempt: job.attempt,
            fate,
            claimed_at: now,
            ends_at,
            stood_still: 0,
        });
        ends_at
    }

    pub(crate) fn take_claim(&mut self, job: JobId, attempt: u32) -> Option<Claim> {
        let found = self
            .claims
            .iter()
            .position(|claim| (claim.job, claim.attempt) == (job, attempt));
        found.map(|index| self.claims.swap_remove(index))
    }
}

impl Claim {
    /// When the lease ends if no heartbeat comes after `silent_since`.
    pub(crate) fn lease_ends_at(&self, silent_since: Timestamp) -> Timestamp {
        let beats = (silent_since.micros() - self.claimed_at.micros())
            / (limits::HEARTBEAT_SECONDS * 1_000_000);
        self.claimed_at
            .plus_seconds(beats * limits::HEARTBEAT_SECONDS + limits::LEASE_SECONDS)
    }
}

/// This many seconds, or parts of one, later.
pub(crate) fn after(now: Timestamp, seconds: f64) -> Timestamp {
    Timestamp::from_micros(now.micros() + (seconds * 1e6) as i64)
}
