//! People who sign in to the console, their sessions, and the counters that slow down guessing. Passwords are hashed and compared elsewhere; here only their hashes are kept.

use std::fmt;

use upscale_core::{AccountId, Email, Timestamp, UserId, limits::NAME_CHARS_MAX};

use crate::{Store, StoreError, StoredSecret, row::Row};

mod browsers;
mod deletion;
mod email_change;
mod passwords;
mod recovery;
mod sessions;
mod verification;

pub use self::{
    deletion::DeletionOutcome, email_change::EmailChangeOutcome, sessions::SessionRecord,
};

pub(crate) use self::passwords::{create_reset, lock_user};

/// The verbs of users: their passwords, addresses, second factors, sessions, browsers and counted tries; of [`Store::users`].
#[derive(Debug, Clone, Copy)]
pub struct Users<'a> {
    pub(crate) store: &'a Store,
}

/// A person who may sign in. Every user belongs to one account.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Stable identifier, `usr_…`.
    pub id: UserId,
    /// Whose money and tasks they see.
    pub account_id: AccountId,
    /// Email address of the user.
    pub email: Email,
    /// argon2id, as a PHC string; none until a password was chosen.
    pub password_hash: Option<String>,
    /// The second factor's secret, where it is on; [`Users::open_totp`] opens it.
    pub totp_secret: Option<StoredSecret>,
    /// When the user was made.
    pub created_at: Timestamp,
    /// When they proved that the address is theirs: by a mailed link, or because an operator made them under it.
    pub verified_at: Option<Timestamp>,
}

impl fmt::Debug for User {
    /// Without its secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({} of {})", self.id, self.account_id)
    }
}

/// A session of the customers' console that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The user who signed in.
    pub user: User,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When it ends: 7 days after signing in.
    pub expires_at: Timestamp,
}

/// What became of a new user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserOutcome {
    /// The user exists now, without a password.
    Created(User),
    /// Someone signs in with this address already; nothing changed.
    EmailTaken,
    /// There is no such account.
    NoSuchAccount,
}

/// The answer to one counted try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The try is within the limit and was counted.
    Allowed,
    /// As many as may be were counted.
    TooMany {
        /// Seconds until the window ends, ≥ 1.
        retry_after_seconds: i64,
    },
}

/// What the account of someone who signs up is called: their address, as far as a name is long.
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

/// The columns of a user.
const USER: &str = "console_user.id AS user_id, console_user.account_id, console_user.email, console_user.password_hash,
     console_user.totp_secret, console_user.created_at, console_user.verified_at";

/// A user from a row with [`USER`].
fn user(row: &dyn Row) -> Result<User, StoreError> {
    Ok(User {
        id: row.parsed("user_id", UserId::parse)?,
        account_id: row.account_id()?,
        email: row.parsed("email", |text| Email::parse(text).ok())?,
        password_hash: row.string_if_any("password_hash")?,
        totp_secret: row.string_if_any("totp_secret")?.map(StoredSecret::new),
        created_at: row.time("created_at")?,
        verified_at: row.time_if_any("verified_at")?,
    })
}
