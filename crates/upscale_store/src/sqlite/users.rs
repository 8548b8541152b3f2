//! Users, and the links that set their passwords.

use rusqlite::{Row, params};
use upscale_core::{AccountId, Email, TokenHash, UserId};

use super::{
    Db, Tx,
    accounts::create_account,
    rows::{account_id, parsed, time},
};
use crate::{StoreError, User, UserOutcome, users::account_name};

/// Users one listing shows at most.
const LISTED_MAX: u32 = 10_000;

impl Db {
    pub(crate) async fn create_user(
        &self,
        account: Option<&AccountId>,
        email: &Email,
        password_hash: Option<&str>,
    ) -> Result<UserOutcome, StoreError> {
        let (account, email) = (account.cloned(), email.clone());
        let password_hash = password_hash.map(str::to_owned);
        self.write(move |tx| create_user(tx, account, &email, password_hash.as_deref()))
            .await
    }

    pub(crate) async fn find_user(&self, email: &Email) -> Result<Option<User>, StoreError> {
        let email = email.clone();
        self.read(move |tx| find_by_email(tx, &email)).await
    }

    pub(crate) async fn list_users(&self) -> Result<Vec<User>, StoreError> {
        self.read(|tx| {
            tx.list(
                "SELECT *, id AS user_id FROM console_user ORDER BY created_at, id LIMIT ?1",
                [LISTED_MAX],
                user,
            )
        })
        .await
    }

    pub(crate) async fn list_users_of(&self, account: &AccountId) -> Result<Vec<User>, StoreError> {
        let account = *account;
        self.read(move |tx| {
            tx.list(
                "SELECT *, id AS user_id FROM console_user WHERE account_id = ?1
                 ORDER BY created_at, id LIMIT ?2",
                params![account.as_str(), LISTED_MAX],
                user,
            )
        })
        .await
    }

    pub(crate) async fn set_password(
        &self,
        user: &UserId,
        password_hash: &str,
    ) -> Result<(), StoreError> {
        let (user, password_hash) = (*user, password_hash.to_owned());
        self.write(move |tx| set_password(tx, user.as_str(), &password_hash))
            .await
    }

    pub(crate) async fn set_totp(
        &self,
        user: &UserId,
        secret: Option<&str>,
    ) -> Result<(), StoreError> {
        let (user, secret) = (*user, secret.map(str::to_owned));
        self.write(move |tx| {
            tx.execute_one(
                "UPDATE console_user SET totp_secret = ?2, totp_last_step = 0 WHERE id = ?1",
                params![user.as_str(), secret],
            )
        })
        .await
    }

    pub(crate) async fn take_totp_step(
        &self,
        user: &UserId,
        step: i64,
    ) -> Result<bool, StoreError> {
        let user = *user;
        self.write(move |tx| {
            let taken = tx.execute(
                "UPDATE console_user SET totp_last_step = ?2 WHERE id = ?1 AND totp_last_step < ?2",
                params![user.as_str(), step],
            )?;
            Ok(taken == 1)
        })
        .await
    }

    pub(crate) async fn create_reset(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let (user, reset) = (*user, reset.clone());
        self.write(move |tx| create_reset(tx, &user, &reset, seconds))
            .await
    }

    pub(crate) async fn find_reset(&self, reset: &TokenHash) -> Result<Option<User>, StoreError> {
        let reset = reset.clone();
        self.read(move |tx| find_reset(tx, &reset)).await
    }

    pub(crate) async fn use_reset(
        &self,
        reset: &TokenHash,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let (reset, password_hash) = (reset.clone(), password_hash.to_owned());
        self.write(move |tx| {
            let Some(user) = find_reset(tx, &reset)? else {
                return Ok(false);
            };
            set_password(tx, user.id.as_str(), &password_hash)?;
            Ok(true)
        })
        .await
    }
}

fn create_user(
    tx: &Tx<'_>,
    account: Option<AccountId>,
    email: &Email,
    password_hash: Option<&str>,
) -> Result<UserOutcome, StoreError> {
    if find_by_email(tx, email)?.is_some() {
        return Ok(UserOutcome::EmailTaken);
    }
    let account = match account {
        None => create_account(tx, &account_name(email))?.id,
        Some(account) => {
            let known = tx.find(
                "SELECT 1 FROM account WHERE id = ?1",
                [account.as_str()],
                |_| Ok(()),
            )?;
            if known.is_none() {
                return Ok(UserOutcome::NoSuchAccount);
            }
            account
        }
    };
    let id = UserId::random()?;
    tx.execute_one(
        "INSERT INTO console_user (id, account_id, email, password_hash, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            id.as_str(),
            account.as_str(),
            email.as_str(),
            password_hash,
            tx.now.micros()
        ],
    )?;
    let created = find_by_email(tx, email)?;
    let created = created.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))?;
    Ok(UserOutcome::Created(created))
}

fn set_password(tx: &Tx<'_>, user: &str, password_hash: &str) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE console_user SET password_hash = ?2 WHERE id = ?1",
        [user, password_hash],
    )?;
    tx.execute("DELETE FROM password_reset WHERE user_id = ?1", [user])?;
    tx.execute("DELETE FROM console_session WHERE user_id = ?1", [user])
        .map(drop)
}

pub(super) fn create_reset(
    tx: &Tx<'_>,
    user: &UserId,
    reset: &TokenHash,
    seconds: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM password_reset WHERE user_id = ?1",
        [user.as_str()],
    )?;
    tx.execute_one(
        "INSERT INTO password_reset (hash, user_id, expires_at) VALUES (?1, ?2, ?3)",
        params![
            reset.as_str(),
            user.as_str(),
            tx.now.plus_seconds(seconds).micros()
        ],
    )
}

pub(super) fn find_by_id(tx: &Tx<'_>, id: &UserId) -> Result<Option<User>, StoreError> {
    tx.find(
        "SELECT *, id AS user_id FROM console_user WHERE id = ?1",
        [id.as_str()],
        user,
    )
}

fn find_by_email(tx: &Tx<'_>, email: &Email) -> Result<Option<User>, StoreError> {
    tx.find(
        "SELECT *, id AS user_id FROM console_user WHERE email = ?1",
        [email.as_str()],
        user,
    )
}

fn find_reset(tx: &Tx<'_>, reset: &TokenHash) -> Result<Option<User>, StoreError> {
    tx.find(
        "SELECT console_user.*, console_user.id AS user_id FROM password_reset
         JOIN console_user ON console_user.id = password_reset.user_id
         WHERE hash = ?1 AND expires_at > ?2",
        params![reset.as_str(), tx.now.micros()],
        user,
    )
}

/// A user from a row with every column of the table, its id as `user_id`.
pub(super) fn user(row: &Row<'_>) -> Result<User, StoreError> {
    Ok(User {
        id: parsed(row, "user_id", UserId::parse)?,
        account_id: account_id(row)?,
        email: parsed(row, "email", |text| Email::parse(text).ok())?,
        password_hash: row.get("password_hash")?,
        totp_secret: row.get("totp_secret")?,
        created_at: time(row, "created_at")?,
    })
}
