//! What is known of the queue as a whole: for admission, metrics and operators. Also the measured pace.

use rusqlite::params;
use upscale_core::{QueueFacts, Timestamp, next_pace};

use super::{Db, Tx};
use crate::{
    QueueGlance, StoreError,
    pace::{self, whole},
};

impl Db {
    pub(crate) async fn queue_glance(&self) -> Result<QueueGlance, StoreError> {
        self.read(queue_glance).await
    }
}

/// What `core::admit` asks about the queue.
pub(super) fn queue_facts(tx: &Tx<'_>) -> Result<QueueFacts, StoreError> {
    Ok(QueueFacts {
        open_jobs: whole(tx.number("SELECT count(*) FROM job", [])?),
        live_slots: live_slots(tx)?,
        seconds_per_job: seconds_per_job(tx)?,
        deadline_seconds: tx.options.deadline_seconds,
    })
}

fn queue_glance(tx: &Tx<'_>) -> Result<QueueGlance, StoreError> {
    let open = tx.number("SELECT count(*) FROM job", [])?;
    let claimed = tx.number(
        "SELECT count(*) FROM job WHERE worker IS NOT NULL AND visible_at > ?1",
        [tx.now.micros()],
    )?;
    let oldest = tx.number(
        "SELECT coalesce(min(created_at), ?1) FROM job",
        [tx.now.micros()],
    )?;
    Ok(QueueGlance {
        waiting: whole(open - claimed),
        claimed: whole(claimed),
        live_slots: live_slots(tx)?,
        seconds_per_job: seconds_per_job(tx)?,
        oldest_seconds: tx.now.seconds_since(Timestamp::from_micros(oldest)).max(0),
    })
}

/// Workers that reported within the last lease; one from the future (the clock stepped back) is not alive.
fn live_slots(tx: &Tx<'_>) -> Result<u32, StoreError> {
    let lease = tx.options.lease_seconds;
    let (after, until) = (tx.now.plus_seconds(-lease), tx.now.plus_seconds(lease));
    let slots = tx.number(
        "SELECT coalesce(sum(slots), 0) FROM worker WHERE seen_at > ?1 AND seen_at <= ?2",
        params![after.micros(), until.micros()],
    )?;
    Ok(whole(slots))
}

fn seconds_per_job(tx: &Tx<'_>) -> Result<f64, StoreError> {
    let measured = tx.find("SELECT job_micros FROM pace", [], |row| {
        Ok(row.get::<_, i64>(0)?)
    })?;
    Ok(pace::seconds_per_job(measured))
}

/// Takes one ended job into the moving average.
pub(super) fn record_pace(tx: &Tx<'_>, seconds: f64) -> Result<(), StoreError> {
    let after = next_pace(seconds_per_job(tx)?, seconds, tx.options.deadline_seconds);
    let micros = pace::micros_per_job(after);
    tx.execute_one(
        "INSERT INTO pace (id, job_micros) VALUES (1, ?1)
         ON CONFLICT (id) DO UPDATE SET job_micros = excluded.job_micros",
        [micros],
    )
}
