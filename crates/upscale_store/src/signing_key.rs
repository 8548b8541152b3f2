//! The secrets that sign result URLs, 32 bytes in hex: one made with the tables, read by every process that serves them.
//! A new one takes over the signing; the old one checks what it signed until the last of its URLs is past its hour.

use upscale_core::{NoRandomness, hex, limits::SIGNING_KEY_OVERLAP_SECONDS, random_bytes};

use std::sync::Arc;

use crate::{
    OldLinks, SecretKeys, SigningKey, Store, StoreError, StoredSecret,
    sealing::{seal, signing_key_spot},
    tx::Tx,
};

/// Writes the first one, where there is none.
pub(crate) const FIRST_SIGNING_KEY: &str = "INSERT INTO signing_key (id, secret, created_at)
     SELECT $1, $2, 0 WHERE NOT EXISTS (SELECT 1 FROM signing_key)";

impl Store {
    /// A new key signs from now on; its id. Processes that have read the keys lately notice within 10 s.
    pub async fn rotate_signing_key(&self, old_links: OldLinks) -> Result<String, StoreError> {
        let keys = self.secret_keys().cloned();
        self.write(async move |tx: &mut Tx| rotate(tx, old_links, keys.as_ref()).await)
            .await
    }

    /// Those that sign or check, newest first; never empty.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let stored = self.read(async |tx: &mut Tx| {
            let replaced_before = tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS);
            tx.list(
                "SELECT id, secret FROM signing_key AS key WHERE NOT EXISTS
                     (SELECT 1 FROM signing_key AS newer
                      WHERE newer.created_at > key.created_at AND newer.created_at <= $1)
                 ORDER BY created_at DESC, id",
                &[&replaced_before],
                |row| Ok((row.string("id")?, StoredSecret::new(row.string("secret")?))),
            )
            .await
        });
        let open = |(id, stored): (String, StoredSecret)| {
            let secret = stored.open(self.secret_keys(), signing_key_spot(&id))?;
            signing_key(id, &secret)
        };
        stored.await?.into_iter().map(open).collect()
    }
}

/// The newest signs, so the new one must be the newest even when the clock has stepped back.
async fn rotate(
    tx: &Tx,
    old_links: OldLinks,
    keys: Option<&Arc<SecretKeys>>,
) -> Result<String, StoreError> {
    tx.lock_signing_keys().await?;
    let newest = "SELECT coalesce(max(created_at), 0) FROM signing_key";
    let newest = tx.number(newest, &[]).await?;
    let (id, secret) = new_signing_key()?;
    let secret = seal(tx, keys, signing_key_spot(&id), &secret).await?;
    let replaced_before = tx.now.plus_seconds(-SIGNING_KEY_OVERLAP_SECONDS);
    match old_links {
        OldLinks::Refuse => tx.execute("DELETE FROM signing_key", &[]).await?,
        OldLinks::Expire => {
            let replaced =
                "DELETE FROM signing_key WHERE EXISTS (SELECT 1 FROM signing_key AS newer
                 WHERE newer.created_at > signing_key.created_at AND newer.created_at <= $1)";
            tx.execute(replaced, &[&replaced_before]).await?
        }
    };
    tx.execute_one(
        "INSERT INTO signing_key (id, secret, created_at) VALUES ($1, $2, $3)",
        &[&id, &secret, &tx.now.micros().max(newest + 1)],
    )
    .await?;
    Ok(id)
}

/// Id and secret of a new key, as they are written.
pub(crate) fn new_signing_key() -> Result<(String, String), NoRandomness> {
    Ok((hex(&random_bytes::<4>()?), hex(&random_bytes::<32>()?)))
}

fn signing_key(id: String, secret: &str) -> Result<SigningKey, StoreError> {
    match parse_secret(secret) {
        Some(secret) => Ok(SigningKey { id, secret }),
        None => Err(StoreError::Corrupt(format!(
            "signing key {id}: no 32 bytes of hex"
        ))),
    }
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
