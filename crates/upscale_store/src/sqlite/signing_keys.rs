//! The secrets that sign result URLs: one made with the file, read by every process that serves it. A new one takes
//! over the signing; the old one checks what it signed until the last of its URLs is past its hour.

use rusqlite::{Connection, Row, params};
use upscale_core::limits::SIGNING_KEY_OVERLAP_SECONDS;

use super::{Db, Tx};
use crate::{
    OldLinks, SigningKey, StoreError,
    signing_key::{new_signing_key, parse_signing_key},
};

impl Db {
    pub(crate) async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        self.read(|tx| {
            let replaced_before = tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS);
            tx.list(
                "SELECT id, secret FROM signing_key AS key WHERE NOT EXISTS
                     (SELECT 1 FROM signing_key WHERE created_at > key.created_at AND created_at <= ?1)
                 ORDER BY created_at DESC, id",
                [replaced_before.micros()],
                signing_key,
            )
        })
        .await
    }

    pub(crate) async fn rotate_signing_key(
        &self,
        old_links: OldLinks,
    ) -> Result<String, StoreError> {
        self.write(move |tx| rotate(tx, old_links)).await
    }
}

/// The newest signs, so the new one must be the newest even when the clock has stepped back.
fn rotate(tx: &Tx<'_>, old_links: OldLinks) -> Result<String, StoreError> {
    let newest = tx.number("SELECT coalesce(max(created_at), 0) FROM signing_key", [])?;
    match old_links {
        OldLinks::Refuse => tx.execute("DELETE FROM signing_key", [])?,
        OldLinks::Expire => tx.execute(
            "DELETE FROM signing_key WHERE EXISTS (SELECT 1 FROM signing_key AS newer
                 WHERE newer.created_at > signing_key.created_at AND newer.created_at <= ?1)",
            [tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS).micros()],
        )?,
    };
    let (id, secret) = new_signing_key()?;
    tx.execute_one(
        "INSERT INTO signing_key (id, secret, created_at) VALUES (?1, ?2, ?3)",
        params![id, secret, tx.now.micros().max(newest + 1)],
    )?;
    Ok(id)
}

/// Runs under the migration lock, so two processes cannot make two.
pub(super) fn ensure_one(connection: &Connection) -> Result<(), StoreError> {
    let (id, secret) = new_signing_key()?;
    connection.execute(
        "INSERT INTO signing_key (id, secret, created_at)
         SELECT ?1, ?2, 0 WHERE NOT EXISTS (SELECT 1 FROM signing_key)",
        [id, secret],
    )?;
    Ok(())
}

fn signing_key(row: &Row<'_>) -> Result<SigningKey, StoreError> {
    let secret: String = row.get(1)?;
    parse_signing_key(row.get(0)?, &secret)
}
