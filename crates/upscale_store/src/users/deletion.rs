//! The end of a user, and of an account when no one is left who signs in for it. Who someone was is erased at once; the
//! ledger stays, for books must stay true, and tasks and results go by their retention as they would have.

use upscale_core::{AccountId, UserId};

use super::{Users, passwords::lock_user};
use crate::{StoreError, accounts::keys::revoke_keys_of, tx::Tx};

/// What an account is called when its last user is gone.
const DELETED: &str = "Deleted account";

/// What a deletion ended, or why it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionOutcome {
    /// The user and the account: its keys are revoked and have no names, it has no name of its own.
    Account,
    /// The user alone: others sign in for the account.
    User,
    /// Nothing: there is no such user any more.
    Gone,
}

impl Users<'_> {
    /// Erases the user: address, password, second factor, sessions, browsers and links. With the last one the account ends:
    /// every key is refused from now on. Tasks under way end as they would; credits that are left stay in the books, and
    /// no one can spend them.
    pub async fn delete(self, user: &UserId) -> Result<DeletionOutcome, StoreError> {
        let user = *user;
        self.store
            .write(async move |tx: &mut Tx| delete(tx, &user).await)
            .await
    }
}

/// Under the account's lock, so that of its two last users who go at once the second is the last.
async fn delete(tx: &mut Tx, id: &UserId) -> Result<DeletionOutcome, StoreError> {
    let Some(user) = lock_user(tx, id).await? else {
        return Ok(DeletionOutcome::Gone);
    };
    tx.lock_account(&user.account_id).await?;
    for of_theirs in [
        "DELETE FROM console_session WHERE user_id = $1",
        "DELETE FROM password_reset WHERE user_id = $1",
        "DELETE FROM email_verification WHERE user_id = $1",
        "DELETE FROM email_change WHERE user_id = $1",
        "DELETE FROM known_browser WHERE user_id = $1",
        "DELETE FROM recovery_code WHERE user_id = $1",
    ] {
        tx.execute(of_theirs, &[id]).await?;
    }
    let sql = "DELETE FROM console_user WHERE id = $1";
    tx.execute_one(sql, &[id]).await?;
    let others = "SELECT 1 FROM console_user WHERE account_id = $1";
    if tx.exists(others, &[&user.account_id]).await? {
        return Ok(DeletionOutcome::User);
    }
    end_account(tx, &user.account_id).await?;
    Ok(DeletionOutcome::Account)
}

async fn end_account(tx: &Tx, account: &AccountId) -> Result<(), StoreError> {
    revoke_keys_of(tx, account).await?;
    let keys = "UPDATE api_key SET name = '' WHERE account_id = $1";
    tx.execute(keys, &[account]).await?;
    let name = "UPDATE account SET name = $2 WHERE id = $1";
    tx.execute_one(name, &[account, &DELETED]).await
}
