//! Sessions of the console, and the counted tries that slow guessing down.

use rusqlite::params;
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
        let (user, session, replaces) = (*user, session.clone(), replaces.cloned());
        self.write(move |tx| {
            if let Some(old) = &replaces {
                end_session(tx, old)?;
            }
            tx.execute_one(
                "INSERT INTO console_session (hash, user_id, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)",
                params![
                    session.as_str(),
                    user.as_str(),
                    tx.now.micros(),
                    tx.now.plus_seconds(seconds).micros()
                ],
            )
        })
        .await
    }

    pub(crate) async fn find_session(
        &self,
        session: &TokenHash,
    ) -> Result<Option<Session>, StoreError> {
        let session = session.clone();
        self.read(move |tx| {
            tx.find(
                "SELECT console_user.*, user_id, console_session.created_at AS began_at, expires_at
                 FROM console_session JOIN console_user ON console_user.id = console_session.user_id
                 WHERE hash = ?1 AND expires_at > ?2",
                params![session.as_str(), tx.now.micros()],
                |row| {
                    Ok(Session {
                        user: user(row)?,
                        created_at: time(row, "began_at")?,
                        expires_at: time(row, "expires_at")?,
                    })
                },
            )
        })
        .await
    }

    pub(crate) async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        let session = session.clone();
        self.write(move |tx| end_session(tx, &session)).await
    }

    pub(crate) async fn end_sessions(&self, user: &UserId) -> Result<u64, StoreError> {
        let user = *user;
        self.write(move |tx| {
            let ended = tx.execute(
                "DELETE FROM console_session WHERE user_id = ?1",
                [user.as_str()],
            )?;
            Ok(ended as u64)
        })
        .await
    }

    pub(crate) async fn count_attempt(
        &self,
        subject: &str,
        limit: u32,
        window_seconds: i64,
    ) -> Result<AttemptOutcome, StoreError> {
        let subject = subject.to_owned();
        self.write(move |tx| count_attempt(tx, &subject, limit, window_seconds))
            .await
    }
}

fn end_session(tx: &Tx<'_>, session: &TokenHash) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM console_session WHERE hash = ?1",
        [session.as_str()],
    )
    .map(drop)
}

fn count_attempt(
    tx: &Tx<'_>,
    subject: &str,
    limit: u32,
    window_seconds: i64,
) -> Result<AttemptOutcome, StoreError> {
    let (now, ends_at) = (tx.now.micros(), tx.now.plus_seconds(window_seconds));
    let counted = tx.find(
        "INSERT INTO sign_in_attempt (subject, ends_at, attempts) VALUES (?1, ?2, 1)
         ON CONFLICT (subject) DO UPDATE SET
             attempts = CASE WHEN sign_in_attempt.ends_at <= ?3 THEN 1 ELSE attempts + 1 END,
             ends_at = CASE WHEN sign_in_attempt.ends_at <= ?3 THEN excluded.ends_at ELSE sign_in_attempt.ends_at END
             WHERE sign_in_attempt.ends_at <= ?3 OR attempts < ?4
         RETURNING attempts",
        params![subject, ends_at.micros(), now, limit],
        |row| Ok(row.get(0)?),
    )?;
    let stands = tx.number(
        "SELECT ends_at FROM sign_in_attempt WHERE subject = ?1",
        [subject],
    )?;
    let ends_at = Timestamp::from_micros(stands);
    Ok(AttemptOutcome::counted(counted, ends_at, tx.now))
}
