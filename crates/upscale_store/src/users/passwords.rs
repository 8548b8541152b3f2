//! Users, and the links that set their passwords.

use upscale_core::{AccountId, Email, TokenHash, UserId};

use super::{USER, Users, account_name, user, verification::take_over};
use crate::{
    StoreError, User, UserOutcome,
    accounts::create_account,
    sealing::{seal, totp_spot},
    tx::Tx,
};

/// Users one listing shows at most.
const LISTED_MAX: u32 = 10_000;

impl Users<'_> {
    /// A new user of this account, or of a new one that is called by the address. One without a password is made by an
    /// operator, who knows whose address it is; one with a password has signed up, and has yet to prove it.
    pub async fn create(
        self,
        account: Option<&AccountId>,
        email: &Email,
        password_hash: Option<&str>,
    ) -> Result<UserOutcome, StoreError> {
        let (account, email) = (account.copied(), email.clone());
        let password_hash = password_hash.map(str::to_owned);
        self.store
            .write(async move |tx: &mut Tx| {
                create_user(tx, account.as_ref(), &email, password_hash.as_deref()).await
            })
            .await
    }

    /// The user who signs in with this address.
    pub async fn find(self, email: &Email) -> Result<Option<User>, StoreError> {
        let email = email.clone();
        self.store
            .read(async move |tx: &mut Tx| find_by_email(tx, &email).await)
            .await
    }

    /// Every user, oldest first, at most 10,000.
    pub async fn list(self) -> Result<Vec<User>, StoreError> {
        self.store
            .read(async |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {USER} FROM console_user ORDER BY created_at, console_user.id LIMIT $1"
                );
                tx.list(&sql, &[&LISTED_MAX], user).await
            })
            .await
    }

    /// The people who sign in for this account, oldest first, at most 10,000.
    pub async fn list_of(self, account: &AccountId) -> Result<Vec<User>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {USER} FROM console_user WHERE account_id = $1
                     ORDER BY created_at, console_user.id LIMIT $2"
                );
                tx.list(&sql, &[&account, &LISTED_MAX], user).await
            })
            .await
    }

    /// Another password: every session of the user ends, every link that resets it or changes the address dies, no browser
    /// is known any more.
    pub async fn set_password(self, user: &UserId, password_hash: &str) -> Result<(), StoreError> {
        let (user, password_hash) = (*user, password_hash.to_owned());
        self.store
            .write(async move |tx: &mut Tx| set_password(tx, &user, &password_hash).await)
            .await
    }

    /// Turns the second factor on with this secret (base32), or off.
    pub async fn set_totp(self, user: &UserId, secret: Option<&str>) -> Result<(), StoreError> {
        let (user, secret) = (*user, secret.map(str::to_owned));
        let keys = self.store.secret_keys().cloned();
        self.store
            .write(async move |tx: &mut Tx| {
                let stored = match secret {
                    Some(plain) => {
                        Some(seal(tx, keys.as_ref(), totp_spot(user.as_str()), &plain).await?)
                    }
                    None => None,
                };
                let sql =
                    "UPDATE console_user SET totp_secret = $2, totp_last_step = 0 WHERE id = $1";
                tx.execute_one(sql, &[&user, &stored]).await
            })
            .await
    }

    /// The secret of the user's second factor in base32; none where it is off.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it is sealed and this store has not its key, [`StoreError::Corrupt`] when it is
    /// damaged.
    pub fn open_totp(self, user: &User) -> Result<Option<String>, StoreError> {
        let stored = user.totp_secret.as_ref();
        let spot = totp_spot(user.id.as_str());
        stored
            .map(|stored| stored.open(self.store.secret_keys(), spot))
            .transpose()
    }

    /// Takes the code of this 30-second step; false when it, or a later one, was taken before.
    pub async fn take_totp_step(self, user: &UserId, step: i64) -> Result<bool, StoreError> {
        let user = *user;
        self.store.write(async move |tx: &mut Tx| {
            let sql =
                "UPDATE console_user SET totp_last_step = $2 WHERE id = $1 AND totp_last_step < $2";
            Ok(tx.execute(sql, &[&user, &step]).await? == 1)
        })
        .await
    }

    /// A link that sets a new password once, within this time; earlier ones of the user die.
    pub async fn create_reset(
        self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let (user, reset) = (*user, reset.clone());
        self.store
            .write(async move |tx: &mut Tx| create_reset(tx, &user, &reset, seconds).await)
            .await
    }

    /// Whose password the link would set, while it lives.
    pub async fn find_reset(self, reset: &TokenHash) -> Result<Option<User>, StoreError> {
        let reset = reset.clone();
        self.store
            .read(async move |tx: &mut Tx| find_reset(tx, &reset, "").await)
            .await
    }

    /// Uses the link up: as [`Users::set_password`]. It proves the address; where no one had proved it before, the account
    /// may have been another's until now: all its keys are revoked and the second factor is gone. False when the link was
    /// used before or is too old.
    pub async fn use_reset(
        self,
        reset: &TokenHash,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let (reset, password_hash) = (reset.clone(), password_hash.to_owned());
        self.store
            .write(async move |tx: &mut Tx| use_reset(tx, &reset, &password_hash).await)
            .await
    }
}

