//! What an operator changes: limits and credits of an account, a refund that hangs. Each leaves a line that says who
//! and why, in the same transaction.

use tokio_postgres::Row;
use upscale_core::{AccountId, Credits, OwnLimits, TaskId};

use super::{
    Db, Tx,
    accounts::find_account,
    ledger::transfer,
    rows::{account_id, time},
    settle::refund_all,
};
use crate::{
    Account, AdjustOutcome, OnBehalf, OperatorAction, RefundOutcome, StoreError,
    operator::{check_adjustment, check_limits, direction, show_limits},
    transfer::Transfer,
};

impl Db {
    pub(crate) async fn set_limits(
        &self,
        account: &AccountId,
        own: OwnLimits,
        by: &OnBehalf,
    ) -> Result<Option<Account>, StoreError> {
        by.check()?;
        check_limits(own)?;
        let mut tx = self.begin().await?;
        let set = set_limits(&mut tx, account, own, by).await;
        tx.end(set).await
    }

    pub(crate) async fn adjust_account(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<AdjustOutcome, StoreError> {
        by.check()?;
        check_adjustment(credits, reference)?;
        let mut tx = self.begin().await?;
        let adjusted = adjust_account(&mut tx, account, credits, reference, by).await;
        tx.end(adjusted).await
    }

    pub(crate) async fn retry_refund(
        &self,
        task: &TaskId,
        by: &OnBehalf,
    ) -> Result<RefundOutcome, StoreError> {
        by.check()?;
        let mut tx = self.begin().await?;
        let refunded = retry_refund(&mut tx, task, by).await;
        tx.end(refunded).await
    }

    pub(crate) async fn list_actions(
        &self,
        account: Option<&AccountId>,
        limit: u32,
    ) -> Result<Vec<OperatorAction>, StoreError> {
        let tx = self.read().await?;
        let limit = i64::from(limit);
        match account {
            Some(account) => {
                let sql = "SELECT * FROM operator_action WHERE account_id = $1 ORDER BY sequence DESC LIMIT $2";
                tx.list(sql, &[&account.as_str(), &limit], operator_action)
                    .await
            }
            None => {
                let sql = "SELECT * FROM operator_action ORDER BY sequence DESC LIMIT $1";
                tx.list(sql, &[&limit], operator_action).await
            }
        }
    }
}

async fn set_limits(
    tx: &mut Tx,
    account: &AccountId,
    own: OwnLimits,
    by: &OnBehalf,
) -> Result<Option<Account>, StoreError> {
    tx.lock_account(account).await?;
    let Some(before) = find_account(tx, account).await? else {
        return Ok(None);
    };
    let [requests, active, daily] = [
        own.create_requests_per_minute,
        own.active_tasks,
        own.daily_tasks,
    ]
    .map(|limit| limit.map(i64::from));
    tx.execute_one(
        "UPDATE account SET limit_create_requests = $2, limit_active_tasks = $3, limit_daily_tasks = $4
         WHERE id = $1",
        &[&account.as_str(), &requests, &active, &daily],
    )
    .await?;
    let (old, new) = (show_limits(before.own_limits), show_limits(own));
    let detail = format!("{new}; before: {old}");
    record(tx, account, "limits", &detail, by).await?;
    find_account(tx, account).await
}

async fn adjust_account(
    tx: &mut Tx,
    account: &AccountId,
    credits: Credits,
    reference: &str,
    by: &OnBehalf,
) -> Result<AdjustOutcome, StoreError> {
    // One reference may arrive for two accounts at once, as with purchases.
    let lock = "SELECT pg_advisory_xact_lock(2, hashtext($1))";
    tx.execute(lock, &[&reference]).await?;
    tx.lock_account(account).await?;
    let Some(standing) = find_account(tx, account).await? else {
        return Ok(AdjustOutcome::NoSuchAccount);
    };
    let (size, is_given) = direction(credits);
    let known = tx
        .find(
            "SELECT account_id, amount, credit FROM ledger WHERE kind = 'adjustment' AND external_reference = $1",
            &[&reference],
            |row| Ok((row.try_get::<_, String>(0)?, row.try_get::<_, i64>(1)?, row.try_get::<_, String>(2)?)),
        )
        .await?;
    if let Some((owner, amount, credit)) = known {
        let is_same = owner == account.as_str()
            && amount == size.thousandths()
            && (credit == "available") == is_given;
        return Ok(if is_same {
            AdjustOutcome::AlreadyAdjusted
        } else {
            AdjustOutcome::ReferenceTaken
        });
    }
    if !is_given && standing.available < size {
        return Ok(AdjustOutcome::TooLittle {
            available: standing.available,
        });
    }
    let adjustment = if is_given {
        Transfer::AdjustmentUp(reference)
    } else {
        Transfer::AdjustmentDown(reference)
    };
    transfer(tx, account, &adjustment, size).await?;
    let detail = format!("{credits} credits, reference {reference}");
    record(tx, account, "adjust", &detail, by).await?;
    Ok(AdjustOutcome::Adjusted)
}

async fn retry_refund(
    tx: &mut Tx,
    task: &TaskId,
    by: &OnBehalf,
) -> Result<RefundOutcome, StoreError> {
    let owner = "SELECT account_id FROM task WHERE id = $1";
    let Some(account) = tx.find(owner, &[&task.as_str()], account_id).await? else {
        return Ok(RefundOutcome::NoSuchTask);
    };
    tx.lock_account(&account).await?;
    let refund = tx
        .find(
            "SELECT refund FROM task WHERE id = $1",
            &[&task.as_str()],
            |row| Ok(row.try_get::<_, Option<String>>(0)?),
        )
        .await?;
    match refund.flatten().as_deref() {
        None => Ok(RefundOutcome::NotFailed),
        Some("refunded") => Ok(RefundOutcome::AlreadyRefunded),
        Some(_) => {
            refund_all(tx, std::slice::from_ref(task)).await?;
            record(tx, &account, "refund", &format!("of task {task}"), by).await?;
            Ok(RefundOutcome::Refunded)
        }
    }
}

async fn record(
    tx: &Tx,
    account: &AccountId,
    action: &str,
    detail: &str,
    by: &OnBehalf,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operator_action (at, account_id, operator, action, detail, reason)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            &tx.now.micros(),
            &account.as_str(),
            &by.operator.trim(),
            &action,
            &detail,
            &by.reason.trim(),
        ],
    )
    .await
}

fn operator_action(row: &Row) -> Result<OperatorAction, StoreError> {
    Ok(OperatorAction {
        sequence: row.try_get("sequence")?,
        at: time(row, "at")?,
        account_id: account_id(row)?,
        operator: row.try_get("operator")?,
        action: row.try_get("action")?,
        detail: row.try_get("detail")?,
        reason: row.try_get("reason")?,
    })
}
