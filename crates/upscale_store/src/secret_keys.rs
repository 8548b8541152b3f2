//! The key that seals what must not be read in the database or in a copy of it: ChaCha20-Poly1305 (RFC 8439) under a key
//! that stands in a file of the operator's. A sealed value names its format and its key, and opens in its own row alone.

use std::fmt;

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest,
};
use upscale_core::random_bytes;

use crate::StoreError;

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// What every sealed value begins with, and its format's number. Neither base32 nor hex holds a colon.
const PREFIX: &str = "sealed:1:";
/// Bytes of a key's hash that name it. A mistaken name opens nothing; it only makes for a worse message.
const ID_BYTES: usize = 4;

/// What a process that lacks the key is told.
pub(crate) const KEY_NEEDED: &str =
    "the secrets in the database are sealed: name the file of their key with --secret-key-file";

/// The key that seals, and older ones that still open.
pub struct SecretKeys {
    /// Never empty; the first seals.
    keys: Vec<SecretKey>,
}

struct SecretKey {
    id: String,
    key: LessSafeKey,
}

/// Why a key file is not taken. Names lines, never what they hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretKeysError {
    /// Nothing in it.
    #[error("it contains no key: expected 32 bytes in base64 or hex")]
    Empty,
    /// Something else.
    #[error("line {0} is not a key: expected 32 bytes in base64 or hex")]
    NoKey(usize),
}

/// Where a secret stands: what it is sealed to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    pub(crate) id: &'a str,
}

impl SecretKeys {
    /// A key a line, 32 bytes in base64 or hex each; the first seals, the others open what they sealed before.
    ///
    /// # Errors
    /// [`SecretKeysError`] when a line is no key, or there is none.
    pub fn parse(text: &str) -> Result<Self, SecretKeysError> {
        let lines = text.lines().map(str::trim).enumerate();
        let keys = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(at, line)| SecretKey::parse(line).ok_or(SecretKeysError::NoKey(at + 1)))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(SecretKeysError::Empty);
        }
        Ok(Self { keys })
    }

    /// The name of the key that seals, 8 hex digits of its hash.
    #[must_use]
    pub fn id(&self) -> &str {
        self.keys.first().map_or("", |key| &key.id)
    }

    pub(crate) fn seal(&self, spot: Spot<'_>, plain: &str) -> Result<String, StoreError> {
        let broken = |what: &str| StoreError::Unavailable(format!("nothing can be sealed: {what}"));
        let key = self.keys.first().ok_or_else(|| broken("there is no key"))?;
        // Random: a handful of secrets a day is far from the 2^32 after which two nonces may meet.
        let nonce: [u8; NONCE_LEN] = random_bytes()?;
        let mut bytes = plain.as_bytes().to_vec();
        key.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound_to(&key.id, spot)),
                &mut bytes,
            )
            .map_err(|_| broken("the cipher failed"))?;
        let sealed = BASE64URL_NOPAD.encode(&[&nonce[..], &bytes].concat());
        Ok(format!("{PREFIX}{}:{sealed}", key.id))
    }

    pub(crate) fn open(&self, spot: Spot<'_>, stored: &str) -> Result<String, StoreError> {
        let damaged = || {
            let Spot { table, column, id } = spot;
            StoreError::Corrupt(format!(
                "the sealed {column} of {table} {id} does not open: damaged, or of another row"
            ))
        };
        let (id, sealed) = parts(stored).ok_or_else(damaged)?;
        let key = self.keys.iter().find(|key| key.id == id);
        let key = key.ok_or_else(|| other_key(id))?;
        let bytes = BASE64URL_NOPAD.decode(sealed.as_bytes());
        let mut bytes = bytes.map_err(|_| damaged())?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let plain = key
            .key
            .open_in_place(nonce, Aad::from(bound_to(id, spot)), sealed);
        let plain = plain.map_err(|_| damaged())?.to_vec();
        String::from_utf8(plain).map_err(|_| damaged())
    }

    /// Whether the key that seals now has sealed this.
    pub(crate) fn is_current(&self, stored: &str) -> bool {
        parts(stored).is_some_and(|(id, _)| id == self.id())
    }
}

