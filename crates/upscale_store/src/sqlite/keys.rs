//! API keys: only their hashes are kept, and every request asks the file, so that a revocation by any
//! process counts from the next request on.

use rusqlite::{Row, params};
use upscale_core::{AccountId, ApiKey, KeyHash, KeyId, Permission};

use super::{
    Db, Tx,
    rows::{account_id, parsed, time, time_if_any},
};
use crate::{Caller, KeyRecord, StoreError, task_row::check_name};

/// Keys one listing shows at most.
const LISTED_MAX: u32 = 1_000;
/// Last characters of a secret that are kept to recognise it by.
const HINT_CHARS: usize = 4;
/// A use is recorded to the minute: one write a key and minute, not one a request.
const USE_RECORDED_EVERY_SECONDS: i64 = 60;

impl Db {
    pub(crate) async fn create_key(
        &self,
        account: &AccountId,
        permission: Permission,
        name: &str,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
        let (account, name) = (*account, name.to_owned());
        self.write(move |tx| create_key(tx, &account, permission, &name))
            .await
    }

    pub(crate) async fn list_keys(
        &self,
        account: &AccountId,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let account = *account;
        self.read(move |tx| {
            tx.list(
                "SELECT * FROM api_key WHERE account_id = ?1 ORDER BY created_at, id LIMIT ?2",
                params![account.as_str(), LISTED_MAX],
                key_record,
            )
        })
        .await
    }

    pub(crate) async fn find_key(
        &self,
        account: &AccountId,
        key: &KeyId,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let (account, key) = (*account, *key);
        self.read(move |tx| {
            tx.find(
                "SELECT * FROM api_key WHERE id = ?1 AND account_id = ?2",
                [key.as_str(), account.as_str()],
                key_record,
            )
        })
        .await
    }

    pub(crate) async fn rotate_key(
        &self,
        key: &KeyId,
        overlap_seconds: i64,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
        let key = *key;
        self.write(move |tx| rotate_key(tx, &key, overlap_seconds))
            .await
    }

    pub(crate) async fn revoke_key(&self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let key = *key;
        self.write(move |tx| Ok(revoke_key(tx, &key)?.0)).await
    }

    pub(crate) async fn find_caller(&self, key: &KeyHash) -> Result<Option<Caller>, StoreError> {
        let key = key.clone();
        self.read(move |tx| {
            tx.find(
                "SELECT api_key.*, account.activated_at FROM api_key JOIN account ON account.id = account_id
                 WHERE hash = ?1 AND dead = 0 AND (revoked_at IS NULL OR revoked_at > ?2)",
                params![key.as_str(), tx.now.micros()],
                caller,
            )
        })
        .await
    }

    pub(crate) async fn record_key_use(&self, key: &KeyId) -> Result<(), StoreError> {
        let key = *key;
        self.write(move |tx| {
            let latest = tx.now.plus_seconds(-USE_RECORDED_EVERY_SECONDS);
            tx.execute(
                "UPDATE api_key SET last_used_at = ?2
                 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)",
                params![key.as_str(), tx.now.micros(), latest.micros()],
            )
            .map(drop)
        })
        .await
    }
}

fn create_key(
    tx: &Tx<'_>,
    account: &AccountId,
    permission: Permission,
    name: &str,
) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
    check_name(name)?;
    let known = tx.find(
        "SELECT 1 FROM account WHERE id = ?1",
        [account.as_str()],
        |_| Ok(()),
    )?;
    if known.is_none() {
        return Ok(None);
    }
    let (id, key) = (KeyId::random()?, ApiKey::random()?);
    let hint = &key.reveal()[key.reveal().len() - HINT_CHARS..];
    tx.execute_one(
        "INSERT INTO api_key (id, account_id, hash, permission, hint, created_at, name)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            id.as_str(),
            account.as_str(),
            key.hash().as_str(),
            permission.as_str(),
            hint,
            tx.now.micros(),
            name
        ],
    )?;
    Ok(find_key(tx, &id)?.map(|record| (record, key)))
}

fn rotate_key(
    tx: &Tx<'_>,
    key: &KeyId,
    overlap_seconds: i64,
) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
    let live = tx.find(
        "SELECT * FROM api_key WHERE id = ?1 AND dead = 0 AND (revoked_at IS NULL OR revoked_at > ?2)",
        params![key.as_str(), tx.now.micros()],
        key_record,
    )?;
    let Some(old) = live else { return Ok(None) };
    revoke_at(tx, key, overlap_seconds)?;
    create_key(tx, &old.account_id, old.permission, &old.name)
}

/// The key, and whether it was alive until now.
pub(super) fn revoke_key(
    tx: &Tx<'_>,
    key: &KeyId,
) -> Result<(Option<KeyRecord>, bool), StoreError> {
    let was_live = revoke_at(tx, key, 0)? == 1;
    Ok((find_key(tx, key)?, was_live))
}

/// Never later than an earlier revocation said. Without overlap the key is dead whatever the clock does.
fn revoke_at(tx: &Tx<'_>, key: &KeyId, overlap_seconds: i64) -> Result<usize, StoreError> {
    let overlap = overlap_seconds.max(0);
    tx.execute(
        "UPDATE api_key SET revoked_at = min(coalesce(revoked_at, ?2), ?2), dead = max(dead, ?3)
         WHERE id = ?1 AND dead = 0",
        params![
            key.as_str(),
            tx.now.plus_seconds(overlap).micros(),
            overlap == 0
        ],
    )
}

fn find_key(tx: &Tx<'_>, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
    tx.find(
        "SELECT * FROM api_key WHERE id = ?1",
        [key.as_str()],
        key_record,
    )
}

fn key_record(row: &Row<'_>) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: parsed(row, "id", KeyId::parse)?,
        account_id: account_id(row)?,
        permission: parsed(row, "permission", Permission::parse)?,
        created_at: time(row, "created_at")?,
        last_used_at: time_if_any(row, "last_used_at")?,
        revoked_at: time_if_any(row, "revoked_at")?,
        hint: row.get("hint")?,
        name: row.get("name")?,
    })
}

fn caller(row: &Row<'_>) -> Result<Caller, StoreError> {
    Ok(Caller {
        account_id: account_id(row)?,
        key_id: parsed(row, "id", KeyId::parse)?,
        permission: parsed(row, "permission", Permission::parse)?,
        activated: time_if_any(row, "activated_at")?.is_some(),
        last_used_at: time_if_any(row, "last_used_at")?,
    })
}
