//! What an operator changes: limits and credits of an account, a refund that hangs. Each leaves a line that says who
//! and why, in the same transaction.

use upscale_core::{AccountId, Credits, KeyId, OwnLimits, TaskId, TokenHash, UserId};

use super::{Operator, check_adjustment, check_limits, direction, show_limits};
use crate::{
    Account, ActionKind, AdjustOutcome, KeyRecord, OnBehalf, OperatorAction, PurchaseOutcome,
    RefundOutcome, StoreError, User,
    accounts::{
        find_account,
        keys::revoke_key,
        ledger::{Transfer, transfer},
        purchase::{check_purchase, credit_account},
    },
    row::Row,
    tasks::settle::{count_refunds, refund_all},
    tx::{Reference, Tx},
    users::{create_reset, lock_user},
};

/// As [`operator_action`] reads it, for a WHERE to follow.
const ACTION: &str =
    "SELECT sequence, at, account_id, operator, action, detail, reason FROM operator_action";

impl Operator<'_> {
    /// Sets the account's limits in place of what was set before; a number that is none is the contract's. Counts
    /// from the next request on. Where nothing changes nothing is recorded. None when there is no such account.
    pub async fn set_limits(
        self,
        account: &AccountId,
        own: OwnLimits,
        by: &OnBehalf,
    ) -> Result<Option<Account>, StoreError> {
        by.check()?;
        check_limits(own)?;
        let (account, by) = (*account, by.clone());
        self.store
            .write(async move |tx: &mut Tx| set_limits(tx, &account, own, &by).await)
            .await
    }

    /// Gives (above 0) or takes (below 0) credits, once a reference (1 to 200 bytes). Never takes more than is
    /// available, and opens no access: that is what a purchase does.
    pub async fn adjust(
        self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<AdjustOutcome, StoreError> {
        by.check()?;
        check_adjustment(credits, reference)?;
        let (account, reference, by) = (*account, reference.to_owned(), by.clone());
        self.store
            .write(async move |tx: &mut Tx| {
                adjust_account(tx, &account, credits, &reference, &by).await
            })
            .await
    }

    /// Returns the credits of a failed task whose refund hangs.
    pub async fn retry_refund(
        self,
        task: &TaskId,
        by: &OnBehalf,
    ) -> Result<RefundOutcome, StoreError> {
        by.check()?;
        let (task, by) = (*task, by.clone());
        let retried = self
            .store
            .write(async move |tx: &mut Tx| retry_refund(tx, &task, &by).await);
        let outcome = retried.await?;
        if outcome == RefundOutcome::Refunded {
            count_refunds(1);
        }
        Ok(outcome)
    }

    /// Books a purchase that an operator was told of: as [`crate::Accounts::credit`], with who and why.
    pub async fn book_purchase(
        self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<PurchaseOutcome, StoreError> {
        by.check()?;
        check_purchase(credits, reference)?;
        let (account, reference, by) = (*account, reference.to_owned(), by.clone());
        self.store
            .write(async move |tx: &mut Tx| {
                book_purchase(tx, &account, credits, &reference, &by).await
            })
            .await
    }

    /// Revokes anyone's key: refused from the next request on. Recorded once; none when there is no such key.
    pub async fn revoke_key(
        self,
        key: &KeyId,
        by: &OnBehalf,
    ) -> Result<Option<KeyRecord>, StoreError> {
        by.check()?;
        let (key, by) = (*key, by.clone());
        self.store
            .write(async move |tx: &mut Tx| revoke_key_of_anyone(tx, &key, &by).await)
            .await
    }

    /// A link that sets a new password, as [`crate::Users::create_reset`], for a user who asked an operator. The same link
    /// asked for again changes and records nothing. None when there is no such user.
    pub async fn reset_password(
        self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
        by: &OnBehalf,
    ) -> Result<Option<User>, StoreError> {
        by.check()?;
        let (user, reset, by) = (*user, reset.clone(), by.clone());
        self.store
            .write(async move |tx: &mut Tx| {
                reset_password_of(tx, &user, &reset, seconds, &by).await
            })
            .await
    }

    /// What operators did, of one account or of all: those whose number is below this one, newest first.
    pub async fn list_actions(
        self,
        account: Option<&AccountId>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<OperatorAction>, StoreError> {
        let account = account.copied();
        self.store.read(async move |tx: &mut Tx| match account {
            Some(account) => {
                let sql = format!(
                    "{ACTION} WHERE account_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3"
                );
                tx.list(&sql, &[&account, &before, &limit], operator_action).await
            }
            None => {
                let sql = format!("{ACTION} WHERE sequence < $1 ORDER BY sequence DESC LIMIT $2");
                tx.list(&sql, &[&before, &limit], operator_action).await
            }
        })
        .await
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
    tx.execute_one(
        "UPDATE account SET limit_create_requests = $2, limit_active_tasks = $3, limit_daily_tasks = $4
         WHERE id = $1",
        &[account, &own.create_requests_per_minute, &own.active_tasks, &own.daily_tasks],
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
    tx.lock_reference(Reference::Adjustment, reference).await?;
    tx.lock_account(account).await?;
    let Some(standing) = find_account(tx, account).await? else {
        return Ok(AdjustOutcome::NoSuchAccount);
    };
    let (size, is_given) = direction(credits);
    let known = tx
        .find(
            "SELECT account_id, amount, credit FROM ledger WHERE kind = 'adjustment' AND external_reference = $1",
            &[&reference],
            |row| {
                let (owner, credit) = (row.string("account_id")?, row.string("credit")?);
                Ok((owner, row.number("amount")?, credit))
            },
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
    let Some(account) = tx.find(owner, &[task], |row| row.account_id()).await? else {
        return Ok(RefundOutcome::NoSuchTask);
    };
    tx.lock_account(&account).await?;
    let refund = tx
        .find("SELECT refund FROM task WHERE id = $1", &[task], |row| {
            row.string_if_any("refund")
        })
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

/// Of two equal forms at once the second finds the link of the first.
async fn reset_password_of(
    tx: &Tx,
    user: &UserId,
    reset: &TokenHash,
    seconds: i64,
    by: &OnBehalf,
) -> Result<Option<User>, StoreError> {
    let Some(found) = lock_user(tx, user).await? else {
        return Ok(None);
    };
    let same = "SELECT 1 FROM password_reset WHERE hash = $1";
    if !tx.exists(same, &[reset]).await? {
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
            &tx.now,
            account,
            &by.operator.trim(),
            &action.as_str(),
            &detail,
            &by.reason.trim(),
        ],
    )
    .await
}

fn operator_action(row: &dyn Row) -> Result<OperatorAction, StoreError> {
    Ok(OperatorAction {
        sequence: row.number("sequence")?,
        at: row.time("at")?,
        account_id: row.account_id()?,
        operator: row.string("operator")?,
        action: row.parsed("action", ActionKind::parse)?,
        detail: row.string("detail")?,
        reason: row.string("reason")?,
    })
}
