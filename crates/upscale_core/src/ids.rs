//! Identifiers: a prefix that says what is named, then 128 random bits in 26 characters of Crockford's
//! base32 (lower case). Opaque to everyone; parsing only refuses what we never made.

use std::fmt;

/// Crockford's base32 alphabet, lower case: no i, l, o, u.
const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters that hold 128 bits, five a character.
const TOKEN_CHARS: usize = 26;

/// The operating system gave no randomness; nothing secret can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the operating system provided no random bytes: {0}")]
pub struct NoRandomness(String);

/// Fills an array from the operating system's generator.
///
/// # Errors
/// [`NoRandomness`] when the system call fails.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness(error.to_string()))?;
    Ok(bytes)
}

/// 128 random bits as 26 characters of Crockford's base32: the body of every identifier, and the
/// unguessable name of a result file.
///
/// # Errors
/// [`NoRandomness`] when the system gives none.
pub fn random_token() -> Result<String, NoRandomness> {
    let mut bits = u128::from_be_bytes(random_bytes()?);
    let mut token = [b'0'; TOKEN_CHARS];
    for character in token.iter_mut().rev() {
        *character = CROCKFORD[(bits & 31) as usize];
        bits >>= 5;
    }
    Ok(token.iter().map(|&byte| char::from(byte)).collect())
}

/// Whether the text could have come from [`random_token`].
#[must_use]
pub fn is_token(text: &str) -> bool {
    let bytes = text.as_bytes();
    // 26 × 5 = 130 bits: the first character holds three only.
    bytes.len() == TOKEN_CHARS
        && bytes[0] <= b'7'
        && bytes.iter().all(|byte| CROCKFORD.contains(byte))
}

/// Characters of a prefix.
const PREFIX_CHARS: usize = 4;
const ID_CHARS: usize = PREFIX_CHARS + TOKEN_CHARS;

/// An identifier whose prefix is the four bytes of `PREFIX`: ids of different things are different types. Its text lies
/// in the value itself, so that it is copied, never cloned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id<const PREFIX: u32>([u8; ID_CHARS]);

/// Names a task: `ups_…`.
pub type TaskId = Id<{ u32::from_be_bytes(*b"ups_") }>;
/// Names an account: `acc_…`.
pub type AccountId = Id<{ u32::from_be_bytes(*b"acc_") }>;
/// Names an API key without being one: `key_…`.
pub type KeyId = Id<{ u32::from_be_bytes(*b"key_") }>;
/// Names one order of credits: `chk_…`.
pub type CheckoutId = Id<{ u32::from_be_bytes(*b"chk_") }>;
/// Names one HTTP request for support and logs: `req_…`.
pub type RequestId = Id<{ u32::from_be_bytes(*b"req_") }>;
/// Names a person who signs in to the console: `usr_…`.
pub type UserId = Id<{ u32::from_be_bytes(*b"usr_") }>;

impl<const PREFIX: u32> Id<PREFIX> {
    /// A new identifier, 128 random bits.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        Ok(Self::with_token(&random_token()?))
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let token = text.as_bytes().strip_prefix(&PREFIX.to_be_bytes())?;
        let token = std::str::from_utf8(token).ok()?;
        is_token(token).then(|| Self::with_token(token))
    }

    /// `token` has [`TOKEN_CHARS`] characters of one byte.
    fn with_token(token: &str) -> Self {
        let mut text = [0; ID_CHARS];
        let whole = PREFIX.to_be_bytes().into_iter().chain(token.bytes());
        for (place, byte) in text.iter_mut().zip(whole) {
            *place = byte;
        }
        Self(text)
    }

    /// The 128 random bits that its characters stand for.
    #[must_use]
    pub fn bits(&self) -> u128 {
        self.0[PREFIX_CHARS..].iter().fold(0, |bits, digit| {
            let value = CROCKFORD.iter().position(|known| known == digit);
            bits << 5 | value.unwrap_or(0) as u128
        })
    }

    /// As written in URLs, headers, rows and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Every byte is one of ours, so this is never the default.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl<const PREFIX: u32> fmt::Display for Id<PREFIX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const PREFIX: u32> fmt::Debug for Id<PREFIX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_26_characters_and_parses_back() {
        let id = TaskId::random().unwrap();
        assert_eq!(id.as_str().len(), 30);
        assert_eq!(TaskId::parse(id.as_str()), Some(id));
        assert_ne!(TaskId::random().unwrap(), id);
    }

    #[test]
    fn what_we_never_made_does_not_parse() {
        let good = TaskId::random().unwrap();
        let upper = good.as_str().to_uppercase();
        let long = format!("{good}0");
        for text in [
            "",
            "ups_",
            "ups_0",
            &good.as_str()[1..],
            &upper,
            &long,
            "ups_80000000000000000000000000",
        ] {
            assert_eq!(TaskId::parse(text), None, "{text:?}");
        }
        assert_eq!(AccountId::parse(good.as_str()), None);
    }
}
