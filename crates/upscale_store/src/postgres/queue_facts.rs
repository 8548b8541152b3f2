//! What is known of the queue as a whole: for admission, metrics and operators. Also the measured pace.

use futures_util::future::try_join3;
use upscale_core::{QueueFacts, Timestamp, limits::DEADLINE_SECONDS, next_pace};

use super::{Db, Tx};
use crate::{
    QueueGlance, StoreError,
    pace::{self, whole},
};

impl Db {
    pub(crate) async fn queue_glance(&self) -> Result<QueueGlance, StoreError> {
        let tx = self.snapshot().await?;
        let glance = queue_glance(&tx).await;
        tx.end(glance).await
    }
}

/// What `core::admit` asks about the queue: every open job counts, wherever it stands. Creates of other accounts
/// that are under way are not seen yet: at most one per connection.
pub(super) async fn queue_facts(tx: &Tx) -> Result<QueueFacts, StoreError> {
    let sql = "SELECT count(*) FROM job WHERE prio_at > $1";
    let oldest = oldest_prio_at(tx);
    let (open_jobs, live_slots, seconds_per_job) = try_join3(
        tx.number(sql, &[&oldest]),
        live_slots(tx),
        seconds_per_job(tx),
    )
    .await?;
    Ok(QueueFacts {
        open_jobs: whole(open_jobs),
        live_slots,
        seconds_per_job,
        deadline_seconds: tx.options.deadline_seconds,
    })
}

/// No job that can still be done stands at or before this place: `prio_at` is never before a job's creation, and
/// what is older than a deadline is over. It keeps walks along the index away from the entries of jobs long
/// gone, which an old transaction somewhere in the server may keep vacuum from removing.
pub(super) fn oldest_prio_at(tx: &Tx) -> i64 {
    // A process with a shorter deadline than the contract's must still see what others accepted.
    let longest = tx.options.deadline_seconds.max(DEADLINE_SECONDS);
    tx.now.plus_seconds(-longest).micros()
}

async fn queue_glance(tx: &Tx) -> Result<QueueGlance, StoreError> {
    let now = tx.now.micros();
    let open = tx.number("SELECT count(*) FROM job", &[]).await?;
    let claimed = tx
        .number(
            "SELECT count(*) FROM job WHERE worker IS NOT NULL AND visible_at > $1",
            &[&now],
        )
        .await?;
    let oldest = tx
        .number("SELECT coalesce(min(created_at), $1) FROM job", &[&now])
        .await?;
    Ok(QueueGlance {
        waiting: whole(open - claimed),
        claimed: whole(claimed),
        live_slots: live_slots(tx).await?,
        seconds_per_job: seconds_per_job(tx).await?,
        oldest_seconds: tx.now.seconds_since(Timestamp::from_micros(oldest)).max(0),
    })
}

/// Workers that reported within the last lease; one from the future (the clock stepped back) is not alive.
async fn live_slots(tx: &Tx) -> Result<u32, StoreError> {
    let lease = tx.options.lease_seconds;
    let (after, until) = (tx.now.plus_seconds(-lease), tx.now.plus_seconds(lease));
    let slots = tx
        .number(
            "SELECT CAST(coalesce(sum(slots), 0) AS BIGINT) FROM worker WHERE seen_at > $1 AND seen_at <= $2",
            &[&after.micros(), &until.micros()],
        )
        .await?;
    Ok(whole(slots))
}

async fn seconds_per_job(tx: &Tx) -> Result<f64, StoreError> {
    let sql = "SELECT job_micros FROM pace";
    let measured = tx.find(sql, &[], |row| Ok(row.try_get(0)?)).await?;
    Ok(pace::seconds_per_job(measured))
}

/// Takes one ended job into the moving average, unless another settlement is doing so: its lock would last to
/// the end of that commit, and all settlements of the fleet would queue up for one row. Some jobs are enough
/// for an average.
pub(super) async fn record_pace(tx: &Tx, seconds: f64) -> Result<(), StoreError> {
    let row = "SELECT job_micros FROM pace FOR UPDATE SKIP LOCKED";
    let locked = tx.find(row, &[], |row| Ok(row.try_get(0)?)).await?;
    let after = next_pace(
        pace::seconds_per_job(locked),
        seconds,
        tx.options.deadline_seconds,
    );
    let sql = if locked.is_some() {
        "UPDATE pace SET job_micros = $1"
    } else {
        // The first job ever, or a row that is being written.
        "INSERT INTO pace (id, job_micros) SELECT 1, $1 WHERE NOT EXISTS (SELECT 1 FROM pace)
         ON CONFLICT (id) DO NOTHING"
    };
    tx.execute(sql, &[&pace::micros_per_job(after)])
        .await
        .map(drop)
}
