//! The store as it should behave, in plain Rust: a list of tasks and a few sums. Written from the contract,
//! not from the SQL, so that the two can disagree.

use std::collections::HashMap;

const PRICE: i64 = 700;
const SECOND: i64 = 1_000_000;
const LEASE: i64 = 60 * SECOND;
const DEADLINE: i64 = 270 * SECOND;
const DAY: i64 = 86_400 * SECOND;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum State {
    Processing,
    Succeeded,
    Pending,
    Refunded,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) account: usize,
    pub(super) key: String,
    pub(super) four_times: bool,
    pub(super) state: State,
    prio_at: i64,
    visible_at: i64,
    deadline_at: i64,
    attempt: i64,
    transient: u32,
    crashes: u32,
    interruptions: u32,
    held: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    pub(super) available: i64,
    pub(super) held: i64,
    pub(super) charged: i64,
    pub(super) activated: bool,
    days: HashMap<i64, u32>,
}

/// What a create must answer; tasks by their place in the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Created {
    New(usize),
    Replayed(usize),
    Conflict,
    Active,
    Daily,
    Poor(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Credited {
    Yes,
    Already,
    Taken,
}

/// What a claim must hand out: task, attempt, transient failures, crashes, interruptions.
pub(super) type Handed = (usize, i64, u32, u32, u32);

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) tasks: Vec<Task>,
    pub(super) accounts: Vec<Account>,
    references: HashMap<u8, (usize, i64)>,
    windows: HashMap<(usize, i64), u32>,
}

impl Model {
    pub(super) fn new(accounts: usize) -> Self {
        Self {
            accounts: vec![Account::default(); accounts],
            ..Self::default()
        }
    }

    pub(super) fn active(&self, account: usize) -> u32 {
        let owned = self.tasks.iter().filter(|task| task.account == account);
        owned.filter(|task| task.state == State::Processing).count() as u32
    }

    pub(super) fn accepted(&self, account: usize, now: i64) -> u32 {
        *self.accounts[account]
            .days
            .get(&now.div_euclid(DAY))
            .unwrap_or(&0)
    }

    pub(super) fn create(
        &mut self,
        account: usize,
        key: &str,
        four_times: bool,
        now: i64,
    ) -> Created {
        let known = |task: &Task| task.account == account && task.key == key;
        if let Some(at) = self.tasks.iter().position(known) {
            let same = self.tasks[at].four_times == four_times;
            return if same {
                Created::Replayed(at)
            } else {
                Created::Conflict
            };
        }
        let active = self.active(account);
        if active >= 20 {
            return Created::Active;
        }
        if self.accepted(account, now) >= 2_500 {
            return Created::Daily;
        }
        let owner = &mut self.accounts[account];
        if owner.available < PRICE {
            return Created::Poor(owner.available);
        }
        owner.available -= PRICE;
        owner.held += PRICE;
        *owner.days.entry(now.div_euclid(DAY)).or_default() += 1;
        self.tasks.push(Task {
            account,
            key: key.to_owned(),
            four_times,
            state: State::Processing,
            prio_at: now + i64::from(active) * 2 * SECOND,
            visible_at: now,
            deadline_at: now + DEADLINE,
            attempt: 0,
            transient: 0,
            crashes: 0,
            interruptions: 0,
            held: false,
        });
        Created::New(self.tasks.len() - 1)
    }

    pub(super) fn credit(&mut self, account: usize, reference: u8, amount: i64) -> Credited {
        match self.references.get(&reference) {
            Some(&before) if before == (account, amount) => return Credited::Already,
            Some(_) => return Credited::Taken,
            None => {}
        }
        self.references.insert(reference, (account, amount));
        self.accounts[account].available += amount;
        self.accounts[account].activated = true;
        Credited::Yes
    }

    /// Whether the request is within its minute.
    pub(super) fn count(&mut self, account: usize, now: i64) -> bool {
        let requests = self
            .windows
            .entry((account, now.div_euclid(60 * SECOND)))
            .or_default();
        *requests += 1;
        *requests <= 60
    }

