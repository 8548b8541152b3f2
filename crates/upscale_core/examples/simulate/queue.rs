//! The store's part: rows of accounts and jobs in memory. It gathers facts and does what `upscale_core` decides,
//! as the SQL does; nothing here decides by itself.

use std::collections::BTreeSet;

use upscale_core::{
    AccountFacts, AccountLimits, Admission, AttemptFailure, Credits, Failures, NextStep,
    QueueFacts, SECONDS_PER_JOB_DEFAULT, Timestamp, admit, after_failure, limits, next_pace,
    priority_at,
};

/// Names a job by its place in the table.
pub(crate) type JobId = u32;
/// Names an account.
pub(crate) type Tenant = u32;

/// How the queue is kept: ours, and two ways to compare it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Core's admission and core's places.
    Ours,
    /// Core's admission, first come first served.
    FirstComeFirstServed,
    /// Core's places, whatever the backlog.
    AcceptEverything,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Waiting,
    Claimed,
    Succeeded,
    Failed,
    /// Failed because its time was over.
    Missed,
}

/// One row, kept after its end for the figures.
pub(crate) struct Job {
    pub(crate) tenant: Tenant,
    pub(crate) created_at: Timestamp,
    pub(crate) deadline_at: Timestamp,
    pub(crate) first_claimed_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) megapixels: f64,
    /// The fence.
    pub(crate) attempt: u32,
    pub(crate) standing: Standing,
    pub(crate) crashes: u32,
    prio_at: Timestamp,
    transient_failures: u32,
    failing_since: Option<Timestamp>,
    /// Attempts that ended with their machine.
    pub(crate) interruptions: u32,
}

impl Job {
    fn failures(&self, now: Timestamp) -> Failures {
        Failures {
            transient: self.transient_failures,
            crashes: self.crashes,
            failing_for_seconds: self
                .failing_since
                .map_or(0, |since| now.seconds_since(since)),
        }
    }
}

#[derive(Default, Clone)]
struct Account {
    active: u32,
    day: i64,
    today: u32,
    minute: i64,
    requests: u32,
}

/// What a create was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted(JobId),
    /// The minute's 60 are used up.
    CreateRate(i64),
    Refused(Admission),
}

/// All rows, and the measured pace.
pub(crate) struct Queue {
    pub(crate) jobs: Vec<Job>,
    pub(crate) live_slots: u32,
    pub(crate) pace: f64,
    open: u32,
    policy: Policy,
    due: BTreeSet<(i64, JobId)>,
    accounts: Vec<Account>,
}

