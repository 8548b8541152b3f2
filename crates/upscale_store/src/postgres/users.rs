//! Users, and the links that set their passwords.

use tokio_postgres::Row;
use upscale_core::{AccountId, Email, TokenHash, UserId};

use super::{
    Db, Tx,
    accounts::create_account,
    rows::{account_id, parsed, time},
};
use crate::{StoreError, User, UserOutcome, users::account_name};

/// Users one listing shows at most.
const LISTED_MAX: i64 = 10_000;

impl Db {
    pub(crate) async fn create_user(
        &self,
        account: Option<&AccountId>,
        email: &Email,
        password_hash: Option<&str>,
    ) -> Result<UserOutcome, StoreError> {
        let tx = self.begin().await?;
        let created = create_user(&tx, account, email, password_hash).await;
        tx.end(created).await
    }

    pub(crate) async fn find_user(&self, email: &Email) -> Result<Option<User>, StoreError> {
        find_by_email(&self.read().await?, email).await
    }

    pub(crate) async fn list_users(&self) -> Result<Vec<User>, StoreError> {
        let sql = "SELECT *, id AS user_id FROM console_user ORDER BY created_at, console_user.id LIMIT $1";
        self.read().await?.list(sql, &[&LISTED_MAX], user).await
    }

    pub(crate) async fn list_users_of(&self, account: &AccountId) -> Result<Vec<User>, StoreError> {
        let sql = "SELECT *, id AS user_id FROM console_user WHERE account_id = $1
             ORDER BY created_at, console_user.id LIMIT $2";
        let tx = self.read().await?;
        tx.list(sql, &[&account.as_str(), &LISTED_MAX], user).await
    }

    pub(crate) async fn set_password(
        &self,
        user: &UserId,
        password_hash: &str,
    ) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let set = set_password(&tx, user, password_hash).await;
        tx.end(set).await
    }

    pub(crate) async fn set_totp(
        &self,
        user: &UserId,
        secret: Option<&str>,
    ) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let sql = "UPDATE console_user SET totp_secret = $2, totp_last_step = 0 WHERE id = $1";
        let set = tx.execute_one(sql, &[&user.as_str(), &secret]).await;
        tx.end(set).await
    }

    pub(crate) async fn take_totp_step(
        &self,
        user: &UserId,
        step: i64,
    ) -> Result<bool, StoreError> {
        let tx = self.begin().await?;
        let sql =
            "UPDATE console_user SET totp_last_step = $2 WHERE id = $1 AND totp_last_step < $2";
        let taken = tx.execute(sql, &[&user.as_str(), &step]).await;
        Ok(tx.end(taken).await? == 1)
    }

    pub(crate) async fn create_reset(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let created = create_reset(&tx, user, reset, seconds).await;
        tx.end(created).await
    }

    pub(crate) async fn find_reset(&self, reset: &TokenHash) -> Result<Option<User>, StoreError> {
        find_reset(&self.read().await?, reset, "").await
    }

    pub(crate) async fn use_reset(
        &self,
        reset: &TokenHash,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let tx = self.begin().await?;
        let used = use_reset(&tx, reset, password_hash).await;
        tx.end(used).await
    }
}

async fn create_user(
    tx: &Tx,
    account: Option<&AccountId>,
    email: &Email,
    password_hash: Option<&str>,
) -> Result<UserOutcome, StoreError> {
    if find_by_email(tx, email).await?.is_some() {
        return Ok(UserOutcome::EmailTaken);
    }
    let account = match account {
        None => create_account(tx, &account_name(email)).await?.id,
        Some(account) => {
            let known = "SELECT 1 FROM account WHERE id = $1";
            let known = tx.find(known, &[&account.as_str()], |_| Ok(())).await?;
            if known.is_none() {
                return Ok(UserOutcome::NoSuchAccount);
            }
            *account
        }
    };
    let id = UserId::random()?;
    // Of two that take one address at once, the second breaks off at the unique index, its account with it; when
    // it comes again the address is taken.
    let inserted = tx
        .execute(
            "INSERT INTO console_user (id, account_id, email, password_hash, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (email) DO NOTHING",
            &[
                &id.as_str(),
                &account.as_str(),
                &email.as_str(),
                &password_hash,
                &tx.now.micros(),
            ],
        )
        .await?;
    if inserted == 0 {
        let what = "somebody took the same address at the same moment";
        return Err(StoreError::Unavailable(what.to_owned()));
    }
    let created = find_by_email(tx, email).await?;
    let created = created.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))?;
    Ok(UserOutcome::Created(created))
}

async fn set_password(tx: &Tx, user: &UserId, password_hash: &str) -> Result<(), StoreError> {
    let set = "UPDATE console_user SET password_hash = $2 WHERE id = $1";
    tx.execute_one(set, &[&user.as_str(), &password_hash])
        .await?;
    let resets = "DELETE FROM password_reset WHERE user_id = $1";
    tx.execute(resets, &[&user.as_str()]).await?;
    let sessions = "DELETE FROM console_session WHERE user_id = $1";
    tx.execute(sessions, &[&user.as_str()]).await.map(drop)
}

pub(super) async fn create_reset(
    tx: &Tx,
    user: &UserId,
    reset: &TokenHash,
    seconds: i64,
) -> Result<(), StoreError> {
    let earlier = "DELETE FROM password_reset WHERE user_id = $1";
    tx.execute(earlier, &[&user.as_str()]).await?;
    tx.execute_one(
        "INSERT INTO password_reset (hash, user_id, expires_at) VALUES ($1, $2, $3)",
        &[
            &reset.as_str(),
            &user.as_str(),
            &tx.now.plus_seconds(seconds).micros(),
        ],
    )
    .await
}

/// The link's row is locked, so that of two uses at once the second finds it gone.
async fn use_reset(tx: &Tx, reset: &TokenHash, password_hash: &str) -> Result<bool, StoreError> {
    let Some(user) = find_reset(tx, reset, "FOR UPDATE OF password_reset").await? else {
        return Ok(false);
    };
    set_password(tx, &user.id, password_hash).await?;
    Ok(true)
}

/// Its row is locked where that is asked for (`FOR UPDATE`).
pub(super) async fn find_by_id(
    tx: &Tx,
    id: &UserId,
    lock: &str,
) -> Result<Option<User>, StoreError> {
    let sql = format!("SELECT *, id AS user_id FROM console_user WHERE id = $1 {lock}");
    tx.find(&sql, &[&id.as_str()], user).await
}

async fn find_by_email(tx: &Tx, email: &Email) -> Result<Option<User>, StoreError> {
    let sql = "SELECT *, id AS user_id FROM console_user WHERE email = $1";
    tx.find(sql, &[&email.as_str()], user).await
}

async fn find_reset(tx: &Tx, reset: &TokenHash, lock: &str) -> Result<Option<User>, StoreError> {
    let sql = format!(
        "SELECT console_user.*, console_user.id AS user_id FROM password_reset
         JOIN console_user ON console_user.id = password_reset.user_id
         WHERE hash = $1 AND expires_at > $2 {lock}"
    );
    tx.find(&sql, &[&reset.as_str(), &tx.now.micros()], user)
        .await
}

/// A user from a row with every column of the table, its id as `user_id`.
pub(super) fn user(row: &Row) -> Result<User, StoreError> {
    Ok(User {
        id: parsed(row, "user_id", UserId::parse)?,
        account_id: account_id(row)?,
        email: parsed(row, "email", |text| Email::parse(text).ok())?,
        password_hash: row.try_get("password_hash")?,
        totp_secret: row.try_get("totp_secret")?,
        created_at: time(row, "created_at")?,
    })
}
