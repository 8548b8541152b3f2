//! The end of a task. The account's lock, then the fence, then state and ledger in the same commit. A failure
//! ends in two durable steps: failed with the refund pending, then the refund; whoever comes next finishes it.

use futures_util::try_join;
use tokio_postgres::{Row, types::ToSql};
use upscale_core::{AccountId, Credits, FailureMessage, ResultFile, TaskId};

use super::{
    Db, Tx,
    lease::fenced,
    ledger::transfer,
    queue_facts::{lock_pace, record_pace},
    rows::{account_id, task_id},
};
use crate::{
    FenceOutcome, Settlement, Spent, Stages, StoreError, task_row::check_result, transfer::Transfer,
};

/// Pending refunds finished in one transaction.
const REFUNDS_A_PAGE: i64 = 100;
const LOCK_OWNER: &str =
    "SELECT account_id, price FROM task JOIN account ON account.id = task.account_id
     WHERE task.id = $1 FOR NO KEY UPDATE OF account";

impl Db {
    /// The first step: a failed task is left with its refund pending.
    pub(crate) async fn settle(
        &self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let id = task.as_str();
        let (tx, owner) = Tx::begin_locked(self, LOCK_OWNER, &[&id], owner_and_price).await?;
        let settled = match owner {
            Some(owner) => settle(&tx, task, attempt, &settlement, &owner, spent).await,
            None => Ok(FenceOutcome::Lost),
        };
        tx.end(settled).await
    }

    /// The second step for these tasks; how many were still pending.
    pub(crate) async fn refund(&self, tasks: Vec<TaskId>) -> Result<u32, StoreError> {
        let mut tx = self.begin().await?;
        let refunded = refund_all(&mut tx, &tasks).await;
        tx.end(refunded).await
    }

    /// The second step for a page of whatever is pending; how many.
    pub(crate) async fn finish_refunds(&self) -> Result<u32, StoreError> {
        let mut tx = self.begin().await?;
        let refunded = finish_refunds(&mut tx).await;
        tx.end(refunded).await
    }
}

async fn settle(
    tx: &Tx,
    task: &TaskId,
    attempt: i64,
    settlement: &Settlement,
    owner: &(AccountId, Credits),
    spent: Spent,
) -> Result<FenceOutcome, StoreError> {
    let sql = "DELETE FROM job WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
    let fence: [&(dyn ToSql + Sync); 2] = [&task.as_str(), &attempt];
    let (heard, pace) = try_join!(fenced(tx, sql, &fence), lock_pace(tx))?;
    if heard == FenceOutcome::Lost {
        return Ok(FenceOutcome::Lost);
    }
    let end = async {
        match settlement {
            Settlement::Succeeded(file) => succeed_task(tx, task, owner, file, spent.stages).await,
            Settlement::Failed(message) => fail_task(tx, task, message).await,
        }
    };
    try_join!(end, record_pace(tx, pace, spent.slot_seconds))?;
    Ok(FenceOutcome::Done)
}

/// Charges and records the result. The job must be gone, behind its fence.
async fn succeed_task(
    tx: &Tx,
    task: &TaskId,
    (account, price): &(AccountId, Credits),
    file: &ResultFile,
    stages: Option<Stages>,
) -> Result<(), StoreError> {
    let size = check_result(task, file)?;
    let (id, finished_at) = (task.as_str(), tx.now.micros());
    let (width, height) = (i64::from(file.width), i64::from(file.height));
    let params: [&(dyn ToSql + Sync); 10] = [
        &id,
        &finished_at,
        &file.name,
        &file.sha256,
        &size,
        &width,
        &height,
        &stages.map(|stages| stages.download_micros),
        &stages.map(|stages| stages.picture_micros),
        &stages.map(|stages| stages.storing_micros),
    ];
    // A clock that stepped back must not make a task end before it began.
    let succeeded = ended(
        tx,
        "UPDATE task SET state = 'succeeded', finished_at = greatest(created_at, $2), result_name = $3,
             result_sha256 = $4, result_size = $5, result_width = $6, result_height = $7,
             download_micros = $8, picture_micros = $9, storing_micros = $10
         WHERE id = $1 AND state = 'processing' RETURNING account_id, price",
        &params,
    );
    let charge = Transfer::Charge(task);
    try_join!(succeeded, transfer(tx, account, &charge, *price))?;
    Ok(())
}

/// Fails the task with its refund pending. The job must be gone, behind its fence, and the account locked.
pub(super) async fn fail_task(
    tx: &Tx,
    task: &TaskId,
    message: &FailureMessage,
) -> Result<(), StoreError> {
    let (account, _) = ended(
        tx,
        "UPDATE task SET state = 'failed', refund = 'pending', finished_at = greatest(created_at, $2),
             failure_message = $3
         WHERE id = $1 AND state = 'processing' RETURNING account_id, price",
        &[&task.as_str(), &tx.now.micros(), &message.as_str()],
    )
    .await?;
    tx.execute_one(
        "UPDATE account SET active_tasks = active_tasks - 1 WHERE id = $1",
        &[&account.as_str()],
    )
    .await
}

async fn finish_refunds(tx: &mut Tx) -> Result<u32, StoreError> {
    let pending = tx
        .list(
            "SELECT id FROM task WHERE refund = 'pending' LIMIT $1",
            &[&REFUNDS_A_PAGE],
            |row| task_id(row, "id"),
        )
        .await?;
    refund_all(tx, &pending).await
}

/// The second step of these tasks' failures; how many were still owed.
pub(super) async fn refund_all(tx: &mut Tx, tasks: &[TaskId]) -> Result<u32, StoreError> {
    lock_owners(tx, tasks).await?;
    let mut refunded = 0;
    for task in tasks {
        let pending = tx
            .find(
                "UPDATE task SET refund = 'refunded' WHERE id = $1 AND refund = 'pending' RETURNING account_id, price",
                &[&task.as_str()],
                owner_and_price,
            )
            .await?;
        if let Some((account, price)) = pending {
            transfer(tx, &account, &Transfer::Refund(task), price).await?;
            refunded += 1;
        }
    }
    Ok(refunded)
}

/// Locks the accounts of these tasks.
pub(super) async fn lock_owners(tx: &mut Tx, tasks: &[TaskId]) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    let owners = tx
        .list(
            "SELECT DISTINCT account_id FROM task WHERE id = ANY($1)",
            &[&tasks],
            |row| Ok(row.try_get::<_, String>(0)?),
        )
        .await?;
    tx.lock_accounts(&owners).await
}

async fn ended(
    tx: &Tx,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<(AccountId, Credits), StoreError> {
    let ended = tx.find(sql, params, owner_and_price).await?;
    ended.ok_or_else(|| {
        StoreError::Corrupt("a job belonged to a task that is not processing".to_owned())
    })
}

fn owner_and_price(row: &Row) -> Result<(AccountId, Credits), StoreError> {
    let price = Credits::from_thousandths(row.try_get("price")?);
    Ok((account_id(row)?, price))
}
