//! Sessions of the console, and the counted tries that slow guessing down.

use upscale_core::{Timestamp, TokenHash, UserId};

use super::{Db, Tx, rows::time, users::user};
use crate::{AttemptOutcome, Session, StoreError};

impl Db {
    pub(crate) async fn create_session(
        &self,
        user: &UserId,
        session: &TokenHash,
        replaces: Option<&TokenHash>,
        seconds: i64,
    ) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let created = create_session(&tx, user, session, replaces, seconds).await;
        tx.end(created).await
    }

    pub(crate) async fn find_session(
        &self,
        session: &TokenHash,
    ) -> Result<Option<Session>, StoreError> {
        let tx = self.read().await?;
        tx.find(
            "SELECT console_user.*, user_id, console_session.created_at AS began_at, expires_at
             FROM console_session JOIN console_user ON console_user.id = console_session.user_id
             WHERE hash = $1 AND expires_at > $2",
            &[&session.as_str(), &tx.now.micros()],
            |row| {
                Ok(Session {
                    user: user(row)?,
                    created_at: time(row, "began_at")?,
                    expires_at: time(row, "expires_at")?,
                })
            },
        )
        .await
    }

    pub(crate) async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let ended = end_session(&tx, session).await;
        tx.end(ended).await
    }

    pub(crate) async fn end_sessions(&self, user: &UserId) -> Result<u64, StoreError> {
        let tx = self.begin().await?;
        let sql = "DELETE FROM console_session WHERE user_id = $1";
        let ended = tx.execute(sql, &[&user.as_str()]).await;
        tx.end(ended).await
    }

    pub(crate) async fn count_attempt(
        &self,
        subject: &str,
        limit: u32,
        window_seconds: i64,
    ) -> Result<AttemptOutcome, StoreError> {
        let tx = self.begin().await?;
        let counted = count_attempt(&tx, subject, limit, window_seconds).await;
        tx.end(counted).await
    }
}

async fn create_session(
    tx: &Tx,
    user: &UserId,
    session: &TokenHash,
    replaces: Option<&TokenHash>,
    seconds: i64,
) -> Result<(), StoreError> {
    if let Some(old) = replaces {
        end_session(tx, old).await?;
    }
    tx.execute_one(
        "INSERT INTO console_session (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)",
        &[
            &session.as_str(),
            &user.as_str(),
            &tx.now.micros(),
            &tx.now.plus_seconds(seconds).micros(),
        ],
    )
    .await
}

async fn end_session(tx: &Tx, session: &TokenHash) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_session WHERE hash = $1";
    tx.execute(sql, &[&session.as_str()]).await.map(drop)
}

async fn count_attempt(
    tx: &Tx,
    subject: &str,
    limit: u32,
    window_seconds: i64,
) -> Result<AttemptOutcome, StoreError> {
    let ends_at = tx.now.plus_seconds(window_seconds);
    let counted = tx
        .find(
            "INSERT INTO sign_in_attempt AS stands (subject, ends_at, attempts) VALUES ($1, $2, 1)
             ON CONFLICT (subject) DO UPDATE SET
                 attempts = CASE WHEN stands.ends_at <= $3 THEN 1 ELSE stands.attempts + 1 END,
                 ends_at = CASE WHEN stands.ends_at <= $3 THEN excluded.ends_at ELSE stands.ends_at END
                 WHERE stands.ends_at <= $3 OR stands.attempts < $4
             RETURNING attempts",
            &[
                &subject,
                &ends_at.micros(),
                &tx.now.micros(),
                &i64::from(limit),
            ],
            |row| Ok(row.try_get(0)?),
        )
        .await?;
    let sql = "SELECT ends_at FROM sign_in_attempt WHERE subject = $1";
    let ends_at = Timestamp::from_micros(tx.number(sql, &[&subject]).await?);
    Ok(AttemptOutcome::counted(counted, ends_at, tx.now))
}
