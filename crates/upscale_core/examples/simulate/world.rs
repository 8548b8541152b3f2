//! The event loop: customers create, machines claim, work, die and stall, leases run out, the reaper comes.

use std::{cmp::Reverse, collections::BinaryHeap};

use upscale_core::{Admission, AttemptFailure, NextStep, Timestamp, limits};

use crate::{
    dice::Dice,
    fleet::{Claim, Fate, FleetPlan, Machine, after},
    idle::Idle,
    queue::{Answer, JobId, Policy, Queue, Standing, Tenant},
    tally::Tally,
    tenants::{DayCurve, Demand, Tenancy, megapixels, pile_size, tenancies},
};

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) plan: FleetPlan,
    pub(crate) demand: Demand,
    pub(crate) policy: Policy,
    /// Seconds in which customers bring work; what is owed then is worked off.
    pub(crate) seconds: i64,
    /// Machines die and stall by chance.
    pub(crate) faults: bool,
    /// A tenth of the machines dies at this second.
    pub(crate) rack_dies_at: Option<i64>,
}

/// What happens, and when is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Pile(Tenant),
    Try(Tenant),
    Look(u32),
    AttemptEnds(u32, JobId, u32),
    LeaseEnds(JobId, u32, u32),
    RetryDue(JobId),
    Deadline(JobId),
    Dies(u32),
    Stalls(u32),
    Wakes(u32),
    Boots(u32),
    /// A machine that is silent still counts no more.
    Forgotten(u32),
}

/// Between two creates of one customer: one round trip.
const ROUND_TRIP_SECONDS: f64 = 0.1;
/// A worker with nothing to do looks this often at most.
const LOOK_SECONDS: f64 = 1.0;
/// A worker says that it lives this often.
const REPORT_SECONDS: f64 = 20.0;
/// The reaper comes once a second.
const REAP_SECONDS: f64 = 1.0;

#[derive(Clone, Copy, Default)]
struct Client {
    pending: u32,
    /// When it tries next; an earlier try replaces a later one.
    tries_at: Option<Timestamp>,
}

pub(crate) struct World {
    scenario: Scenario,
    dice: Dice,
    curve: DayCurve,
    tenancies: Vec<Tenancy>,
    clients: Vec<Client>,
    pub(crate) queue: Queue,
    machines: Vec<Machine>,
    idle: Idle,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    thrown: u64,
    now: Timestamp,
    pub(crate) tally: Tally,
}

