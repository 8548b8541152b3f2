//! A fresh store with a clock that stands still, and the few gestures that most rules need.

use futures_util::future::join_all;
use upscale_core::{
    AccountId, Clock, Credits, FailureMessage, IdempotencyKey, Look, NewTask, Parameters,
    RequestId, ResultFile, Scale, SourceUrl, Task, TaskId, Timestamp, limits, random_token,
};

use super::home::{Commits, Home};
use crate::{Account, Claim, CreateOutcome, FenceOutcome, Results, Settlement, Store, StoreError};

/// Noon of a day in 2026: far from midnight, on the edge of a minute.
pub(crate) const NOON: Timestamp = Timestamp::from_micros(1_767_268_800_000_000);

/// As a customer does: who is put off, because too many wait for the account's row on a busy machine (`lock_timeout`),
/// asks again under the same key.
pub(crate) async fn create_patiently(
    store: &Store,
    account: &AccountId,
    key: &str,
    task: &NewTask,
) -> CreateOutcome {
    let (key, request) = (idempotency_key(key), RequestId::random().unwrap());
    for _ in 0..20 {
        match store.tasks().create(account, &key, task, &request).await {
            Err(StoreError::Unavailable(why)) if why.contains("lock timeout") => {}
            outcome => return outcome.unwrap(),
        }
    }
    panic!("put off twenty times");
}

/// One engine's store, alone in its home.
pub(crate) struct Setting {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) results: Results,
    pub(crate) home: Home,
}

/// Runs a rule on every engine and audits the books after it.
pub(crate) async fn on_every_engine(rule: impl AsyncFn(&Setting)) {
    for setting in every_engine().await {
        rule(&setting).await;
        setting.check_books().await;
    }
}

/// As [`on_every_engine`], for rules that take thousands of commits: these are not synced.
pub(crate) async fn on_every_engine_quickly(rule: impl AsyncFn(&Setting)) {
    for home in Home::every() {
        let setting = Setting::with(home, Commits::Quick).await;
        rule(&setting).await;
        setting.check_books().await;
    }
}

pub(crate) async fn every_engine() -> Vec<Setting> {
    join_all(Home::every().into_iter().map(Setting::new)).await
}

pub(crate) async fn sqlite() -> Setting {
    Setting::new(Home::sqlite()).await
}

impl Setting {
    pub(crate) async fn new(home: Home) -> Self {
        Self::with(home, Commits::Durable).await
    }

    async fn with(home: Home, commits: Commits) -> Self {
        let clock = Clock::manual(NOON);
        let store = home.open(&clock, commits).await;
        // As the service does when it starts.
        store.look_at_clock().await.unwrap();
        Self {
            store,
            clock,
            results: Results::local(&home.directory.path().join("results")).unwrap(),
            home,
        }
    }

    /// An account that has paid for this many tasks.
    pub(crate) async fn account_for(&self, tasks: i64) -> AccountId {
        let account = self.store.accounts().create("A customer").await.unwrap().id;
        let credits = Credits::from_thousandths(limits::PRICE.thousandths() * tasks);
        let reference = format!("payment of {account}");
        self.store
            .accounts()
            .credit(&account, credits, &reference)
            .await
            .unwrap();
        account
    }

    /// A worker with slots enough that the backlog turns no one away.
    pub(crate) async fn plenty_of_slots(&self) {
        self.store
            .tasks()
            .report_worker("plenty", 1_000)
            .await
            .unwrap();
    }

    pub(crate) async fn account(&self, account: &AccountId) -> Account {
        self.store.accounts().find(account).await.unwrap().unwrap()
    }

    /// Orders a 2x of the standing example under this key.
    pub(crate) async fn order(&self, account: &AccountId, key: &str) -> CreateOutcome {
        self.order_task(account, key, &example(Scale::X2)).await
    }

    pub(crate) async fn order_task(
        &self,
        account: &AccountId,
        key: &str,
        task: &NewTask,
    ) -> CreateOutcome {
        create_patiently(&self.store, account, key, task).await
    }

    /// A task that must be accepted.
    pub(crate) async fn accepted(&self, account: &AccountId, key: &str) -> Task {
        match self.order(account, key).await {
            CreateOutcome::Created(task) => task,
            other => panic!("{key} was not accepted: {other:?}"),
        }
    }

    pub(crate) async fn task(&self, account: &AccountId, task: &TaskId) -> Task {
        self.store
            .tasks()
            .find(account, task)
            .await
            .unwrap()
            .unwrap()
    }

    /// The one job that is due.
    pub(crate) async fn claimed(&self) -> Claim {
        let mut claims = self.store.tasks().claim("worker", 1, &[]).await.unwrap();
        assert_eq!(claims.len(), 1, "one job must be due");
        claims.remove(0)
    }

    pub(crate) async fn succeed(&self, claim: &Claim) -> FenceOutcome {
        let settlement = Settlement::Succeeded(result_file());
        self.store
            .tasks()
            .settle(
                &claim.task_id,
                claim.attempt,
                settlement,
                crate::Spent::slot(3.0),
            )
            .await
            .unwrap()
    }

    pub(crate) async fn fail(&self, claim: &Claim) -> FenceOutcome {
        self.store
            .tasks()
            .settle(
                &claim.task_id,
                claim.attempt,
                failure(),
                crate::Spent::slot(3.0),
            )
            .await
            .unwrap()
    }

    /// Lets so much time pass, with the service running for the last two hours of it at least: whatever the clock did
    /// before, it may delete again.
    pub(crate) async fn run(&self, seconds: i64) {
        let watched = seconds.clamp(0, 2 * 3_600);
        self.clock.advance_seconds(seconds - watched);
        self.store.look_at_clock().await.unwrap();
        self.keep_looking(watched).await;
    }

    /// Lets so much time pass while the service runs.
    pub(crate) async fn keep_looking(&self, seconds: i64) {
        let mut left = seconds;
        while left > 0 {
            let step = left.min(limits::CLOCK_LOOK_SECONDS);
            self.clock.advance_seconds(step);
            self.store.look_at_clock().await.unwrap();
            left -= step;
        }
    }

    /// A sweep that notes what is due, and one that removes it; how many files.
    pub(crate) async fn sweep_twice(&self) -> u32 {
        let first = self.store.sweep(&self.results).await.unwrap();
        self.keep_looking(limits::RESULT_DUE_SECONDS).await;
        first + self.store.sweep(&self.results).await.unwrap()
    }

    pub(crate) async fn check_books(&self) {
        let report = self.store.audit(None).await.unwrap();
        assert_eq!(
            report.breaches,
            [],
            "the books of {} are wrong",
            self.home.engine()
        );
    }
}

pub(crate) fn idempotency_key(key: &str) -> IdempotencyKey {
    let key = key.replace(' ', "-");
    IdempotencyKey::parse(format!("{key:->8}").as_bytes()).unwrap()
}

pub(crate) fn example(scale: Scale) -> NewTask {
    NewTask {
        source_url: SourceUrl::parse("https://pictures.example.org/a.png").unwrap(),
        parameters: Parameters::at(scale),
    }
}

pub(crate) fn result_file() -> ResultFile {
    ResultFile {
        name: random_token().unwrap(),
        sha256: "0".repeat(64),
        size_bytes: 5,
        width: 8,
        height: 6,
        preview: None,
        look: Some(Look::Natural),
    }
}

pub(crate) fn failure() -> Settlement {
    Settlement::Failed(FailureMessage::new("The source answered 404"))
}

impl Drop for Setting {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the engine was {}", self.home.engine());
        }
    }
}
