//! The secrets in the database, sealed as soon as there is a key: those of second factors, and those that sign result
//! URLs. Here is where they stand, how they are put there and read, and how those that lie there in plain text are sealed.

use std::sync::Arc;

use crate::{
    SecretKeys, Store, StoreError,
    secret_keys::{KEY_NEEDED, Spot, is_sealed},
    tx::Tx,
};

/// Secrets sealed in one transaction.
const SEALED_A_PAGE: usize = 500;
const SIGNING_KEY: (&str, &str) = ("signing_key", "secret");
const TOTP: (&str, &str) = ("console_user", "totp_secret");

/// A secret as it stands in its row: sealed, or in plain text where there is no key.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret(String);

impl std::fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredSecret(hidden)")
    }
}

/// How the secrets in the database stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretsReport {
    /// Those that anyone can read who reads the database.
    pub plain: u64,
    /// Those that are sealed.
    pub sealed: u64,
    /// Why the first of the sealed does not open here, if one does not.
    pub unreadable: Option<String>,
}

/// What a sealing came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sealed {
    /// Secrets that were in plain text, or under an older key.
    pub secrets: u64,
    /// Why their old bytes may still be in the file, if they may.
    pub traces: Option<String>,
}

pub(crate) const fn signing_key_spot(id: &str) -> Spot<'_> {
    spot(SIGNING_KEY, id)
}

pub(crate) const fn totp_spot(user: &str) -> Spot<'_> {
    spot(TOTP, user)
}

const fn spot<'a>((table, column): (&'static str, &'static str), id: &'a str) -> Spot<'a> {
    Spot { table, column, id }
}

impl StoredSecret {
    pub(crate) fn new(stored: String) -> Self {
        Self(stored)
    }

    /// The secret in plain text, opened with one of the keys where it is sealed.
    pub(crate) fn open(
        &self,
        keys: Option<&Arc<SecretKeys>>,
        spot: Spot<'_>,
    ) -> Result<String, StoreError> {
        match keys {
            _ if !is_sealed(&self.0) => Ok(self.0.clone()),
            Some(keys) => keys.open(spot, &self.0),
            None => Err(StoreError::Unavailable(KEY_NEEDED.to_owned())),
        }
    }
}

/// A secret as it is to be written. Refused where others are sealed and do not open here: anyone who runs with their key
/// could not read it, and one in plain text among them would look as safe as they are.
pub(crate) async fn seal(
    tx: &Tx,
    keys: Option<&Arc<SecretKeys>>,
    spot: Spot<'_>,
    plain: &str,
) -> Result<String, StoreError> {
    let sealed = "SELECT id, secret FROM signing_key WHERE secret LIKE 'sealed:%'
         ORDER BY created_at DESC, id LIMIT 1";
    let sealed = tx.find(sealed, &[], |row| {
        Ok((row.string("id")?, StoredSecret(row.string("secret")?)))
    });
    if let Some((id, stored)) = sealed.await? {
        stored.open(keys, signing_key_spot(&id))?;
    }
    match keys {
        Some(keys) => keys.seal(spot, plain),
        None => Ok(plain.to_owned()),
    }
}

impl Store {
    /// How the secrets stand, and whether each opens here.
    pub async fn secrets_report(&self) -> Result<SecretsReport, StoreError> {
        let mut report = SecretsReport::default();
        for place in [SIGNING_KEY, TOTP] {
            for (id, stored) in self.list_stored(place).await? {
                if !is_sealed(&stored.0) {
                    report.plain += 1;
                    continue;
                }
                report.sealed += 1;
                let opened = stored.open(self.secret_keys(), spot(place, &id));
                if let (None, Err(error)) = (&report.unreadable, opened) {
                    report.unreadable = Some(error.to_string());
                }
            }
        }
        Ok(report)
    }

    /// Seals with the first key whatever is not sealed with it, and removes the traces of what was in plain text. Nothing
    /// where this store has no key.
    ///
    /// # Errors
    /// [`StoreError`] when a secret does not open or cannot be written; what was sealed stays sealed.
    pub async fn seal_secrets(&self) -> Result<Sealed, StoreError> {
        let Some(keys) = self.secret_keys() else {
            return Ok(Sealed::default());
        };
        let (mut secrets, mut was_plain) = (0, false);
        for place in [SIGNING_KEY, TOTP] {
            let mut stored = self.list_stored(place).await?;
            stored.retain(|(_, stored)| !keys.is_current(&stored.0));
            was_plain |= stored.iter().any(|(_, stored)| !is_sealed(&stored.0));
            for page in stored.chunks(SEALED_A_PAGE) {
                let (keys, page) = (Arc::clone(keys), page.to_vec());
                secrets += self
                    .write(async move |tx: &mut Tx| seal_page(tx, &keys, place, &page).await)
                    .await?;
            }
        }
        let traces = match was_plain {
            true => self.remove_traces().await.err(),
            false => None,
        };
        Ok(Sealed {
            secrets,
            traces: traces.map(|error| error.to_string()),
        })
    }

    async fn list_stored(
        &self,
        (table, column): (&'static str, &'static str),
    ) -> Result<Vec<(String, StoredSecret)>, StoreError> {
        self.read(async move |tx: &mut Tx| {
            let sql = format!(
                "SELECT id, {column} AS stored FROM {table} WHERE {column} IS NOT NULL ORDER BY id"
            );
            tx.list(&sql, &[], |row| {
                Ok((row.string("id")?, StoredSecret(row.string("stored")?)))
            })
            .await
        })
        .await
    }

    /// What is overwritten or removed stays in the free room of the file until someone makes it anew.
    async fn remove_traces(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.rewrite().await,
            Self::Postgres(db) => db.rewrite(&[SIGNING_KEY.0, TOTP.0]).await,
        }
    }
}

/// A secret that someone changed meanwhile was sealed by them.
async fn seal_page(
    tx: &Tx,
    keys: &Arc<SecretKeys>,
    place: (&'static str, &'static str),
    page: &[(String, StoredSecret)],
) -> Result<u64, StoreError> {
    let (table, column) = place;
    let sql = format!("UPDATE {table} SET {column} = $3 WHERE id = $1 AND {column} = $2");
    let mut sealed = 0;
    for (id, stored) in page {
        let plain = stored.open(Some(keys), spot(place, id))?;
        let new = keys.seal(spot(place, id), &plain)?;
        sealed += tx.execute(&sql, &[id, &stored.0, &new]).await?;
    }
    Ok(sealed)
}
