//! What an account looks back on: its tasks with all that is recorded of them, its results, its days.

use upscale_core::{AccountId, Credits, Scale, SourceUrl, Task, TaskId, Timestamp, is_token};

use super::{
    Tasks,
    row::{self, TASK},
};
use crate::{ResultRecord, StoreError, row::Row, tx::Tx};

/// Tasks that a search for a text looks at.
pub const SEARCHED_MAX: u32 = 10_000;

/// The index by account and day finds the newest; the text is looked for in those.
fn select_search() -> String {
    format!(
        "SELECT {TASK} FROM (
         SELECT {TASK} FROM task WHERE account_id = $1 AND day >= $2 AND day <= $3 AND (created_at, id) < ($4, $5)
             AND ($6 = 'all' OR state = $6) AND (scale = $7 OR $7 = 0)
         ORDER BY day DESC, created_at DESC, id DESC LIMIT $8) AS task
     WHERE lower(source_url) LIKE $9 ESCAPE '\\' OR id LIKE $9 ESCAPE '\\'
     ORDER BY day DESC, created_at DESC, id DESC LIMIT $10"
    )
}

/// The task, if it is the account's.
fn select_owned() -> String {
    format!("SELECT {TASK} FROM task WHERE id = $1 AND account_id = $2")
}

/// A task with its source and how it went.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// What was ordered, its price, times and state.
    pub task: Task,
    /// Where the source is.
    pub source_url: SourceUrl,
    /// The create request that ordered it.
    pub request_id: String,
    /// When the task ended; none while it is processing.
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
    /// An attempt whose stages no one measured.
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
    /// Tasks in any state.
    All,
    /// Tasks that have not ended.
    Processing,
    /// Tasks with a result, charged.
    Succeeded,
    /// Tasks without a result, refunded.
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
    /// Identifier of that task, for those of the same moment.
    pub id: TaskId,
}

/// What a search among an account's tasks asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSearch {
    /// States of the tasks to list.
    pub filter: TaskFilter,
    /// At this scale alone.
    pub scale: Option<Scale>,
    /// Accepted on these UTC days, both inclusive.
    pub days: (i64, i64),
    /// Whose source URL or id holds this, in capitals or not; all, where it is empty.
    pub text: String,
}

