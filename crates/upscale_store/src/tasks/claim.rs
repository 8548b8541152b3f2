//! A worker takes due jobs, in order and past those that another claim holds; what today's rules refuse is failed
//! here instead of handed out.

use upscale_core::{AccountId, FailureMessage, RequestId, SourceUrl, TaskId};

use super::{
    Tasks,
    due_job::{CLAIMS_MAX, Claimed, DueJob, NextAttempt, ROUNDS_MAX},
    queue::oldest_prio_at,
    row::parameters,
    settle::fail_task,
};
use crate::{Claim, StoreError, param::Params, row::Row, tx::Tx};

/// Due jobs in order; the last of it keeps the order of arrival where two are equal.
const DUE: &str =
    "SELECT task.account_id, task.source_url, task.scale, task.face_enhance, task.request_id, task.created_at,
         task.deadline_at, job.task_id, job.attempt, job.transient_failures, job.failing_since, job.crashes, job.interruptions,
         job.worker
     FROM job JOIN task ON task.id = job.task_id
     WHERE job.visible_at <= $1 AND job.deadline_at > $1 AND job.prio_at > $3";

impl Tasks<'_> {
    /// Takes up to `count` due jobs, at most 64, first come first served but for bursts; an expired lease
    /// counts as an interruption. An order that is not accepted any more is failed and refunded here; nothing past
    /// its deadline is handed out. Jobs of the accounts in `passed_over` stay where they are.
    pub async fn claim(
        self,
        worker: &str,
        count: u32,
        passed_over: &[AccountId],
    ) -> Result<Vec<Claim>, StoreError> {
        let worker = worker.to_owned();
        let passed_over = passed_over.to_vec();
        let count = count.min(CLAIMS_MAX);
        let claimed = self
            .store
            .write(async move |tx: &mut Tx| claim(tx, &worker, count, &passed_over).await)
            .await?;
        self.refund_now(claimed.failed).await;
        Ok(claimed.claims)
    }
}

async fn claim(
    tx: &Tx,
    worker: &str,
    count: u32,
    passed_over: &[AccountId],
) -> Result<Claimed, StoreError> {
    let mut claimed = Claimed::default();
    let others = match passed_over.is_empty() {
        true => "",
        false => tx.dialect(
            "AND job.account_id NOT IN (SELECT value FROM json_each($4))",
            "AND job.account_id <> ALL(string_to_array($4, ','))",
        ),
    };
    let arrival = tx.dialect("job.rowid", "job.sequence");
    let sql = format!(
        "{DUE} {others} ORDER BY job.prio_at, {arrival} LIMIT $2 FOR UPDATE OF job SKIP LOCKED"
    );
    let after = oldest_prio_at(tx);
    let passed_over = ids_as_text(tx, passed_over);
    for _ in 0..ROUNDS_MAX {
        let missing = i64::from(count) - claimed.claims.len() as i64;
        let params: Params<'_> = &[&tx.now, &missing, &after, &passed_over];
        // A statement is given as many as it names.
        let params = if others.is_empty() {
            &params[..3]
        } else {
            params
        };
        let due = tx.list(&sql, params, due_job).await?;
        let (mut handed_out, mut ended) = (Vec::new(), Vec::new());
        for job in due {
            match job.next_attempt(tx.now) {
                NextAttempt::HandOut(claim) => handed_out.push(*claim),
                NextAttempt::End(task, message) => ended.push((task, message)),
            }
        }
        hand_out(tx, worker, &handed_out).await?;
        claimed.claims.append(&mut handed_out);
        // Others may stand behind what ends; where nothing does, there is no more to find.
        if ended.is_empty() {
            break;
        }
        for (task, message) in ended {
            if end_job(tx, &task, &message).await? {
                claimed.failed.push(task);
            }
        }
    }
    Ok(claimed)
}

/// As the two engines take many in one parameter. Ids hold letters, digits and underscores.
fn ids_as_text(tx: &Tx, ids: &[AccountId]) -> String {
    let ids: Vec<&str> = ids.iter().map(AccountId::as_str).collect();
    match tx.is_shared() {
        true => ids.join(","),
        false => format!("[\"{}\"]", ids.join("\",\"")),
    }
}

/// All of them in one statement where a statement is a round trip.
async fn hand_out(tx: &Tx, worker: &str, claims: &[Claim]) -> Result<(), StoreError> {
    let until = tx.now.plus_seconds(tx.options.lease_seconds);
    if !tx.is_shared() {
        let sql = "UPDATE job SET attempt = $2, worker = $3, visible_at = $4, interruptions = $5 WHERE task_id = $1";
        for claim in claims {
            let Claim {
                task_id,
                attempt,
                interruptions,
                ..
            } = claim;
            tx.execute_one(sql, &[task_id, attempt, &worker, &until, interruptions])
                .await?;
        }
        return Ok(());
    }
    if claims.is_empty() {
        return Ok(());
    }
    let tasks: Vec<&str> = claims.iter().map(|claim| claim.task_id.as_str()).collect();
    let attempts: Vec<i64> = claims.iter().map(|claim| claim.attempt).collect();
    let interruptions = claims.iter().map(|claim| claim.interruptions.into());
    let interruptions: Vec<i64> = interruptions.collect();
    let updated = tx
        .execute(
            "UPDATE job SET attempt = claimed.attempt, worker = $4, visible_at = $5, interruptions = claimed.interruptions
             FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS claimed (task_id, attempt, interruptions)
             WHERE job.task_id = claimed.task_id",
            &[
                &&tasks[..],
                &&attempts[..],
                &&interruptions[..],
                &worker,
                &until,
            ],
        )
        .await?;
    if updated != claims.len() as u64 {
        let what = format!("{updated} of {} locked jobs were there", claims.len());
        return Err(StoreError::Corrupt(what));
    }
    Ok(())
}

/// A settlement locks the account before the job, and this transaction holds the job already: waiting here
/// could be waiting for each other. An account that is busy now leaves its job to the next claim.
async fn end_job(tx: &Tx, task: &TaskId, message: &FailureMessage) -> Result<bool, StoreError> {
    let lock = "SELECT 1 FROM account WHERE id = (SELECT account_id FROM task WHERE id = $1)
         FOR NO KEY UPDATE SKIP LOCKED";
    if !tx.exists(lock, &[task]).await? {
        return Ok(false);
    }
    tx.execute_one("DELETE FROM job WHERE task_id = $1", &[task])
        .await?;
    fail_task(tx, task, message).await?;
    Ok(true)
}

fn due_job(row: &dyn Row) -> Result<DueJob, StoreError> {
    Ok(DueJob {
        task_id: row.task_id("task_id")?,
        account_id: row.account_id()?,
        attempt: row.number("attempt")?,
        transient_failures: row.whole("transient_failures")?,
        failing_since: row.time_if_any("failing_since")?,
        crashes: row.whole("crashes")?,
        interruptions: row.whole("interruptions")?,
        was_claimed: row.text_if_any("worker")?.is_some(),
        source_url: SourceUrl::parse(row.text("source_url")?).ok(),
        parameters: parameters(row)?,
        request_id: row.parsed("request_id", RequestId::parse)?,
        created_at: row.time("created_at")?,
        deadline_at: row.time("deadline_at")?,
    })
}
