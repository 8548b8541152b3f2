//! Accounts: made by an operator or with a user, read with their balances and counters.

pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod purchase;
mod rate_window;

use std::collections::BTreeSet;

use upscale_core::{AccountId, limits::NAME_CHARS_MAX};

use crate::{Account, AccountCursor, Store, StoreError, operator::pattern_of, row::Row, tx::Tx};

/// Accounts one listing shows at most.
const LISTED_MAX: u32 = 10_000;
/// An account with what it was accepted today; $1 is today.
const ACCOUNT: &str = "SELECT account.id, name, created_at, activated_at, available, held, charged, active_tasks, stopped,
     limit_create_requests, limit_active_tasks, limit_daily_tasks, coalesce(account_day.accepted, 0) AS accepted_today
     FROM account LEFT JOIN account_day ON account_day.account_id = account.id AND account_day.day = $1";

/// The verbs of accounts: their credits, keys, ledger and minute's windows; of [`Store::accounts`].
#[derive(Debug, Clone, Copy)]
pub struct Accounts<'a> {
    pub(crate) store: &'a Store,
}

impl Accounts<'_> {
    /// A new account without credits, keys or access; `name` has 1 to 100 characters.
    pub async fn create(self, name: &str) -> Result<Account, StoreError> {
        let name = name.to_owned();
        self.store
            .write(async move |tx: &mut Tx| create_account(tx, &name).await)
            .await
    }

    /// The account as it is now.
    pub async fn find(self, account: &AccountId) -> Result<Option<Account>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| find_account(tx, &account).await)
            .await
    }

    /// Every account, oldest first, at most 10,000.
    pub async fn list(self) -> Result<Vec<Account>, StoreError> {
        self.store
            .read(async |tx: &mut Tx| {
                let sql = format!("{ACCOUNT} ORDER BY created_at, id LIMIT $2");
                tx.list(&sql, &[&tx.now.utc_day(), &LISTED_MAX], account)
                    .await
            })
            .await
    }

    /// Accounts whose id, name or a user's e-mail address holds this text (ASCII letters in whichever case), newest
    /// first. Looks at every account.
    pub async fn search(
        self,
        text: &str,
        after: Option<&AccountCursor>,
        limit: u32,
    ) -> Result<Vec<Account>, StoreError> {
        let (pattern, after) = (pattern_of(text), after.cloned());
        self.store.read(async move |tx: &mut Tx| {
            let (at, id) = after.as_ref().map_or((i64::MAX, ""), |after| {
                (after.created_at.micros(), after.id.as_str())
            });
            let like = tx.dialect("LIKE $2 ESCAPE '\\'", "ILIKE $2");
            let sql = format!(
                "{ACCOUNT} WHERE (account.created_at, account.id) < ($3, $4)
                     AND (account.id {like} OR account.name {like}
                         OR EXISTS (SELECT 1 FROM console_user WHERE console_user.account_id = account.id
                             AND email {like}))
                 ORDER BY account.created_at DESC, account.id DESC LIMIT $5"
            );
            tx.list(&sql, &[&tx.now.utc_day(), &pattern, &at, &id, &limit], account).await
        })
        .await
    }

    /// Accounts that take no new tasks because an audit found their books wrong.
    pub async fn list_stopped(self) -> Result<Vec<AccountId>, StoreError> {
        let stopped = self
            .store
            .read(async |tx: &mut Tx| list_stopped(tx).await)
            .await?;
        Ok(stopped.into_iter().collect())
    }
}

pub(crate) async fn create_account(tx: &Tx, name: &str) -> Result<Account, StoreError> {
    let chars = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&chars) {
        return Err(StoreError::Refused(format!(
            "an account name of {chars} characters: 1 to {NAME_CHARS_MAX} are allowed"
        )));
    }
    let id = AccountId::random()?;
    tx.execute_one(
        "INSERT INTO account (id, name, created_at) VALUES ($1, $2, $3)",
        &[&id, &name, &tx.now],
    )
    .await?;
    let found = find_account(tx, &id).await?;
    found.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))
}

pub(crate) async fn find_account(tx: &Tx, id: &AccountId) -> Result<Option<Account>, StoreError> {
    let sql = format!("{ACCOUNT} WHERE account.id = $2");
    tx.find(&sql, &[&tx.now.utc_day(), id], account).await
}

pub(crate) async fn list_stopped(tx: &Tx) -> Result<BTreeSet<AccountId>, StoreError> {
    let sql = "SELECT id AS account_id FROM account WHERE stopped = 1";
    let listed = tx.list(sql, &[], |row| row.account_id()).await?;
    Ok(listed.into_iter().collect())
}

fn account(row: &dyn Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: row.parsed("id", AccountId::parse)?,
        name: row.string("name")?,
        created_at: row.time("created_at")?,
        activated_at: row.time_if_any("activated_at")?,
        available: row.credits("available")?,
        reserved: row.credits("held")?,
        charged: row.credits("charged")?,
        active_tasks: row.whole("active_tasks")?,
        accepted_today: row.whole("accepted_today")?,
        own_limits: row.own_limits()?,
        stopped: row.flag("stopped")?,
    })
}