async fn create_user(
    tx: &Tx,
    account: Option<&AccountId>,
    email: &Email,
    password_hash: Option<&str>,
) -> Result<UserOutcome, StoreError> {
    if find_by_email(tx, email).await?.is_some() {
        return Ok(UserOutcome::EmailTaken);
    }
    let account = match account {
        None => create_account(tx, &account_name(email)).await?.id,
        Some(account) => {
            let known = "SELECT 1 FROM account WHERE id = $1";
            if !tx.exists(known, &[account]).await? {
                return Ok(UserOutcome::NoSuchAccount);
            }
            *account
        }
    };
    let id = UserId::random()?;
    let verified_at = password_hash.is_none().then_some(tx.now);
    // Of two that take one address at once, the second breaks off at the unique index, its account with it; when
    // it comes again the address is taken.
    let inserted = tx
        .execute(
            "INSERT INTO console_user (id, account_id, email, password_hash, created_at, verified_at)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING",
            &[&id, &account, email, &password_hash, &tx.now, &verified_at],
        )
        .await?;
    if inserted == 0 {
        let what = "someone took the same address at the same moment";
        return Err(StoreError::Unavailable(what.to_owned()));
    }
    let created = find_by_email(tx, email).await?;
    let created = created.ok_or_else(|| StoreError::Corrupt(format!("{id} is not there")))?;
    Ok(UserOutcome::Created(created))
}

async fn set_password(tx: &Tx, user: &UserId, password_hash: &str) -> Result<(), StoreError> {
    let set = "UPDATE console_user SET password_hash = $2 WHERE id = $1";
    tx.execute_one(set, &[user, &password_hash]).await?;
    for of_the_old in [
        "DELETE FROM password_reset WHERE user_id = $1",
        "DELETE FROM email_change WHERE user_id = $1",
        "DELETE FROM known_browser WHERE user_id = $1",
        "DELETE FROM console_session WHERE user_id = $1",
    ] {
        tx.execute(of_the_old, &[user]).await?;
    }
    Ok(())
}

pub(crate) async fn create_reset(
    tx: &Tx,
    user: &UserId,
    reset: &TokenHash,
    seconds: i64,
) -> Result<(), StoreError> {
    let earlier = "DELETE FROM password_reset WHERE user_id = $1";
    tx.execute(earlier, &[user]).await?;
    tx.execute_one(
        "INSERT INTO password_reset (hash, user_id, expires_at) VALUES ($1, $2, $3)",
        &[reset, user, &tx.now.plus_seconds(seconds)],
    )
    .await
}

/// The link's row is locked, so that of two uses at once the second finds it gone.
async fn use_reset(
    tx: &mut Tx,
    reset: &TokenHash,
    password_hash: &str,
) -> Result<bool, StoreError> {
    let Some(user) = find_reset(tx, reset, "FOR UPDATE OF password_reset").await? else {
        return Ok(false);
    };
    set_password(tx, &user.id, password_hash).await?;
    if user.verified_at.is_none() {
        take_over(tx, &user).await?;
    }
    Ok(true)
}

/// The user, whose row is locked: of two equal changes at once the second finds the first one's.
pub(crate) async fn lock_user(tx: &Tx, id: &UserId) -> Result<Option<User>, StoreError> {
    let sql = format!("SELECT {USER} FROM console_user WHERE id = $1 FOR UPDATE");
    tx.find(&sql, &[id], user).await
}

async fn find_by_email(tx: &Tx, email: &Email) -> Result<Option<User>, StoreError> {
    let sql = format!("SELECT {USER} FROM console_user WHERE email = $1");
    tx.find(&sql, &[email], user).await
}

async fn find_reset(tx: &Tx, reset: &TokenHash, lock: &str) -> Result<Option<User>, StoreError> {
    let sql = format!(
        "SELECT {USER} FROM password_reset
         JOIN console_user ON console_user.id = password_reset.user_id
         WHERE hash = $1 AND expires_at > $2 {lock}"
    );
    tx.find(&sql, &[reset, &tx.now], user).await
}
