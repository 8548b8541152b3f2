//! Accounts: made by an operator, read with their balances and counters.

use tokio_postgres::Row;
use upscale_core::{AccountId, Credits, limits::NAME_CHARS_MAX};

use super::{
    Db, Tx,
    rows::{count, own_limits, parsed, time, time_if_any},
};
use crate::{Account, AccountCursor, StoreError, operator::pattern_of};

/// Accounts one listing shows at most.
const LISTED_MAX: i64 = 10_000;
/// An account with what it was accepted today; $1 is today.
const ACCOUNT: &str = "SELECT account.*, coalesce(account_day.accepted, 0) AS accepted_today
     FROM account LEFT JOIN account_day ON account_day.account_id = account.id AND account_day.day = $1";

impl Db {
    pub(crate) async fn create_account(&self, name: &str) -> Result<Account, StoreError> {
        let tx = self.begin().await?;
        let created = create_account(&tx, name).await;
        tx.end(created).await
    }

    pub(crate) async fn find_account(
        &self,
        account: &AccountId,
    ) -> Result<Option<Account>, StoreError> {
        find_account(&self.read().await?, account).await
    }

    pub(crate) async fn list_accounts(&self) -> Result<Vec<Account>, StoreError> {
        let tx = self.read().await?;
        let sql = format!("{ACCOUNT} ORDER BY created_at, id LIMIT $2");
        tx.list(&sql, &[&tx.now.utc_day(), &LISTED_MAX], account)
            .await
    }

    pub(crate) async fn search_accounts(
        &self,
        text: &str,
        after: Option<&AccountCursor>,
        limit: u32,
    ) -> Result<Vec<Account>, StoreError> {
        let (at, id) = after.map_or((i64::MAX, ""), |after| {
            (after.created_at.micros(), after.id.as_str())
        });
        let sql = format!(
            "{ACCOUNT} WHERE (account.created_at, account.id) < ($3, $4)
                 AND (account.id ILIKE $2 OR account.name ILIKE $2
                     OR EXISTS (SELECT 1 FROM console_user WHERE console_user.account_id = account.id
                         AND email ILIKE $2))
             ORDER BY account.created_at DESC, account.id DESC LIMIT $5"
        );
        let tx = self.read().await?;
        let (pattern, limit) = (pattern_of(text), i64::from(limit));
        tx.list(
            &sql,
            &[&tx.now.utc_day(), &pattern, &at, &id, &limit],
            account,
        )
        .await
    }
}

pub(super) async fn create_account(tx: &Tx, name: &str) -> Result<Account, StoreError> {
    let chars = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&chars) {
        return Err(StoreError::Refused(format!(
            "an account name of {chars} characters: 1 to {NAME_CHARS_MAX} are allowed"
        )));
    }
    let id = AccountId::random()?;
    tx.execute_one(
        "INSERT INTO account (id, name, created_at) VALUES ($1, $2, $3)",
        &[&id.as_str(), &name, &tx.now.micros()],
    )
    .await?;
    let found = find_account(tx, &id).await?;
    found.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))
}

pub(super) async fn find_account(tx: &Tx, id: &AccountId) -> Result<Option<Account>, StoreError> {
    let sql = format!("{ACCOUNT} WHERE account.id = $2");
    tx.find(&sql, &[&tx.now.utc_day(), &id.as_str()], account)
        .await
}

fn account(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: parsed(row, "id", AccountId::parse)?,
        name: row.try_get("name")?,
        created_at: time(row, "created_at")?,
        activated_at: time_if_any(row, "activated_at")?,
        available: Credits::from_thousandths(row.try_get("available")?),
        reserved: Credits::from_thousandths(row.try_get("held")?),
        charged: Credits::from_thousandths(row.try_get("charged")?),
        active_tasks: count(row, "active_tasks")?,
        accepted_today: count(row, "accepted_today")?,
        own_limits: own_limits(row)?,
        stopped: row.try_get::<_, i64>("stopped")? != 0,
    })
}
