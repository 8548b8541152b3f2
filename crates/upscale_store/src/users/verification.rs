//! Whose address it is: links that prove it, once, and what becomes of an account when the address turns out to be
//! another's than anyone who signed up with it.

use upscale_core::{TokenHash, UserId};

use super::{USER, Users, user};
use crate::{StoreError, User, accounts::keys::revoke_keys_of, tx::Tx};

impl Users<'_> {
    /// A link that proves the user's address once, within this time; earlier ones of the user die.
    pub async fn create_verification(
        self,
        user: &UserId,
        link: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let (user, link) = (*user, link.clone());
        self.store
            .write(async move |tx: &mut Tx| {
                forget_links(tx, &user).await?;
                tx.execute_one(
                    "INSERT INTO email_verification (hash, user_id, expires_at) VALUES ($1, $2, $3)",
                    &[&link, &user, &tx.now.plus_seconds(seconds)],
                )
                .await
            })
            .await
    }

    /// Whose address the link would prove, while it lives.
    pub async fn find_verification(self, link: &TokenHash) -> Result<Option<User>, StoreError> {
        let link = link.clone();
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {USER} FROM email_verification
                     JOIN console_user ON console_user.id = user_id WHERE hash = $1 AND expires_at > $2"
                );
                tx.find(&sql, &[&link, &tx.now], user).await
            })
            .await
    }

    /// Uses the link up: the user's address is proved. False when the link is another user's, was used before or is too
    /// old.
    pub async fn verify(self, user: &UserId, link: &TokenHash) -> Result<bool, StoreError> {
        let (user, link) = (*user, link.clone());
        self.store
            .write(async move |tx: &mut Tx| verify(tx, &user, &link).await)
            .await
    }
}

/// Of two uses at once the second finds the row gone.
async fn verify(tx: &Tx, user: &UserId, link: &TokenHash) -> Result<bool, StoreError> {
    let used =
        "DELETE FROM email_verification WHERE hash = $1 AND user_id = $2 AND expires_at > $3";
    if tx.execute(used, &[link, user, &tx.now]).await? == 0 {
        return Ok(false);
    }
    forget_links(tx, user).await?;
    set_verified(tx, user).await?;
    Ok(true)
}

async fn forget_links(tx: &Tx, user: &UserId) -> Result<(), StoreError> {
    let links = "DELETE FROM email_verification WHERE user_id = $1";
    tx.execute(links, &[user]).await.map(drop)
}

async fn set_verified(tx: &Tx, user: &UserId) -> Result<(), StoreError> {
    let sql = "UPDATE console_user SET verified_at = coalesce(verified_at, $2) WHERE id = $1";
    tx.execute_one(sql, &[user, &tx.now]).await
}

/// Anyone who signed up may not have been the address' owner, who is there now: nothing that opens the account is left to
/// them. Its sessions and browsers went with the password.
pub(super) async fn take_over(tx: &mut Tx, user: &User) -> Result<(), StoreError> {
    // A key that is being made at this moment is waited for, and revoked with the others.
    tx.lock_account(&user.account_id).await?;
    revoke_keys_of(tx, &user.account_id).await?;
    let sql = "UPDATE console_user SET totp_secret = NULL, totp_last_step = 0 WHERE id = $1";
    tx.execute_one(sql, &[&user.id]).await?;
    forget_links(tx, &user.id).await?;
    set_verified(tx, &user.id).await
}
