//! What is known of the queue as a whole: for admission, metrics and operators. Also the measured pace, and the workers
//! that admission divides the backlog by.

use upscale_core::{QueueFacts, Timestamp, limits::DEADLINE_SECONDS, next_pace};

use super::Tasks;
use super::pace::{self, whole};
use crate::{QueueGlance, StoreError, row::Row, tx::Tx};

impl Tasks<'_> {
    /// The queue at a glance.
    pub async fn queue_glance(self) -> Result<QueueGlance, StoreError> {
        self.store
            .snapshot(async |tx: &mut Tx| queue_glance(tx).await)
            .await
    }

    /// Says that this worker lives and how many jobs it takes at a time; silent for a lease, it is not counted.
    pub async fn report_worker(self, worker: &str, slots: u32) -> Result<(), StoreError> {
        let worker = worker.to_owned();
        self.store
            .write(async move |tx: &mut Tx| {
                tx.execute_one(
                    "INSERT INTO worker (id, slots, seen_at) VALUES ($1, $2, $3)
                 ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, seen_at = excluded.seen_at",
                    &[&worker, &slots, &tx.now],
                )
                .await
            })
            .await
    }

    /// Forgets a worker that stops.
    pub async fn remove_worker(self, worker: &str) -> Result<(), StoreError> {
        let worker = worker.to_owned();
        self.store
            .write(async move |tx: &mut Tx| {
                let sql = "DELETE FROM worker WHERE id = $1";
                tx.execute(sql, &[&worker]).await.map(drop)
            })
            .await
    }
}

/// What `core::admit` asks about the queue: every open job counts, wherever it stands. Creates of other accounts
/// that are under way are not seen yet: at most one per connection.
pub(super) async fn queue_facts(tx: &Tx) -> Result<QueueFacts, StoreError> {
    let [after, until] = seen_lately(tx);
    // SQLite counts a whole table by its pages, and has no dead entries to be kept away from.
    let open_jobs = tx.dialect("FROM job", "FROM job WHERE prio_at > $1");
    let sql = format!(
        "SELECT (SELECT count(*) {open_jobs}) AS open_jobs, (SELECT job_micros FROM pace) AS pace,
             (SELECT CAST(coalesce(sum(slots), 0) AS BIGINT) FROM worker
              WHERE seen_at > $2 AND seen_at <= $3) AS slots"
    );
    let deadline = tx.options.deadline_seconds;
    let found = tx
        .find(&sql, &[&oldest_prio_at(tx), &after, &until], |row| {
            parse_queue_facts(row, deadline)
        })
        .await?;
    found.ok_or_else(|| StoreError::Corrupt("no row of three numbers".to_owned()))
}

fn parse_queue_facts(row: &dyn Row, deadline_seconds: i64) -> Result<QueueFacts, StoreError> {
    Ok(QueueFacts {
        open_jobs: whole(row.number("open_jobs")?),
        live_slots: whole(row.number("slots")?),
        seconds_per_job: pace::seconds_per_job(row.number_if_any("pace")?),
        deadline_seconds,
    })
}

/// No job that can still be done stands at or before this place: `prio_at` is never before a job's creation, and
/// what is older than a deadline is over. It keeps walks along the index away from the entries of jobs long
/// gone, which an old transaction somewhere in the server may keep vacuum from removing.
pub(super) fn oldest_prio_at(tx: &Tx) -> i64 {
    if !tx.is_shared() {
        return i64::MIN;
    }
    // A process with a shorter deadline than the contract's must still see what others accepted.
    let longest = tx.options.deadline_seconds.max(DEADLINE_SECONDS);
    tx.now.plus_seconds(-longest).micros()
}

async fn queue_glance(tx: &Tx) -> Result<QueueGlance, StoreError> {
    let open = tx.number("SELECT count(*) FROM job", &[]).await?;
    let claimed = "SELECT count(*) FROM job WHERE worker IS NOT NULL AND visible_at > $1";
    let claimed = tx.number(claimed, &[&tx.now]).await?;
    let oldest = "SELECT coalesce(min(created_at), $1) FROM job";
    let oldest = Timestamp::from_micros(tx.number(oldest, &[&tx.now]).await?);
    Ok(QueueGlance {
        waiting: whole(open - claimed),
        claimed: whole(claimed),
        live_slots: live_slots(tx).await?,
        seconds_per_job: seconds_per_job(tx).await?,
        oldest_seconds: tx.now.seconds_since(oldest).max(0),
    })
}

/// Since when and until when a worker must have reported to count as alive: within the last lease; one from the
/// future (the clock stepped back) is not.
fn seen_lately(tx: &Tx) -> [Timestamp; 2] {
    let lease = tx.options.lease_seconds;
    [-lease, lease].map(|seconds| tx.now.plus_seconds(seconds))
}

async fn live_slots(tx: &Tx) -> Result<u32, StoreError> {
    let [after, until] = seen_lately(tx);
    let slots = "SELECT CAST(coalesce(sum(slots), 0) AS BIGINT) FROM worker WHERE seen_at > $1 AND seen_at <= $2";
    Ok(whole(tx.number(slots, &[&after, &until]).await?))
}

async fn seconds_per_job(tx: &Tx) -> Result<f64, StoreError> {
    let sql = "SELECT job_micros FROM pace";
    let measured = tx.find(sql, &[], |row| row.first_number()).await?;
    Ok(pace::seconds_per_job(measured))
}

/// The average, locked, unless another settlement is writing it: its lock would last to the end of that commit, and
/// all settlements of the fleet would queue up for one row. Some jobs are enough for an average.
pub(super) async fn lock_pace(tx: &Tx) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT job_micros FROM pace FOR UPDATE SKIP LOCKED";
    tx.find(sql, &[], |row| row.first_number()).await
}

/// Takes one ended job into the average that was locked.
pub(super) async fn record_pace(
    tx: &Tx,
    locked: Option<i64>,
    seconds: f64,
) -> Result<(), StoreError> {
    let before = pace::seconds_per_job(locked);
    let after = next_pace(before, seconds, tx.options.deadline_seconds);
    let sql = if locked.is_some() {
        "UPDATE pace SET job_micros = $1"
    } else {
        // The first job ever, or a row that is being written.
        "INSERT INTO pace (id, job_micros) SELECT 1, $1 WHERE NOT EXISTS (SELECT 1 FROM pace)
         ON CONFLICT (id) DO NOTHING"
    };
    let micros = pace::micros_per_job(after);
    tx.execute(sql, &[&micros]).await.map(drop)
}
