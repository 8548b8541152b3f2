//! Pages of an account's tasks, days and transfers. The index of tasks by account and day carries them: a page reads
//! the days it shows and no more.

use tokio_postgres::Row;
use upscale_core::{AccountId, Credits, SourceUrl, TaskId};

use super::{
    Db,
    rows::{count, parsed, time_if_any},
    task_rows,
};
use crate::{DayOfUse, StoreError, TaskCursor, TaskFilter, TaskRecord, task_row::stages};

impl Db {
    pub(crate) async fn list_tasks(
        &self,
        account: &AccountId,
        filter: TaskFilter,
        after: Option<&TaskCursor>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let (day, at, id) = after.map_or((i64::MAX, i64::MAX, ""), |after| {
            let at = after.created_at;
            (at.utc_day(), at.micros(), after.id.as_str())
        });
        let tx = self.read().await?;
        tx.list(
            "SELECT * FROM task WHERE account_id = $1 AND day <= $2 AND (created_at, id) < ($3, $4)
                 AND ($5 = 'all' OR state = $5)
             ORDER BY day DESC, created_at DESC, id DESC LIMIT $6",
            &[
                &account.as_str(),
                &day,
                &at,
                &id,
                &filter.as_str(),
                &i64::from(limit),
            ],
            task_record,
        )
        .await
    }

    pub(crate) async fn find_task_record(
        &self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let sql = "SELECT * FROM task WHERE id = $1 AND account_id = $2";
        let tx = self.read().await?;
        tx.find(sql, &[&task.as_str(), &account.as_str()], task_record)
            .await
    }

    pub(crate) async fn list_days(
        &self,
        account: &AccountId,
        from_day: i64,
    ) -> Result<Vec<DayOfUse>, StoreError> {
        let tx = self.read().await?;
        tx.list(
            "SELECT day, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
                 count(*) FILTER (WHERE state = 'failed') AS failed,
                 count(*) FILTER (WHERE state = 'processing') AS processing,
                 CAST(coalesce(sum(price) FILTER (WHERE state = 'succeeded'), 0) AS BIGINT) AS charged
             FROM task WHERE account_id = $1 AND day >= $2 GROUP BY day ORDER BY day",
            &[&account.as_str(), &from_day],
            day_of_use,
        )
        .await
    }
}

fn task_record(row: &Row) -> Result<TaskRecord, StoreError> {
    Ok(TaskRecord {
        task: task_rows::task(row)?,
        source_url: parsed(row, "source_url", |text| SourceUrl::parse(text).ok())?,
        request_id: row.try_get("request_id")?,
        finished_at: time_if_any(row, "finished_at")?,
        result_removed: time_if_any(row, "result_removed_at")?.is_some(),
        stages: stages(
            row.try_get("download_micros")?,
            row.try_get("picture_micros")?,
            row.try_get("storing_micros")?,
        ),
    })
}

fn day_of_use(row: &Row) -> Result<DayOfUse, StoreError> {
    Ok(DayOfUse {
        day: row.try_get("day")?,
        succeeded: count(row, "succeeded")?,
        failed: count(row, "failed")?,
        processing: count(row, "processing")?,
        charged: Credits::from_thousandths(row.try_get("charged")?),
    })
}
