//! One transaction under the account's lock: replay or conflict by the key, then core's admission, then
//! reserve + task + job. Only an accepted create leaves a trace, so only it uses up the key.

use futures_util::try_join;
use upscale_core::{
    AccountFacts, AccountId, IdempotencyKey, KeyId, NewTask, RequestId, Task, Timestamp,
    fingerprint, priority_at,
};

use super::{
    Tasks,
    order::{Order, Standing, known_key},
    queue::queue_facts,
    row::{INSERT_TASK, insert_task},
    used_key::find_by_key,
};
use crate::{
    CreateOutcome, StoreError,
    accounts::ledger::{Transfer, transfer},
    row::Row,
    tx::Tx,
};

const INSERT_JOB: &str =
    "INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
     VALUES ($1, $2, $3, $4, $3, $5)";

impl Tasks<'_> {
    /// One transaction: replay, conflict, limits, credits, capacity, then reserve + task + job. After
    /// `OutcomeUnknown` the same call finds out whether it was accepted.
    pub async fn create(
        self,
        account: &AccountId,
        key: &IdempotencyKey,
        task: &NewTask,
        request: &RequestId,
    ) -> Result<CreateOutcome, StoreError> {
        self.create_by(None, account, key, task, request).await
    }

    /// As [`Tasks::create`], with the API key that ordered it, for the counts of use by key.
    pub async fn create_by(
        self,
        api_key: Option<KeyId>,
        account: &AccountId,
        key: &IdempotencyKey,
        task: &NewTask,
        request: &RequestId,
    ) -> Result<CreateOutcome, StoreError> {
        let order = Order {
            account: *account,
            key: key.clone(),
            task: task.clone(),
            request: *request,
            api_key,
        };
        let verb = async move |tx: &mut Tx, locked: Option<()>| match locked {
            Some(()) => create_task(tx, &order).await,
            None => Err(no_account(&order.account)),
        };
        let outcome = self.store.write_account(*account, verb).await?;
        if matches!(outcome, CreateOutcome::Created(_)) {
            self.store.tell_job_added();
        }
        Ok(outcome)
    }

    /// What [`Tasks::create`] answers to a key that an accepted request had: its task, or a conflict. None for a new
    /// key: nothing is written here.
    pub async fn find_known(
        self,
        account: &AccountId,
        key: &IdempotencyKey,
        task: &NewTask,
    ) -> Result<Option<CreateOutcome>, StoreError> {
        let (account, key, fingerprint) = (*account, key.clone(), fingerprint(task));
        self.store
            .read(async move |tx: &mut Tx| {
                let known = find_by_key(tx, &account, &key).await?;
                Ok(known.map(|(before, task)| known_key(&before, &fingerprint, task)))
            })
            .await
    }
}

async fn create_task(tx: &Tx, order: &Order) -> Result<CreateOutcome, StoreError> {
    let fingerprint = fingerprint(&order.task);
    let (known, standing, queue) = try_join!(
        find_by_key(tx, &order.account, &order.key),
        standing(tx, &order.account),
        queue_facts(tx)
    )?;
    if let Some((before, task)) = known {
        return Ok(known_key(&before, &fingerprint, task));
    }
    if let Some(stopped) = standing.stop() {
        return Ok(stopped);
    }
    let prio_at = priority_at(tx.now, standing.facts.active_tasks);
    if let Some(refused) = standing.refuse(queue, tx.options.price, tx.now) {
        return Ok(refused);
    }
    let task = accept(tx, order, &fingerprint, prio_at).await?;
    Ok(CreateOutcome::Created(task))
}

async fn standing(tx: &Tx, account: &AccountId) -> Result<Standing, StoreError> {
    let found = tx
        .find(
            "SELECT available, active_tasks, stopped, limit_create_requests, limit_active_tasks, limit_daily_tasks,
                 coalesce((SELECT accepted FROM account_day
                     WHERE account_id = account.id AND day = $2), 0) AS accepted_today
             FROM account WHERE id = $1",
            &[account, &tx.now.utc_day()],
            parse_standing,
        )
        .await?;
    found.ok_or_else(|| no_account(account))
}

fn no_account(account: &AccountId) -> StoreError {
    StoreError::Corrupt(format!("a caller's account {account} is not there"))
}

fn parse_standing(row: &dyn Row) -> Result<Standing, StoreError> {
    let facts = AccountFacts {
        active_tasks: row.whole("active_tasks")?,
        accepted_today: row.whole("accepted_today")?,
        available: row.credits("available")?,
        limits: row.own_limits()?.effective(),
    };
    let stopped = row.flag("stopped")?;
    Ok(Standing { facts, stopped })
}

async fn accept(
    tx: &Tx,
    order: &Order,
    fingerprint: &str,
    prio_at: Timestamp,
) -> Result<Task, StoreError> {
    let task = order.accepted(tx.now, tx.options)?;
    let reserve = Transfer::Reserve(&task.id);
    // The job refers to its task: the one must be there before the other.
    tx.prepare(&[INSERT_TASK, INSERT_JOB]).await?;
    try_join!(
        insert_task(tx, &task, order, fingerprint),
        transfer(tx, &order.account, &reserve, task.price),
        count_today(tx, &order.account),
        insert_job(tx, &task, prio_at)
    )?;
    Ok(task)
}

async fn count_today(tx: &Tx, account: &AccountId) -> Result<(), StoreError> {
    let today = "INSERT INTO account_day AS counted (account_id, day, accepted) VALUES ($1, $2, 1)
                 ON CONFLICT (account_id, day) DO UPDATE SET accepted = counted.accepted + 1";
    tx.execute_one(today, &[account, &tx.now.utc_day()]).await
}

async fn insert_job(tx: &Tx, task: &Task, prio_at: Timestamp) -> Result<(), StoreError> {
    tx.execute_one(
        INSERT_JOB,
        &[
            &task.id,
            &task.account_id,
            &task.created_at,
            &prio_at,
            &task.deadline_at,
        ],
    )
    .await
}
