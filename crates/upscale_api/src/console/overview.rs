//! The first page: what there is, what this month used, what runs now.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use upscale_core::{Credits, limits};
use upscale_store::TaskFilter;

use super::{
    chart::Chart,
    error::ConsoleError,
    page::{Layout, show},
    session::SignedIn,
    state::ConsoleState,
    tasks::TaskRow,
};

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage {
    layout: Layout,
    available: Credits,
    /// Tasks that this pays for.
    tasks_left: i64,
    reserved: Credits,
    is_open: bool,
    active: u32,
    active_max: u32,
    today: u32,
    today_max: u32,
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
        .find_account(account)
        .await?
        .ok_or(ConsoleError::NotFound)?;
    let now = store.now();
    let (first, last) = Chart::month_of(now);
    let days = store.list_days(account, first).await?;
    let running = store.list_tasks(
        account,
        TaskFilter::Processing,
        None,
        limits::ACTIVE_TASKS_MAX,
    );
    let running = running.await?;
    let mut rows = Vec::new();
    for record in &running {
        rows.push(TaskRow::of(&state, record).await?);
    }
    let page = OverviewPage {
        layout: Layout::new(&who.visitor, "/", "Overview"),
        available: standing.available,
        tasks_left: standing.available.thousandths() / limits::PRICE.thousandths(),
        reserved: standing.reserved,
        is_open: standing.activated_at.is_some(),
        active: standing.active_tasks,
        active_max: limits::ACTIVE_TASKS_MAX,
        today: standing.accepted_today,
        today_max: limits::DAILY_TASKS_MAX,
        chart: Chart::of(&days, first, last),
        running: rows,
    };
    Ok(show(StatusCode::OK, &page))
}
