//! The create-request window: a fixed minute per account, counted durably on its own, so that a create that
//! fails later does not give its request back. The row's own lock makes it exact across processes.

use futures_util::future::try_join;
use upscale_core::{
    AccountId,
    limits::{CREATE_REQUESTS_PER_MINUTE, CREATE_WINDOW_SECONDS},
};

use super::Accounts;
use crate::{RateWindow, StoreError, tx::Tx};

impl Accounts<'_> {
    /// Counts one create request in the account's minute, durable on its own.
    pub async fn count_create_request(self, account: &AccountId) -> Result<RateWindow, StoreError> {
        let account = *account;
        self.store
            .single(async move |tx: &mut Tx| count(tx, &account).await)
            .await
            .map_err(StoreError::of_no_consequence)
    }
}

async fn count(tx: &Tx, account: &AccountId) -> Result<RateWindow, StoreError> {
    let window = tx.now.unix_seconds().div_euclid(CREATE_WINDOW_SECONDS);
    let contract = CREATE_REQUESTS_PER_MINUTE;
    // Counted up to the limit only: a flood past it changes no row and costs the disk nothing.
    let (limit, counted) = try_join(
        tx.find(
            "SELECT coalesce(limit_create_requests, $2) AS requests FROM account WHERE id = $1",
            &[account, &contract],
            |row| row.whole("requests"),
        ),
        tx.find(
            "INSERT INTO rate_window AS counted (account_id, \"window\", requests) VALUES ($1, $2, 1)
             ON CONFLICT (account_id, \"window\") DO UPDATE SET requests = counted.requests + 1
                 WHERE counted.requests < coalesce((SELECT limit_create_requests FROM account WHERE id = $1), $3)
             RETURNING requests",
            &[account, &window, &contract],
            |row| row.whole("requests"),
        ),
    )
    .await?;
    let limit = limit.unwrap_or(CREATE_REQUESTS_PER_MINUTE);
    Ok(RateWindow::counted(counted, limit, window, tx.now))
}
