//! People who sign in to the console, their sessions, and the counters that slow down guessing: the verbs of both
//! engines. Passwords are hashed and compared elsewhere; here only their hashes are kept.

use std::fmt;

use upscale_core::{AccountId, Email, Timestamp, TokenHash, UserId, limits::NAME_CHARS_MAX};

use crate::{Store, StoreError};

/// A person who may sign in. Every user belongs to one account.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Its name for ever.
    pub id: UserId,
    /// Whose money and tasks they see.
    pub account_id: AccountId,
    /// What they sign in with.
    pub email: Email,
    /// argon2id, as a PHC string; none until a password was chosen.
    pub password_hash: Option<String>,
    /// The second factor's secret in base32, where it is on.
    pub totp_secret: Option<String>,
    /// When the user was made.
    pub created_at: Timestamp,
}

impl fmt::Debug for User {
    /// Without its secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({} of {})", self.id, self.account_id)
    }
}

/// A live session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Who signed in.
    pub user: User,
    /// When.
    pub created_at: Timestamp,
    /// From when on it is none.
    pub expires_at: Timestamp,
}

/// What became of a new user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserOutcome {
    /// Made.
    Created(User),
    /// Somebody signs in with this address already; nothing changed.
    EmailTaken,
    /// There is no such account.
    NoSuchAccount,
}

/// The answer to one counted try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Within the limit.
    Allowed,
    /// As many as may be were counted.
    TooMany {
        /// ≥ 1.
        retry_after_seconds: i64,
    },
}

/// What the account of somebody who signs up is called: their address, as far as a name is long.
pub(crate) fn account_name(email: &Email) -> String {
    email.as_str().chars().take(NAME_CHARS_MAX).collect()
}

impl AttemptOutcome {
    /// From what was counted; none when the window was full.
    pub(crate) fn counted(counted: Option<i64>, ends_at: Timestamp, now: Timestamp) -> Self {
        match counted {
            Some(_) => Self::Allowed,
            None => Self::TooMany {
                retry_after_seconds: ends_at.seconds_since(now).max(1),
            },
        }
    }
}

impl Store {
    /// A new user of this account, or of a new one that is called by the address.
    pub async fn create_user(
        &self,
        account: Option<&AccountId>,
        email: &Email,
        password_hash: Option<&str>,
    ) -> Result<UserOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.create_user(account, email, password_hash).await,
            Self::Postgres(db) => db.create_user(account, email, password_hash).await,
        }
    }

    /// The user who signs in with this address.
    pub async fn find_user(&self, email: &Email) -> Result<Option<User>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_user(email).await,
            Self::Postgres(db) => db.find_user(email).await,
        }
    }

    /// Every user, oldest first, at most 10,000.
    pub async fn list_users(&self) -> Result<Vec<User>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_users().await,
            Self::Postgres(db) => db.list_users().await,
        }
    }

    /// Another password: every session of the user ends, every reset link dies.
    pub async fn set_password(&self, user: &UserId, password_hash: &str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.set_password(user, password_hash).await,
            Self::Postgres(db) => db.set_password(user, password_hash).await,
        }
    }

    /// Turns the second factor on with this secret (base32), or off.
    pub async fn set_totp(&self, user: &UserId, secret: Option<&str>) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.set_totp(user, secret).await,
            Self::Postgres(db) => db.set_totp(user, secret).await,
        }
    }

    /// Takes the code of this 30-second step; false when it, or a later one, was taken before.
    pub async fn take_totp_step(&self, user: &UserId, step: i64) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(db) => db.take_totp_step(user, step).await,
            Self::Postgres(db) => db.take_totp_step(user, step).await,
        }
    }

    /// A session that lives this long; the one it replaces ends in the same commit.
    pub async fn create_session(
        &self,
        user: &UserId,
        session: &TokenHash,
        replaces: Option<&TokenHash>,
        seconds: i64,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.create_session(user, session, replaces, seconds).await,
            Self::Postgres(db) => db.create_session(user, session, replaces, seconds).await,
        }
    }

    /// The session behind a cookie, while it lives.
    pub async fn find_session(&self, session: &TokenHash) -> Result<Option<Session>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_session(session).await,
            Self::Postgres(db) => db.find_session(session).await,
        }
    }

    /// Signs out here; one that is gone already is no error.
    pub async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.end_session(session).await,
            Self::Postgres(db) => db.end_session(session).await,
        }
    }

    /// Signs out everywhere; how many sessions ended.
    pub async fn end_sessions(&self, user: &UserId) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(db) => db.end_sessions(user).await,
            Self::Postgres(db) => db.end_sessions(user).await,
        }
    }

    /// A link that sets a new password once, within this time; earlier ones of the user die.
    pub async fn create_reset(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.create_reset(user, reset, seconds).await,
            Self::Postgres(db) => db.create_reset(user, reset, seconds).await,
        }
    }

    /// Whose password the link would set, while it lives.
    pub async fn find_reset(&self, reset: &TokenHash) -> Result<Option<User>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_reset(reset).await,
            Self::Postgres(db) => db.find_reset(reset).await,
        }
    }

    /// Uses the link up: as [`Store::set_password`]. False when it was used before or is too old.
    pub async fn use_reset(
        &self,
        reset: &TokenHash,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(db) => db.use_reset(reset, password_hash).await,
            Self::Postgres(db) => db.use_reset(reset, password_hash).await,
        }
    }

    /// Counts one try of this subject in a window that begins with its first. A flood past the limit writes nothing.
    pub async fn count_attempt(
        &self,
        subject: &str,
        limit: u32,
        window_seconds: i64,
    ) -> Result<AttemptOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.count_attempt(subject, limit, window_seconds).await,
            Self::Postgres(db) => db.count_attempt(subject, limit, window_seconds).await,
        }
    }
}
