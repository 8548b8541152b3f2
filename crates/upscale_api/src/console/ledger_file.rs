//! The whole ledger of an account as a CSV file, read and sent a part at a time, so that neither its length nor a slow
//! reader is held in memory or in a transaction.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use csv::Writer;
use futures_util::{StreamExt, stream};
use upscale_core::{AccountId, Credits};
use upscale_store::LedgerLine;

use super::{error::ConsoleError, session::SignedIn, shown::Moment, state::ConsoleState};
use crate::pages::rows::change_of_available;

/// Lines read at a time.
const LINES_A_PART: u32 = 500;
/// The sum of the fifth column is what is available.
const COLUMNS: [&str; 7] = [
    "line",
    "at",
    "kind",
    "credits",
    "change_of_available",
    "task",
    "reference",
];

/// `GET /credits/ledger.csv`: newest first, as it was when the first part was read.
pub(crate) async fn ledger_file(
    State(state): State<ConsoleState>,
    who: SignedIn,
) -> Result<Response, ConsoleError> {
    let account = who.session.user.account_id;
    // A store that is away is a page that says so, not a file that breaks off.
    let (first, older) = part(&state, &account, i64::MAX).await?;
    let rest = stream::try_unfold(older, move |older| {
        let (state, account) = (state.clone(), account);
        async move {
            match older {
                None => Ok(None),
                Some(before) => part(&state, &account, before).await.map(Some),
            }
        }
    });
    let body = stream::iter([Ok(Bytes::from(first))]).chain(rest.map(|part| part.map(Bytes::from)));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"upscale-ledger.csv\"",
        ),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// Lines below this number, and the number to go on from when there may be more.
async fn part(
    state: &ConsoleState,
    account: &AccountId,
    before: i64,
) -> Result<(Vec<u8>, Option<i64>), ConsoleError> {
    let store = &state.api.store;
    let lines = store
        .accounts()
        .list_ledger_before(account, before, LINES_A_PART)
        .await?;
    let text = write(&lines, before == i64::MAX);
    let last = lines
        .last()
        .filter(|_| lines.len() == LINES_A_PART as usize);
    let text = text.map_err(|error| ConsoleError::Broken(error.to_string()))?;
    Ok((text, last.map(|line| line.sequence)))
}

fn write(lines: &[LedgerLine], with_heading: bool) -> csv::Result<Vec<u8>> {
    let mut file = Writer::from_writer(Vec::new());
    if with_heading {
        file.write_record(COLUMNS)?;
    }
    for line in lines {
        let change = Credits::from_thousandths(change_of_available(line));
        file.write_record([
            line.sequence.to_string(),
            Moment::of(line.at).machine,
            line.kind.to_string(),
            line.amount.to_string(),
            change.to_string(),
            line.task_id
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            line.external_reference.clone().unwrap_or_default(),
        ])?;
    }
    file.into_inner()
        .map_err(|error| std::io::Error::other(error.to_string()).into())
}
