//! The end of a task. The fence first, then state and ledger in the same commit. A failure ends in two
//! durable steps: failed with the refund pending, then the refund; whoever comes next finishes the second.

use rusqlite::params;
use upscale_core::{AccountId, Credits, FailureMessage, ResultFile, TaskId};

use super::{
    Db, Tx,
    lease::fenced,
    ledger::transfer,
    queue_facts::record_pace,
    rows::{account_id, task_id},
};
use crate::{
    FenceOutcome, Settlement, Spent, Stages, StoreError, task_row::check_result, transfer::Transfer,
};

/// Pending refunds finished in one transaction.
const REFUNDS_A_PAGE: u32 = 100;

impl Db {
    /// The first step: a failed task is left with its refund pending.
    pub(crate) async fn settle(
        &self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        self.write(move |tx| {
            if end_job(tx, &task, attempt)? == FenceOutcome::Lost {
                return Ok(FenceOutcome::Lost);
            }
            match &settlement {
                Settlement::Succeeded(file) => succeed_task(tx, &task, file, spent.stages)?,
                Settlement::Failed(message) => fail_task(tx, &task, message)?,
            }
            record_pace(tx, spent.slot_seconds)?;
            Ok(FenceOutcome::Done)
        })
        .await
    }

    /// The second step for these tasks; how many were still pending.
    pub(crate) async fn refund(&self, tasks: Vec<TaskId>) -> Result<u32, StoreError> {
        self.write(move |tx| refund_all(tx, &tasks)).await
    }

    /// The second step for a page of whatever is pending; how many.
    pub(crate) async fn finish_refunds(&self) -> Result<u32, StoreError> {
        self.write(|tx| {
            let pending = tx.list(
                "SELECT id FROM task WHERE refund = 'pending' LIMIT ?1",
                [REFUNDS_A_PAGE],
                |row| task_id(row, "id"),
            )?;
            refund_all(tx, &pending)
        })
        .await
    }
}

/// The fence of every end: the job goes, or the claim was lost and nothing may change.
pub(super) fn end_job(
    tx: &Tx<'_>,
    task: &TaskId,
    attempt: i64,
) -> Result<FenceOutcome, StoreError> {
    fenced(
        tx,
        "DELETE FROM job WHERE task_id = ?1 AND attempt = ?2 AND worker IS NOT NULL",
        params![task.as_str(), attempt],
    )
}

/// Charges and records the result. The job must be gone, behind its fence.
fn succeed_task(
    tx: &Tx<'_>,
    task: &TaskId,
    file: &ResultFile,
    stages: Option<Stages>,
) -> Result<(), StoreError> {
    let size = check_result(task, file)?;
    // A clock that stepped back must not make a task end before it began.
    let (account, price) = ended(
        tx,
        "UPDATE task SET state = 'succeeded', finished_at = max(created_at, ?2), result_name = ?3,
             result_sha256 = ?4, result_size = ?5, result_width = ?6, result_height = ?7,
             download_micros = ?8, picture_micros = ?9, storing_micros = ?10
         WHERE id = ?1 AND state = 'processing' RETURNING account_id, price",
        params![
            task.as_str(),
            tx.now.micros(),
            file.name,
            file.sha256,
            size,
            file.width,
            file.height,
            stages.map(|stages| stages.download_micros),
            stages.map(|stages| stages.picture_micros),
            stages.map(|stages| stages.storing_micros)
        ],
    )?;
    transfer(tx, &account, &Transfer::Charge(task), price)
}

/// Fails the task with its refund pending. The job must be gone, behind its fence.
pub(super) fn fail_task(
    tx: &Tx<'_>,
    task: &TaskId,
    message: &FailureMessage,
) -> Result<(), StoreError> {
    let (account, _) = ended(
        tx,
        "UPDATE task SET state = 'failed', refund = 'pending', finished_at = max(created_at, ?2),
             failure_message = ?3
         WHERE id = ?1 AND state = 'processing' RETURNING account_id, price",
        params![task.as_str(), tx.now.micros(), message.as_str()],
    )?;
    tx.execute_one(
        "UPDATE account SET active_tasks = active_tasks - 1 WHERE id = ?1",
        [account.as_str()],
    )
}

/// The second step of these tasks' failures; how many were still owed.
pub(super) fn refund_all(tx: &Tx<'_>, tasks: &[TaskId]) -> Result<u32, StoreError> {
    let mut refunded = 0;
    for task in tasks {
        let pending = tx.find(
            "UPDATE task SET refund = 'refunded' WHERE id = ?1 AND refund = 'pending' RETURNING account_id, price",
            [task.as_str()],
            owner_and_price,
        )?;
        if let Some((account, price)) = pending {
            transfer(tx, &account, &Transfer::Refund(task), price)?;
            refunded += 1;
        }
    }
    Ok(refunded)
}

fn ended(
    tx: &Tx<'_>,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<(AccountId, Credits), StoreError> {
    let ended = tx.find(sql, params, owner_and_price)?;
    ended.ok_or_else(|| {
        StoreError::Corrupt("a job belonged to a task that is not processing".to_owned())
    })
}

fn owner_and_price(row: &rusqlite::Row<'_>) -> Result<(AccountId, Credits), StoreError> {
    Ok((
        account_id(row)?,
        Credits::from_thousandths(row.get("price")?),
    ))
}
