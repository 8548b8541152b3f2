//! The secrets that sign result URLs: made once with the file, read by every process that serves it.

use rusqlite::{Connection, Row};
use upscale_core::{hex, random_bytes};

use super::Db;
use crate::{SigningKey, StoreError};

impl Db {
    pub(crate) async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        self.read(|tx| {
            tx.list(
                "SELECT id, secret FROM signing_key ORDER BY created_at DESC, id",
                [],
                signing_key,
            )
        })
        .await
    }
}

/// Runs under the migration lock, so two processes cannot make two.
pub(super) fn ensure_one(connection: &Connection) -> Result<(), StoreError> {
    let id = hex(&random_bytes::<4>()?);
    let secret = hex(&random_bytes::<32>()?);
    connection.execute(
        "INSERT INTO signing_key (id, secret, created_at)
         SELECT ?1, ?2, 0 WHERE NOT EXISTS (SELECT 1 FROM signing_key)",
        [id, secret],
    )?;
    Ok(())
}

fn signing_key(row: &Row<'_>) -> Result<SigningKey, StoreError> {
    let id = row.get(0)?;
    let text: String = row.get(1)?;
    let secret = parse_secret(&text);
    let secret = secret
        .ok_or_else(|| StoreError::Corrupt(format!("signing key {id}: no 32 bytes of hex")))?;
    Ok(SigningKey { id, secret })
}

fn parse_secret(text: &str) -> Option<[u8; 32]> {
    let digit = |character: char| {
        character
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let digits: Vec<u8> = text.chars().map(digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    bytes.try_into().ok()
}
