//! The create-request window: a fixed minute per account, counted durably on its own, so that a create that
//! fails later does not give its request back. The row's own lock makes it exact across processes.

use upscale_core::{
    AccountId,
    limits::{CREATE_REQUESTS_PER_MINUTE, CREATE_WINDOW_SECONDS},
};

use super::{Db, Tx};
use crate::{RateWindow, StoreError};

impl Db {
    pub(crate) async fn count_create_request(
        &self,
        account: &AccountId,
    ) -> Result<RateWindow, StoreError> {
        let tx = self.begin().await?;
        let counted = count(&tx, account).await;
        tx.end(counted).await
    }
}

async fn count(tx: &Tx, account: &AccountId) -> Result<RateWindow, StoreError> {
    let window = tx.now.unix_seconds().div_euclid(CREATE_WINDOW_SECONDS);
    // Counted up to the limit only: a flood past it changes no row and costs the disk nothing.
    let counted = tx
        .find(
            "INSERT INTO rate_window AS counted (account_id, \"window\", requests) VALUES ($1, $2, 1)
             ON CONFLICT (account_id, \"window\") DO UPDATE SET requests = counted.requests + 1
                 WHERE counted.requests < $3
             RETURNING requests",
            &[
                &account.as_str(),
                &window,
                &i64::from(CREATE_REQUESTS_PER_MINUTE),
            ],
            |row| super::rows::count(row, "requests"),
        )
        .await?;
    Ok(RateWindow::counted(counted, window, tx.now))
}
