//! The store and the model live through the same random days: creates with new, same and mismatched keys,
//! claims, late and stale words, expiry, deadlines, purchases, crashes before and after a commit, a clock
//! that jumps. After every step the accounts agree; after every few the books are audited.

use std::cell::RefCell;

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRunner},
};
use upscale_core::{
    AccountId, AttemptFailure, Clock, Credits, RefundStatus, RequestId, Scale, TaskId, TaskState,
};

use super::{
    figure::print_figure,
    home::{Commits, Home, faults, wait_for_rollback},
    model::{Created, Credited, Model, State},
    setting::{NOON, example, failure, idempotency_key, result_file},
    steps::{ACCOUNTS, Crash, Step, crash, step},
};
use crate::{CreateOutcome, FenceOutcome, PurchaseOutcome, Settlement, Store, StoreError};

/// Threads that share the cases of one run, each with dice of its own.
const THREADS: u32 = 2;
const STEPS_MAX: usize = 24;
/// Cases on one file: enough that opening costs little, few enough that an audit stays quick.
const CASES_A_FILE: u32 = 40;
const AUDIT_EVERY: usize = 8;
/// A payment that no step reports again.
const PURCHASE_BEFORE: u8 = 100;

/// A store with the file it lives in, used by one case after the other.
struct World {
    store: Store,
    clock: Clock,
    home: Home,
    cases: u32,
}

/// One case: the model, and the store's names for what the model numbers.
struct Case<'a> {
    world: &'a mut World,
    model: Model,
    accounts: Vec<AccountId>,
    /// None while the answer that would have told it was lost.
    tasks: Vec<Option<TaskId>>,
    claims: Vec<(usize, i64)>,
    burst_keys: u32,
}

impl World {
    async fn new(home: Home) -> Self {
        let clock = Clock::manual(NOON);
        Self {
            store: home.open(&clock, Commits::Quick).await,
            clock,
            home,
            cases: 0,
        }
    }

    async fn check_books(&self) {
        assert_eq!(self.store.audit(None).await.unwrap().breaches, []);
    }
}

impl<'a> Case<'a> {
    async fn new(world: &'a mut World) -> Self {
        let mut accounts = Vec::new();
        for _ in 0..ACCOUNTS {
            accounts.push(
                world
                    .store
                    .accounts()
                    .create("A customer")
                    .await
                    .unwrap()
                    .id,
            );
        }
        let model = Model::new(ACCOUNTS);
        let mut case = Self {
            world,
            model,
            accounts,
            tasks: Vec::new(),
            claims: Vec::new(),
            burst_keys: 0,
        };
        // The first account can begin at once; the second begins poor.
        case.purchase(0, PURCHASE_BEFORE, 20_000, Crash::None).await;
        case
    }

    fn now(&self) -> i64 {
        self.world.store.now().micros()
    }

