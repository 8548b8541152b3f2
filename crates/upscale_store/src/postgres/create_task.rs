//! One transaction under the account's lock: replay or conflict by the key, then core's admission, then
//! reserve + task + job. Only an accepted create leaves a trace, so only it uses up the key.

use futures_util::try_join;
use tokio_postgres::Row;
use upscale_core::{AccountFacts, AccountId, Credits, Task, Timestamp, fingerprint, priority_at};

use super::{
    Db, Tx,
    ledger::transfer,
    queue_facts::queue_facts,
    rows,
    task_rows::{self, INSERT_TASK, insert_task},
};
use crate::{
    CreateOutcome, StoreError,
    order::{Order, Standing, known_key},
    transfer::Transfer,
};

const INSERT_JOB: &str =
    "INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
     VALUES ($1, $2, $3, $4, $3, $5)";

impl Db {
    pub(crate) async fn create_task(&self, order: Order) -> Result<CreateOutcome, StoreError> {
        let lock = "SELECT 1 FROM account WHERE id = $1 FOR NO KEY UPDATE";
        let id = order.account.as_str();
        let (tx, locked) = Tx::begin_locked(self, lock, &[&id], |_| Ok(())).await?;
        let outcome = match locked {
            Some(()) => create_task(&tx, &order).await,
            None => {
                let what = format!("a caller's account {id} is not there");
                Err(StoreError::Corrupt(what))
            }
        };
        let outcome = tx.end(outcome).await?;
        if matches!(outcome, CreateOutcome::Created(_)) {
            self.job_added.notify_one();
        }
        Ok(outcome)
    }
}

async fn create_task(tx: &Tx, order: &Order) -> Result<CreateOutcome, StoreError> {
    let fingerprint = fingerprint(&order.task);
    let (known, standing, queue) = try_join!(
        find_by_key(tx, order),
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

async fn find_by_key(tx: &Tx, order: &Order) -> Result<Option<(String, Task)>, StoreError> {
    tx.find(
        "SELECT * FROM task WHERE account_id = $1 AND idempotency_key = $2",
        &[&order.account.as_str(), &order.key.as_str()],
        |row| Ok((row.try_get("fingerprint")?, task_rows::task(row)?)),
    )
    .await
}

async fn standing(tx: &Tx, account: &AccountId) -> Result<Standing, StoreError> {
    let found = tx
        .find(
            "SELECT available, active_tasks, stopped, limit_create_requests, limit_active_tasks, limit_daily_tasks, coalesce((SELECT accepted FROM account_day
                 WHERE account_id = account.id AND day = $2), 0) AS accepted_today
             FROM account WHERE id = $1",
            &[&account.as_str(), &tx.now.utc_day()],
            parse_standing,
        )
        .await?;
    found.ok_or_else(|| StoreError::Corrupt(format!("{account} is locked and not there")))
}

fn parse_standing(row: &Row) -> Result<Standing, StoreError> {
    let facts = AccountFacts {
        active_tasks: rows::count(row, "active_tasks")?,
        accepted_today: rows::count(row, "accepted_today")?,
        available: Credits::from_thousandths(row.try_get("available")?),
        limits: rows::own_limits(row)?.effective(),
    };
    let stopped = row.try_get::<_, i64>("stopped")? != 0;
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
    tx.execute_one(today, &[&account.as_str(), &tx.now.utc_day()])
        .await
}

async fn insert_job(tx: &Tx, task: &Task, prio_at: Timestamp) -> Result<(), StoreError> {
    tx.execute_one(
        INSERT_JOB,
        &[
            &task.id.as_str(),
            &task.account_id.as_str(),
            &task.created_at.micros(),
            &prio_at.micros(),
            &task.deadline_at.micros(),
        ],
    )
    .await
}
