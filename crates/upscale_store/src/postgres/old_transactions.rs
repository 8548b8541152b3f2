//! Transactions that stay open: as long as one lasts, vacuum removes nothing that died since it began, in the
//! whole database, and a queue that lives by updates and deletions grows slow. Nobody here keeps one open
//! for long (sessions are cut after 10 s of idling in one), so an old one is somebody else's: a forgotten
//! console, a dump, a replica's feedback. It is named so that an operator can end it.

use super::Db;
use crate::{OldTransaction, StoreError};

/// Listed at most.
const LISTED_MAX: i64 = 20;

impl Db {
    /// Transactions older than this, oldest first. Of other roles' sessions the server tells nothing unless
    /// ours may see them (`GRANT pg_read_all_stats`).
    pub(crate) async fn list_old_transactions(
        &self,
        seconds: i64,
    ) -> Result<Vec<OldTransaction>, StoreError> {
        let tx = self.read().await?;
        tx.list(
            "SELECT CAST(pid AS BIGINT), coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''),
                 CAST(extract(epoch FROM clock_timestamp() - xact_start) AS BIGINT)
             FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()
                 AND xact_start < clock_timestamp() - make_interval(secs => $1)
             ORDER BY xact_start LIMIT $2",
            &[&(seconds as f64), &LISTED_MAX],
            |row| {
                Ok(OldTransaction {
                    process: row.try_get(0)?,
                    user: row.try_get(1)?,
                    application: row.try_get(2)?,
                    state: row.try_get(3)?,
                    seconds: row.try_get(4)?,
                })
            },
        )
        .await
    }
}
