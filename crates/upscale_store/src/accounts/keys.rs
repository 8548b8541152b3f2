//! API keys: only their hashes are kept, and every request asks the database, so that a revocation by any
//! process counts from the next request on.

use upscale_core::{AccountId, ApiKey, KeyHash, KeyId, Permission, limits::NAME_CHARS_MAX};

use super::Accounts;
use crate::{Caller, KeyRecord, StoreError, row::Row, tx::Tx};

/// Keys one listing shows at most.
const LISTED_MAX: u32 = 1_000;
/// Last characters of a secret that are kept to recognise it by.
const HINT_CHARS: usize = 4;
/// A use is recorded to the minute: one write a key and minute, not one a request.
const USE_RECORDED_EVERY_SECONDS: i64 = 60;

type NewKey = Option<(KeyRecord, ApiKey)>;

impl Accounts<'_> {
    /// A new key and, this once, its secret; `name` has at most 100 characters, none is a name too. None when there
    /// is no such account.
    pub async fn create_key(
        self,
        account: &AccountId,
        permission: Permission,
        name: &str,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
        let (account, name) = (*account, name.to_owned());
        self.store
            .write(async move |tx: &mut Tx| create_key(tx, &account, permission, &name).await)
            .await
    }

    /// The account's keys, revoked ones too, oldest first, at most 1,000.
    pub async fn list_keys(self, account: &AccountId) -> Result<Vec<KeyRecord>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                let sql =
                    "SELECT * FROM api_key WHERE account_id = $1 ORDER BY created_at, id LIMIT $2";
                tx.list(sql, &[&account, &LISTED_MAX], key_record).await
            })
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
                let sql = "SELECT * FROM api_key WHERE id = $1 AND account_id = $2";
                tx.find(sql, &[&key, &account], key_record).await
            })
            .await
    }

    /// A new key with the same permission and name; the old one dies after `overlap_seconds`. None when the key is
    /// unknown or revoked.
    pub async fn rotate_key(
        self,
        key: &KeyId,
        overlap_seconds: i64,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
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
        self.store.read(async move |tx: &mut Tx| {
            tx.find(
                "SELECT api_key.*, account.activated_at FROM api_key JOIN account ON account.id = account_id
                 WHERE hash = $1 AND dead = 0 AND (revoked_at IS NULL OR revoked_at > $2)",
                &[&key.as_str(), &tx.now],
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

async fn create_key(
    tx: &Tx,
    account: &AccountId,
    permission: Permission,
    name: &str,
) -> Result<NewKey, StoreError> {
    check_name(name)?;
    let known = "SELECT 1 FROM account WHERE id = $1";
    if !tx.exists(known, &[account]).await? {
        return Ok(None);
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
    Ok(find_key(tx, &id).await?.map(|record| (record, key)))
}

async fn rotate_key(tx: &Tx, key: &KeyId, overlap_seconds: i64) -> Result<NewKey, StoreError> {
    // Locked, so that of two rotations at once the second finds the first one's revocation.
    let live = tx
        .find(
            "SELECT * FROM api_key WHERE id = $1 AND dead = 0 AND (revoked_at IS NULL OR revoked_at > $2)
             FOR UPDATE",
            &[key, &tx.now],
            key_record,
        )
        .await?;
    let Some(old) = live else { return Ok(None) };
    revoke_at(tx, key, overlap_seconds).await?;
    create_key(tx, &old.account_id, old.permission, &old.name).await
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
    let sql = "SELECT * FROM api_key WHERE id = $1";
    tx.find(sql, &[key], key_record).await
}

fn key_record(row: &dyn Row) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: row.parsed("id", KeyId::parse)?,
        account_id: row.account_id()?,
        permission: row.parsed("permission", Permission::parse)?,
        created_at: row.time("created_at")?,
        last_used_at: row.time_if_any("last_used_at")?,
        revoked_at: row.time_if_any("revoked_at")?,
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
