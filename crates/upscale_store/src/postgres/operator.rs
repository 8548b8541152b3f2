//! What an operator changes: limits and credits of an account, a refund that hangs. Each leaves a line that says who
//! and why, in the same transaction.

use tokio_postgres::Row;
use upscale_core::{AccountId, Credits, KeyId, OwnLimits, TaskId, TokenHash, UserId};

use super::{
    Db, Tx,
    accounts::find_account,
    keys::revoke_key,
    ledger::transfer,
    purchase::credit_account,
    rows::{account_id, parsed, time},
    settle::refund_all,
    users::{create_reset, find_by_id},
};
use crate::{
    Account, ActionKind, AdjustOutcome, KeyRecord, OnBehalf, OperatorAction, PurchaseOutcome,
    RefundOutcome, StoreError, User,
    operator::{check_adjustment, check_limits, direction, show_limits},
    purchase::check_purchase,
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

    pub(crate) async fn book_purchase(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<PurchaseOutcome, StoreError> {
        by.check()?;
        check_purchase(credits, reference)?;
        let mut tx = self.begin().await?;
        let booked = book_purchase(&mut tx, account, credits, reference, by).await;
        tx.end(booked).await
    }

    pub(crate) async fn revoke_key_of_anyone(
        &self,
        key: &KeyId,
        by: &OnBehalf,
    ) -> Result<Option<KeyRecord>, StoreError> {
        by.check()?;
        let tx = self.begin().await?;
        let revoked = revoke_key_of_anyone(&tx, key, by).await;
        tx.end(revoked).await
    }

    pub(crate) async fn reset_password_of(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
        by: &OnBehalf,
    ) -> Result<Option<User>, StoreError> {
        by.check()?;
        let tx = self.begin().await?;
        let made = reset_password_of(&tx, user, reset, seconds, by).await;
        tx.end(made).await
    }

    pub(crate) async fn list_actions(
        &self,
        account: Option<&AccountId>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<OperatorAction>, StoreError> {
        let tx = self.read().await?;
        let limit = i64::from(limit);
        match account {
            Some(account) => {
                let sql = "SELECT * FROM operator_action WHERE account_id = $1 AND sequence < $2
                     ORDER BY sequence DESC LIMIT $3";
                tx.list(sql, &[&account.as_str(), &before, &limit], operator_action)
                    .await
            }
            None => {
                let sql = "SELECT * FROM operator_action WHERE sequence < $1 ORDER BY sequence DESC LIMIT $2";
                tx.list(sql, &[&before, &limit], operator_action).await
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
    if before.own_limits == own {
        return Ok(Some(before));
    }
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
    record(tx, account, ActionKind::Limits, &detail, by).await?;
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
    record(tx, account, ActionKind::Adjust, &detail, by).await?;
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
            record(
                tx,
                &account,
                ActionKind::Refund,
                &format!("of task {task}"),
                by,
            )
            .await?;
            Ok(RefundOutcome::Refunded)
        }
    }
}

async fn book_purchase(
    tx: &mut Tx,
    account: &AccountId,
    credits: Credits,
    reference: &str,
    by: &OnBehalf,
) -> Result<PurchaseOutcome, StoreError> {
    let outcome = credit_account(tx, account, credits, reference).await?;
    if outcome == PurchaseOutcome::Credited {
        let detail = format!("{credits} credits, reference {reference}");
        record(tx, account, ActionKind::Credit, &detail, by).await?;
    }
    Ok(outcome)
}

async fn revoke_key_of_anyone(
    tx: &Tx,
    key: &KeyId,
    by: &OnBehalf,
) -> Result<Option<KeyRecord>, StoreError> {
    let (revoked, was_live) = revoke_key(tx, key).await?;
    if let Some(revoked) = revoked.as_ref().filter(|_| was_live) {
        let detail = format!("{key}, which ends in {}", revoked.hint);
        record(tx, &revoked.account_id, ActionKind::Revoke, &detail, by).await?;
    }
    Ok(revoked)
}

/// The user's row is locked, so that of two equal forms at once the second finds the link of the first.
async fn reset_password_of(
    tx: &Tx,
    user: &UserId,
    reset: &TokenHash,
    seconds: i64,
    by: &OnBehalf,
) -> Result<Option<User>, StoreError> {
    let Some(found) = find_by_id(tx, user, "FOR UPDATE").await? else {
        return Ok(None);
    };
    let same = "SELECT 1 FROM password_reset WHERE hash = $1";
    let is_there = tx.find(same, &[&reset.as_str()], |_| Ok(())).await?;
    if is_there.is_none() {
        create_reset(tx, user, reset, seconds).await?;
        let detail = format!("a link for {}", found.email);
        record(tx, &found.account_id, ActionKind::Reset, &detail, by).await?;
    }
    Ok(Some(found))
}

async fn record(
    tx: &Tx,
    account: &AccountId,
    action: ActionKind,
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
            &action.as_str(),
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
        action: parsed(row, "action", ActionKind::parse)?,
        detail: row.try_get("detail")?,
        reason: row.try_get("reason")?,
    })
}
