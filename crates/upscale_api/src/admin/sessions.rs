//! The token, how often a wrong one may be tried, and who has come in. All of it lives in this process: it is the
//! console of this process, and a restart asks for the token once more.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use upscale_core::{SecretToken, Timestamp, TokenHash};

/// Shortest token; 32 hex digits are 128 bits.
const TOKEN_CHARS_MIN: usize = 32;
/// Wrong tokens within a window, from whomever: on loopback all have one address. Further ones are told to wait until it
/// ends; the right one never is, or any user of the machine could lock the operators out.
const WRONG_TRIES: u32 = 10;
const WINDOW_SECONDS: i64 = 60;
/// A session ends this long after signing in, whatever is done in it.
pub(crate) const SESSION_SECONDS: i64 = 12 * 3_600;
/// Sessions at a time; the oldest gives way.
const SESSIONS_MAX: usize = 64;

/// What opens the operators' console. Only a digest of it is kept.
pub struct AdminToken {
    digest: [u8; 32],
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(hidden)")
    }
}

impl AdminToken {
    /// From the text that the operator configured.
    ///
    /// # Errors
    /// A sentence, when it is too short to withstand guessing.
    pub fn new(text: &str) -> Result<Self, String> {
        let chars = text.chars().count();
        if chars < TOKEN_CHARS_MIN {
            return Err(format!(
                "the operators' token has {chars} characters and needs {TOKEN_CHARS_MIN}: `openssl rand -hex 32` makes one"
            ));
        }
        Ok(Self {
            digest: digest(text).finalize().into_bytes().into(),
        })
    }

    /// In the same time wherever the first wrong byte stands.
    fn is(&self, typed: &str) -> bool {
        digest(typed).verify_slice(&self.digest).is_ok()
    }
}

fn digest(text: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new(&[0; 64].into());
    mac.update(text.as_bytes());
    mac
}

/// Sign-in and sessions of one listener.
pub(crate) struct AdminSessions {
    /// None where the listener's file decides who comes.
    token: Option<AdminToken>,
    sessions: Mutex<HashMap<TokenHash, Session>>,
    failures: Mutex<Failures>,
}

#[derive(Clone)]
struct Session {
    operator: String,
    expires_at: Timestamp,
}

struct Failures {
    ends_at: Timestamp,
    count: u32,
}

/// What became of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    Right,
    Wrong,
    /// Wrong, and one of too many.
    TooMany {
        retry_after_seconds: i64,
    },
}

impl AdminSessions {
    pub(crate) fn new(token: Option<AdminToken>) -> Self {
        Self {
            token,
            sessions: Mutex::default(),
            failures: Mutex::new(Failures {
                ends_at: Timestamp::from_micros(0),
                count: 0,
            }),
        }
    }

    /// Whether a token is asked for.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Looks at what was typed. Where no token is asked for every one is right. The right token is known before anything
    /// is counted; comparing costs two hashes of 64 bytes, and 128 bits are not guessed at any speed.
    pub(crate) fn try_token(&self, typed: &str, now: Timestamp) -> Try {
        let Some(token) = &self.token else {
            return Try::Right;
        };
        if token.is(typed) {
            return Try::Right;
        }
        let mut failures = lock(&self.failures);
        let left_seconds = failures.ends_at.seconds_since(now);
        if !(1..=WINDOW_SECONDS).contains(&left_seconds) {
            *failures = Failures {
                ends_at: now.plus_seconds(WINDOW_SECONDS),
                count: 0,
            };
        } else if failures.count >= WRONG_TRIES {
            return Try::TooMany {
                retry_after_seconds: left_seconds,
            };
        }
        failures.count += 1;
        Try::Wrong
    }

    /// Opens a session for someone who was let in.
    pub(crate) fn open_session(&self, cookie: &SecretToken, operator: &str, now: Timestamp) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| session.expires_at > now);
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions
                .iter()
                .min_by_key(|(_, session)| session.expires_at);
            if let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) {
                sessions.remove(&oldest);
            }
        }
        let session = Session {
            operator: operator.to_owned(),
            expires_at: now.plus_seconds(SESSION_SECONDS),
        };
        sessions.insert(cookie.hash(), session);
    }

    /// What the operator behind this cookie is called, while the session lives.
    pub(crate) fn find_operator(&self, cookie: &SecretToken, now: Timestamp) -> Option<String> {
        let sessions = lock(&self.sessions);
        let session = sessions.get(&cookie.hash())?;
        (session.expires_at > now).then(|| session.operator.clone())
    }

    /// Ends the session; one that is gone already is no error.
    pub(crate) fn end_session(&self, cookie: &SecretToken) {
        lock(&self.sessions).remove(&cookie.hash());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(0).plus_seconds(1_000_000 + seconds)
    }

    #[test]
    fn a_short_token_is_none_and_a_token_shows_itself_nowhere() {
        assert!(AdminToken::new(&TOKEN[1..]).unwrap_err().contains("31"));
        let token = AdminToken::new(TOKEN).unwrap();
        assert_eq!(format!("{token:?}"), "AdminToken(hidden)");
        assert!(token.is(TOKEN) && !token.is("") && !token.is(&TOKEN[1..]));
        assert!(!token.is(&format!("{TOKEN} ")));
    }

    #[test]
    fn after_ten_wrong_tries_in_a_minute_wrong_ones_wait_and_the_right_one_never_does() {
        let sessions = AdminSessions::new(Some(AdminToken::new(TOKEN).unwrap()));
        assert_eq!(sessions.try_token(TOKEN, at(0)), Try::Right);
        for second in 0..10 {
            assert_eq!(sessions.try_token("guess", at(second)), Try::Wrong);
        }
        for second in 11..60 {
            let refused = Try::TooMany {
                retry_after_seconds: 60 - second,
            };
            assert_eq!(sessions.try_token("guess", at(second)), refused);
            assert_eq!(sessions.try_token(TOKEN, at(second)), Try::Right);
        }
        assert_eq!(sessions.try_token("guess", at(60)), Try::Wrong);
        // A clock that was set back by an hour makes no one wait for an hour.
        assert_eq!(sessions.try_token("guess", at(-3_600)), Try::Wrong);
    }

    #[test]
    fn sessions_end_by_time_by_hand_and_for_newer_ones() {
        let sessions = AdminSessions::new(None);
        let cookies: Vec<_> = (0..=SESSIONS_MAX)
            .map(|_| SecretToken::random().unwrap())
            .collect();
        for (second, cookie) in (0..).zip(&cookies) {
            sessions.open_session(cookie, "ann", at(second));
        }
        assert_eq!(
            sessions.find_operator(&cookies[0], at(100)),
            None,
            "the oldest"
        );
        assert_eq!(
            sessions.find_operator(&cookies[1], at(100)).as_deref(),
            Some("ann")
        );
        assert_eq!(
            sessions.find_operator(&cookies[1], at(1 + SESSION_SECONDS)),
            None
        );
        sessions.end_session(&cookies[2]);
        assert_eq!(sessions.find_operator(&cookies[2], at(100)), None);
    }
}
