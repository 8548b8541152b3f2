//! What the last hours brought, of everyone's tasks: counts and times by the hour, failures by reason, the newest tasks.
//! All of it goes by the days of accounts, which are indexed, so it reads the tasks of a day or two and no more.

use upscale_core::Timestamp;

use super::{
    Operator,
    overview::{select_record, task_record},
};
use crate::{OperatorTask, StoreError, row::Row, tx::Tx};

/// Tasks that ended since a moment. A task ends minutes after it was accepted at the latest, so one day before is enough.
const ENDED: &str = "FROM account_day JOIN task ON task.account_id = account_day.account_id AND task.day = account_day.day
     WHERE account_day.day >= $1 AND task.finished_at >= $2";

/// One hour of the whole service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourOfWork {
    /// Hours since 1970, UTC.
    pub hour: i64,
    /// Tasks that ended in it with a result.
    pub succeeded: u32,
    /// Tasks that ended in it without.
    pub failed: u32,
    /// From acceptance to result, in microseconds: the median and the value that 95 of 100 do not exceed; none where
    /// nothing succeeded.
    pub took: Option<(i64, i64)>,
}

impl Operator<'_> {
    /// The hours since then in which tasks ended, oldest first.
    pub async fn list_hours(self, since: Timestamp) -> Result<Vec<HourOfWork>, StoreError> {
        let sql = format!(
            "WITH ended AS (
                 SELECT task.finished_at / 3600000000 AS hour, task.state AS state,
                     task.finished_at - task.created_at AS took,
                     row_number() OVER (PARTITION BY task.finished_at / 3600000000, task.state
                         ORDER BY task.finished_at - task.created_at) AS place,
                     count(*) OVER (PARTITION BY task.finished_at / 3600000000, task.state) AS number
                 {ENDED})
             SELECT hour, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
                 count(*) FILTER (WHERE state = 'failed') AS failed,
                 max(took) FILTER (WHERE state = 'succeeded' AND place * 2 <= number + 1) AS median,
                 max(took) FILTER (WHERE state = 'succeeded' AND place * 100 <= number * 95 + 99) AS slower
             FROM ended GROUP BY hour ORDER BY hour"
        );
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(&sql, &[&day_before(since), &since], hour_of_work)
                    .await
            })
            .await
    }

    /// Why tasks failed since then: messages with how many tasks each, the most frequent first.
    pub async fn list_failures(
        self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(String, u32)>, StoreError> {
        let sql = format!(
            "SELECT task.failure_message AS message, count(*) AS tasks {ENDED} AND task.state = 'failed'
             GROUP BY task.failure_message ORDER BY count(*) DESC, task.failure_message LIMIT $3"
        );
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(&sql, &[&day_before(since), &since, &limit], |row| {
                    Ok((row.string("message")?, row.whole("tasks")?))
                })
                .await
            })
            .await
    }

    /// The newest tasks of anyone, accepted since then.
    pub async fn list_newest(
        self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<OperatorTask>, StoreError> {
        let sql = format!(
            "{} WHERE task.id IN (
                 SELECT task.id FROM account_day
                     JOIN task ON task.account_id = account_day.account_id AND task.day = account_day.day
                 WHERE account_day.day >= $1 AND task.created_at >= $2
                 ORDER BY task.created_at DESC, task.id DESC LIMIT $3)
             ORDER BY task.created_at DESC, task.id DESC",
            select_record()
        );
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(&sql, &[&since.utc_day(), &since, &limit], task_record)
                    .await
            })
            .await
    }
}

fn day_before(since: Timestamp) -> i64 {
    since.utc_day() - 1
}

fn hour_of_work(row: &dyn Row) -> Result<HourOfWork, StoreError> {
    let took = row
        .number_if_any("median")?
        .zip(row.number_if_any("slower")?);
    Ok(HourOfWork {
        hour: row.number("hour")?,
        succeeded: row.whole("succeeded")?,
        failed: row.whole("failed")?,
        took,
    })
}
