//! Passwords: argon2id, off the threads that answer, a few at a time. Each takes 19 MiB and some 20 ms of a core
//! (OWASP's first choice, the crate's default), so a crowd that signs in waits and the memory stays bounded.

use std::sync::LazyLock;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::sync::Semaphore;

use super::error::ConsoleError;

/// Hashes made at a time.
const AT_A_TIME: usize = 2;
/// Shortest password, in characters. Length is what counts (NIST SP 800-63B section 3.1.1).
const CHARS_MIN: usize = 10;
/// Longest password, in bytes.
const BYTES_MAX: usize = 256;

/// What is compared when no one has the address, so that both answers take the same time.
static NOBODYS: LazyLock<Option<String>> =
    LazyLock::new(|| hash_password("no one's password").ok());

/// Why a password is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too easy to guess.
    #[error("A password has at least {CHARS_MIN} characters.")]
    Short,
    /// Longer than anyone types.
    #[error("A password has at most {BYTES_MAX} bytes.")]
    Long,
    /// The system has no randomness or no memory.
    #[error("the password could not be hashed: {0}")]
    NotHashed(String),
}

/// Checks and hashes one, which takes some 20 ms and 19 MiB.
///
/// # Errors
/// [`PasswordError`] when it is too short, too long, or cannot be hashed.
pub fn hash_password(password: &str) -> Result<String, PasswordError> {
    check_password(password)?;
    let salt: [u8; 16] = upscale_core::random_bytes()
        .map_err(|error| PasswordError::NotHashed(error.to_string()))?;
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string())
        .map_err(|error| PasswordError::NotHashed(error.to_string()))
}

/// Whether it may be one.
pub(crate) fn check_password(password: &str) -> Result<(), PasswordError> {
    if password.chars().count() < CHARS_MIN {
        return Err(PasswordError::Short);
    }
    if password.len() > BYTES_MAX {
        return Err(PasswordError::Long);
    }
    Ok(())
}

/// The permits where hashes are made.
pub(crate) struct Passwords(Semaphore);

impl Default for Passwords {
    fn default() -> Self {
        Self(Semaphore::new(AT_A_TIME))
    }
}

impl Passwords {
    /// Hashes a password that was checked.
    pub(crate) async fn hash(&self, password: &str) -> Result<String, ConsoleError> {
        let password = password.to_owned();
        let hash = self.compute(move || hash_password(&password)).await?;
        hash.map_err(|error| ConsoleError::Busy(error.to_string()))
    }

    /// Whether the password is the one behind the hash; without a hash it takes as long and is not.
    pub(crate) async fn is_right(
        &self,
        password: &str,
        hash: Option<&str>,
    ) -> Result<bool, ConsoleError> {
        let (password, hash) = (password.to_owned(), hash.map(str::to_owned));
        self.compute(move || match hash {
            Some(hash) => matches(&password, &hash),
            None => {
                let no_ones = NOBODYS.as_deref().unwrap_or_default();
                let _ = matches(&password, no_ones);
                false
            }
        })
        .await
    }

    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ConsoleError> {
        let _permit = self.0.acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| ConsoleError::Broken(error.to_string()))
    }
}

fn matches(password: &str, hash: &str) -> bool {
    // Longer ones were never taken, and would only cost time here.
    password.len() <= BYTES_MAX
        && PasswordHash::new(hash).is_ok_and(|hash| {
            Argon2::default()
                .verify_password(password.as_bytes(), &hash)
                .is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_is_argon2id_and_opens_with_its_password_alone() {
        let hash = hash_password("correct horse").unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        let passwords = Passwords::default();
        assert!(
            passwords
                .is_right("correct horse", Some(&hash))
                .await
                .unwrap()
        );
        for (password, hash) in [
            ("correct horsf", Some(hash.as_str())),
            ("", Some(hash.as_str())),
            ("correct horse", Some("")),
            ("correct horse", None),
            ("no one's password", None),
        ] {
            assert!(
                !passwords.is_right(password, hash).await.unwrap(),
                "{password} {hash:?}"
            );
        }
    }

    #[test]
    fn short_and_long_passwords_are_refused() {
        assert_eq!(check_password("123456789"), Err(PasswordError::Short));
        assert_eq!(check_password(&"a".repeat(257)), Err(PasswordError::Long));
        assert_eq!(check_password("zehn länge"), Ok(()));
    }
}
