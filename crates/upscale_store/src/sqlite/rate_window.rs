//! The create-request window: a fixed minute per account, counted durably on its own, so that a create that
//! fails later does not give its request back.

use rusqlite::params;
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
        let account = *account;
        self.write(move |tx| count(tx, &account)).await
    }
}

fn count(tx: &Tx<'_>, account: &AccountId) -> Result<RateWindow, StoreError> {
    let window = tx.now.unix_seconds().div_euclid(CREATE_WINDOW_SECONDS);
    let own = tx.find(
        "SELECT limit_create_requests FROM account WHERE id = ?1",
        [account.as_str()],
        |row| Ok(row.get::<_, Option<u32>>(0)?),
    )?;
    let limit = own.flatten().unwrap_or(CREATE_REQUESTS_PER_MINUTE);
    // Counted up to the limit only: a flood past it changes no row and costs the disk nothing.
    let counted = tx.find(
        "INSERT INTO rate_window (account_id, window, requests) VALUES (?1, ?2, 1)
         ON CONFLICT (account_id, window) DO UPDATE SET requests = requests + 1 WHERE requests < ?3
         RETURNING requests",
        params![account.as_str(), window, limit],
        |row| Ok(row.get::<_, u32>(0)?),
    )?;
    Ok(RateWindow::counted(counted, limit, window, tx.now))
}