impl Default for TaskSearch {
    fn default() -> Self {
        Self {
            filter: TaskFilter::All,
            scale: None,
            days: (0, i64::MAX),
            text: String::new(),
        }
    }
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

impl Tasks<'_> {
    /// Only the owner's.
    pub async fn find(
        self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<Task>, StoreError> {
        let (account, task) = (*account, *task);
        self.store
            .read(async move |tx: &mut Tx| {
                tx.find(&select_owned(), &[&task, &account], row::task)
                    .await
            })
            .await
    }

    /// One task with all that is recorded; only the owner's.
    pub async fn find_record(
        self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let (account, task) = (*account, *task);
        self.store
            .read(async move |tx: &mut Tx| {
                tx.find(&select_owned(), &[&task, &account], task_record)
                    .await
            })
            .await
    }

    /// The result with this name; it stays known after its bytes were removed, as long as its task.
    pub async fn find_result(self, name: &str) -> Result<Option<ResultRecord>, StoreError> {
        if !is_token(name) {
            return Ok(None);
        }
        let name = name.to_owned();
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!("SELECT {TASK} FROM task WHERE result_name = $1");
                tx.find(&sql, &[&name], result_record).await
            })
            .await
    }

    /// A page of the account's tasks, newest first.
    pub async fn list(
        self,
        account: &AccountId,
        filter: TaskFilter,
        after: Option<&TaskCursor>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let (account, after) = (*account, after.cloned());
        self.store.read(async move |tx: &mut Tx| {
            let (day, at, id) = after
                .as_ref()
                .map_or((i64::MAX, i64::MAX, ""), |after| {
                    let at = after.created_at;
                    (at.utc_day(), at.micros(), after.id.as_str())
                });
            // The index of tasks by account and day carries it: a page reads the days it shows and no more.
            let sql = format!(
                "SELECT {TASK} FROM task WHERE account_id = $1 AND day <= $2 AND (created_at, id) < ($3, $4)
                     AND ($5 = 'all' OR state = $5)
                 ORDER BY day DESC, created_at DESC, id DESC LIMIT $6"
            );
            tx.list(
                &sql,
                &[&account, &day, &at, &id, &filter.as_str(), &limit],
                task_record,
            )
            .await
        })
        .await
    }

    /// As [`Tasks::list`], of the tasks that a search asks for. A text is looked for in the newest [`SEARCHED_MAX`] of them:
    /// no index holds it.
    pub async fn search(
        self,
        account: &AccountId,
        search: &TaskSearch,
        after: Option<&TaskCursor>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let (account, after, search) = (*account, after.cloned(), search.clone());
        self.store
            .read(async move |tx: &mut Tx| {
                let (first, last) = search.days;
                let (day, at, id) = after.as_ref().map_or((last, i64::MAX, ""), |after| {
                    let at = after.created_at;
                    (at.utc_day().min(last), at.micros(), after.id.as_str())
                });
                let scale = search.scale.map_or(0, |scale| scale.factor() as i64);
                let looked_at = match search.text.is_empty() {
                    true => limit,
                    false => SEARCHED_MAX,
                };
                tx.list(
                    &select_search(),
                    &[
                        &account,
                        &first,
                        &day,
                        &at,
                        &id,
                        &search.filter.as_str(),
                        &scale,
                        &looked_at,
                        &pattern(&search.text),
                        &limit,
                    ],
                    task_record,
                )
                .await
            })
            .await
    }

    /// What the newest succeeded tasks since this UTC day took from acceptance to result, in microseconds, at most
    /// `limit` of them.
    pub async fn list_latencies(
        self,
        account: &AccountId,
        from_day: i64,
        limit: u32,
    ) -> Result<Vec<i64>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(
                    "SELECT finished_at - created_at AS took FROM task
                     WHERE account_id = $1 AND day >= $2 AND state = 'succeeded'
                     ORDER BY day DESC, created_at DESC, id DESC LIMIT $3",
                    &[&account, &from_day, &limit],
                    |row| row.number("took"),
                )
                .await
            })
            .await
    }

    /// How many tasks each API key ordered since this UTC day; those of the playground are left out.
    pub async fn count_by_key(
        self,
        account: &AccountId,
        from_day: i64,
    ) -> Result<Vec<(String, u32)>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(
                    "SELECT key_id, count(*) AS tasks FROM task
                     WHERE account_id = $1 AND day >= $2 AND key_id IS NOT NULL GROUP BY key_id",
                    &[&account, &from_day],
                    |row| Ok((row.string("key_id")?, row.whole("tasks")?)),
                )
                .await
            })
            .await
    }

    /// The account's days from this one on, oldest first; days without a task are left out, and so are records past
    /// retention.
    pub async fn list_days(
        self,
        account: &AccountId,
        from_day: i64,
    ) -> Result<Vec<DayOfUse>, StoreError> {
        let account = *account;
        self.store.read(async move |tx: &mut Tx| {
            tx.list(
                "SELECT day, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
                     count(*) FILTER (WHERE state = 'failed') AS failed,
                     count(*) FILTER (WHERE state = 'processing') AS processing,
                     CAST(coalesce(sum(price) FILTER (WHERE state = 'succeeded'), 0) AS BIGINT) AS charged
                 FROM task WHERE account_id = $1 AND day >= $2 GROUP BY day ORDER BY day",
                &[&account, &from_day],
                day_of_use,
            )
            .await
        })
        .await
    }
}

/// For `LIKE`: what holds this text, whose own signs mean themselves.
fn pattern(text: &str) -> String {
    let lower = text.to_lowercase();
    let escaped = lower.chars().flat_map(|sign| {
        let escape = matches!(sign, '%' | '_' | '\\').then_some('\\');
        escape.into_iter().chain([sign])
    });
    format!("%{}%", escaped.collect::<String>())
}

fn task_record(row: &dyn Row) -> Result<TaskRecord, StoreError> {
    Ok(TaskRecord {
        task: row::task(row)?,
        source_url: row.parsed("source_url", |text| SourceUrl::parse(text).ok())?,
        request_id: row.string("request_id")?,
        finished_at: row.time_if_any("finished_at")?,
        result_removed: row.time_if_any("result_removed_at")?.is_some(),
        stages: row::stages(row)?,
    })
}

fn result_record(row: &dyn Row) -> Result<ResultRecord, StoreError> {
    Ok(ResultRecord {
        task_id: row.task_id("id")?,
        file: row::result_file(row)?,
        finished_at: row.time("finished_at")?,
        removed: row.time_if_any("result_removed_at")?.is_some(),
    })
}

fn day_of_use(row: &dyn Row) -> Result<DayOfUse, StoreError> {
    Ok(DayOfUse {
        day: row.number("day")?,
        succeeded: row.whole("succeeded")?,
        failed: row.whole("failed")?,
        processing: row.whole("processing")?,
        charged: row.credits("charged")?,
    })
}
