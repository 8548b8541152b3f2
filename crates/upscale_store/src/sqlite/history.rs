//! Pages of an account's tasks, days and transfers. The index of tasks by account and day carries them: a page reads
//! the days it shows and no more.

use rusqlite::{Row, params};
use upscale_core::{AccountId, Credits, SourceUrl, TaskId};

use super::{
    Db,
    rows::{parsed, time_if_any},
    task_rows,
};
use crate::{
    DayOfUse, StoreError, TaskCursor, TaskFilter, TaskRecord,
    task_row::{stages, whole_column},
};

impl Db {
    pub(crate) async fn list_tasks(
        &self,
        account: &AccountId,
        filter: TaskFilter,
        after: Option<&TaskCursor>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let (account, after) = (*account, after.cloned());
        self.read(move |tx| {
            let (day, at, id) = after.map_or((i64::MAX, i64::MAX, String::new()), |after| {
                let id = after.id.as_str().to_owned();
                (after.created_at.utc_day(), after.created_at.micros(), id)
            });
            tx.list(
                "SELECT * FROM task WHERE account_id = ?1 AND day <= ?2 AND (created_at, id) < (?3, ?4)
                     AND (?5 = 'all' OR state = ?5)
                 ORDER BY day DESC, created_at DESC, id DESC LIMIT ?6",
                params![account.as_str(), day, at, id, filter.as_str(), limit],
                task_record,
            )
        })
        .await
    }

    pub(crate) async fn find_task_record(
        &self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let (account, task) = (*account, *task);
        self.read(move |tx| {
            tx.find(
                "SELECT * FROM task WHERE id = ?1 AND account_id = ?2",
                [task.as_str(), account.as_str()],
                task_record,
            )
        })
        .await
    }

    pub(crate) async fn list_days(
        &self,
        account: &AccountId,
        from_day: i64,
    ) -> Result<Vec<DayOfUse>, StoreError> {
        let account = *account;
        self.read(move |tx| {
            tx.list(
                "SELECT day, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
                     count(*) FILTER (WHERE state = 'failed') AS failed,
                     count(*) FILTER (WHERE state = 'processing') AS processing,
                     coalesce(sum(price) FILTER (WHERE state = 'succeeded'), 0) AS charged
                 FROM task WHERE account_id = ?1 AND day >= ?2 GROUP BY day ORDER BY day",
                params![account.as_str(), from_day],
                day_of_use,
            )
        })
        .await
    }
}

fn task_record(row: &Row<'_>) -> Result<TaskRecord, StoreError> {
    Ok(TaskRecord {
        task: task_rows::task(row)?,
        source_url: parsed(row, "source_url", |text| SourceUrl::parse(text).ok())?,
        request_id: row.get("request_id")?,
        finished_at: time_if_any(row, "finished_at")?,
        result_removed: time_if_any(row, "result_removed_at")?.is_some(),
        stages: stages(
            row.get("download_micros")?,
            row.get("picture_micros")?,
            row.get("storing_micros")?,
        ),
    })
}

fn day_of_use(row: &Row<'_>) -> Result<DayOfUse, StoreError> {
    Ok(DayOfUse {
        day: row.get("day")?,
        succeeded: whole_column("succeeded", row.get("succeeded")?)?,
        failed: whole_column("failed", row.get("failed")?)?,
        processing: whole_column("processing", row.get("processing")?)?,
        charged: Credits::from_thousandths(row.get("charged")?),
    })
}
