//! What an account looks back on: its tasks with all that is recorded of them, its days, its ledger page by page.

use upscale_core::{AccountId, Credits, KeyId, SourceUrl, Task, TaskId, Timestamp};

use crate::{KeyRecord, LedgerLine, Store, StoreError};

/// A task with its source and how it went.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// What was ordered, its price, times and state.
    pub task: Task,
    /// Where the source is.
    pub source_url: SourceUrl,
    /// The create request that ordered it.
    pub request_id: String,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Whether retention has removed the result's bytes.
    pub result_removed: bool,
    /// Where its time went, as far as it was measured.
    pub stages: Option<Stages>,
}

/// Where the time of a succeeded task's last attempt went, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages {
    /// From the first byte asked of the source to its last.
    pub download_micros: i64,
    /// Decoding, enlarging, checking, encoding: the child process.
    pub picture_micros: i64,
    /// Until the result was durable.
    pub storing_micros: i64,
}

/// What an attempt took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// How long its slot was taken, for the measured pace.
    pub slot_seconds: f64,
    /// Where the time went, of an attempt that made a result.
    pub stages: Option<Stages>,
}

impl Spent {
    /// An attempt whose stages nobody measured.
    #[must_use]
    pub const fn slot(seconds: f64) -> Self {
        Self {
            slot_seconds: seconds,
            stages: None,
        }
    }
}

/// Which tasks a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFilter {
    /// All of them.
    All,
    /// Not ended yet.
    Processing,
    /// With a result.
    Succeeded,
    /// Without one, refunded.
    Failed,
}

impl TaskFilter {
    /// Every filter, in the order a page shows them.
    pub const EVERY: [Self; 4] = [Self::All, Self::Processing, Self::Succeeded, Self::Failed];

    /// As a query says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Processing => "processing",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    /// None for any other word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::EVERY
            .into_iter()
            .find(|filter| filter.as_str() == text)
    }
}

/// The last task of a page: the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCursor {
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Its name.
    pub id: TaskId,
}

/// One UTC day of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayOfUse {
    /// Number of the UTC day since 1970.
    pub day: i64,
    /// Tasks accepted that day that have a result.
    pub succeeded: u32,
    /// Tasks accepted that day that failed.
    pub failed: u32,
    /// Tasks accepted that day that are not over.
    pub processing: u32,
    /// What those that have a result cost, each its own price.
    pub charged: Credits,
}

impl Store {
    /// A page of the account's tasks, newest first.
    pub async fn list_tasks(
        &self,
        account: &AccountId,
        filter: TaskFilter,
        after: Option<&TaskCursor>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_tasks(account, filter, after, limit).await,
            Self::Postgres(db) => db.list_tasks(account, filter, after, limit).await,
        }
    }

    /// One task with all that is recorded; only the owner's.
    pub async fn find_task_record(
        &self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_task_record(account, task).await,
            Self::Postgres(db) => db.find_task_record(account, task).await,
        }
    }

    /// The account's days from this one on, oldest first; days without a task are left out, and so are records past
    /// retention.
    pub async fn list_days(
        &self,
        account: &AccountId,
        from_day: i64,
    ) -> Result<Vec<DayOfUse>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_days(account, from_day).await,
            Self::Postgres(db) => db.list_days(account, from_day).await,
        }
    }

    /// The account's transfers, newest first.
    pub async fn list_ledger(
        &self,
        account: &AccountId,
        limit: u32,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        self.list_ledger_before(account, i64::MAX, limit).await
    }

    /// The account's transfers whose number is below this one, newest first.
    pub async fn list_ledger_before(
        &self,
        account: &AccountId,
        before: i64,
        limit: u32,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_ledger_before(account, before, limit).await,
            Self::Postgres(db) => db.list_ledger_before(account, before, limit).await,
        }
    }

    /// One key, revoked or not; only the owner's.
    pub async fn find_key(
        &self,
        account: &AccountId,
        key: &KeyId,
    ) -> Result<Option<KeyRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_key(account, key).await,
            Self::Postgres(db) => db.find_key(account, key).await,
        }
    }
}
