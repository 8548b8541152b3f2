//! The store's clock as it was last seen, in a row, so that a step of it is noticed by anyone who runs next; see
//! [`upscale_core::ClockWatch`] for what follows.

use upscale_core::{ClockWatch, Timestamp};

use crate::{Store, StoreError, row::Row, tx::Tx};

/// One look at the clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockLook {
    /// The time that it showed.
    pub now: Timestamp,
    /// Seconds that the service has still to run before anything is deleted; 0 when all is well.
    pub pause_seconds: i64,
}

impl Store {
    /// Looks at the store's clock and remembers what it said; to be called about once a minute for as long as the service
    /// runs. A step of more than an hour ahead, or of more than a minute back, stops deletions for an hour of running.
    ///
    /// # Errors
    /// [`StoreError`] when the look cannot be remembered; then nothing may be deleted.
    pub async fn look_at_clock(&self) -> Result<ClockLook, StoreError> {
        let (watch, step) = self.write(async |tx: &mut Tx| look(tx).await).await?;
        let pause_seconds = watch.pause_seconds();
        if let Some(step_seconds) = step {
            tracing::warn!(
                step_seconds,
                pause_seconds,
                "the clock stepped, or the service was off for long: nothing is deleted until it has run for an hour"
            );
        }
        Ok(ClockLook {
            now: watch.seen_at,
            pause_seconds,
        })
    }

    /// Seconds that the service has still to run before anything is deleted, as of its last look at the clock.
    pub async fn deletion_pause_seconds(&self) -> Result<i64, StoreError> {
        let last = "SELECT seen_at, pause_micros FROM clock WHERE id = 1";
        let watch = self.read(async |tx: &mut Tx| tx.find(last, &[], parse).await);
        let watch = watch.await?;
        Ok(watch.map_or(0, ClockWatch::pause_seconds))
    }
}

async fn look(tx: &mut Tx) -> Result<(ClockWatch, Option<i64>), StoreError> {
    let last = "SELECT seen_at, pause_micros FROM clock WHERE id = 1 FOR UPDATE";
    let (watch, step) = match tx.find(last, &[], parse).await? {
        Some(last) => last.look(tx.now),
        None => {
            let has_tasks = tx.exists("SELECT 1 FROM task LIMIT 1", &[]).await?;
            (ClockWatch::begin(tx.now, !has_tasks), None)
        }
    };
    tx.execute_one(
        "INSERT INTO clock (id, seen_at, pause_micros) VALUES (1, $1, $2)
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, pause_micros = excluded.pause_micros",
        &[&watch.seen_at, &watch.pause_micros],
    )
    .await?;
    Ok((watch, step))
}

fn parse(row: &dyn Row) -> Result<ClockWatch, StoreError> {
    Ok(ClockWatch {
        seen_at: row.time("seen_at")?,
        pause_micros: row.number("pause_micros")?,
    })
}
