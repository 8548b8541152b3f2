//! The store's verbs, one line each: which engine does them. Every one may answer
//! [`StoreError::Unavailable`] (busy, full, cut off: the outcome of a write is then unknown) or
//! [`StoreError::Corrupt`] (a row that cannot be); those that take what a person typed also with
//! [`StoreError::Refused`] (an argument that should not have come this far).

use std::path::Path;

use upscale_core::{
    AccountId, ApiKey, AttemptFailure, Clock, Credits, IdempotencyKey, KeyHash, KeyId, NewTask,
    Permission, RequestId, Task, TaskId, Timestamp,
};

use crate::{
    Account, Caller, Claim, CreateOutcome, FenceOutcome, KeyRecord, OldLinks, OldTransaction,
    PurchaseOutcome, QueueGlance, RateWindow, ResultRecord, Settlement, SigningKey, Spent,
    StoreError, StoreOptions, order::Order, postgres, sqlite,
};

/// Everything durable but the result files. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Store {
    /// One file on this machine.
    Sqlite(sqlite::Db),
    /// A PostgreSQL server, for many machines.
    Postgres(postgres::Db),
}

impl Store {
    /// Opens (and migrates) the database `upscale.db` under `directory`, which is made where absent. Other
    /// processes may have it open.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the directory or file cannot be written.
    pub async fn open_sqlite(
        directory: &Path,
        clock: Clock,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::open_sqlite_with(directory, clock, options, sqlite::Durability::Full).await
    }