impl SecretKey {
    fn parse(line: &str) -> Option<Self> {
        let text = line.as_bytes();
        let decoded = match line.len() {
            64 => HEXLOWER_PERMISSIVE.decode(text),
            _ => BASE64.decode(text),
        };
        let bytes = decoded.ok().filter(|bytes| bytes.len() == KEY_BYTES)?;
        let hash = digest::digest(
            &digest::SHA256,
            &[b"upscale secret key", &bytes[..]].concat(),
        );
        let id = hash.as_ref().get(..ID_BYTES)?;
        Some(Self {
            id: HEXLOWER.encode(id),
            key: LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok()?),
        })
    }
}

impl fmt::Debug for SecretKeys {
    /// Their names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.keys.iter().map(|key| &key.id))
            .finish()
    }
}

pub(crate) fn is_sealed(stored: &str) -> bool {
    stored.starts_with("sealed:")
}

/// What is not secret and yet not to be changed: format, key and row.
fn bound_to(key: &str, spot: Spot<'_>) -> String {
    let Spot { table, column, id } = spot;
    format!("{PREFIX}{key}:{table}.{column}:{id}")
}

/// The key's name and what it sealed.
fn parts(stored: &str) -> Option<(&str, &str)> {
    stored.strip_prefix(PREFIX)?.split_once(':')
}

fn other_key(id: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "the secrets in the database are sealed with the key {id}, which --secret-key-file does not hold"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOT: Spot<'_> = Spot {
        table: "signing_key",
        column: "secret",
        id: "a",
    };

    fn keys(lines: &[[u8; 32]]) -> SecretKeys {
        let lines = lines.iter().map(|key| BASE64.encode(key));
        SecretKeys::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap()
    }

    #[test]
    fn a_key_is_32_bytes_in_base64_or_hex_and_shows_no_more_than_its_name() {
        let bytes: [u8; 32] = std::array::from_fn(|at| at as u8);
        let (base64, hex) = (BASE64.encode(&bytes), HEXLOWER.encode(&bytes));
        let id = SecretKeys::parse(&base64).unwrap().id().to_owned();
        for text in [
            format!("{base64}\n"),
            format!("\n  {hex}\r\n\n"),
            hex.to_uppercase(),
        ] {
            assert_eq!(SecretKeys::parse(&text).unwrap().id(), id, "{text}");
        }
        let shown = format!("{:?}", SecretKeys::parse(&hex).unwrap());
        assert_eq!(shown, format!("[\"{id}\"]"));
        for (text, error) in [
            (String::new(), SecretKeysError::Empty),
            ("\n \n".to_owned(), SecretKeysError::Empty),
            (hex[1..].to_owned(), SecretKeysError::NoKey(1)),
            (format!("{hex}\n{base64}x"), SecretKeysError::NoKey(2)),
            (BASE64.encode(&bytes[1..]), SecretKeysError::NoKey(1)),
        ] {
            assert_eq!(SecretKeys::parse(&text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn what_is_sealed_opens_in_its_own_row_with_its_own_key_and_never_looks_the_same_twice() {
        let ours = keys(&[[1; 32]]);
        let (one, two) = (
            ours.seal(SPOT, "secret").unwrap(),
            ours.seal(SPOT, "secret").unwrap(),
        );
        assert!(one != two && is_sealed(&one) && ours.is_current(&one));
        assert_eq!(ours.open(SPOT, &one).unwrap(), "secret");
        let elsewhere = [
            Spot { id: "b", ..SPOT },
            Spot {
                table: "console_user",
                ..SPOT
            },
            Spot {
                column: "totp_secret",
                ..SPOT
            },
        ];
        for spot in elsewhere {
            let refused = ours.open(spot, &one);
            assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{spot:?}");
        }
        let others = keys(&[[2; 32]]);
        let refused = others.open(SPOT, &one).unwrap_err().to_string();
        assert!(refused.contains(ours.id()), "{refused}");
        // The new key first, the old one after it: both open.
        let both = keys(&[[2; 32], [1; 32]]);
        assert_eq!(both.open(SPOT, &one).unwrap(), "secret");
        assert!(!both.is_current(&one));
        assert!(both.is_current(&both.seal(SPOT, "secret").unwrap()));
    }

    #[test]
    fn no_damaged_text_opens() {
        let ours = keys(&[[1; 32]]);
        let sealed = ours.seal(SPOT, "secret").unwrap();
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            assert!(ours.open(SPOT, &damaged).is_err(), "{damaged}");
        }
        for end in 0..sealed.len() {
            assert!(ours.open(SPOT, &sealed[..end]).is_err(), "{end}");
        }
        assert!(ours.open(SPOT, "GEZDGNBVGY3TQOJQ").is_err());
    }
}
