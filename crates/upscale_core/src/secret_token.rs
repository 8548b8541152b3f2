//! Secrets that a browser or a mail carries for us: 256 random bits in hex. The store keeps only their hash, so
//! that who reads the database can sign in as no one.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{api_key::hex, ids::NoRandomness, ids::random_bytes};

/// Characters of one.
const CHARS: usize = 64;

/// One secret. `Debug` hides it; [`SecretToken::reveal`] shows it to whom it belongs.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretToken(String);

/// SHA-256 of a secret in lower-case hex: what the store keeps and looks up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl SecretToken {
    /// A new token, 32 random bytes in hexadecimal.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        Ok(Self(hex(&random_bytes::<{ CHARS / 2 }>()?)))
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == CHARS && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What may be stored.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(hex(&Sha256::digest(self.0.as_bytes())))
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretToken(hidden)")
    }
}

impl TokenHash {
    /// Of another kind of secret: SHA-256 in lower-case hex.
    pub(crate) fn of(hex: String) -> Self {
        Self(hex)
    }

    /// 64 lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_parses_back_and_shows_neither_itself_nor_its_hash_by_accident() {
        let token = SecretToken::random().unwrap();
        assert_eq!(SecretToken::parse(token.reveal()), Some(token.clone()));
        assert_ne!(token.hash().as_str(), token.reveal());
        assert_eq!(format!("{token:?}"), "SecretToken(hidden)");
        for text in [
            "",
            "0",
            &token.reveal()[1..],
            &"g".repeat(CHARS),
            &"A".repeat(CHARS),
        ] {
            assert_eq!(SecretToken::parse(text), None, "{text:?}");
        }
    }
}
