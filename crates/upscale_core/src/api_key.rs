//! API keys: `usk_live_` + 30 random base62 characters + 6 of checksum, so that secret scanners and we
//! ourselves recognise a mistyped one without asking the store. Only the SHA-256 is ever kept.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::{NoRandomness, random_bytes};

const PREFIX: &str = "usk_live_";
const RANDOM_CHARS: usize = 30;
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A whole, well-formed key. `Debug` hides it; only [`ApiKey::reveal`] shows it, once, to its owner.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// SHA-256 of a key in lower-case hex: what the store keeps and looks up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyHash(String);

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// May read tasks and download results.
    Read,
    /// May create tasks.
    Write,
    /// May create and read tasks.
    All,
}

impl ApiKey {
    /// A new one: 30 characters of base62 hold 178 random bits.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut body = String::with_capacity(RANDOM_CHARS);
        while body.len() < RANDOM_CHARS {
            // 248 = 4 × 62: bytes above it would favour the first characters.
            let bytes: [u8; 64] = random_bytes()?;
            let fair = bytes
                .iter()
                .filter(|&&byte| byte < 248)
                .map(|&byte| BASE62[usize::from(byte % 62)]);
            body.extend(fair.take(RANDOM_CHARS - body.len()).map(char::from));
        }
        let text = format!("{PREFIX}{body}");
        let checksum = checksum(&text);
        Ok(Self(text + &checksum))
    }

    /// None unless prefix, length, alphabet and checksum are right.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = text.is_ascii()
            && text.len() == PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS
            && text.starts_with(PREFIX);
        let (body, given) = well_formed.then(|| text.split_at(text.len() - CHECKSUM_CHARS))?;
        (checksum(body) == given).then(|| Self(text.to_owned()))
    }

    /// The secret itself, for the one time it is shown.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What may be stored.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(hex(&Sha256::digest(self.0.as_bytes())))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

impl KeyHash {
    /// 64 lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Permission {
    /// As written in rows, flags and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::All => "all",
        }
    }

    /// None for any other word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::All]
            .into_iter()
            .find(|permission| permission.as_str() == text)
    }

    /// Whether tasks may be read.
    #[must_use]
    pub const fn may_read(self) -> bool {
        matches!(self, Self::Read | Self::All)
    }

    /// Whether tasks may be created.
    #[must_use]
    pub const fn may_write(self) -> bool {
        matches!(self, Self::Write | Self::All)
    }
}

/// Lower-case hex of any bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// CRC-32 (ISO-HDLC, as in zlib and PNG) of the text, in base62, most significant first: 62⁶ > 2³².
fn checksum(text: &str) -> String {
    let mut rest = crc32(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().map(|&byte| char::from(byte)).collect()
}

/// Bit by bit: forty bytes a request do not earn a table.
fn crc32(bytes: &[u8]) -> u32 {
    let one_bit = |crc: u32| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| one_bit(crc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_one_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_key_parses_back_and_every_single_changed_character_is_noticed() {
        let key = ApiKey::random().unwrap();
        assert_eq!(key.reveal().len(), 45);
        assert_eq!(ApiKey::parse(key.reveal()), Some(key.clone()));
        for at in 0..key.reveal().len() {
            let mut bytes = key.reveal().as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(
                ApiKey::parse(&String::from_utf8(bytes).unwrap()),
                None,
                "at {at}"
            );
        }
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        assert_eq!(format!("{:?}", ApiKey::random().unwrap()), "ApiKey(hidden)");
    }
}
