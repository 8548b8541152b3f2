//! A worker takes due jobs. An expired lease is an ordinary due job whose last attempt vanished: counted as
//! a crash, and the second one ends the task here instead of handing it out again.

use rusqlite::{Row, params};
use upscale_core::{
    AccountId, AttemptFailure, FailureMessage, NextStep, RequestId, Scale, SourceUrl, TaskId,
    Timestamp, after_failure,
};

use super::{
    Db, Tx,
    rows::{account_id, count, parsed, task_id, time},
    settle::fail_task,
};
use crate::{Claim, StoreError};

/// Rounds of looking for due jobs in one call, should poison fill the first ones.
const ROUNDS_MAX: u32 = 4;
/// Jobs one call hands out at most.
const CLAIMS_MAX: u32 = 64;
/// Due jobs in order; the rowid keeps the order of arrival where two are equal.
const DUE: &str = "SELECT job.*, source_url, scale, face_enhance, request_id
     FROM job JOIN task ON task.id = job.task_id
     WHERE job.visible_at <= ?1 AND job.deadline_at > ?1 ORDER BY job.prio_at, job.rowid LIMIT ?2";

/// What a claim did.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    /// Jobs handed out.
    pub(crate) claims: Vec<Claim>,
    /// Tasks that failed instead; their refunds are due.
    pub(crate) failed: Vec<TaskId>,
}

struct Due {
    task_id: TaskId,
    account_id: AccountId,
    attempt: i64,
    transient_failures: u32,
    crashes: u32,
    was_claimed: bool,
    /// None when today's rules refuse what was accepted before an upgrade.
    source_url: Option<SourceUrl>,
    scale: Scale,
    face_enhance: bool,
    request_id: RequestId,
    created_at: Timestamp,
    deadline_at: Timestamp,
}

impl Db {
    pub(crate) async fn claim(&self, worker: &str, count: u32) -> Result<Claimed, StoreError> {
        let worker = worker.to_owned();
        self.write(move |tx| claim(tx, &worker, count.min(CLAIMS_MAX)))
            .await
    }
}

fn claim(tx: &Tx<'_>, worker: &str, count: u32) -> Result<Claimed, StoreError> {
    let mut claimed = Claimed::default();
    for _ in 0..ROUNDS_MAX {
        let missing = count as usize - claimed.claims.len();
        let due = tx.list(DUE, params![tx.now.micros(), missing as i64], due)?;
        if due.is_empty() {
            break;
        }
        for job in due {
            take(tx, worker, job, &mut claimed)?;
        }
    }
    Ok(claimed)
}

fn take(tx: &Tx<'_>, worker: &str, job: Due, claimed: &mut Claimed) -> Result<(), StoreError> {
    let crashes = job.crashes + u32::from(job.was_claimed);
    // Only whether it ends matters: an expired lease has waited long enough for another attempt now.
    let step = after_failure(AttemptFailure::Crash, job.transient_failures, crashes, 0.0);
    let ends = job.was_claimed && step == NextStep::Fail;
    let Some(source_url) = job.source_url.clone().filter(|_| !ends) else {
        let message = if ends {
            FailureMessage::new(&format!("Processing was interrupted {crashes} times."))
        } else {
            FailureMessage::new("The image_url is not accepted any more.")
        };
        tx.execute_one("DELETE FROM job WHERE task_id = ?1", [job.task_id.as_str()])?;
        fail_task(tx, &job.task_id, &message)?;
        claimed.failed.push(job.task_id);
        return Ok(());
    };
    let attempt = job.attempt + 1;
    tx.execute_one(
        "UPDATE job SET attempt = ?2, worker = ?3, visible_at = ?4, crashes = ?5 WHERE task_id = ?1",
        params![
            job.task_id.as_str(),
            attempt,
            worker,
            tx.now.plus_seconds(tx.options.lease_seconds).micros(),
            crashes
        ],
    )?;
    claimed.claims.push(Claim {
        task_id: job.task_id,
        account_id: job.account_id,
        attempt,
        transient_failures: job.transient_failures,
        crashes,
        source_url,
        scale: job.scale,
        face_enhance: job.face_enhance,
        request_id: job.request_id,
        created_at: job.created_at,
        deadline_at: job.deadline_at,
        claimed_at: tx.now,
    });
    Ok(())
}

fn due(row: &Row<'_>) -> Result<Due, StoreError> {
    let source_url: String = row.get("source_url")?;
    let scale: i64 = row.get("scale")?;
    Ok(Due {
        task_id: task_id(row, "task_id")?,
        account_id: account_id(row)?,
        attempt: row.get("attempt")?,
        transient_failures: count(row, "transient_failures")?,
        crashes: count(row, "crashes")?,
        was_claimed: row.get::<_, Option<String>>("worker")?.is_some(),
        source_url: SourceUrl::parse(&source_url).ok(),
        scale: Scale::from_factor(scale)
            .ok_or_else(|| StoreError::Corrupt(format!("column scale holds {scale}")))?,
        face_enhance: row.get("face_enhance")?,
        request_id: parsed(row, "request_id", RequestId::parse)?,
        created_at: time(row, "created_at")?,
        deadline_at: time(row, "deadline_at")?,
    })
}
