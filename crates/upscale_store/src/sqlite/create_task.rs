//! One transaction: replay or conflict by the key, then core's admission, then reserve + task + job. Only an
//! accepted create leaves a trace, so only it uses up the key.

use rusqlite::{Row, params};
use upscale_core::{AccountFacts, AccountId, Credits, Task, Timestamp, fingerprint, priority_at};

use super::{
    Db, Tx,
    ledger::transfer,
    queue_facts::queue_facts,
    rows,
    task_rows::{self, insert_task},
};
use crate::{
    CreateOutcome, StoreError,
    order::{Order, Standing, known_key},
    transfer::Transfer,
};

impl Db {
    pub(crate) async fn create_task(&self, order: Order) -> Result<CreateOutcome, StoreError> {
        let outcome = self.write(move |tx| create_task(tx, &order)).await?;
        if matches!(outcome, CreateOutcome::Created(_)) {
            self.job_added.notify_one();
        }
        Ok(outcome)
    }
}

fn create_task(tx: &Tx<'_>, order: &Order) -> Result<CreateOutcome, StoreError> {
    let fingerprint = fingerprint(&order.task);
    if let Some((before, task)) = find_by_key(tx, order)? {
        return Ok(known_key(&before, &fingerprint, task));
    }
    let standing = standing(tx, &order.account)?;
    if let Some(stopped) = standing.stop() {
        return Ok(stopped);
    }
    let prio_at = priority_at(tx.now, standing.facts.active_tasks);
    if let Some(refused) = standing.refuse(queue_facts(tx)?, tx.options.price, tx.now) {
        return Ok(refused);
    }
    let task = accept(tx, order, &fingerprint, prio_at)?;
    Ok(CreateOutcome::Created(task))
}

fn find_by_key(tx: &Tx<'_>, order: &Order) -> Result<Option<(String, Task)>, StoreError> {
    tx.find(
        "SELECT * FROM task WHERE account_id = ?1 AND idempotency_key = ?2",
        [order.account.as_str(), order.key.as_str()],
        |row| Ok((row.get("fingerprint")?, task_rows::task(row)?)),
    )
}

fn standing(tx: &Tx<'_>, account: &AccountId) -> Result<Standing, StoreError> {
    let found = tx.find(
        "SELECT available, active_tasks, stopped, limit_create_requests, limit_active_tasks, limit_daily_tasks,
             (SELECT accepted FROM account_day WHERE account_id = id AND day = ?2) AS accepted_today
         FROM account WHERE id = ?1",
        params![account.as_str(), tx.now.utc_day()],
        parse_standing,
    )?;
    found.ok_or_else(|| StoreError::Corrupt(format!("a caller's account {account} is not there")))
}

fn parse_standing(row: &Row<'_>) -> Result<Standing, StoreError> {
    let facts = AccountFacts {
        active_tasks: rows::count(row, "active_tasks")?,
        accepted_today: row.get::<_, Option<u32>>("accepted_today")?.unwrap_or(0),
        available: Credits::from_thousandths(row.get("available")?),
        limits: rows::own_limits(row)?.effective(),
    };
    Ok(Standing {
        facts,
        stopped: row.get("stopped")?,
    })
}

fn accept(
    tx: &Tx<'_>,
    order: &Order,
    fingerprint: &str,
    prio_at: Timestamp,
) -> Result<Task, StoreError> {
    let task = order.accepted(tx.now, tx.options)?;
    insert_task(tx, &task, order, fingerprint)?;
    transfer(tx, &order.account, &Transfer::Reserve(&task.id), task.price)?;
    count_today(tx, &order.account)?;
    insert_job(tx, &task, prio_at)?;
    Ok(task)
}

fn count_today(tx: &Tx<'_>, account: &AccountId) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO account_day (account_id, day, accepted) VALUES (?1, ?2, 1)
         ON CONFLICT (account_id, day) DO UPDATE SET accepted = accepted + 1",
        params![account.as_str(), tx.now.utc_day()],
    )
}

fn insert_job(tx: &Tx<'_>, task: &Task, prio_at: Timestamp) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
         VALUES (?1, ?2, ?3, ?4, ?3, ?5)",
        params![
            task.id.as_str(),
            task.account_id.as_str(),
            task.created_at.micros(),
            prio_at.micros(),
            task.deadline_at.micros()
        ],
    )
}
