//! Sessions of the console, and the counted tries that slow guessing down.

use upscale_core::{Timestamp, TokenHash, UserId};

use super::{USER, Users, user};
use crate::{AttemptOutcome, Session, StoreError, row::Row, tx::Tx};

/// Of what a browser calls itself.
const AGENT_CHARS_MAX: usize = 200;
/// Of a session's hash, to name it in a list: nothing can be made of it.
const NAME_CHARS: usize = 16;

/// A session as the list of its user shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// What tells it from the user's others.
    pub name: String,
    /// What the browser called itself; empty of sessions that an older program opened.
    pub agent: String,
    /// When the session was signed in, in microseconds since the epoch.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

impl SessionRecord {
    /// What a session with this hash is called in a list.
    #[must_use]
    pub fn name_of(session: &TokenHash) -> String {
        name_of(session.as_str())
    }
}

fn name_of(hash: &str) -> String {
    hash.chars().take(NAME_CHARS).collect()
}

impl Users<'_> {
    /// A session that lives this long; the one it replaces ends in the same commit.
    pub async fn create_session(
        self,
        user: &UserId,
        session: &TokenHash,
        replaces: Option<&TokenHash>,
        seconds: i64,
    ) -> Result<(), StoreError> {
        self.create_session_of(user, session, replaces, seconds, "")
            .await
    }

    /// The same, with what the browser calls itself, at most 200 characters of it.
    pub async fn create_session_of(
        self,
        user: &UserId,
        session: &TokenHash,
        replaces: Option<&TokenHash>,
        seconds: i64,
        agent: &str,
    ) -> Result<(), StoreError> {
        let (user, session, replaces) = (*user, session.clone(), replaces.cloned());
        let agent: String = agent.chars().take(AGENT_CHARS_MAX).collect();
        self.store
            .write(async move |tx: &mut Tx| {
                create_session(tx, &user, &session, replaces.as_ref(), seconds, &agent).await
            })
            .await
    }

    /// The user's living sessions, the newest first, at most `limit` of them.
    pub async fn list_sessions(
        self,
        user: &UserId,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let user = *user;
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(
                    "SELECT hash, agent, created_at, expires_at FROM console_session
                     WHERE user_id = $1 AND expires_at > $2 ORDER BY created_at DESC, hash LIMIT $3",
                    &[&user, &tx.now, &limit],
                    |row| {
                        Ok(SessionRecord {
                            name: name_of(row.text("hash")?),
                            agent: row.string("agent")?,
                            created_at: row.time("created_at")?,
                            expires_at: row.time("expires_at")?,
                        })
                    },
                )
                .await
            })
            .await
    }

    /// Ends the user's session of this name, wherever it is; whether there was one.
    pub async fn end_session_named(self, user: &UserId, name: &str) -> Result<bool, StoreError> {
        let (user, name) = (*user, name.to_owned());
        let ended = self.store.write(async move |tx: &mut Tx| {
            let sql = "DELETE FROM console_session WHERE user_id = $1 AND substr(hash, 1, 16) = $2";
            tx.execute(sql, &[&user, &name]).await
        });
        Ok(ended.await? > 0)
    }

    /// The session behind a cookie, while it lives.
    pub async fn find_session(self, session: &TokenHash) -> Result<Option<Session>, StoreError> {
        let session = session.clone();
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {USER}, console_session.created_at AS began_at, expires_at
                     FROM console_session JOIN console_user ON console_user.id = console_session.user_id
                     WHERE hash = $1 AND expires_at > $2"
                );
                tx.find(&sql, &[&session, &tx.now], parse_session).await
            })
            .await
    }

    /// Signs out here; one that is gone already is no error.
    pub async fn end_session(self, session: &TokenHash) -> Result<(), StoreError> {
        let session = session.clone();
        self.store
            .write(async move |tx: &mut Tx| end_session(tx, &session).await)
            .await
    }

    /// Signs out everywhere; how many sessions ended.
    pub async fn end_sessions(self, user: &UserId) -> Result<u64, StoreError> {
        let user = *user;
        self.store
            .write(async move |tx: &mut Tx| {
                let sql = "DELETE FROM console_session WHERE user_id = $1";
                tx.execute(sql, &[&user]).await
            })
            .await
    }

    /// Counts one try of this subject in a window that begins with its first. A flood past the limit writes nothing.
    pub async fn count_attempt(
        self,
        subject: &str,
        limit: u32,
        window_seconds: i64,
    ) -> Result<AttemptOutcome, StoreError> {
        let subject = subject.to_owned();
        self.store
            .write(async move |tx: &mut Tx| {
                count_attempt(tx, &subject, limit, window_seconds).await
            })
            .await
    }
}

fn parse_session(row: &dyn Row) -> Result<Session, StoreError> {
    Ok(Session {
        user: user(row)?,
        created_at: row.time("began_at")?,
        expires_at: row.time("expires_at")?,
    })
}

async fn create_session(
    tx: &Tx,
    user: &UserId,
    session: &TokenHash,
    replaces: Option<&TokenHash>,
    seconds: i64,
    agent: &str,
) -> Result<(), StoreError> {
    if let Some(old) = replaces {
        end_session(tx, old).await?;
    }
    tx.execute_one(
        "INSERT INTO console_session (hash, user_id, created_at, expires_at, agent) VALUES ($1, $2, $3, $4, $5)",
        &[
            session,
            user,
            &tx.now,
            &tx.now.plus_seconds(seconds),
            &agent,
        ],
    )
    .await
}

async fn end_session(tx: &Tx, session: &TokenHash) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_session WHERE hash = $1";
    tx.execute(sql, &[session]).await.map(drop)
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
                &ends_at,
                &tx.now,
                &limit,
            ],
            |row| row.first_number(),
        )
        .await?;
    let sql = "SELECT ends_at FROM sign_in_attempt WHERE subject = $1";
    let ends_at = Timestamp::from_micros(tx.number(sql, &[&subject]).await?);
    Ok(AttemptOutcome::counted(counted, ends_at, tx.now))
}
