//! A fault at every statement and every commit, one after the other, of a purchase, a create, a claim and
//! each way a task can end. Anyone who was told "unavailable" or "outcome unknown" does what the contract says: asks again.
//! However it was cut, there is one task, one reserve, one settlement, and the books are right at every moment. Once a
//! commit was sent no one is told that nothing was changed.

use upscale_core::{AccountId, Clock, Credits, RequestId, Scale, TaskId, TaskState, limits};

use super::{
    figure::print_figure,
    home::{Commits, Home, faults, wait_for_rollback},
    setting::{NOON, example, failure, idempotency_key, result_file},
};
use crate::{Claim, CreateOutcome, Settlement, Store, StoreError, faults::Faults};

/// How the task ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Succeeds,
    Fails,
    /// Today's rules refuse its source: the claim fails it.
    Refused,
    /// No one claims it: the reaper fails it.
    Overdue,
}

/// Where the fault strikes.
#[derive(Debug, Clone, Copy)]
enum FaultPoint {
    Statement,
    BeforeCommit,
    /// The commit is sent and not acknowledged, nor is its answer.
    WithinCommit,
    AfterCommit,
}

impl FaultPoint {
    /// Whether the answer is the one of this point: known to have failed, or unknown.
    fn answers(self, error: &StoreError) -> bool {
        match self {
            Self::Statement | Self::BeforeCommit => matches!(error, StoreError::Unavailable(_)),
            Self::WithinCommit | Self::AfterCommit => {
                matches!(error, StoreError::OutcomeUnknown(_))
            }
        }
    }
}

struct World<'a> {
    store: Store,
    clock: Clock,
    home: &'a Home,
    account: AccountId,
    faults: Faults,
    point: FaultPoint,
}

impl<'a> World<'a> {
    /// A new account in a home whose queue is empty.
    async fn new(home: &'a Home, point: FaultPoint) -> Self {
        let clock = Clock::manual(NOON);
        let store = home.open(&clock, Commits::Quick).await;
        let account = store.accounts().create("A customer").await.unwrap().id;
        let faults = faults(&store);
        Self {
            store,
            clock,
            home,
            account,
            faults,
            point,
        }
    }

    /// Asks until the store answers. After a fault the process is another one half of the time: it opens
    /// the store anew.
    async fn insist<T>(&mut self, ask: impl AsyncFn(&Self) -> Result<T, StoreError>) -> T {
        for round in 0..5 {
            let answer = ask(self).await;
            assert_eq!(
                self.store.audit(None).await.unwrap().breaches,
                [],
                "after {answer:?}",
                answer = answer.as_ref().err()
            );
            match answer {
                Ok(answer) => return answer,
                Err(error) if !self.point.answers(&error) => panic!("{:?}: {error}", self.point),
                Err(_) => wait_for_rollback(&self.store).await,
            }
            if round % 2 == 1 {
                self.store = self.home.open(&self.clock, Commits::Quick).await;
            }
        }
        panic!("five times unavailable after one fault");
    }

    async fn order(&mut self) -> TaskId {
        let outcome = self
            .insist(async |world| {
                let (key, request) = (idempotency_key("the key"), RequestId::random().unwrap());
                world
                    .store
                    .tasks()
                    .create(&world.account, &key, &example(Scale::X2), &request)
                    .await
            })
            .await;
        match outcome {
            CreateOutcome::Created(task) | CreateOutcome::Replayed(task) => task.id,
            other => panic!("{other:?}"),
        }
    }

    /// Claims until the job is handed out; a claim whose answer was lost comes back when its lease ends.
    async fn claim(&mut self) -> Option<Claim> {
        for _ in 0..3 {
            let mut claims = self
                .insist(async |world| world.store.tasks().claim("worker", 1, &[]).await)
                .await;
            if let Some(claim) = claims.pop() {
                return Some(claim);
            }
            self.clock.advance_seconds(limits::LEASE_SECONDS);
        }
        None
    }

    async fn settle(&mut self, settlement: Settlement) {
        let claim = self.claim().await.expect("no job to settle");
        let settle = async |world: &Self| {
            world
                .store
                .tasks()
                .settle(
                    &claim.task_id,
                    claim.attempt,
                    settlement.clone(),
                    crate::Spent::slot(1.0),
                )
                .await
        };
        self.insist(settle).await;
    }

