//! A worker takes due jobs, in order and past those that another claim holds; what has crashed too often is
//! failed here instead of handed out.

use tokio_postgres::Row;
use upscale_core::{FailureMessage, RequestId, SourceUrl, TaskId};

use super::{
    Db, Tx,
    queue_facts::oldest_prio_at,
    rows::{account_id, count, parsed, task_id, time},
    settle::fail_task,
    task_rows::parameters,
};
use crate::{
    Claim, StoreError,
    due_job::{CLAIMS_MAX, Claimed, DueJob, NextAttempt, ROUNDS_MAX},
};

/// Due jobs in order.
const DUE: &str =
    "SELECT task.*, job.task_id, job.attempt, job.transient_failures, job.crashes, job.worker
     FROM job JOIN task ON task.id = job.task_id
     WHERE job.visible_at <= $1 AND job.deadline_at > $1 AND job.prio_at > $3
     ORDER BY job.prio_at, job.sequence LIMIT $2 FOR UPDATE OF job SKIP LOCKED";

impl Db {
    pub(crate) async fn claim(&self, worker: &str, count: u32) -> Result<Claimed, StoreError> {
        let tx = self.begin().await?;
        let claimed = claim(&tx, worker, count.min(CLAIMS_MAX)).await;
        tx.end(claimed).await
    }
}

async fn claim(tx: &Tx, worker: &str, count: u32) -> Result<Claimed, StoreError> {
    let mut claimed = Claimed::default();
    let after = oldest_prio_at(tx);
    for _ in 0..ROUNDS_MAX {
        let missing = i64::from(count) - claimed.claims.len() as i64;
        let due = tx
            .list(DUE, &[&tx.now.micros(), &missing, &after], due_job)
            .await?;
        let (mut handed_out, mut ended) = (Vec::new(), Vec::new());
        for job in due {
            match job.next_attempt(tx.now) {
                NextAttempt::HandOut(claim) => handed_out.push(claim),
                NextAttempt::End(task, message) => ended.push((task, message)),
            }
        }
        hand_out(tx, worker, &handed_out).await?;
        claimed.claims.append(&mut handed_out);
        // Others may stand behind what ends; where nothing does, there is no more to find.
        if ended.is_empty() {
            break;
        }
        for (task, message) in ended {
            if end_job(tx, &task, &message).await? {
                claimed.failed.push(task);
            }
        }
    }
    Ok(claimed)
}

/// All of them in one statement.
async fn hand_out(tx: &Tx, worker: &str, claims: &[Claim]) -> Result<(), StoreError> {
    if claims.is_empty() {
        return Ok(());
    }
    let tasks: Vec<&str> = claims.iter().map(|claim| claim.task_id.as_str()).collect();
    let attempts: Vec<i64> = claims.iter().map(|claim| claim.attempt).collect();
    let crashes: Vec<i64> = claims.iter().map(|claim| claim.crashes.into()).collect();
    let until = tx.now.plus_seconds(tx.options.lease_seconds).micros();
    let updated = tx
        .execute(
            "UPDATE job SET attempt = claimed.attempt, worker = $4, visible_at = $5, crashes = claimed.crashes
             FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS claimed (task_id, attempt, crashes)
             WHERE job.task_id = claimed.task_id",
            &[&tasks, &attempts, &crashes, &worker, &until],
        )
        .await?;
    if updated != claims.len() as u64 {
        let what = format!("{updated} of {} locked jobs were there", claims.len());
        return Err(StoreError::Corrupt(what));
    }
    Ok(())
}

/// A settlement locks the account before the job, and this transaction holds the job already: waiting here
/// could be waiting for each other. An account that is busy now leaves its job to the next claim.
async fn end_job(tx: &Tx, task: &TaskId, message: &FailureMessage) -> Result<bool, StoreError> {
    let locked = tx
        .find(
            "SELECT 1 FROM account WHERE id = (SELECT account_id FROM task WHERE id = $1)
             FOR NO KEY UPDATE SKIP LOCKED",
            &[&task.as_str()],
            |_| Ok(()),
        )
        .await?;
    if locked.is_none() {
        return Ok(false);
    }
    tx.execute_one("DELETE FROM job WHERE task_id = $1", &[&task.as_str()])
        .await?;
    fail_task(tx, task, message).await?;
    Ok(true)
}

fn due_job(row: &Row) -> Result<DueJob, StoreError> {
    Ok(DueJob {
        task_id: task_id(row, "task_id")?,
        account_id: account_id(row)?,
        attempt: row.try_get("attempt")?,
        transient_failures: count(row, "transient_failures")?,
        crashes: count(row, "crashes")?,
        was_claimed: row.try_get::<_, Option<&str>>("worker")?.is_some(),
        source_url: SourceUrl::parse(row.try_get("source_url")?).ok(),
        parameters: parameters(row)?,
        request_id: parsed(row, "request_id", RequestId::parse)?,
        created_at: time(row, "created_at")?,
        deadline_at: time(row, "deadline_at")?,
    })
}
