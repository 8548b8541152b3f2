//! Reads of finished and unfinished tasks: by their owner, and of results by the name in their URL.

use upscale_core::{AccountId, Task, TaskId, is_token};

use super::{
    Db,
    rows::{self, time, time_if_any},
    task_rows,
};
use crate::{ResultRecord, StoreError};

impl Db {
    pub(crate) async fn find_task(
        &self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<Task>, StoreError> {
        let (account, task) = (*account, *task);
        self.read(move |tx| {
            tx.find(
                "SELECT * FROM task WHERE id = ?1 AND account_id = ?2",
                [task.as_str(), account.as_str()],
                task_rows::task,
            )
        })
        .await
    }

    pub(crate) async fn find_result(&self, name: &str) -> Result<Option<ResultRecord>, StoreError> {
        if !is_token(name) {
            return Ok(None);
        }
        let name = name.to_owned();
        self.read(move |tx| {
            tx.find("SELECT * FROM task WHERE result_name = ?1", [name], |row| {
                Ok(ResultRecord {
                    task_id: rows::task_id(row, "id")?,
                    file: task_rows::result_file(row)?,
                    finished_at: time(row, "finished_at")?,
                    removed: time_if_any(row, "result_removed_at")?.is_some(),
                })
            })
        })
        .await
    }
}
