//! Which of many tasks are over: one statement for all that are waited for, however many they are.

use upscale_core::{Task, TaskId};

use super::{
    Tasks,
    row::{self, TASK},
};
use crate::{StoreError, tx::Tx};

impl Tasks<'_> {
    /// Those of these tasks that have ended, of any account, as they are now.
    pub async fn list_ended(self, tasks: Vec<TaskId>) -> Result<Vec<Task>, StoreError> {
        self.store
            .read(async move |tx: &mut Tx| list_ended(tx, &tasks).await)
            .await
    }
}

async fn list_ended(tx: &Tx, tasks: &[TaskId]) -> Result<Vec<Task>, StoreError> {
    let ids: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    if tx.is_shared() {
        let sql = format!("SELECT {TASK} FROM task WHERE id = ANY($1) AND state <> 'processing'");
        return tx.list(&sql, &[&&ids[..]], row::task).await;
    }
    // SQLite knows no arrays but those of JSON. An id holds letters and digits only.
    let json = format!("[\"{}\"]", ids.join("\",\""));
    let sql = format!(
        "SELECT {TASK} FROM task WHERE id IN (SELECT value FROM json_each($1)) AND state <> 'processing'"
    );
    tx.list(&sql, &[&json], row::task).await
}
