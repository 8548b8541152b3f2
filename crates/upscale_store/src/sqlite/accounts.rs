//! Accounts: made by an operator, read with their balances and counters.

use rusqlite::{Row, params};
use upscale_core::{AccountId, Credits, limits::NAME_CHARS_MAX};

use super::{
    Db, Tx,
    rows::{count, own_limits, parsed, time, time_if_any},
};
use crate::{Account, AccountCursor, StoreError, operator::pattern_of};

/// Accounts one listing shows at most.
const LISTED_MAX: u32 = 10_000;
/// An account with what it was accepted today; ?1 is today.
const ACCOUNT: &str = "SELECT account.*, coalesce(account_day.accepted, 0) AS accepted_today
     FROM account LEFT JOIN account_day ON account_day.account_id = account.id AND account_day.day = ?1";

impl Db {
    pub(crate) async fn create_account(&self, name: &str) -> Result<Account, StoreError> {
        let name = name.to_owned();
        self.write(move |tx| create_account(tx, &name)).await
    }

    pub(crate) async fn find_account(
        &self,
        account: &AccountId,
    ) -> Result<Option<Account>, StoreError> {
        let account = *account;
        self.read(move |tx| find_account(tx, &account)).await
    }

    pub(crate) async fn list_accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(|tx| {
            let sql = format!("{ACCOUNT} ORDER BY created_at, id LIMIT ?2");
            tx.list(&sql, params![tx.now.utc_day(), LISTED_MAX], account)
        })
        .await
    }
}

impl Db {
    pub(crate) async fn search_accounts(
        &self,
        text: &str,
        after: Option<&AccountCursor>,
        limit: u32,
    ) -> Result<Vec<Account>, StoreError> {
        let (pattern, after) = (pattern_of(text), after.cloned());
        self.read(move |tx| {
            let (at, id) = after.map_or((i64::MAX, String::new()), |after| {
                (after.created_at.micros(), after.id.to_string())
            });
            let sql = format!(
                "{ACCOUNT} WHERE (account.created_at, account.id) < (?3, ?4)
                     AND (account.id LIKE ?2 ESCAPE '\\' OR account.name LIKE ?2 ESCAPE '\\'
                         OR EXISTS (SELECT 1 FROM console_user WHERE console_user.account_id = account.id
                             AND email LIKE ?2 ESCAPE '\\'))
                 ORDER BY account.created_at DESC, account.id DESC LIMIT ?5"
            );
            let params = params![tx.now.utc_day(), pattern, at, id, limit];
            tx.list(&sql, params, account)
        })
        .await
    }
}

pub(super) fn create_account(tx: &Tx<'_>, name: &str) -> Result<Account, StoreError> {
    let chars = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&chars) {
        return Err(StoreError::Refused(format!(
            "an account name of {chars} characters: 1 to {NAME_CHARS_MAX} are allowed"
        )));
    }
    let id = AccountId::random()?;
    tx.execute_one(
        "INSERT INTO account (id, name, created_at) VALUES (?1, ?2, ?3)",
        params![id.as_str(), name, tx.now.micros()],
    )?;
    find_account(tx, &id)?.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))
}

pub(super) fn find_account(tx: &Tx<'_>, id: &AccountId) -> Result<Option<Account>, StoreError> {
    let sql = format!("{ACCOUNT} WHERE account.id = ?2");
    tx.find(&sql, params![tx.now.utc_day(), id.as_str()], account)
}

fn account(row: &Row<'_>) -> Result<Account, StoreError> {
    Ok(Account {
        id: parsed(row, "id", AccountId::parse)?,
        name: row.get("name")?,
        created_at: time(row, "created_at")?,
        activated_at: time_if_any(row, "activated_at")?,
        available: Credits::from_thousandths(row.get("available")?),
        reserved: Credits::from_thousandths(row.get("held")?),
        charged: Credits::from_thousandths(row.get("charged")?),
        active_tasks: count(row, "active_tasks")?,
        accepted_today: count(row, "accepted_today")?,
        own_limits: own_limits(row)?,
        stopped: row.get("stopped")?,
    })
}