    /// What is handed out.
    pub(super) fn claim(&mut self, count: u32, now: i64) -> Vec<Handed> {
        let due = |task: &Task| {
            task.state == State::Processing && task.visible_at <= now && task.deadline_at > now
        };
        let mut due: Vec<usize> = (0..self.tasks.len())
            .filter(|&at| due(&self.tasks[at]))
            .collect();
        due.sort_by_key(|&at| (self.tasks[at].prio_at, at));
        due.truncate(count as usize);
        let hand_out = |at: usize| {
            let task = &mut self.tasks[at];
            task.interruptions += u32::from(task.held);
            (task.held, task.attempt, task.visible_at) = (true, task.attempt + 1, now + LEASE);
            (
                at,
                task.attempt,
                task.transient,
                task.crashes,
                task.interruptions,
            )
        };
        due.into_iter().map(hand_out).collect()
    }

    /// The one worker there is has died; how many leases that ends.
    pub(super) fn die(&mut self, now: i64) -> u32 {
        let held = |task: &&mut Task| task.state == State::Processing && task.held;
        let mut ended = 0;
        for task in self.tasks.iter_mut().filter(held) {
            task.interruptions += 1;
            let delay = match task.interruptions {
                1 => 0,
                times => (SECOND << (times - 2).min(16)).min(20 * SECOND),
            };
            (task.held, task.visible_at) = (false, now + delay);
            ended += 1;
        }
        ended
    }

    /// The task if this attempt still holds it.
    fn holder(&mut self, at: usize, attempt: i64) -> Option<&mut Task> {
        let task = &mut self.tasks[at];
        (task.state == State::Processing && task.held && task.attempt == attempt).then_some(task)
    }

    pub(super) fn heartbeat(&mut self, at: usize, attempt: i64, now: i64) -> bool {
        self.holder(at, attempt)
            .map(|task| task.visible_at = now + LEASE)
            .is_some()
    }

    pub(super) fn release(&mut self, at: usize, attempt: i64, now: i64) -> bool {
        let holder = self.holder(at, attempt);
        holder
            .map(|task| (task.held, task.visible_at) = (false, now))
            .is_some()
    }

    pub(super) fn retry(&mut self, at: usize, attempt: i64, crash: bool, due_at: i64) -> bool {
        let Some(task) = self.holder(at, attempt) else {
            return false;
        };
        (task.held, task.visible_at) = (false, due_at);
        task.crashes += u32::from(crash);
        task.transient += u32::from(!crash);
        true
    }

    pub(super) fn succeed(&mut self, at: usize, attempt: i64) -> bool {
        let Some(task) = self.holder(at, attempt) else {
            return false;
        };
        task.state = State::Succeeded;
        let owner = task.account;
        self.accounts[owner].held -= PRICE;
        self.accounts[owner].charged += PRICE;
        true
    }

    /// The first of the two steps.
    pub(super) fn fail(&mut self, at: usize, attempt: i64) -> bool {
        self.holder(at, attempt)
            .map(|task| task.state = State::Pending)
            .is_some()
    }

    /// The second step, for whatever waits for it; how many.
    pub(super) fn refund(&mut self) -> u32 {
        let mut refunded = 0;
        for task in self
            .tasks
            .iter_mut()
            .filter(|task| task.state == State::Pending)
        {
            task.state = State::Refunded;
            self.accounts[task.account].held -= PRICE;
            self.accounts[task.account].available += PRICE;
            refunded += 1;
        }
        refunded
    }

    /// The second step for these alone, as it follows the first at once.
    pub(super) fn refund_these(&mut self, failed: &[usize]) {
        for &at in failed {
            let task = &mut self.tasks[at];
            assert_eq!(task.state, State::Pending);
            task.state = State::Refunded;
            self.accounts[task.account].held -= PRICE;
            self.accounts[task.account].available += PRICE;
        }
    }

    /// Mends what a clock that stepped back left too far ahead, then fails what is overdue.
    pub(super) fn reap(&mut self, now: i64) -> Vec<usize> {
        let mut overdue = Vec::new();
        for (at, task) in self.tasks.iter_mut().enumerate() {
            if task.state != State::Processing {
                continue;
            }
            task.deadline_at = task.deadline_at.min(now + DEADLINE);
            if task.visible_at > now + LEASE {
                task.visible_at = now + LEASE;
            }
            if task.deadline_at <= now {
                task.state = State::Pending;
                overdue.push(at);
            }
        }
        overdue
    }
}
