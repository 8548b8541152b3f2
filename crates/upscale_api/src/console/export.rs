//! All that is kept of an account as one JSON file, read and sent a part at a time, so that neither its length nor a slow
//! reader is held in memory or in a transaction. Each list is as it was when its part was read.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use upscale_store::{KeyCursor, PaymentCursor, TaskCursor, TaskFilter};

use super::{
    error::ConsoleError,
    export_rows as rows,
    session::SignedIn,
    state::ConsoleState,
    tries::{HOUR_SECONDS, count},
};

/// Rows read at a time.
const ROWS_A_PART: u32 = 500;
/// Files of one user in an hour: each reads all that there is.
const EXPORTS_AN_HOUR: u32 = 10;
/// Sessions of one user: more are not open at a time.
const SESSIONS_MAX: u32 = 10_000;

/// What is written next; a list goes on after its cursor.
enum Part {
    Keys(Option<KeyCursor>),
    Tasks(Option<TaskCursor>),
    /// Lines below this number.
    Ledger(i64),
    Payments(Option<PaymentCursor>),
    End,
}

/// `GET /settings/export`.
pub(crate) async fn export(
    State(state): State<ConsoleState>,
    who: SignedIn,
) -> Result<Response, ConsoleError> {
    let subject = format!("export {}", who.session.user.id);
    if let Some(seconds) = count(&state, &subject, EXPORTS_AN_HOUR, HOUR_SECONDS).await? {
        return Err(ConsoleError::TooFast(seconds));
    }
    // A store that is away is a page that says so, not a file that breaks off.
    let head = head(&state, &who).await?;
    let rest = stream::try_unfold(Some(Part::Keys(None)), move |part| {
        let (state, account) = (state.clone(), who.session.user.account_id);
        async move {
            let Some(part) = part else { return Ok(None) };
            let written = Reader { state, account }.write(part).await?;
            Ok::<_, ConsoleError>(Some(written))
        }
    });
    let body = stream::iter([Ok(head)]).chain(rest);
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"upscale-data.json\"",
        ),
    ];
    let body = Body::from_stream(body.map(|part| part.map(Bytes::from)));
    Ok((headers, body).into_response())
}

/// The account, the user and their sessions; the object stays open.
async fn head(state: &ConsoleState, who: &SignedIn) -> Result<String, ConsoleError> {
    let (store, user) = (&state.api.store, &who.session.user);
    let account = store.accounts().find(&user.account_id).await?;
    let account = account.ok_or(ConsoleError::NotFound)?;
    let sessions = store.users().list_sessions(&user.id, SESSIONS_MAX).await?;
    let sessions: Vec<Value> = sessions.iter().map(rows::session).collect();
    Ok(format!(
        "{{\n\"exported_at\": {},\n\"account\": {},\n\"user\": {},\n\"sessions\": {},\n\"keys\": [",
        json!(rows::time(store.now())),
        rows::account(&account),
        rows::user(user),
        json!(sessions),
    ))
}

/// Reads one account.
struct Reader {
    state: ConsoleState,
    account: upscale_core::AccountId,
}

impl Reader {
    /// The text of this part, and the next one.
    async fn write(&self, part: Part) -> Result<(String, Option<Part>), ConsoleError> {
        match part {
            Part::Keys(after) => self.keys(after).await,
            Part::Tasks(after) => self.tasks(after).await,
            Part::Ledger(before) => self.ledger(before).await,
            Part::Payments(after) => self.payments(after).await,
            Part::End => Ok(("\n}\n".to_owned(), None)),
        }
    }

    async fn keys(&self, after: Option<KeyCursor>) -> Result<(String, Option<Part>), ConsoleError> {
        let accounts = self.state.api.store.accounts();
        let found = accounts
            .list_keys(&self.account, after.as_ref(), ROWS_A_PART)
            .await?;
        let text = lines(&found, after.is_none(), rows::key);
        Ok(match last(&found) {
            Some(last) => (text, Some(Part::Keys(Some(last.cursor())))),
            None => (text + "],\n\"tasks\": [", Some(Part::Tasks(None))),
        })
    }

    async fn tasks(
        &self,
        after: Option<TaskCursor>,
    ) -> Result<(String, Option<Part>), ConsoleError> {
        let tasks = self.state.api.store.tasks();
        let found = tasks
            .list(&self.account, TaskFilter::All, after.as_ref(), ROWS_A_PART)
            .await?;
        let text = lines(&found, after.is_none(), rows::task);
        Ok(match last(&found) {
            Some(last) => {
                let after = TaskCursor {
                    created_at: last.task.created_at,
                    id: last.task.id,
                };
                (text, Some(Part::Tasks(Some(after))))
            }
            None => (text + "],\n\"ledger\": [", Some(Part::Ledger(i64::MAX))),
        })
    }

    async fn ledger(&self, before: i64) -> Result<(String, Option<Part>), ConsoleError> {
        let accounts = self.state.api.store.accounts();
        let found = accounts
            .list_ledger_before(&self.account, before, ROWS_A_PART)
            .await?;
        let text = lines(&found, before == i64::MAX, rows::ledger_line);
        Ok(match last(&found) {
            Some(last) => (text, Some(Part::Ledger(last.sequence))),
            None => (text + "],\n\"payments\": [", Some(Part::Payments(None))),
        })
    }

    async fn payments(
        &self,
        after: Option<PaymentCursor>,
    ) -> Result<(String, Option<Part>), ConsoleError> {
        let payments = self.state.api.store.payments();
        let filter = upscale_store::PaymentFilter::OfAccount(self.account);
        let found = payments
            .list_after(&filter, after.as_ref(), ROWS_A_PART)
            .await?;
        let text = lines(&found, after.is_none(), rows::payment);
        Ok(match last(&found) {
            Some(last) => {
                let after = PaymentCursor {
                    first_at: last.first_at,
                    id: last.id.clone(),
                };
                (text, Some(Part::Payments(Some(after))))
            }
            None => (text + "]", Some(Part::End)),
        })
    }
}

/// A row a line, with a comma before each that follows another.
fn lines<T>(rows: &[T], is_first: bool, json: impl Fn(&T) -> Value) -> String {
    let line = |(at, row): (usize, &T)| {
        let comma = if is_first && at == 0 { "" } else { "," };
        format!("{comma}\n{}", json(row))
    };
    rows.iter().enumerate().map(line).collect()
}

/// The last of a part after which there may be more.
fn last<T>(rows: &[T]) -> Option<&T> {
    rows.last().filter(|_| rows.len() == ROWS_A_PART as usize)
}
