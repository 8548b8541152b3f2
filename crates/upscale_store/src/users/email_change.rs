//! Another address for a user: asked for with the password, proved by a link that is mailed to the new address, done once.

use upscale_core::{AccountId, Email, TokenHash, UserId};

use super::{USER, Users, account_name, passwords::lock_user, user};
use crate::{StoreError, User, tx::Tx};

/// What became of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmailChangeOutcome {
    /// The user signs in with the new address.
    Changed {
        /// The address until now.
        from: Email,
        /// The address from now on.
        to: Email,
    },
    /// Someone has taken the new address meanwhile; the link is used up.
    Taken,
    /// The link is another user's, was used before or is too old.
    Gone,
}

impl Users<'_> {
    /// A link that makes `email` the user's address once, within this time; earlier ones of the user die.
    pub async fn create_email_change(
        self,
        user: &UserId,
        email: &Email,
        link: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let (user, email, link) = (*user, email.clone(), link.clone());
        self.store
            .write(async move |tx: &mut Tx| {
                forget_changes(tx, &user).await?;
                tx.execute_one(
                    "INSERT INTO email_change (hash, user_id, email, expires_at) VALUES ($1, $2, $3, $4)",
                    &[&link, &user, &email, &tx.now.plus_seconds(seconds)],
                )
                .await
            })
            .await
    }

    /// Whose address the link would change, and to which, while it lives.
    pub async fn find_email_change(
        self,
        link: &TokenHash,
    ) -> Result<Option<(User, Email)>, StoreError> {
        let link = link.clone();
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {USER}, email_change.email AS new_email FROM email_change
                     JOIN console_user ON console_user.id = user_id WHERE hash = $1 AND expires_at > $2"
                );
                tx.find(&sql, &[&link, &tx.now], |row| {
                    let to = row.parsed("new_email", |text| Email::parse(text).ok())?;
                    Ok((user(row)?, to))
                })
                .await
            })
            .await
    }

    /// Uses the link up: the user signs in with the new address, which is proved; links that were mailed to the old one die.
    /// An account that was called by the old address is called by the new one.
    pub async fn change_email(
        self,
        user: &UserId,
        link: &TokenHash,
    ) -> Result<EmailChangeOutcome, StoreError> {
        let (user, link) = (*user, link.clone());
        self.store
            .write(async move |tx: &mut Tx| change_email(tx, &user, &link).await)
            .await
    }
}

/// Of two uses at once the second waits for the user's row and finds the link gone.
async fn change_email(
    tx: &Tx,
    id: &UserId,
    link: &TokenHash,
) -> Result<EmailChangeOutcome, StoreError> {
    let Some(user) = lock_user(tx, id).await? else {
        return Ok(EmailChangeOutcome::Gone);
    };
    let sql = "SELECT email FROM email_change WHERE hash = $1 AND user_id = $2 AND expires_at > $3";
    let found = tx
        .find(sql, &[link, id, &tx.now], |row| {
            row.parsed("email", |text| Email::parse(text).ok())
        })
        .await?;
    let Some(to) = found else {
        return Ok(EmailChangeOutcome::Gone);
    };
    forget_changes(tx, id).await?;
    // Where someone takes the address at this very moment, the unique index breaks the change off; asked again, it is taken.
    let taken = "SELECT 1 FROM console_user WHERE email = $1";
    if tx.exists(taken, &[&to]).await? {
        return Ok(EmailChangeOutcome::Taken);
    }
    let set =
        "UPDATE console_user SET email = $2, verified_at = coalesce(verified_at, $3) WHERE id = $1";
    tx.execute_one(set, &[id, &to, &tx.now]).await?;
    for mailed_to_the_old in [
        "DELETE FROM password_reset WHERE user_id = $1",
        "DELETE FROM email_verification WHERE user_id = $1",
    ] {
        tx.execute(mailed_to_the_old, &[id]).await?;
    }
    rename_account(tx, &user.account_id, &user.email, &to).await?;
    Ok(EmailChangeOutcome::Changed {
        from: user.email,
        to,
    })
}

async fn rename_account(
    tx: &Tx,
    account: &AccountId,
    from: &Email,
    to: &Email,
) -> Result<(), StoreError> {
    let sql = "UPDATE account SET name = $3 WHERE id = $1 AND name = $2";
    let names = (account_name(from), account_name(to));
    tx.execute(sql, &[account, &names.0, &names.1])
        .await
        .map(drop)
}

async fn forget_changes(tx: &Tx, user: &UserId) -> Result<(), StoreError> {
    let sql = "DELETE FROM email_change WHERE user_id = $1";
    tx.execute(sql, &[user]).await.map(drop)
}
