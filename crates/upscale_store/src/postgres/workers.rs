//! Which workers live and how many jobs they take at a time: what admission divides the backlog by.

use super::Db;
use crate::StoreError;

impl Db {
    pub(crate) async fn report_worker(&self, worker: &str, slots: u32) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let reported = tx
            .execute_one(
                "INSERT INTO worker (id, slots, seen_at) VALUES ($1, $2, $3)
                 ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, seen_at = excluded.seen_at",
                &[&worker, &i64::from(slots), &tx.now.micros()],
            )
            .await;
        tx.end(reported).await
    }

    pub(crate) async fn remove_worker(&self, worker: &str) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let removed = tx
            .execute("DELETE FROM worker WHERE id = $1", &[&worker])
            .await;
        tx.end(removed).await.map(drop)
    }
}