/// Runs it to the end: nothing is owed any more.
pub(crate) fn run(scenario: Scenario) -> World {
    let mut world = World::new(scenario);
    world.begin();
    while let Some(Reverse((at, _, event))) = world.events.pop() {
        world.now = Timestamp::from_micros(at);
        if world.is_over() && world.queue.open() == 0 {
            break;
        }
        world.happen(event);
    }
    world
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let mut dice = Dice::new(scenario.seed);
        let tenancies = tenancies(&scenario.demand);
        let machines: Vec<Machine> = (0..scenario.plan.machines)
            .map(|_| Machine::new(&mut dice))
            .collect();
        let mut queue = Queue::new(scenario.policy, tenancies.len());
        queue.live_slots = machines.len() as u32 * scenario.plan.slots_each;
        Self {
            dice,
            curve: DayCurve::new(scenario.demand.peakedness),
            clients: vec![Client::default(); tenancies.len()],
            idle: Idle::new(machines.len()),
            tally: Tally::new(tenancies.len(), scenario.seconds),
            tenancies,
            queue,
            machines,
            scenario,
            events: BinaryHeap::new(),
            thrown: 0,
            now: Timestamp::from_micros(0),
        }
    }

    fn begin(&mut self) {
        for tenant in 0..self.tenancies.len() as Tenant {
            self.next_pile(tenant);
        }
        let rack_dies_at = self.scenario.rack_dies_at;
        for machine in 0..self.machines.len() as u32 {
            if self.scenario.faults {
                let plan = self.scenario.plan;
                let dies = self.exponential_hours(plan.hours_between_deaths);
                let stalls = self.exponential_hours(plan.hours_between_stalls);
                self.later(dies, Event::Dies(machine));
                self.later(stalls, Event::Stalls(machine));
            }
            if let Some(second) = rack_dies_at.filter(|_| machine % 10 == 0) {
                self.later(second as f64, Event::Dies(machine));
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Pile(tenant) => self.bring_pile(tenant),
            Event::Try(tenant) => self.try_create(tenant),
            Event::Look(machine) => self.look(machine),
            Event::AttemptEnds(machine, job, attempt) => self.end_attempt(machine, job, attempt),
            Event::LeaseEnds(job, attempt, machine) => self.end_lease(job, attempt, machine),
            Event::RetryDue(job) => {
                self.queue.retry_due(job);
                self.wake_one();
            }
            Event::Deadline(job) => {
                if self.queue.reap(job, self.now) {
                    self.customer_sees(self.queue.jobs[job as usize].tenant);
                }
            }
            Event::Dies(machine) => self.die(machine),
            Event::Stalls(machine) => self.stall(machine),
            Event::Wakes(machine) => self.speak_up(machine),
            Event::Boots(machine) => {
                self.machines[machine as usize].reboot(&mut self.dice);
                self.speak_up(machine);
            }
            Event::Forgotten(machine) => self.forget(machine),
        }
    }

    fn later(&mut self, seconds: f64, event: Event) {
        self.at(after(self.now, seconds), event);
    }

    fn at(&mut self, at: Timestamp, event: Event) {
        self.thrown += 1;
        self.events.push(Reverse((at.micros(), self.thrown, event)));
    }

    fn is_over(&self) -> bool {
        self.now.unix_seconds() >= self.scenario.seconds
    }

    fn exponential_hours(&mut self, hours: f64) -> f64 {
        self.dice.exponential(hours * 3_600.0)
    }

    // Customers.

    fn next_pile(&mut self, tenant: Tenant) {
        let second = self.now.micros() as f64 / 1e6;
        let tenancy = self.tenancies[tenant as usize];
        let wait = self.curve.next_pile(&tenancy, second, &mut self.dice);
        self.later(wait, Event::Pile(tenant));
    }

    fn bring_pile(&mut self, tenant: Tenant) {
        if self.is_over() {
            return;
        }
        let size = pile_size(&self.tenancies[tenant as usize], &mut self.dice);
        self.clients[tenant as usize].pending += size;
        self.tally.wanted(tenant, size, self.now);
        self.try_after(tenant, 0.0);
        self.next_pile(tenant);
    }

    /// A try that is due earlier anyway stands.
    fn try_after(&mut self, tenant: Tenant, seconds: f64) {
        let at = after(self.now, seconds);
        let client = &mut self.clients[tenant as usize];
        if client.pending == 0 || client.tries_at.is_some_and(|planned| planned <= at) {
            return;
        }
        client.tries_at = Some(at);
        self.at(at, Event::Try(tenant));
    }

    fn try_create(&mut self, tenant: Tenant) {
        let client = &mut self.clients[tenant as usize];
        if client.tries_at != Some(self.now) {
            return; // Replaced by an earlier one.
        }
        client.tries_at = None;
        if client.pending == 0 || self.is_over() {
            return;
        }
        let megapixels = megapixels(&mut self.dice);
        let answer = self.queue.create(tenant, megapixels, self.now);
        self.tally.answered(answer, self.now);
        match answer {
            Answer::Accepted(job) => {
                self.clients[tenant as usize].pending -= 1;
                let reaped_after = self.dice.unit() * REAP_SECONDS;
                self.later(
                    limits::DEADLINE_SECONDS as f64 + reaped_after,
                    Event::Deadline(job),
                );
                self.wake_one();
                self.try_after(tenant, ROUND_TRIP_SECONDS);
            }
            Answer::Refused(Admission::DailyLimit { .. }) => {
                self.tally.given_up(self.clients[tenant as usize].pending);
                self.clients[tenant as usize].pending = 0;
            }
            Answer::CreateRate(seconds) => self.try_after(tenant, seconds as f64),
            Answer::Refused(refusal) => {
                let seconds = retry_after(refusal) as f64;
                let jitter = self.dice.between(1.0, 1.5);
                self.try_after(tenant, seconds * jitter);
            }
        }
    }

    /// A customer polls every 3 to 10 s and orders on when a task is over.
    fn customer_sees(&mut self, tenant: Tenant) {
        let seconds = self.dice.between(0.0, 5.0);
        self.try_after(tenant, seconds);
    }

    // Machines.

    /// The first of many idle workers looks sooner than one alone would.
    fn wake_one(&mut self) {
        if !self.queue.has_due() {
            return;
        }
        if let Some((machine, of)) = self.idle.any(&mut self.dice) {
            let seconds = self.dice.unit() * LOOK_SECONDS / of as f64;
            self.later(seconds, Event::Look(machine));
        }
    }

    fn look(&mut self, number: u32) {
        let plan = self.scenario.plan;
        while self.machines[number as usize].can_take(plan, self.now) {
            let Some(job) = self.queue.claim(self.now) else {
                break;
            };
            let machine = &mut self.machines[number as usize];
            let row = &self.queue.jobs[job as usize];
            let ends_at = machine.begin((job, row), plan, self.now, &mut self.dice);
            self.at(ends_at, Event::AttemptEnds(number, job, row.attempt));
        }
        let can_take = self.machines[number as usize].can_take(plan, self.now);
        self.idle.set(number, can_take);
        self.wake_one();
    }

    /// A machine that starts or wakes counts again and looks for work.
    fn speak_up(&mut self, number: u32) {
        let machine = &mut self.machines[number as usize];
        if !machine.is_alive || machine.stalled_until > self.now {
            return;
        }
        if !machine.counts {
            machine.counts = true;
            self.queue.live_slots += self.scenario.plan.slots_each;
        }
        self.look(number);
    }

    fn forget(&mut self, number: u32) {
        let machine = &mut self.machines[number as usize];
        let is_silent = !machine.is_alive || machine.stalled_until > self.now;
        if is_silent && machine.counts {
            machine.counts = false;
            self.queue.live_slots -= self.scenario.plan.slots_each;
        }
    }

    fn end_attempt(&mut self, number: u32, job: JobId, attempt: u32) {
        let Some(mut claim) = self.machines[number as usize].take_claim(job, attempt) else {
            return; // The machine died with it.
        };
        if claim.stood_still > 0 {
            claim.ends_at = Timestamp::from_micros(self.now.micros() + claim.stood_still);
            claim.stood_still = 0;
            self.at(claim.ends_at, Event::AttemptEnds(number, job, attempt));
            self.machines[number as usize].claims.push(claim);
            return;
        }
        self.tally.busy(claim.claimed_at, self.now);
        if self.queue.is_held(job, attempt) {
            self.conclude(&claim);
        } else {
            self.tally.stale_finishes += 1;
        }
        self.look(number);
    }

    fn conclude(&mut self, claim: &Claim) {
        let seconds = (self.now.micros() - claim.claimed_at.micros()) as f64 / 1e6;
        let standing = match claim.fate {
            Fate::Done => Standing::Succeeded,
            Fate::Cut => Standing::Missed,
            Fate::Fails(failure) => {
                if self.retries(claim.job, failure) {
                    return;
                }
                Standing::Failed
            }
        };
        self.queue.settle(claim.job, standing, seconds, self.now);
        self.customer_sees(self.queue.jobs[claim.job as usize].tenant);
    }

    /// The worker's rule: no retry that the deadline would cut.
    fn retries(&mut self, job: JobId, failure: AttemptFailure) -> bool {
        self.tally.failed_attempts += 1;
        let random = self.dice.unit();
        let step = self.queue.next_step(job, failure, self.now, random);
        let NextStep::RetryAfterMillis(millis) = step else {
            return false;
        };
        let due_at = after(self.now, millis as f64 / 1e3);
        let is_useful = due_at.plus_seconds(3) < self.queue.jobs[job as usize].deadline_at;
        if is_useful {
            self.at(due_at, Event::RetryDue(job));
        }
        is_useful
    }

    /// Claims of a machine that is silent run out; one that spoke up again has renewed them.
    fn end_lease(&mut self, job: JobId, attempt: u32, number: u32) {
        let machine = &self.machines[number as usize];
        let holds = machine
            .claims
            .iter()
            .any(|claim| (claim.job, claim.attempt) == (job, attempt));
        let is_silent = !holds || machine.stalled_until > self.now;
        if is_silent && self.queue.is_held(job, attempt) {
            self.queue.lease_over(job);
            self.tally.leases_lost += 1;
            self.wake_one();
        }
    }

    fn die(&mut self, number: u32) {
        if !self.machines[number as usize].is_alive {
            return;
        }
        self.tally.deaths += 1;
        let machine = &mut self.machines[number as usize];
        machine.is_alive = false;
        for claim in std::mem::take(&mut machine.claims) {
            self.tally.busy(claim.claimed_at, self.now);
            let ends_at = claim.lease_ends_at(self.now);
            self.at(ends_at, Event::LeaseEnds(claim.job, claim.attempt, number));
        }
        self.idle.set(number, false);
        self.forget_later(number);
        let boot = self.dice.between(120.0, 300.0);
        self.later(boot, Event::Boots(number));
        if self.scenario.faults {
            let hours = self.scenario.plan.hours_between_deaths;
            let next = boot + self.exponential_hours(hours);
            self.later(next, Event::Dies(number));
        }
    }

    fn stall(&mut self, number: u32) {
        let hours = self.scenario.plan.hours_between_stalls;
        let next = 300.0 + self.exponential_hours(hours);
        self.later(next, Event::Stalls(number));
        if !self.machines[number as usize].is_alive {
            return;
        }
        self.tally.stalls += 1;
        let seconds = self.dice.between(5.0, 180.0);
        let machine = &mut self.machines[number as usize];
        machine.stalled_until = after(self.now, seconds);
        let mut ends = Vec::new();
        for claim in &mut machine.claims {
            claim.stood_still += (seconds * 1e6) as i64;
            ends.push((claim.lease_ends_at(self.now), claim.job, claim.attempt));
        }
        for (ends_at, job, attempt) in ends {
            self.at(ends_at, Event::LeaseEnds(job, attempt, number));
        }
        self.idle.set(number, false);
        self.later(seconds, Event::Wakes(number));
        self.forget_later(number);
    }

    /// It has reported within the last 20 s and counts for a lease after that.
    fn forget_later(&mut self, number: u32) {
        let report_age = self.dice.unit() * REPORT_SECONDS;
        let seconds = limits::LEASE_SECONDS as f64 - report_age;
        self.later(seconds, Event::Forgotten(number));
    }
}

fn retry_after(refusal: Admission) -> i64 {
    match refusal {
        Admission::ActiveLimit {
            retry_after_seconds,
        }
        | Admission::DailyLimit {
            retry_after_seconds,
        }
        | Admission::Overloaded {
            retry_after_seconds,
        } => retry_after_seconds,
        Admission::Accept | Admission::InsufficientCredits => 0,
    }
}