    pub(crate) async fn open_sqlite_with(
        directory: &Path,
        clock: Clock,
        options: StoreOptions,
        durability: sqlite::Durability,
    ) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        let open = move || sqlite::Db::open(&directory, clock, options, durability);
        let opened = tokio::task::spawn_blocking(open).await;
        let db = opened.map_err(|error| StoreError::Unavailable(error.to_string()))??;
        Ok(Self::Sqlite(db))
    }

    /// Opens (and migrates) the PostgreSQL database at `address`, a libpq URL such as
    /// `postgres://user:password@host/database?sslmode=verify-full`, with at most `connections` at a time.
    /// The server's clock is the store's clock, unless `clock` is turned by hand.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the address is wrong, nobody answers there, or the server is too old.
    pub async fn open_postgres(
        address: &str,
        connections: u32,
        clock: Clock,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let durability = postgres::Durability::Full;
        let db = postgres::Db::open(address, connections, clock, options, durability).await?;
        Ok(Self::Postgres(db))
    }

    /// The store's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Sqlite(db) => db.now(),
            Self::Postgres(db) => db.now(),
        }
    }

    /// As opened.
    #[must_use]
    pub fn options(&self) -> StoreOptions {
        match self {
            Self::Sqlite(db) => db.options(),
            Self::Postgres(db) => db.options(),
        }
    }

    /// Whether a write can be committed now (readiness): commits one.
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.check_writable().await,
            Self::Postgres(db) => db.check_writable().await,
        }
    }

    /// A new account without credits, keys or access; `name` has 1 to 100 characters.
    pub async fn create_account(&self, name: &str) -> Result<Account, StoreError> {
        match self {
            Self::Sqlite(db) => db.create_account(name).await,
            Self::Postgres(db) => db.create_account(name).await,
        }
    }

    /// The account as it is now.
    pub async fn find_account(&self, account: &AccountId) -> Result<Option<Account>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_account(account).await,
            Self::Postgres(db) => db.find_account(account).await,
        }
    }

    /// Every account, oldest first, at most 10,000.
    pub async fn list_accounts(&self) -> Result<Vec<Account>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_accounts().await,
            Self::Postgres(db) => db.list_accounts().await,
        }
    }

    /// A purchase of more than 0 credits; the same reference (1 to 200 bytes) is credited once; the first
    /// one opens access.
    pub async fn credit_account(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
    ) -> Result<PurchaseOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.credit_account(account, credits, reference).await,
            Self::Postgres(db) => db.credit_account(account, credits, reference).await,
        }
    }

    /// A new key and, this once, its secret; `name` has at most 100 characters, none is a name too. None when there
    /// is no such account.
    pub async fn create_key(
        &self,
        account: &AccountId,
        permission: Permission,
        name: &str,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
        match self {
            Self::Sqlite(db) => db.create_key(account, permission, name).await,
            Self::Postgres(db) => db.create_key(account, permission, name).await,
        }
    }

    /// The account's keys, revoked ones too, oldest first, at most 1,000.
    pub async fn list_keys(&self, account: &AccountId) -> Result<Vec<KeyRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_keys(account).await,
            Self::Postgres(db) => db.list_keys(account).await,
        }
    }

    /// A new key with the same permission and name; the old one dies after `overlap_seconds`. None when the key is
    /// unknown or revoked.
    pub async fn rotate_key(
        &self,
        key: &KeyId,
        overlap_seconds: i64,
    ) -> Result<Option<(KeyRecord, ApiKey)>, StoreError> {
        match self {
            Self::Sqlite(db) => db.rotate_key(key, overlap_seconds).await,
            Self::Postgres(db) => db.rotate_key(key, overlap_seconds).await,
        }
    }

    /// Refused from the next request on. None when unknown; already revoked is no error.
    pub async fn revoke_key(&self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.revoke_key(key).await,
            Self::Postgres(db) => db.revoke_key(key).await,
        }
    }

    /// The caller behind a live key.
    pub async fn find_caller(&self, key: &KeyHash) -> Result<Option<Caller>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_caller(key).await,
            Self::Postgres(db) => db.find_caller(key).await,
        }
    }

    /// Remembers when the key was last used, to the minute.
    pub async fn record_key_use(&self, key: &KeyId) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.record_key_use(key).await,
            Self::Postgres(db) => db.record_key_use(key).await,
        }
    }

    /// Counts one create request in the account's minute, durable on its own.
    pub async fn count_create_request(
        &self,
        account: &AccountId,
    ) -> Result<RateWindow, StoreError> {
        match self {
            Self::Sqlite(db) => db.count_create_request(account).await,
            Self::Postgres(db) => db.count_create_request(account).await,
        }
    }

    /// One transaction: replay, conflict, limits, credits, capacity, then reserve + task + job. After
    /// `Unavailable` the same call settles whether it was accepted.
    pub async fn create_task(
        &self,
        account: &AccountId,
        key: &IdempotencyKey,
        task: &NewTask,
        request: &RequestId,
    ) -> Result<CreateOutcome, StoreError> {
        let order = Order {
            account: *account,
            key: key.clone(),
            task: task.clone(),
            request: *request,
        };
        match self {
            Self::Sqlite(db) => db.create_task(order).await,
            Self::Postgres(db) => db.create_task(order).await,
        }
    }

    /// Only the owner's.
    pub async fn find_task(
        &self,
        account: &AccountId,
        task: &TaskId,
    ) -> Result<Option<Task>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_task(account, task).await,
            Self::Postgres(db) => db.find_task(account, task).await,
        }
    }

    /// Says that this worker lives and how many jobs it takes at a time; silent for a lease, it is not counted.
    pub async fn report_worker(&self, worker: &str, slots: u32) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.report_worker(worker, slots).await,
            Self::Postgres(db) => db.report_worker(worker, slots).await,
        }
    }

    /// Forgets a worker that stops.
    pub async fn remove_worker(&self, worker: &str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(db) => db.remove_worker(worker).await,
            Self::Postgres(db) => db.remove_worker(worker).await,
        }
    }

    /// Takes up to `count` due jobs, at most 64, first come first served but for bursts; an expired lease
    /// counts as a crash. Poison (2 crashes) is failed and refunded here, not handed out; nothing past its
    /// deadline is handed out either.
    pub async fn claim(&self, worker: &str, count: u32) -> Result<Vec<Claim>, StoreError> {
        let claimed = match self {
            Self::Sqlite(db) => db.claim(worker, count).await?,
            Self::Postgres(db) => db.claim(worker, count).await?,
        };
        self.refund_now(claimed.failed).await;
        Ok(claimed.claims)
    }

    /// Renews the lease.
    pub async fn heartbeat(&self, task: &TaskId, attempt: i64) -> Result<FenceOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.heartbeat(task, attempt).await,
            Self::Postgres(db) => db.heartbeat(task, attempt).await,
        }
    }

    /// Gives the job back unharmed (shutdown): no crash, no failure.
    pub async fn release(&self, task: &TaskId, attempt: i64) -> Result<FenceOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.release(task, attempt).await,
            Self::Postgres(db) => db.release(task, attempt).await,
        }
    }

    /// Gives the job back after a transient failure or a crash of the child, counted, due after the delay
    /// (at most 60 s). A permanent failure is settled, never retried: `Refused`.
    pub async fn retry_later(
        &self,
        task: &TaskId,
        attempt: i64,
        failure: AttemptFailure,
        delay_millis: u64,
    ) -> Result<FenceOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.retry_later(task, attempt, failure, delay_millis).await,
            Self::Postgres(db) => db.retry_later(task, attempt, failure, delay_millis).await,
        }
    }

    /// The end: fence first, then state and ledger, commit. A failure's refund is a second durable step that
    /// follows at once. A result's bytes must be durable before this is called.
    pub async fn settle(
        &self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let fails = matches!(settlement, Settlement::Failed(_));
        let outcome = match self {
            Self::Sqlite(db) => db.settle(task, attempt, settlement, spent).await?,
            Self::Postgres(db) => db.settle(task, attempt, settlement, spent).await?,
        };
        if fails && outcome == FenceOutcome::Done {
            self.refund_now(vec![*task]).await;
        }
        Ok(outcome)
    }

    /// The first step of settling alone, as a crash before the second leaves it.
    #[cfg(test)]
    pub(crate) async fn settle_first_step(
        &self,
        task: &TaskId,
        attempt: i64,
        settlement: Settlement,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.settle(task, attempt, settlement, spent).await,
            Self::Postgres(db) => db.settle(task, attempt, settlement, spent).await,
        }
    }

    /// Returns credits that a crash left pending, up to a page; how many.
    pub async fn finish_refunds(&self) -> Result<u32, StoreError> {
        let refunded = match self {
            Self::Sqlite(db) => db.finish_refunds().await?,
            Self::Postgres(db) => db.finish_refunds().await?,
        };
        count_refunds(refunded);
        Ok(refunded)
    }

    /// Fails and refunds up to a page of tasks past their deadline; how many.
    pub async fn reap(&self) -> Result<u32, StoreError> {
        let overdue = match self {
            Self::Sqlite(db) => db.reap().await?,
            Self::Postgres(db) => db.reap().await?,
        };
        let reaped = u32::try_from(overdue.len()).unwrap_or(u32::MAX);
        self.refund_now(overdue).await;
        Ok(reaped)
    }

    /// The second step of failing. The failure is durable already, so an error here is no error of the
    /// caller's: the refunds stay pending and [`Store::finish_refunds`] returns them.
    pub(crate) async fn refund_now(&self, failed: Vec<TaskId>) {
        if failed.is_empty() {
            return;
        }
        let refunded = match self {
            Self::Sqlite(db) => db.refund(failed).await,
            Self::Postgres(db) => db.refund(failed).await,
        };
        match refunded {
            Ok(refunded) => count_refunds(refunded),
            Err(error) => tracing::warn!(%error, "refunds stay pending"),
        }
    }

    /// Resolves when a job may be due (in-process notification); may resolve without one.
    pub async fn job_added(&self) {
        match self {
            Self::Sqlite(db) => db.job_added().await,
            Self::Postgres(db) => db.job_added().await,
        }
    }

    /// The queue at a glance.
    pub async fn queue_glance(&self) -> Result<QueueGlance, StoreError> {
        match self {
            Self::Sqlite(db) => db.queue_glance().await,
            Self::Postgres(db) => db.queue_glance().await,
        }
    }

    /// The result with this name; it stays known after its bytes were removed, as long as its task.
    pub async fn find_result(&self, name: &str) -> Result<Option<ResultRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_result(name).await,
            Self::Postgres(db) => db.find_result(name).await,
        }
    }

    /// A new key signs from now on; its id. Processes that have read the keys lately notice within 10 s.
    pub async fn rotate_signing_key(&self, old_links: OldLinks) -> Result<String, StoreError> {
        match self {
            Self::Sqlite(db) => db.rotate_signing_key(old_links).await,
            Self::Postgres(db) => db.rotate_signing_key(old_links).await,
        }
    }

    /// Those that sign or check, newest first; never empty.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        match self {
            Self::Sqlite(db) => db.signing_keys().await,
            Self::Postgres(db) => db.signing_keys().await,
        }
    }

    /// Transactions of anyone that keep the database from cleaning up, open for longer than this, oldest
    /// first. None on SQLite, whose readers end by themselves.
    pub async fn list_old_transactions(
        &self,
        seconds: i64,
    ) -> Result<Vec<OldTransaction>, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(Vec::new()),
            Self::Postgres(db) => db.list_old_transactions(seconds).await,
        }
    }
}

pub(crate) fn count_refunds(refunded: u32) {
    metrics::counter!("upscale_refunds_total").increment(refunded.into());
}
