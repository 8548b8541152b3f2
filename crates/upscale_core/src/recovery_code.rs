//! Codes that stand in for a lost authenticator, once each: 80 random bits in base32, written in groups that people can
//! copy from paper. The store keeps only their hash.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{
    api_key::hex,
    ids::{NoRandomness, random_bytes},
    secret_token::TokenHash,
};

/// Bytes of one.
const BYTES: usize = 10;
/// Signs of one, and of each of its groups.
const SIGNS: usize = 16;
const GROUP: usize = 4;
/// Base32 as RFC 4648 has it, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// One code. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// A new code, 80 random bits.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        let bytes = random_bytes::<BYTES>()?;
        let bits = bytes
            .iter()
            .fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        let sign = |at: usize| {
            let five = (bits >> (5 * (SIGNS - 1 - at))) as usize % ALPHABET.len();
            char::from(ALPHABET[five])
        };
        Ok(Self((0..SIGNS).map(sign).collect()))
    }

    /// As typed: capitals, spaces and hyphens do not count. None for anything that we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let signs = text
            .chars()
            .filter(|sign| !sign.is_whitespace() && *sign != '-');
        let plain: String = signs
            .take(SIGNS + 1)
            .map(|sign| sign.to_ascii_lowercase())
            .collect();
        let is_ours = plain.bytes().all(|byte| ALPHABET.contains(&byte));
        (plain.len() == SIGNS && is_ours).then_some(Self(plain))
    }

    /// In groups, for people.
    #[must_use]
    pub fn reveal(&self) -> String {
        let groups = (0..SIGNS / GROUP).map(|group| &self.0[group * GROUP..(group + 1) * GROUP]);
        groups.collect::<Vec<_>>().join("-")
    }

    /// What may be stored.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(hex(&Sha256::digest(self.0.as_bytes())))
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_back_however_it_is_typed_and_nothing_else_is_one() {
        let code = RecoveryCode::random().unwrap();
        let shown = code.reveal();
        assert_eq!(shown.len(), 19);
        for typed in [
            shown.clone(),
            shown.to_uppercase(),
            format!(" {} ", shown.replace('-', " ")),
        ] {
            assert_eq!(RecoveryCode::parse(&typed), Some(code.clone()), "{typed}");
        }
        assert_ne!(RecoveryCode::random().unwrap().hash(), code.hash());
        assert_eq!(format!("{code:?}"), "RecoveryCode(hidden)");
        for wrong in [
            "",
            "123456",
            "aaaa-aaaa-aaaa-aaa",
            "aaaa-aaaa-aaaa-aaaaa",
            "aaaa-aaaa-aaaa-aaa1",
            "äaaa-aaaa-aaaa-aaaa",
        ] {
            assert_eq!(RecoveryCode::parse(wrong), None, "{wrong}");
        }
    }
}
