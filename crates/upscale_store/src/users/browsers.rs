//! Browsers that a user has signed in with: a random cookie in the browser, its hash here. They are told apart from
//! everyone else when tries are counted, so that wrong passwords of others keep no owner out.

use upscale_core::{Email, TokenHash, UserId};

use super::Users;
use crate::{StoreError, tx::Tx};

/// Browsers kept for one user; the one that was not used for the longest time goes.
const BROWSERS_MAX: u32 = 20;

impl Users<'_> {
    /// This browser is the user's for so long.
    pub async fn know_browser(
        self,
        user: &UserId,
        browser: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let (user, browser) = (*user, browser.clone());
        self.store
            .write(async move |tx: &mut Tx| know_browser(tx, &user, &browser, seconds).await)
            .await
    }

    /// Whether this browser is one of the user's who signs in with this address.
    pub async fn knows_browser(
        self,
        email: &Email,
        browser: &TokenHash,
    ) -> Result<bool, StoreError> {
        let (email, browser) = (email.clone(), browser.clone());
        self.store
            .read(async move |tx: &mut Tx| {
                let sql =
                    "SELECT 1 FROM known_browser JOIN console_user ON console_user.id = user_id
                     WHERE hash = $1 AND email = $2 AND expires_at > $3";
                tx.exists(sql, &[&browser, &email, &tx.now]).await
            })
            .await
    }
}

/// A browser that is there under another user stays theirs: the cookie's secret is anyone who's it was made for.
async fn know_browser(
    tx: &Tx,
    user: &UserId,
    browser: &TokenHash,
    seconds: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO known_browser (hash, user_id, expires_at) VALUES ($1, $2, $3)
         ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at
             WHERE known_browser.user_id = excluded.user_id",
        &[browser, user, &tx.now.plus_seconds(seconds)],
    )
    .await?;
    tx.execute(
        "DELETE FROM known_browser WHERE user_id = $1 AND hash NOT IN
             (SELECT hash FROM known_browser WHERE user_id = $1 ORDER BY expires_at DESC, hash LIMIT $2)",
        &[user, &BROWSERS_MAX],
    )
    .await
    .map(drop)
}