impl Queue {
    pub(crate) fn new(policy: Policy, tenants: usize) -> Self {
        Self {
            jobs: Vec::new(),
            live_slots: 0,
            pace: SECONDS_PER_JOB_DEFAULT,
            open: 0,
            policy,
            due: BTreeSet::new(),
            accounts: vec![Account::default(); tenants],
        }
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// Counts the request, asks core, and keeps what was accepted.
    pub(crate) fn create(&mut self, tenant: Tenant, megapixels: f64, now: Timestamp) -> Answer {
        let account = &mut self.accounts[tenant as usize];
        let minute = now.unix_seconds() / limits::CREATE_WINDOW_SECONDS;
        if account.minute != minute {
            (account.minute, account.requests) = (minute, 0);
        }
        if account.requests >= limits::CREATE_REQUESTS_PER_MINUTE {
            return Answer::CreateRate((minute + 1) * 60 - now.unix_seconds());
        }
        account.requests += 1;
        if account.day != now.utc_day() {
            (account.day, account.today) = (now.utc_day(), 0);
        }
        let facts = AccountFacts {
            active_tasks: account.active,
            accepted_today: account.today,
            available: Credits::from_thousandths(1_000_000),
            limits: AccountLimits::default(),
        };
        match admit(facts, self.facts(), limits::PRICE, now) {
            Admission::Accept => Answer::Accepted(self.accept(tenant, megapixels, now)),
            refused => Answer::Refused(refused),
        }
    }

    fn facts(&self) -> QueueFacts {
        let counts = self.policy != Policy::AcceptEverything;
        QueueFacts {
            open_jobs: if counts { self.open } else { 0 },
            live_slots: self.live_slots,
            seconds_per_job: self.pace,
            deadline_seconds: limits::DEADLINE_SECONDS,
        }
    }

    fn accept(&mut self, tenant: Tenant, megapixels: f64, now: Timestamp) -> JobId {
        let account = &mut self.accounts[tenant as usize];
        let prio_at = match self.policy {
            Policy::FirstComeFirstServed => now,
            Policy::Ours | Policy::AcceptEverything => priority_at(now, account.active),
        };
        account.active += 1;
        account.today += 1;
        self.open += 1;
        let id = self.jobs.len() as JobId;
        self.jobs.push(Job {
            tenant,
            created_at: now,
            deadline_at: now.plus_seconds(limits::DEADLINE_SECONDS),
            first_claimed_at: None,
            ended_at: None,
            megapixels,
            attempt: 0,
            standing: Standing::Waiting,
            crashes: 0,
            prio_at,
            transient_failures: 0,
            failing_since: None,
            interruptions: 0,
        });
        self.due.insert((prio_at.micros(), id));
        id
    }

    /// The first due job under a new attempt; what is overdue ends here instead.
    pub(crate) fn claim(&mut self, now: Timestamp) -> Option<JobId> {
        while let Some((_, id)) = self.due.pop_first() {
            let job = &mut self.jobs[id as usize];
            if job.deadline_at <= now {
                continue; // The reaper has it in this very second.
            }
            job.attempt += 1;
            job.standing = Standing::Claimed;
            job.first_claimed_at.get_or_insert(now);
            return Some(id);
        }
        None
    }

    /// The fence: whether this attempt still holds the job.
    pub(crate) fn is_held(&self, id: JobId, attempt: u32) -> bool {
        let job = &self.jobs[id as usize];
        job.attempt == attempt && job.standing == Standing::Claimed
    }

    /// No one renewed the lease: the job is due again.
    pub(crate) fn lease_over(&mut self, id: JobId) {
        let job = &mut self.jobs[id as usize];
        job.standing = Standing::Waiting;
        job.interruptions += 1;
        self.due.insert((job.prio_at.micros(), id));
    }

    /// What core says after a failed attempt; a retry waits until [`Queue::retry_due`].
    pub(crate) fn next_step(
        &mut self,
        id: JobId,
        failure: AttemptFailure,
        now: Timestamp,
        random: f64,
    ) -> NextStep {
        let job = &mut self.jobs[id as usize];
        job.crashes += u32::from(failure == AttemptFailure::Crash);
        if failure == AttemptFailure::Transient {
            job.transient_failures += 1;
            job.failing_since.get_or_insert(now);
        }
        let step = after_failure(failure, job.failures(now), 0, random);
        if step != NextStep::Fail {
            job.standing = Standing::Waiting;
        }
        step
    }

    pub(crate) fn retry_due(&mut self, id: JobId) {
        let job = &self.jobs[id as usize];
        if job.standing == Standing::Waiting {
            self.due.insert((job.prio_at.micros(), id));
        }
    }

    /// Ends a job that held its slot so long.
    pub(crate) fn settle(&mut self, id: JobId, standing: Standing, seconds: f64, now: Timestamp) {
        self.pace = next_pace(self.pace, seconds, limits::DEADLINE_SECONDS);
        self.end(id, standing, now);
    }

    /// Fails it when it is still owed at its deadline.
    pub(crate) fn reap(&mut self, id: JobId, now: Timestamp) -> bool {
        let job = &self.jobs[id as usize];
        let is_open = matches!(job.standing, Standing::Waiting | Standing::Claimed);
        if is_open {
            self.due.remove(&(job.prio_at.micros(), id));
            self.end(id, Standing::Missed, now);
        }
        is_open
    }

    fn end(&mut self, id: JobId, standing: Standing, now: Timestamp) {
        let job = &mut self.jobs[id as usize];
        job.standing = standing;
        job.ended_at = Some(now);
        self.accounts[job.tenant as usize].active -= 1;
        self.open -= 1;
    }
}
