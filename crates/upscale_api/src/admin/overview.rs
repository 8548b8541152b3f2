//! How the house stands: the queue, who works, what hangs, whether the books balance, and what today brought.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use upscale_core::{Credits, QueueFacts, Timestamp, admission_limit_seconds, predicted_seconds};
use upscale_store::{
    LedgerKind, LedgerSum, OperatorTask, OperatorTaskFilter, PaymentFilter, QueueGlance, Store,
    StoreError, WorkerRecord,
};

use super::{
    books::Checked,
    lately::Lately,
    rows::{TaskRow, ago, short},
    state::AdminState,
    tasks::Search,
    visitor::Operator,
};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for},
    page::{Layout, show},
    query::PageQuery,
    shown::{self, Moment},
};

/// Open tasks that are looked at to say what each worker does.
const TASKS_LOOKED_AT: u32 = 500;
/// Of refunds, refused payments and breaches no more are shown.
const SHOWN_MAX: usize = 20;

#[derive(Template)]
#[template(path = "admin/overview.html")]
struct OverviewPage {
    layout: Layout,
    searched: String,
    queue: QueueView,
    workers: Vec<WorkerView>,
    today: Today,
    books: Option<BooksView>,
    stopped: Vec<String>,
    refunds: Vec<TaskRow>,
    has_more_refunds: bool,
    refused_payments: usize,
    lately: Lately,
}

struct QueueView {
    waiting: u32,
    claimed: u32,
    live_slots: u32,
    oldest: String,
    seconds_per_job: String,
    predicted: String,
    limit: String,
    is_full: bool,
}

impl QueueView {
    fn of(glance: &QueueGlance, deadline_seconds: i64) -> Self {
        let predicted = predicted_seconds(QueueFacts {
            open_jobs: glance.waiting + glance.claimed,
            live_slots: glance.live_slots,
            seconds_per_job: glance.seconds_per_job,
            deadline_seconds,
        });
        let limit = admission_limit_seconds(deadline_seconds);
        Self {
            waiting: glance.waiting,
            claimed: glance.claimed,
            live_slots: glance.live_slots,
            oldest: format!("{} s", glance.oldest_seconds),
            seconds_per_job: format!("{:.1} s", glance.seconds_per_job),
            predicted: format!("{predicted:.0} s"),
            limit: format!("{limit:.0} s"),
            is_full: predicted > limit,
        }
    }
}

struct WorkerView {
    id: String,
    slots: u32,
    seen: String,
    is_live: bool,
    tasks: Vec<String>,
}

impl WorkerView {
    fn of(worker: &WorkerRecord, open: &[OperatorTask], now: Timestamp) -> Self {
        let works_on = |task: &&OperatorTask| {
            let job = task.job.as_ref();
            job.and_then(|job| job.worker.as_ref()) == Some(&worker.id)
        };
        Self {
            id: short(&worker.id).to_owned(),
            slots: worker.slots,
            seen: ago(worker.seen_at, now),
            is_live: worker.alive,
            tasks: open
                .iter()
                .filter(works_on)
                .map(|task| task.task.id.to_string())
                .collect(),
        }
    }
}

/// What the ledger says of this UTC day.
struct Today {
    accepted: u64,
    succeeded: u64,
    charged: Credits,
    failed: u64,
    returned: Credits,
    bought: Credits,
}

impl Today {
    fn of(sums: &[LedgerSum]) -> Self {
        let all = |kind: LedgerKind| {
            let of_kind = sums.iter().filter(|sum| sum.kind == kind);
            (
                of_kind.clone().map(|sum| sum.transfers).sum::<u64>(),
                of_kind.map(|sum| sum.amount).sum::<Credits>(),
            )
        };
        let ((succeeded, charged), (failed, returned)) =
            (all(LedgerKind::Charge), all(LedgerKind::Refund));
        Self {
            accepted: all(LedgerKind::Reserve).0,
            succeeded,
            charged,
            failed,
            returned,
            bought: all(LedgerKind::Purchase).1,
        }
    }
}

struct BooksView {
    at: Moment,
    took: String,
    /// How many invariants.
    checked: usize,
    breaches: Vec<(String, Option<String>, String)>,
    breaches_in_all: usize,
    problem: Option<String>,
}

impl BooksView {
    fn of(checked: Checked) -> Self {
        let (report, problem) = match checked.report {
            Ok(report) => (report, None),
            Err(problem) => (upscale_store::AuditReport::default(), Some(problem)),
        };
        let breaches = report.breaches.iter().take(SHOWN_MAX);
        Self {
            at: Moment::of(checked.at),
            took: shown::duration(i64::try_from(checked.took.as_micros()).unwrap_or(i64::MAX)),
            checked: report.checked.len(),
            breaches: breaches
                .map(|breach| {
                    let account = breach.account_id.as_ref().map(ToString::to_string);
                    (breach.invariant.clone(), account, breach.detail.clone())
                })
                .collect(),
            breaches_in_all: report.breaches.len(),
            problem,
        }
    }
}

/// `GET /`.
pub(crate) async fn overview(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    PageQuery(search): PageQuery<Search>,
) -> Result<Response, ConsoleError> {
    let store = &state.api.store;
    let glance = store.tasks().queue_glance().await?;
    let hanging = OperatorTaskFilter::RefundPending;
    let refunds = Page::of(list(store, hanging, asked_for(SHOWN_MAX)).await?, SHOWN_MAX);
    let refused = store
        .payments()
        .list(&PaymentFilter::Refused, SHOWN_MAX as u32);
    let refused_payments = refused.await?.len();
    let sums = store
        .operator()
        .sum_ledger_since(midnight(store.now()))
        .await?;
    let page = OverviewPage {
        layout: visitor.layout("/", "Overview"),
        searched: search.q,
        queue: QueueView::of(&glance, store.options().deadline_seconds),
        workers: workers(store).await?,
        today: Today::of(&sums),
        books: state.books.look(store).await.map(BooksView::of),
        stopped: stopped(store).await?,
        has_more_refunds: refunds.is_cut(),
        refunds: refunds.items.iter().map(TaskRow::of).collect(),
        refused_payments,
        lately: Lately::of(store).await?,
    };
    Ok(show(StatusCode::OK, &page))
}

async fn list(
    store: &Store,
    filter: OperatorTaskFilter,
    limit: u32,
) -> Result<Vec<OperatorTask>, StoreError> {
    store.operator().list_tasks(&filter, limit).await
}

async fn workers(store: &Store) -> Result<Vec<WorkerView>, StoreError> {
    let open = list(store, OperatorTaskFilter::Processing, TASKS_LOOKED_AT).await?;
    let now = store.now();
    let workers = store.operator().list_workers().await?.into_iter();
    Ok(workers
        .map(|worker| WorkerView::of(&worker, &open, now))
        .collect())
}

async fn stopped(store: &Store) -> Result<Vec<String>, StoreError> {
    let stopped = store.accounts().list_stopped().await?.into_iter();
    Ok(stopped.map(|account| account.to_string()).collect())
}

fn midnight(now: Timestamp) -> Timestamp {
    now.next_utc_day().plus_seconds(-86_400)
}