    /// Arms the crash, asks, and says whether the answer was lost to it.
    async fn ask<T>(
        &self,
        crash: Crash,
        ask: impl AsyncFn(&Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        let faults = faults(&self.world.store);
        match crash {
            Crash::None => {}
            Crash::BeforeCommit => faults.fail_before_commit(1),
            Crash::AfterCommit => faults.fail_after_commit(1),
        }
        match ask(&self.world.store).await {
            Ok(answer) => {
                assert_eq!(crash, Crash::None, "the crash did not strike");
                Some(answer)
            }
            Err(StoreError::Unavailable(_)) if crash == Crash::BeforeCommit => {
                wait_for_rollback(&self.world.store).await;
                None
            }
            Err(StoreError::OutcomeUnknown(_)) if crash == Crash::AfterCommit => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn take(&mut self, step: &Step, crash: Crash) {
        match *step {
            Step::Create {
                account,
                key,
                four_times,
            } => {
                self.create(account, &format!("key {key}"), four_times, crash)
                    .await;
            }
            Step::Burst { account, count } => {
                for _ in 0..count {
                    self.burst_keys += 1;
                    self.create(
                        account,
                        &format!("burst {}", self.burst_keys),
                        false,
                        Crash::None,
                    )
                    .await;
                }
            }
            Step::Count { account, requests } => self.count(account, requests).await,
            Step::Purchase {
                account,
                reference,
                amount,
            } => {
                self.purchase(account, reference, amount, crash).await;
            }
            Step::Claim { count } => self.claim(count, crash).await,
            Step::FinishRefunds => {
                let refunded = self
                    .ask(crash, async |store| store.tasks().finish_refunds().await)
                    .await;
                if crash != Crash::BeforeCommit {
                    let expected = self.model.refund();
                    assert!(refunded.is_none_or(|refunded| refunded == expected));
                }
            }
            Step::Reap => self.reap(crash).await,
            Step::Die => self.die(crash).await,
            Step::Advance { seconds } => self.world.clock.advance_seconds(seconds),
            Step::Reopen => {
                let world = &mut self.world;
                world.store = world.home.open(&world.clock, Commits::Quick).await;
            }
            _ => self.speak(step, crash).await,
        }
    }

    async fn create(&mut self, account: usize, key: &str, four_times: bool, crash: Crash) {
        let order = example(if four_times { Scale::X4 } else { Scale::X2 });
        let (name, owner) = (idempotency_key(key), self.accounts[account]);
        let request = RequestId::random().unwrap();
        let answer = self
            .ask(crash, async |store| {
                store.tasks().create(&owner, &name, &order, &request).await
            })
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let expected = self.model.create(account, key, four_times, self.now());
        if let Created::New(_) = expected {
            self.tasks.push(None);
        }
        match (answer, expected) {
            (None, _) | (Some(CreateOutcome::Conflict), Created::Conflict) => {}
            (Some(CreateOutcome::Created(task)), Created::New(at)) => {
                self.tasks[at] = Some(task.id)
            }
            (Some(CreateOutcome::Replayed(task)), Created::Replayed(at)) => {
                assert_eq!(state(&task.state), self.model.tasks[at].state);
                assert_eq!(*self.tasks[at].get_or_insert(task.id), task.id);
            }
            (Some(CreateOutcome::ActiveLimit { .. }), Created::Active) => {}
            (Some(CreateOutcome::DailyLimit { .. }), Created::Daily) => {}
            (
                Some(CreateOutcome::InsufficientCredits { available, .. }),
                Created::Poor(expected),
            ) => {
                assert_eq!(available.thousandths(), expected);
            }
            (answer, expected) => panic!("{answer:?} instead of {expected:?}"),
        }
    }

    async fn count(&mut self, account: usize, requests: u8) {
        for _ in 0..requests {
            let window = self
                .world
                .store
                .accounts()
                .count_create_request(&self.accounts[account])
                .await
                .unwrap();
            assert_eq!(window.allowed, self.model.count(account, self.now()));
        }
    }

    async fn purchase(&mut self, account: usize, reference: u8, amount: i64, crash: Crash) {
        let (owner, credits) = (self.accounts[account], Credits::from_thousandths(amount));
        let name = format!("{} {reference}", self.accounts[0]);
        let answer = self
            .ask(crash, async |store| {
                store.accounts().credit(&owner, credits, &name).await
            })
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let expected = match self.model.credit(account, reference, amount) {
            Credited::Yes => PurchaseOutcome::Credited,
            Credited::Already => PurchaseOutcome::AlreadyCredited,
            Credited::Taken => PurchaseOutcome::ReferenceTaken,
        };
        assert!(answer.is_none_or(|answer| answer == expected));
    }

    async fn claim(&mut self, count: u32, crash: Crash) {
        let answer = self
            .ask(crash, async |store| {
                store.tasks().claim("worker", count, &[]).await
            })
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let handed = self.model.claim(count, self.now());
        self.claims
            .extend(handed.iter().map(|&(at, attempt, ..)| (at, attempt)));
        let Some(claims) = answer else { return };
        assert_eq!(claims.len(), handed.len());
        for (claim, (at, attempt, transient, crashes, interruptions)) in
            claims.into_iter().zip(handed)
        {
            assert_eq!(*self.tasks[at].get_or_insert(claim.task_id), claim.task_id);
            let facts = (claim.attempt, claim.transient_failures, claim.crashes);
            assert_eq!(facts, (attempt, transient, crashes));
            assert_eq!(claim.interruptions, interruptions);
        }
    }

    async fn die(&mut self, crash: Crash) {
        let answer = self
            .ask(crash, async |store| {
                store.tasks().end_leases("worker").await
            })
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let ended = self.model.die(self.now());
        assert!(answer.is_none_or(|answer| answer == ended));
    }

    async fn reap(&mut self, crash: Crash) {
        let answer = self
            .ask(crash, async |store| store.tasks().reap().await)
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let overdue = self.model.reap(self.now());
        if let Some(reaped) = answer {
            assert_eq!(reaped as usize, overdue.len());
            self.model.refund_these(&overdue);
        }
    }

    /// A worker's report about one of its claims, which may long be another's.
    async fn speak(&mut self, step: &Step, crash: Crash) {
        let (Step::Heartbeat { claim }
        | Step::Release { claim }
        | Step::Succeed { claim }
        | Step::Fail { claim }
        | Step::Retry { claim, .. }) = *step
        else {
            panic!("{step:?} is no word of a worker");
        };
        let Some(&(at, attempt)) = self.claims.iter().rev().nth(claim) else {
            return;
        };
        // A worker whose claim was lost on the way never speaks.
        let Some(task) = self.tasks[at] else {
            return;
        };
        let answer = self
            .ask(crash, async |to| report(to, step, &task, attempt).await)
            .await;
        if crash == Crash::BeforeCommit {
            return;
        }
        let now = self.now();
        let received = match *step {
            Step::Heartbeat { .. } => self.model.heartbeat(at, attempt, now),
            Step::Release { .. } => self.model.release(at, attempt, now),
            Step::Retry { crash, seconds, .. } => {
                self.model
                    .retry(at, attempt, crash, now + i64::from(seconds) * 1_000_000)
            }
            Step::Succeed { .. } => self.model.succeed(at, attempt),
            _ => self.model.fail(at, attempt),
        };
        if let Some(answer) = answer {
            assert_eq!(answer == FenceOutcome::Done, received, "{step:?}");
            if received && matches!(step, Step::Fail { .. }) {
                self.model.refund_these(&[at]);
            }
        }
    }

    async fn compare_accounts(&self) {
        for (at, id) in self.accounts.iter().enumerate() {
            let account = self.world.store.accounts().find(id).await.unwrap().unwrap();
            let expected = &self.model.accounts[at];
            let money =
                [account.available, account.reserved, account.charged].map(Credits::thousandths);
            assert_eq!(money, [expected.available, expected.held, expected.charged]);
            assert_eq!(account.activated_at.is_some(), expected.activated);
            assert_eq!(account.active_tasks, self.model.active(at));
            assert_eq!(account.accepted_today, self.model.accepted(at, self.now()));
        }
    }

    /// Every key still names its task, in the state the model has; then everything left ends, so that the
    /// next case finds an empty queue.
    async fn finish(mut self) {
        for at in 0..self.model.tasks.len() {
            let task = self.model.tasks[at].clone();
            self.create(task.account, &task.key, task.four_times, Crash::None)
                .await;
        }
        self.reap(Crash::None).await;
        self.world.clock.advance_seconds(300);
        self.reap(Crash::None).await;
        let refunded = self.world.store.tasks().finish_refunds().await.unwrap();
        assert_eq!(refunded, self.model.refund());
        self.compare_accounts().await;
        self.world.check_books().await;
        let glance = self.world.store.tasks().queue_glance().await.unwrap();
        assert_eq!((glance.waiting, glance.claimed), (0, 0));
        self.world.cases += 1;
    }
}

async fn report(
    store: &Store,
    step: &Step,
    task: &TaskId,
    attempt: i64,
) -> Result<FenceOutcome, StoreError> {
    match *step {
        Step::Heartbeat { .. } => store.tasks().heartbeat(task, attempt).await,
        Step::Release { .. } => store.tasks().release(task, attempt).await,
        Step::Retry { crash, seconds, .. } => {
            let kind = if crash {
                AttemptFailure::Crash
            } else {
                AttemptFailure::Transient
            };
            store
                .tasks()
                .retry_later(task, attempt, kind, u64::from(seconds) * 1_000)
                .await
        }
        Step::Succeed { .. } => {
            store
                .tasks()
                .settle(
                    task,
                    attempt,
                    Settlement::Succeeded(result_file()),
                    crate::Spent::slot(3.0),
                )
                .await
        }
        _ => {
            store
                .tasks()
                .settle(task, attempt, failure(), crate::Spent::slot(3.0))
                .await
        }
    }
}

fn state(state: &TaskState) -> State {
    match state {
        TaskState::Processing => State::Processing,
        TaskState::Succeeded(_) => State::Succeeded,
        TaskState::Failed {
            refund: RefundStatus::Pending,
            ..
        } => State::Pending,
        TaskState::Failed {
            refund: RefundStatus::Refunded,
            ..
        } => State::Refunded,
    }
}

async fn live(world: &mut World, steps: &[(Step, Crash)]) {
    let mut case = Case::new(world).await;
    for (number, (step, crash)) in steps.iter().enumerate() {
        case.take(step, *crash).await;
        case.compare_accounts().await;
        if number % AUDIT_EVERY == AUDIT_EVERY - 1 {
            case.world.check_books().await;
        }
    }
    case.finish().await;
}

/// Eight days for each of proptest's cases, 256 or what `PROPTEST_CASES` says: 1250 are ten thousand days.
#[test]
fn the_file_and_the_model_agree_over_random_days() {
    agree_over(1, "SQLite", || Some(Home::sqlite()));
}

/// A twentieth of that: each statement is a round trip to a server.
#[test]
fn the_server_and_the_model_agree_over_random_days() {
    agree_over(20, "PostgreSQL", Home::postgres);
}

fn agree_over(share: u32, engine: &str, home: fn() -> Option<Home>) {
    let cases = Config::default().cases * 8 / share;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| agree_on_one_thread(cases / THREADS, home));
        }
    });
    if home().is_some() {
        let what =
            format!("random days of tasks, money and crashes agree with the model, {engine}");
        let (goal, tries) = (format!("{cases} cases"), format!("{cases} cases"));
        print_figure(&what, &goal, "no difference", &tries);
    }
}

/// Nothing to do where the engine is not installed, which was said.
fn agree_on_one_thread(cases: u32, home: fn() -> Option<Home>) {
    if home().is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let steps = prop::collection::vec((step(), crash()), 1..STEPS_MAX);
    let world = RefCell::new(None);
    let config = Config {
        cases,
        failure_persistence: None,
        // Unoptimised ChaCha would take a tenth of the time.
        rng_algorithm: RngAlgorithm::XorShift,
        ..Config::default()
    };
    let agreed = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            // Put back only after a good case: a failing one must not leave its jobs to the next.
            let is_young = |world: &World| world.cases < CASES_A_FILE;
            let reusable = world.take().filter(is_young);
            let mut fresh = match reusable {
                Some(world) => world,
                None => World::new(home().unwrap()).await,
            };
            live(&mut fresh, &steps).await;
            world.replace(Some(fresh));
        });
        Ok(())
    });
    agreed.unwrap();
}
