//! Identifiers: a prefix that says what is named, then 128 random bits in 26 characters of Crockford's
//! base32 (lower case). Opaque to everyone; parsing only refuses what we never made.

use std::fmt;

/// Crockford's base32 alphabet, lower case: no i, l, o, u.
const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters that hold 128 bits, five a character.
const TOKEN_CHARS: usize = 26;

/// The operating system gave no randomness; nothing secret can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
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

fn with_prefix(prefix: &str) -> Result<String, NoRandomness> {
    Ok(format!("{prefix}{}", random_token()?))
}

fn parse(prefix: &str, text: &str) -> Option<String> {
    text.strip_prefix(prefix)
        .filter(|token| is_token(token))
        .map(|_| text.to_owned())
}

/// Names a task: `ups_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(String);

/// Names an account: `acc_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(String);

/// Names an API key without being one: `key_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

/// Names one order of credits: `chk_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckoutId(String);

/// Names one HTTP request for support and logs: `req_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(String);

/// Names a person who signs in to the console: `usr_…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(String);

impl TaskId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("ups_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("ups_", text).map(Self)
    }

    /// The 128 random bits that its characters stand for.
    #[must_use]
    pub fn bits(&self) -> u128 {
        let digits = self.0.bytes().skip("ups_".len());
        digits.fold(0, |bits, digit| {
            let value = CROCKFORD.iter().position(|&known| known == digit);
            bits << 5 | value.unwrap_or(0) as u128
        })
    }

    /// As written in URLs, rows and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CheckoutId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("chk_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("chk_", text).map(Self)
    }

    /// As the payment service and the rows have it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AccountId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("acc_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("acc_", text).map(Self)
    }

    /// As written in rows and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl KeyId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("key_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("key_", text).map(Self)
    }

    /// As written in rows and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RequestId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("req_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("req_", text).map(Self)
    }

    /// As written in headers and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl UserId {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`] when the system gives none.
    pub fn random() -> Result<Self, NoRandomness> {
        with_prefix("usr_").map(Self)
    }

    /// None for anything we cannot have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse("usr_", text).map(Self)
    }

    /// As written in rows and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CheckoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_26_characters_and_parses_back() {
        let id = TaskId::random().unwrap();
        assert_eq!(id.as_str().len(), 30);
        assert_eq!(TaskId::parse(id.as_str()), Some(id.clone()));
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
