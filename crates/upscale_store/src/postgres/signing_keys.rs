//! The secrets that sign result URLs: one made with the tables, read by every process that serves them. A new one
//! takes over the signing; the old one checks what it signed until the last of its URLs is past its hour.

use tokio_postgres::Client;
use upscale_core::limits::SIGNING_KEY_OVERLAP_SECONDS;

use super::{Db, Tx};
use crate::{
    OldLinks, SigningKey, StoreError,
    signing_key::{new_signing_key, parse_signing_key},
};

impl Db {
    pub(crate) async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let tx = self.read().await?;
        let replaced_before = tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS);
        tx.list(
            "SELECT id, secret FROM signing_key AS key WHERE NOT EXISTS
                 (SELECT 1 FROM signing_key AS newer
                  WHERE newer.created_at > key.created_at AND newer.created_at <= $1)
             ORDER BY created_at DESC, id",
            &[&replaced_before.micros()],
            |row| parse_signing_key(row.try_get(0)?, row.try_get(1)?),
        )
        .await
    }

    pub(crate) async fn rotate_signing_key(
        &self,
        old_links: OldLinks,
    ) -> Result<String, StoreError> {
        let tx = self.begin().await?;
        let rotated = rotate(&tx, old_links).await;
        tx.end(rotated).await
    }
}

/// The newest signs, so the new one must be the newest even when the clock has stepped back.
async fn rotate(tx: &Tx, old_links: OldLinks) -> Result<String, StoreError> {
    // One rotation at a time; reads go on.
    let lock = "LOCK TABLE signing_key IN SHARE ROW EXCLUSIVE MODE";
    tx.execute(lock, &[]).await?;
    let newest = "SELECT coalesce(max(created_at), 0) FROM signing_key";
    let newest = tx.number(newest, &[]).await?;
    let replaced_before = tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS);
    match old_links {
        OldLinks::Refuse => tx.execute("DELETE FROM signing_key", &[]).await?,
        OldLinks::Expire => {
            let replaced =
                "DELETE FROM signing_key WHERE EXISTS (SELECT 1 FROM signing_key AS newer
                 WHERE newer.created_at > signing_key.created_at AND newer.created_at <= $1)";
            tx.execute(replaced, &[&replaced_before.micros()]).await?
        }
    };
    let (id, secret) = new_signing_key()?;
    tx.execute_one(
        "INSERT INTO signing_key (id, secret, created_at) VALUES ($1, $2, $3)",
        &[&id, &secret, &tx.now.micros().max(newest + 1)],
    )
    .await?;
    Ok(id)
}

/// Runs under the migration lock, so two processes cannot make two.
pub(super) async fn ensure_one(client: &Client) -> Result<(), StoreError> {
    let (id, secret) = new_signing_key()?;
    client
        .execute(
            "INSERT INTO signing_key (id, secret, created_at)
             SELECT $1, $2, 0 WHERE NOT EXISTS (SELECT 1 FROM signing_key)",
            &[&id, &secret],
        )
        .await?;
    Ok(())
}
