//! Result URLs: `{result_url}/r/{token}.png?expires=…&key=…&signature=…`, HMAC-SHA256 over path, expiry
//! and key id. Anyone who holds one may download one file until it expires, and can make no other.

use std::sync::{Arc, Mutex};

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use upscale_core::{Timestamp, limits::RESULT_URL_SECONDS};
use upscale_store::{SigningKey, Store, StoreError};

use crate::error::ApiError;

/// Keys are read again after this long, so that a rotation elsewhere is noticed.
const FRESH_SECONDS: i64 = 10;

/// The store's signing keys, newest first, remembered for a few seconds.
#[derive(Default)]
pub(crate) struct SigningKeys {
    last: Mutex<Option<(Timestamp, Arc<[SigningKey]>)>>,
}

impl SigningKeys {
    /// Path and query of a new URL for the file of this name, good for an hour from now.
    pub(crate) async fn sign(&self, store: &Store, name: &str) -> Result<String, ApiError> {
        let keys = self.read(store, FRESH_SECONDS).await?;
        let newest = keys.first().ok_or_else(|| ApiError::Internal {
            detail: "the store has no signing key".to_owned(),
        })?;
        let expires = store.now().unix_seconds() + RESULT_URL_SECONDS;
        Ok(signed_path(newest, name, expires))
    }

    /// When the URL expires, if we signed it; none for everything else.
    pub(crate) async fn check(
        &self,
        store: &Store,
        name: &str,
        query: &str,
    ) -> Result<Option<Timestamp>, ApiError> {
        let Some(claims) = Claims::parse(query) else {
            return Ok(None);
        };
        let found = self.find(store, claims.key_id).await?;
        Ok(found
            .filter(|key| is_signed(key, name, &claims))
            .map(|_| Timestamp::from_micros(0).plus_seconds(claims.expires)))
    }

    async fn read(
        &self,
        store: &Store,
        fresh_seconds: i64,
    ) -> Result<Arc<[SigningKey]>, StoreError> {
        let now = store.now();
        if let Some((at, keys)) = self.remembered()
            && (0..fresh_seconds).contains(&(now.unix_seconds() - at.unix_seconds()))
        {
            return Ok(keys);
        }
        let keys: Arc<[SigningKey]> = store.signing_keys().await?.into();
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *last = Some((now, Arc::clone(&keys)));
        Ok(keys)
    }

    fn remembered(&self) -> Option<(Timestamp, Arc<[SigningKey]>)> {
        let last = self
            .last
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        last.clone()
    }

    /// The key of this id; one that is not known yet may be newer than what is remembered, so the store
    /// is asked again, at most once a second however many unknown ids come.
    async fn find(&self, store: &Store, id: &str) -> Result<Option<SigningKey>, StoreError> {
        let with_id = |keys: Arc<[SigningKey]>| keys.iter().find(|key| key.id == id).cloned();
        if let Some(key) = with_id(self.read(store, FRESH_SECONDS).await?) {
            return Ok(Some(key));
        }
        Ok(with_id(self.read(store, 1).await?))
    }
}

/// What a URL says of itself, before anything of it is believed.
struct Claims<'a> {
    expires: i64,
    key_id: &'a str,
    signature: Vec<u8>,
}

impl<'a> Claims<'a> {
    /// Each of the three exactly once, in any order; anything else beside them is no URL of ours.
    fn parse(query: &'a str) -> Option<Self> {
        let (mut expires, mut key_id, mut signature) = (None, None, None);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=')?;
            let place = match name {
                "expires" => &mut expires,
                "key" => &mut key_id,
                "signature" => &mut signature,
                _ => return None,
            };
            if place.replace(value).is_some() {
                return None;
            }
        }
        Some(Self {
            expires: expires?.parse().ok()?,
            key_id: key_id?,
            signature: BASE64URL_NOPAD.decode(signature?.as_bytes()).ok()?,
        })
    }
}

fn signed_path(key: &SigningKey, name: &str, expires: i64) -> String {
    let signature = mac(key, name, expires).finalize().into_bytes();
    let signature = BASE64URL_NOPAD.encode(&signature);
    format!(
        "/r/{name}.png?expires={expires}&key={}&signature={signature}",
        key.id
    )
}

/// The comparison takes the same time wherever the first wrong byte stands.
fn is_signed(key: &SigningKey, name: &str, claims: &Claims<'_>) -> bool {
    mac(key, name, claims.expires)
        .verify_slice(&claims.signature)
        .is_ok()
}

fn mac(key: &SigningKey, name: &str, expires: i64) -> Hmac<Sha256> {
    // 32 bytes are less than a block of SHA-256, so this is the key itself, zero-padded (RFC 2104).
    let mut block = [0; 64];
    block[..key.secret.len()].copy_from_slice(&key.secret);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(format!("/r/{name}.png\n{expires}\n{}", key.id).as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, byte: u8) -> SigningKey {
        SigningKey {
            id: id.to_owned(),
            secret: [byte; 32],
        }
    }

    fn opens(path: &str, key: &SigningKey) -> bool {
        let (path, query) = path.split_once('?').unwrap();
        let name = path
            .strip_prefix("/r/")
            .unwrap()
            .strip_suffix(".png")
            .unwrap();
        Claims::parse(query).is_some_and(|claims| is_signed(key, name, &claims))
    }

    #[test]
    fn a_signed_path_opens_with_its_key_alone_and_not_when_any_part_is_changed() {
        let key_1 = key("k1", 1);
        let path = signed_path(&key_1, "abc", 1_000);
        assert!(opens(&path, &key_1));
        assert!(!opens(&path, &key("k1", 2)));
        for (from, to) in [
            ("abc", "abd"),
            ("expires=1000", "expires=1001"),
            ("expires=1000", "expires=+1000"),
            ("expires=1000", "expires=01000"),
            ("&key=k1", ""),
            ("signature=", "signature=A"),
            ("?", "?x=1&"),
            ("&key=k1", "&key=k1&key=k1"),
        ] {
            let changed = path.replacen(from, to, 1);
            assert_ne!(changed, path);
            if to.contains("1000") {
                // The number is the same, and so is what was signed.
                assert!(opens(&changed, &key_1), "{changed}");
            } else {
                assert!(!opens(&changed, &key_1), "{changed}");
            }
        }
    }
}
