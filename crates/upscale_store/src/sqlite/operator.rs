//! What an operator changes: limits and credits of an account, a refund that hangs. Each leaves a line that says who
//! and why, in the same transaction.

use rusqlite::{Row, params};
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
        let (account, by) = (*account, by.clone());
        self.write(move |tx| set_limits(tx, &account, own, &by))
            .await
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
        let (account, reference, by) = (*account, reference.to_owned(), by.clone());
        self.write(move |tx| adjust_account(tx, &account, credits, &reference, &by))
            .await
    }

    pub(crate) async fn retry_refund(
        &self,
        task: &TaskId,
        by: &OnBehalf,
    ) -> Result<RefundOutcome, StoreError> {
        by.check()?;
        let (task, by) = (*task, by.clone());
        self.write(move |tx| retry_refund(tx, &task, &by)).await
    }

    pub(crate) async fn book_purchase(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<PurchaseOutcome, StoreError> {
        by.check()?;
        let (account, reference, by) = (*account, reference.to_owned(), by.clone());
        self.write(move |tx| {
            let outcome = credit_account(tx, &account, credits, &reference)?;
            if outcome == PurchaseOutcome::Credited {
                let detail = format!("{credits} credits, reference {reference}");
                record(tx, &account, ActionKind::Credit, &detail, &by)?;
            }
            Ok(outcome)
        })
        .await
    }

    pub(crate) async fn revoke_key_of_anyone(
        &self,
        key: &KeyId,
        by: &OnBehalf,
    ) -> Result<Option<KeyRecord>, StoreError> {
        by.check()?;
        let (key, by) = (*key, by.clone());
        self.write(move |tx| {
            let (revoked, was_live) = revoke_key(tx, &key)?;
            if let Some(revoked) = revoked.as_ref().filter(|_| was_live) {
                let detail = format!("{key}, which ends in {}", revoked.hint);
                record(tx, &revoked.account_id, ActionKind::Revoke, &detail, &by)?;
            }
            Ok(revoked)
        })
        .await
    }

    pub(crate) async fn reset_password_of(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
        by: &OnBehalf,
    ) -> Result<Option<User>, StoreError> {
        by.check()?;
        let (user, reset, by) = (*user, reset.clone(), by.clone());
        self.write(move |tx| {
            let Some(found) = find_by_id(tx, &user)? else {
                return Ok(None);
            };
            let same = "SELECT 1 FROM password_reset WHERE hash = ?1";
            if tx.find(same, [reset.as_str()], |_| Ok(()))?.is_none() {
                create_reset(tx, &user, &reset, seconds)?;
                let detail = format!("a link for {}", found.email);
                record(tx, &found.account_id, ActionKind::Reset, &detail, &by)?;
            }
            Ok(Some(found))
        })
        .await
    }

    pub(crate) async fn list_actions(
        &self,
        account: Option<&AccountId>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<OperatorAction>, StoreError> {
        let account = account.cloned();
        self.read(move |tx| match account {
            Some(account) => tx.list(
                "SELECT * FROM operator_action WHERE account_id = ?1 AND sequence < ?2
                 ORDER BY sequence DESC LIMIT ?3",
                params![account.as_str(), before, limit],
                operator_action,
            ),
            None => tx.list(
                "SELECT * FROM operator_action WHERE sequence < ?1 ORDER BY sequence DESC LIMIT ?2",
                params![before, limit],
                operator_action,
            ),
        })
        .await
    }
}

fn set_limits(
    tx: &Tx<'_>,
    account: &AccountId,
    own: OwnLimits,
    by: &OnBehalf,
) -> Result<Option<Account>, StoreError> {
    let Some(before) = find_account(tx, account)? else {
        return Ok(None);
    };
    if before.own_limits == own {
        return Ok(Some(before));
    }
    tx.execute_one(
        "UPDATE account SET limit_create_requests = ?2, limit_active_tasks = ?3, limit_daily_tasks = ?4
         WHERE id = ?1",
        params![
            account.as_str(),
            own.create_requests_per_minute,
            own.active_tasks,
            own.daily_tasks
        ],
    )?;
    let (old, new) = (show_limits(before.own_limits), show_limits(own));
    record(
        tx,
        account,
        ActionKind::Limits,
        &format!("{new}; before: {old}"),
        by,
    )?;
    find_account(tx, account)
}

fn adjust_account(
    tx: &Tx<'_>,
    account: &AccountId,
    credits: Credits,
    reference: &str,
    by: &OnBehalf,
) -> Result<AdjustOutcome, StoreError> {
    let Some(standing) = find_account(tx, account)? else {
        return Ok(AdjustOutcome::NoSuchAccount);
    };
    let (size, is_given) = direction(credits);
    let known = tx.find(
        "SELECT account_id, amount, credit FROM ledger WHERE kind = 'adjustment' AND external_reference = ?1",
        [reference],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)),
    )?;
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
    transfer(tx, account, &adjustment, size)?;
    let detail = format!("{credits} credits, reference {reference}");
    record(tx, account, ActionKind::Adjust, &detail, by)?;
    Ok(AdjustOutcome::Adjusted)
}

fn retry_refund(tx: &Tx<'_>, task: &TaskId, by: &OnBehalf) -> Result<RefundOutcome, StoreError> {
    let found = tx.find(
        "SELECT account_id, refund FROM task WHERE id = ?1",
        [task.as_str()],
        |row| Ok((account_id(row)?, row.get::<_, Option<String>>("refund")?)),
    )?;
    let Some((account, refund)) = found else {
        return Ok(RefundOutcome::NoSuchTask);
    };
    match refund.as_deref() {
        None => Ok(RefundOutcome::NotFailed),
        Some("refunded") => Ok(RefundOutcome::AlreadyRefunded),
        Some(_) => {
            refund_all(tx, std::slice::from_ref(task))?;
            record(
                tx,
                &account,
                ActionKind::Refund,
                &format!("of task {task}"),
                by,
            )?;
            Ok(RefundOutcome::Refunded)
        }
    }
}

fn record(
    tx: &Tx<'_>,
    account: &AccountId,
    action: ActionKind,
    detail: &str,
    by: &OnBehalf,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO operator_action (at, account_id, operator, action, detail, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            tx.now.micros(),
            account.as_str(),
            by.operator.trim(),
            action.as_str(),
            detail,
            by.reason.trim()
        ],
    )
}

fn operator_action(row: &Row<'_>) -> Result<OperatorAction, StoreError> {
    Ok(OperatorAction {
        sequence: row.get("sequence")?,
        at: time(row, "at")?,
        account_id: account_id(row)?,
        operator: row.get("operator")?,
        action: parsed(row, "action", ActionKind::parse)?,
        detail: row.get("detail")?,
        reason: row.get("reason")?,
    })
}