    async fn end(&mut self, ending: Ending) {
        match ending {
            Ending::Succeeds => self.settle(Settlement::Succeeded(result_file())).await,
            Ending::Fails => self.settle(failure()).await,
            Ending::Refused => {
                let refuse = "UPDATE task SET source_url = 'https://localhost/a.png'
                     WHERE state = 'processing'";
                self.home.try_sql(refuse).unwrap();
                assert!(self.claim().await.is_none());
            }
            Ending::Overdue => {
                self.clock.advance_seconds(limits::DEADLINE_SECONDS);
                self.insist(async |world| world.store.tasks().reap().await)
                    .await;
            }
        }
        self.insist(async |world| world.store.tasks().finish_refunds().await)
            .await;
    }

    async fn live(&mut self, ending: Ending) {
        let reference = format!("payment of {}", self.account);
        self.insist(async |world| {
            let credits = Credits::from_thousandths(1_000);
            world
                .store
                .accounts()
                .credit(&world.account, credits, &reference)
                .await
        })
        .await;
        let task = self.order().await;
        self.end(ending).await;
        let state = self
            .store
            .tasks()
            .find(&self.account, &task)
            .await
            .unwrap()
            .unwrap()
            .state;
        let account = self
            .store
            .accounts()
            .find(&self.account)
            .await
            .unwrap()
            .unwrap();
        let balances =
            [account.available, account.reserved, account.charged].map(Credits::thousandths);
        if ending == Ending::Succeeds {
            assert!(matches!(state, TaskState::Succeeded(_)), "{state:?}");
            assert_eq!(balances, [300, 0, 700]);
        } else {
            assert!(matches!(state, TaskState::Failed { .. }), "{state:?}");
            assert_eq!(balances, [1_000, 0, 0]);
        }
        assert_eq!((account.active_tasks, account.accepted_today), (0, 1));
        assert_eq!(
            self.store
                .accounts()
                .list_ledger(&self.account, 10)
                .await
                .unwrap()
                .len(),
            3
        );
        assert_eq!(
            self.order().await,
            task,
            "the same key names the same task for ever"
        );
    }
}

/// Lives through one fault after the other until one lies beyond the end; how many struck.
async fn every_fault(home: &Home, ending: Ending, point: FaultPoint) -> u32 {
    for n in 1..1_000 {
        let mut world = World::new(home, point).await;
        match point {
            FaultPoint::Statement => world.faults.fail_statement(n),
            FaultPoint::BeforeCommit => world.faults.fail_before_commit(n),
            FaultPoint::WithinCommit => world.faults.lose_commit(n),
            FaultPoint::AfterCommit => world.faults.fail_after_commit(n),
        }
        let faults = world.faults.clone();
        world.live(ending).await;
        if faults.is_armed() {
            return n - 1;
        }
    }
    panic!("1,000 faults and no end");
}

async fn all_points(ending: Ending, statements: u32, commits: u32) {
    for home in Home::every() {
        let engine = home.engine();
        let mut points = every_fault(&home, ending, FaultPoint::Statement).await;
        assert!(
            points >= statements,
            "{engine}, {ending:?}: only {points} statements"
        );
        for point in [
            FaultPoint::BeforeCommit,
            FaultPoint::WithinCommit,
            FaultPoint::AfterCommit,
        ] {
            let struck = every_fault(&home, ending, point).await;
            assert!(
                struck >= commits,
                "{engine}, {ending:?}: only {struck} commits at {point:?}"
            );
            points += struck;
        }
        print_figure(
            &format!(
                "a fault at every statement and commit of a life that ends so: {ending:?} ({engine})"
            ),
            "every point; nothing lost, nothing charged twice",
            "0 lost, 0 doubled",
            &format!("{points} points"),
        );
    }
}

#[tokio::test]
async fn a_success_survives_a_fault_at_every_statement_and_commit() {
    all_points(Ending::Succeeds, 25, 4).await;
}

#[tokio::test]
async fn a_failure_survives_a_fault_at_every_statement_and_commit() {
    all_points(Ending::Fails, 25, 5).await;
}

#[tokio::test]
async fn a_refusal_by_the_claim_survives_a_fault_at_every_statement_and_commit() {
    all_points(Ending::Refused, 25, 5).await;
}

#[tokio::test]
async fn an_overdue_task_survives_a_fault_at_every_statement_and_commit() {
    all_points(Ending::Overdue, 25, 4).await;
}
