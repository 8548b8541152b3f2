//! A whole small world for one test: a store on disk with a clock turned by hand, an account with credits,
//! a source, a child, a worker.

use std::time::Duration;

use tempfile::TempDir;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use upscale_core::{
    AccountId, Clock, Credits, IdempotencyKey, NewTask, Parameters, RefundStatus, RequestId,
    ResultFile, Scale, Task, TaskId, TaskState,
};
use upscale_pipeline::ChildOptions;
use upscale_store::{Account, Claim, CreateOutcome, QueueGlance, Results, Store, StoreOptions};
use upscale_worker::{AttemptEnd, FetchBudgets, MaintenanceOptions, Worker, WorkerOptions};

use crate::{
    fake_child::{Stage, done},
    source::{Source, Step, answer},
};

const CREDITS: i64 = 100_000;

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) results: Results,
    pub(crate) clock: Clock,
    pub(crate) source: Source,
    pub(crate) stage: Stage,
    pub(crate) folder: TempDir,
    account: AccountId,
}

impl World {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // From the present on, because files carry the system's time whatever the store's clock says.
        let clock = Clock::manual(Clock::System.now());
        let options = StoreOptions::default();
        let opened = Store::open_sqlite(folder.path(), clock.clone(), options).await;
        let store = opened.unwrap();
        let account = store.accounts().create("customer").await.unwrap().id;
        let credits = Credits::from_thousandths(CREDITS);
        let credited = store
            .accounts()
            .credit(&account, credits, "payment 1")
            .await;
        credited.unwrap();
        Self {
            results: Results::local(&folder.path().join("results")).unwrap(),
            store,
            clock,
            source: Source::start().await,
            stage: Stage::new(),
            folder,
            account,
        }
    }

    /// Orders a 2x of a source that does these steps.
    pub(crate) async fn order(&self, path: &str, steps: Vec<Step>) -> TaskId {
        let source = self.source.set(path, steps);
        self.order_of(source, path).await
    }

    /// Of a source that this world's host does not have.
    pub(crate) async fn order_url(&self, url: &str) -> TaskId {
        let source = upscale_core::SourceUrl::parse(url).unwrap();
        self.order_of(source, "elsewhere").await
    }

    async fn order_of(&self, source_url: upscale_core::SourceUrl, name: &str) -> TaskId {
        let order = NewTask {
            source_url,
            parameters: Parameters::at(Scale::X2),
        };
        let key = IdempotencyKey::parse(format!("key-of-{name}").as_bytes()).unwrap();
        let request = RequestId::random().unwrap();
        let created = self
            .store
            .tasks()
            .create(&self.account, &key, &order, &request);
        match created.await.unwrap() {
            CreateOutcome::Created(task) => task.id,
            other => panic!("{other:?}"),
        }
    }

    /// A source that answers at once.
    pub(crate) fn good_source() -> Vec<Step> {
        vec![Step::Send(answer("200 OK", "", b"picture"))]
    }

    /// A source that waits for the gate.
    pub(crate) fn gated_source() -> Vec<Step> {
        let mut steps = vec![Step::Gate];
        steps.extend(Self::good_source());
        steps
    }

    /// A child that answers as it should.
    pub(crate) fn good_child(&self) -> ChildOptions {
        self.stage.answering(&done(Scale::X2, 5_000))
    }

    pub(crate) fn options(&self, child: ChildOptions) -> WorkerOptions {
        let mut options = WorkerOptions::new(2, child);
        options.fetch = self.source.options(FetchBudgets::default());
        options.maintenance = None;
        options
    }

    pub(crate) fn worker(&self, options: WorkerOptions) -> Worker {
        Worker::new(self.store.clone(), self.results.clone(), options).unwrap()
    }

    /// A worker with this child.
    pub(crate) fn worker_of(&self, child: ChildOptions) -> Worker {
        self.worker(self.options(child))
    }

    /// The one job that is due.
    pub(crate) async fn claim(&self) -> Claim {
        let mut claims = self.store.tasks().claim("a test", 2, &[]).await.unwrap();
        assert_eq!(claims.len(), 1, "jobs due");
        claims.remove(0)
    }

    /// Claims the one job that is due and works at it.
    pub(crate) async fn attempt(&self, worker: &Worker) -> AttemptEnd {
        let claim = self.claim().await;
        let (_release, released) = watch::channel(false);
        worker.work_once(&claim, released).await
    }

    pub(crate) async fn task(&self, id: &TaskId) -> Task {
        let found = self.store.tasks().find(&self.account, id).await.unwrap();
        found.unwrap()
    }

    pub(crate) async fn result(&self, id: &TaskId) -> ResultFile {
        match self.task(id).await.state {
            TaskState::Succeeded(file) => file,
            other => panic!("{other:?}"),
        }
    }

    /// The message of a task that failed and was refunded.
    pub(crate) async fn failure(&self, id: &TaskId) -> String {
        match self.task(id).await.state {
            TaskState::Failed { message, refund } => {
                assert_eq!(refund, RefundStatus::Refunded);
                message.as_str().to_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn glance(&self) -> QueueGlance {
        self.store.tasks().queue_glance().await.unwrap()
    }

    /// Waits until the queue looks so; the caller says what it waits for.
    pub(crate) async fn wait_for(&self, what: &str, is_so: impl Fn(QueueGlance) -> bool) {
        let waited = timeout(Duration::from_secs(30), async {
            while !is_so(self.glance().await) {
                sleep(Duration::from_millis(5)).await;
            }
        });
        let glance = self.glance().await;
        assert!(waited.await.is_ok(), "{what} did not happen: {glance:?}");
    }

    /// Waits until no credit is reserved: failing a task and returning its credits are two steps.
    pub(crate) async fn wait_until_nothing_is_reserved(&self) {
        let waited = timeout(Duration::from_secs(30), async {
            while self.account().await.reserved.thousandths() > 0 {
                sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "credits stay reserved");
    }

    pub(crate) async fn account(&self) -> Account {
        let found = self.store.accounts().find(&self.account).await.unwrap();
        found.unwrap()
    }

    /// Ends a test: the books are right, and so many results were charged and nothing else.
    pub(crate) async fn assert_books(&self, charged_results: i64) {
        let report = self.store.audit(Some(&self.results)).await.unwrap();
        assert_eq!(report.breaches, []);
        let account = self.account().await;
        assert_eq!(account.charged.thousandths(), charged_results * 700);
        let sum = account.available.thousandths()
            + account.reserved.thousandths()
            + account.charged.thousandths();
        assert_eq!(sum, CREDITS);
    }

    /// Result files on the disk, their thumbnails not counted.
    pub(crate) fn result_files(&self) -> usize {
        let files = std::fs::read_dir(self.folder.path().join("results"));
        let names = files.unwrap().map(|file| file.unwrap().file_name());
        names
            .filter(|name| !name.to_string_lossy().ends_with(".thumb.png"))
            .count()
    }
}

/// Maintenance done often, for tests that turn the clock.
pub(crate) fn quick_maintenance() -> MaintenanceOptions {
    let every = Duration::from_millis(20);
    MaintenanceOptions {
        only_tasks: false,
        reap_every: every,
        refund_every: every,
        look_at_clock_every: every,
        sweep_every: every,
        audit_every: every,
        audit_files_every: every,
        transactions_every: every,
        owners: None,
        owners_every: every,
    }
}
