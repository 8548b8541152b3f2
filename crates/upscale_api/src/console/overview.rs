//! The first page: what there is, what this month used, what runs now.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use upscale_core::Credits;
use upscale_store::TaskFilter;

use super::{
    chart::Chart,
    error::ConsoleError,
    page::{Layout, show},
    session::SignedIn,
    shown::grouped,
    state::ConsoleState,
    tasks::TaskRow,
};

/// An account may run more than anybody looks at; the others stand under Tasks.
const RUNNING_SHOWN: u32 = 20;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage {
    layout: Layout,
    available: String,
    /// Tasks that this pays for.
    tasks_left: String,
    reserved: String,
    is_open: bool,
    /// Below zero: a payment went back whose credits were spent.
    is_owing: bool,
    /// An audit found its books wrong.
    is_stopped: bool,
    active: u32,
    active_max: String,
    today: String,
    today_max: String,
    chart: Chart,
    running: Vec<TaskRow>,
}

/// `GET /`.
pub(crate) async fn overview(
    State(state): State<ConsoleState>,
    who: SignedIn,
) -> Result<Response, ConsoleError> {
    let (store, account) = (&state.api.store, &who.session.user.account_id);
    let standing = store
        .accounts()
        .find(account)
        .await?
        .ok_or(ConsoleError::NotFound)?;
    let now = store.now();
    let (first, last) = Chart::month_of(now);
    let days = store.tasks().list_days(account, first).await?;
    let running = store
        .tasks()
        .list(account, TaskFilter::Processing, None, RUNNING_SHOWN);
    let running = running.await?;
    let mut rows = Vec::new();
    for record in &running {
        rows.push(TaskRow::of(&state, record).await?);
    }
    let may = standing.own_limits.effective();
    let page = OverviewPage {
        layout: Layout::new(&who.visitor, "/", "Overview"),
        available: grouped(standing.available),
        // Below zero it pays for none.
        tasks_left: grouped(
            (standing.available.thousandths() / store.options().price.thousandths()).max(0),
        ),
        reserved: grouped(standing.reserved),
        is_open: standing.activated_at.is_some(),
        is_owing: standing.available < Credits::ZERO,
        is_stopped: standing.stopped,
        active: standing.active_tasks,
        active_max: grouped(may.active_tasks),
        today: grouped(standing.accepted_today),
        today_max: grouped(may.daily_tasks),
        chart: Chart::of(&days, first, last),
        running: rows,
    };
    Ok(show(StatusCode::OK, &page))
}
