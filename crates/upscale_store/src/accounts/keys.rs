//! API keys: only their hashes are kept, and every request asks the database, so that a revocation by any
//! process counts from the next request on. How many may work at a time is counted under the account's lock.

use upscale_core::{
    AccountId, ApiKey, KeyHash, KeyId, Permission, Timestamp,
    limits::{LIVE_KEYS_MAX, NAME_CHARS_MAX},
};

use super::Accounts;
use crate::{Caller, KeyCursor, KeyOutcome, KeyRecord, StoreError, row::Row, tx::Tx};

/// Last characters of a secret that are kept to recognise it by.
const HINT_CHARS: usize = 4;
/// A use is recorded to the minute: one write a key and minute, not one a request.
const USE_RECORDED_EVERY_SECONDS: i64 = 60;

/// Whether a row of `api_key` works at the moment that is $1.
const IS_LIVE: &str = "dead = 0 AND (revoked_at IS NULL OR revoked_at > $1)";

/// The columns of a key.
const KEY: &str =
    "id, account_id, permission, created_at, last_used_at, revoked_at, dead, hint, name";

impl Accounts<'_> {
    /// A new key and, this once, its secret; `name` has at most 100 characters, none is a name too.
    pub async fn create_key(
        self,
        account: &AccountId,
        permission: Permission,
        name: &str,
    ) -> Result<KeyOutcome, StoreError> {
        let (account, name) = (*account, name.to_owned());
        self.store
            .write_account(account, async move |tx: &mut Tx, _| {
                create_key(tx, &account, permission, &name).await
            })
            .await
    }

    /// The account's keys after this one: those that work first, then the revoked, each the newest first.
    pub async fn list_keys(
        self,
        account: &AccountId,
        after: Option<&KeyCursor>,
        limit: u32,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let (account, after) = (*account, after.cloned());
        self.store
            .read(async move |tx: &mut Tx| list_keys(tx, &account, after.as_ref(), limit).await)
            .await
    }

    /// One key, revoked or not; only the owner's.
    pub async fn find_key(
        self,
        account: &AccountId,
        key: &KeyId,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let (account, key) = (*account, *key);
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!("SELECT {KEY} FROM api_key WHERE id = $1 AND account_id = $2");
                tx.find(&sql, &[&key, &account], |row| key_record(row, tx.now))
                    .await
            })
            .await
    }

    /// A new key with the same permission and name; the old one dies after `overlap_seconds`, and counts until then.
    pub async fn rotate_key(
        self,
        key: &KeyId,
        overlap_seconds: i64,
    ) -> Result<KeyOutcome, StoreError> {
        let key = *key;
        self.store
            .write(async move |tx: &mut Tx| rotate_key(tx, &key, overlap_seconds).await)
            .await
    }

    /// Refused from the next request on. None when unknown; already revoked is no error.
    pub async fn revoke_key(self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let key = *key;
        self.store
            .write(async move |tx: &mut Tx| Ok(revoke_key(tx, &key).await?.0))
            .await
    }

    /// The caller behind a live key.
    pub async fn find_caller(self, key: &KeyHash) -> Result<Option<Caller>, StoreError> {
        let key = key.clone();
        self.store
            .read(async move |tx: &mut Tx| {
                tx.find(
                    &format!(
                        "SELECT api_key.id, account_id, permission, last_used_at, account.activated_at FROM api_key
                     JOIN account ON account.id = account_id WHERE hash = $2 AND {IS_LIVE}"
                    ),
                    &[&tx.now, &key.as_str()],
                    caller,
                )
                .await
            })
            .await
    }

    /// Remembers when the key was last used, to the minute.
    pub async fn record_key_use(self, key: &KeyId) -> Result<(), StoreError> {
        let key = *key;
        self.store
            .write(async move |tx: &mut Tx| {
                let latest = tx.now.plus_seconds(-USE_RECORDED_EVERY_SECONDS);
                let sql = "UPDATE api_key SET last_used_at = $2
                 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
                tx.execute(sql, &[&key, &tx.now, &latest]).await.map(drop)
            })
            .await
    }
}

/// A key may go without a name; a longer one than the contract allows should have been refused before.
fn check_name(name: &str) -> Result<(), StoreError> {
    let chars = name.chars().count();
    if chars <= NAME_CHARS_MAX {
        return Ok(());
    }
    let what = format!("a key name of {chars} characters: up to {NAME_CHARS_MAX} are allowed");
    Err(StoreError::Refused(what))
}

/// The account's row is locked: of many at once each counts what the one before left.
async fn create_key(
    tx: &Tx,
    account: &AccountId,
    permission: Permission,
    name: &str,
) -> Result<KeyOutcome, StoreError> {
    check_name(name)?;
    let known = "SELECT 1 FROM account WHERE id = $1";
    if !tx.exists(known, &[account]).await? {
        return Ok(KeyOutcome::Unknown);
    }
    let live = format!("SELECT count(*) FROM api_key WHERE account_id = $2 AND {IS_LIVE}");
    if tx.number(&live, &[&tx.now, account]).await? >= LIVE_KEYS_MAX.into() {
        return Ok(KeyOutcome::TooMany);
    }
    let (id, key) = (KeyId::random()?, ApiKey::random()?);
    let hint = &key.reveal()[key.reveal().len() - HINT_CHARS..];
    tx.execute_one(
        "INSERT INTO api_key (id, account_id, hash, permission, hint, created_at, name)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &id,
            account,
            &key.hash().as_str(),
            &permission.as_str(),
            &hint,
            &tx.now,
            &name,
        ],
    )
    .await?;
    let made = find_key(tx, &id).await?;
    let made = made.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))?;
    Ok(KeyOutcome::Made(made, key))
}

