//! The end of a task. The account's lock, then the fence, then state and ledger in the same commit. A failure
//! ends in two durable steps: failed with the refund pending, then the refund; anyone who comes next finishes it.

use futures_util::try_join;
use upscale_core::{AccountId, Credits, FailureMessage, Look, ResultFile, TaskId};

use super::{
    Tasks,
    lease::fenced,
    queue::{lock_pace, record_pace},
    row::{check_result, owner_and_price},
};
use crate::{
    FenceOutcome, Settlement, Spent, Stages, StoreError,
    accounts::ledger::{Transfer, transfer},
    param::Params,
    tx::Tx,
};

/// Pending refunds finished in one transaction.
const REFUNDS_A_PAGE: u32 = 100;
/// No join: SQLite plans one anew for every task that is bound to it, which costs a tenth of the task's way.
const LOCK_OWNER: &str =
    "SELECT id AS account_id, (SELECT price FROM task WHERE task.id = $1) AS price FROM account
     WHERE id = (SELECT account_id FROM task WHERE task.id = $1) FOR NO KEY UPDATE";

impl Tasks<'_> {
    /// The end: fence first, then state and ledger, commit. A failure's refund is a second durable step that
    /// follows at once. A result's bytes must be durable before this is called.
    pub async fn settle(
        self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let fails = matches!(settlement, Settlement::Failed(_));
        let outcome = self
            .settle_first_step(task, attempt, settlement, spent)
            .await?;
        if fails && outcome == FenceOutcome::Done {
            self.refund_now(vec![*task]).await;
        }
        Ok(outcome)
    }

    /// The first step alone: a failed task is left with its refund pending, as a crash before the second leaves it.
    pub(crate) async fn settle_first_step(
        self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        let verb = async move |tx: &mut Tx, owner: Option<(AccountId, Credits)>| match owner {
            Some(owner) => settle(tx, &task, attempt, &settlement, &owner, spent).await,
            None => Ok(FenceOutcome::Lost),
        };
        self.store
            .write_locked(LOCK_OWNER, task, owner_and_price, verb)
            .await
    }

    /// Returns credits that a crash left pending, up to a page; how many.
    pub async fn finish_refunds(self) -> Result<u32, StoreError> {
        let refunded = self
            .store
            .write(async |tx: &mut Tx| finish_refunds(tx).await);
        let refunded = refunded.await?;
        count_refunds(refunded);
        Ok(refunded)
    }

    /// The second step of failing. The failure is durable already, so an error here is no error of the
    /// caller's: the refunds stay pending and [`Tasks::finish_refunds`] returns them.
    pub(crate) async fn refund_now(self, failed: Vec<TaskId>) {
        if failed.is_empty() {
            return;
        }
        let refunded = self
            .store
            .write(async move |tx: &mut Tx| refund_all(tx, &failed).await);
        match refunded.await {
            Ok(refunded) => count_refunds(refunded),
            Err(error) => tracing::warn!(%error, "refunds stay pending"),
        }
    }
}

pub(crate) fn count_refunds(refunded: u32) {
    metrics::counter!("upscale_refunds_total").increment(refunded.into());
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
    let fence: Params<'_> = &[task, &attempt];
    let (outcome, pace) = try_join!(fenced(tx, sql, fence), lock_pace(tx))?;
    if outcome == FenceOutcome::Lost {
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
    let stages = [
        stages.map(|stages| stages.download_micros),
        stages.map(|stages| stages.picture_micros),
        stages.map(|stages| stages.storing_micros),
    ];
    let focus = file.preview.map(|preview| preview.focus_permille);
    let [focus_x, focus_y] = [0, 1].map(|side| focus.map(|focus| i64::from(focus[side])));
    let thumbnail_bytes = file
        .preview
        .map(|preview| i64::from(preview.thumbnail_bytes));
    let look = file.look.map(Look::as_str);
    let params: Params<'_> = &[
        task,
        &tx.now,
        &file.name,
        &file.sha256,
        &size,
        &file.width,
        &file.height,
        &stages[0],
        &stages[1],
        &stages[2],
        &thumbnail_bytes,
        &focus_x,
        &focus_y,
        &look,
    ];
    // A clock that stepped back must not make a task end before it began.
    let succeeded = ended(
        tx,
        "UPDATE task SET state = 'succeeded', finished_at = CASE WHEN created_at > $2 THEN created_at ELSE $2 END,
             result_name = $3, result_sha256 = $4, result_size = $5, result_width = $6, result_height = $7,
             download_micros = $8, picture_micros = $9, storing_micros = $10,
             thumbnail_bytes = $11, focus_x = $12, focus_y = $13, look = $14
         WHERE id = $1 AND state = 'processing' RETURNING account_id, price",
        params,
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
        "UPDATE task SET state = 'failed', refund = 'pending',
             finished_at = CASE WHEN created_at > $2 THEN created_at ELSE $2 END, failure_message = $3
         WHERE id = $1 AND state = 'processing' RETURNING account_id, price",
        &[task, &tx.now, &message.as_str()],
    )
    .await?;
    tx.execute_one(
        "UPDATE account SET active_tasks = active_tasks - 1 WHERE id = $1",
        &[&account],
    )
    .await
}

async fn finish_refunds(tx: &mut Tx) -> Result<u32, StoreError> {
    let sql = "SELECT id FROM task WHERE refund = 'pending' LIMIT $1";
    let pending = tx
        .list(sql, &[&REFUNDS_A_PAGE], |row| row.task_id("id"))
        .await?;
    refund_all(tx, &pending).await
}

/// The second step of these tasks' failures; how many were still owed.
pub(crate) async fn refund_all(tx: &mut Tx, tasks: &[TaskId]) -> Result<u32, StoreError> {
    tx.lock_owners(tasks).await?;
    let sql = "UPDATE task SET refund = 'refunded' WHERE id = $1 AND refund = 'pending'
         RETURNING account_id, price";
    let mut refunded = 0;
    for task in tasks {
        if let Some((account, price)) = tx.find(sql, &[task], owner_and_price).await? {
            transfer(tx, &account, &Transfer::Refund(task), price).await?;
            refunded += 1;
        }
    }
    Ok(refunded)
}

async fn ended(tx: &Tx, sql: &str, params: Params<'_>) -> Result<(AccountId, Credits), StoreError> {
    let ended = tx.find(sql, params, owner_and_price).await?;
    ended.ok_or_else(|| {
        StoreError::Corrupt("a job belonged to a task that is not processing".to_owned())
    })
}
