//! Credits: what there is, and the ledger as it is, every line.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use upscale_core::{Credits, limits};
use upscale_store::LedgerLine;

use super::{
    error::ConsoleError,
    form::Fields,
    page::{Layout, show},
    session::SignedIn,
    shown::Moment,
    state::ConsoleState,
};

/// Lines of one page.
const LINES_A_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/credits.html")]
struct CreditsPage {
    layout: Layout,
    available: Credits,
    reserved: Credits,
    charged: Credits,
    price: Credits,
    is_open: bool,
    lines: Vec<Line>,
    /// Where the next page begins.
    older: Option<i64>,
}

/// A transfer as the account sees it.
struct Line {
    sequence: i64,
    at: Moment,
    what: &'static str,
    /// What became available (+) or went from it (−); a charge takes what was reserved.
    amount: String,
    is_gain: bool,
    task: Option<String>,
    reference: Option<String>,
}

impl Line {
    fn of(line: &LedgerLine) -> Self {
        let (what, sign) = match line.kind.as_str() {
            "purchase" => ("Purchase", "+"),
            "reserve" => ("Reserved for a task", "−"),
            "charge" => ("Charged: the task succeeded", ""),
            "refund" => ("Returned: the task failed", "+"),
            "reversal" => ("Purchase taken back", "−"),
            _ => ("Transfer", ""),
        };
        Self {
            sequence: line.sequence,
            at: Moment::of(line.at),
            what,
            amount: format!("{sign}{}", line.amount),
            is_gain: sign == "+",
            task: line.task_id.as_ref().map(ToString::to_string),
            reference: line.external_reference.clone(),
        }
    }
}

/// `GET /credits`.
pub(crate) async fn ledger(
    State(state): State<ConsoleState>,
    who: SignedIn,
    RawQuery(query): RawQuery,
) -> Result<Response, ConsoleError> {
    let (store, account) = (&state.api.store, &who.session.user.account_id);
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let before = query.get("before").parse().unwrap_or(i64::MAX);
    let mut lines = store
        .list_ledger_before(account, before, LINES_A_PAGE as u32 + 1)
        .await?;
    let has_older = lines.len() > LINES_A_PAGE;
    lines.truncate(LINES_A_PAGE);
    let standing = store
        .find_account(account)
        .await?
        .ok_or(ConsoleError::NotFound)?;
    let page = CreditsPage {
        layout: Layout::new(&who.visitor, "/credits", "Credits"),
        available: standing.available,
        reserved: standing.reserved,
        charged: standing.charged,
        price: limits::PRICE,
        is_open: standing.activated_at.is_some(),
        older: lines.last().filter(|_| has_older).map(|line| line.sequence),
        lines: lines.iter().map(Line::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}