/// Under the account's lock the second of two rotations at once finds the first one's revocation. What is refused has
/// revoked nothing.
async fn rotate_key(
    tx: &mut Tx,
    key: &KeyId,
    overlap_seconds: i64,
) -> Result<KeyOutcome, StoreError> {
    let Some(known) = find_key(tx, key).await? else {
        return Ok(KeyOutcome::Unknown);
    };
    tx.lock_account(&known.account_id).await?;
    let live = format!("SELECT {KEY} FROM api_key WHERE id = $2 AND {IS_LIVE} FOR UPDATE");
    let Some(old) = tx
        .find(&live, &[&tx.now, key], |row| key_record(row, tx.now))
        .await?
    else {
        return Ok(KeyOutcome::Unknown);
    };
    let live =
        format!("SELECT count(*) FROM api_key WHERE account_id = $2 AND id <> $3 AND {IS_LIVE}");
    let others = tx.number(&live, &[&tx.now, &old.account_id, key]).await?;
    if others + i64::from(overlap_seconds > 0) >= LIVE_KEYS_MAX.into() {
        return Ok(KeyOutcome::TooMany);
    }
    revoke_at(tx, key, overlap_seconds).await?;
    create_key(tx, &old.account_id, old.permission, &old.name).await
}

/// A key that dies between two pages is listed among the revoked; none is passed over.
async fn list_keys(
    tx: &Tx,
    account: &AccountId,
    after: Option<&KeyCursor>,
    limit: u32,
) -> Result<Vec<KeyRecord>, StoreError> {
    let sql = format!(
        "SELECT {KEY} FROM (SELECT {KEY}, CAST(CASE WHEN {IS_LIVE} THEN 1 ELSE 0 END AS BIGINT) AS live
             FROM api_key WHERE account_id = $2) AS key
         WHERE (live, created_at, id) < ($3, $4, $5)
         ORDER BY live DESC, created_at DESC, id DESC LIMIT $6"
    );
    let (is_live, at, id) = after.map_or((2, i64::MAX, ""), |after| {
        let is_live = i64::from(after.is_live);
        (is_live, after.created_at.micros(), after.id.as_str())
    });
    tx.list(
        &sql,
        &[&tx.now, account, &is_live, &at, &id, &limit],
        |row| key_record(row, tx.now),
    )
    .await
}

/// Every key of the account is refused from the next request on.
pub(crate) async fn revoke_keys_of(tx: &Tx, account: &AccountId) -> Result<(), StoreError> {
    let sql = "UPDATE api_key SET revoked_at = CASE WHEN revoked_at < $2 THEN revoked_at ELSE $2 END, dead = $3
         WHERE account_id = $1 AND dead = 0";
    tx.execute(sql, &[account, &tx.now, &true]).await.map(drop)
}

/// The key, and whether it was alive until now.
pub(crate) async fn revoke_key(
    tx: &Tx,
    key: &KeyId,
) -> Result<(Option<KeyRecord>, bool), StoreError> {
    let was_live = revoke_at(tx, key, 0).await? == 1;
    Ok((find_key(tx, key).await?, was_live))
}

/// Never later than an earlier revocation said. Without overlap the key is dead whatever the clock does.
async fn revoke_at(tx: &Tx, key: &KeyId, overlap_seconds: i64) -> Result<u64, StoreError> {
    let overlap = overlap_seconds.max(0);
    tx.execute(
        "UPDATE api_key SET revoked_at = CASE WHEN revoked_at < $2 THEN revoked_at ELSE $2 END, dead = $3
         WHERE id = $1 AND dead = 0",
        &[key, &tx.now.plus_seconds(overlap), &(overlap == 0)],
    )
    .await
}

async fn find_key(tx: &Tx, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
    let sql = format!("SELECT {KEY} FROM api_key WHERE id = $1");
    tx.find(&sql, &[key], |row| key_record(row, tx.now)).await
}

fn key_record(row: &dyn Row, now: Timestamp) -> Result<KeyRecord, StoreError> {
    let revoked_at = row.time_if_any("revoked_at")?;
    Ok(KeyRecord {
        id: row.parsed("id", KeyId::parse)?,
        account_id: row.account_id()?,
        permission: row.parsed("permission", Permission::parse)?,
        created_at: row.time("created_at")?,
        last_used_at: row.time_if_any("last_used_at")?,
        revoked_at,
        is_live: !row.flag("dead")? && revoked_at.is_none_or(|at| at > now),
        hint: row.string("hint")?,
        name: row.string("name")?,
    })
}

fn caller(row: &dyn Row) -> Result<Caller, StoreError> {
    Ok(Caller {
        account_id: row.account_id()?,
        key_id: row.parsed("id", KeyId::parse)?,
        permission: row.parsed("permission", Permission::parse)?,
        activated: row.time_if_any("activated_at")?.is_some(),
        last_used_at: row.time_if_any("last_used_at")?,
    })
}
