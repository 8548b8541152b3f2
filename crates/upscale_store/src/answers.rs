//! What the store's verbs take and answer: plain facts, the same for every engine.

use upscale_core::{
    AccountId, ApiKey, AttemptFailure, Credits, FailureMessage, Failures, KeyId, OwnLimits,
    Parameters, Permission, RequestId, ResultFile, SourceUrl, Task, TaskId, Timestamp,
    limits::CREATE_WINDOW_SECONDS,
};

use crate::LedgerKind;

/// Why the store could not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Busy, locked, full, cut off before the commit: nothing was changed, and the same call may work later. The caller
    /// answers 503.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The commit was sent and its answer never came, or says nothing of what is on the disk: everything was changed or
    /// nothing was. The same call, repeated, finds out. The caller answers 504.
    #[error("the outcome of the write is unknown: {0}")]
    OutcomeUnknown(String),
    /// An argument breaks a rule that the caller keeps: nothing was done, and the same call will never do better.
    #[error("the store refuses {0}")]
    Refused(String),
    /// A row breaks a rule that this code keeps: someone must look.
    #[error("the store holds something impossible: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// For writes of which the caller is told nothing, such as a count or a probe: whether they took effect does not
    /// matter, only that the store did not answer.
    pub(crate) fn of_no_consequence(self) -> Self {
        match self {
            Self::OutcomeUnknown(why) => Self::Unavailable(why),
            error => error,
        }
    }
}

/// How the store behaves; the defaults are the contract's.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Seconds from acceptance to a terminal state.
    pub deadline_seconds: i64,
    /// Seconds a claim lives without a heartbeat.
    pub lease_seconds: i64,
    /// Hours result files are kept, ≥ 24.
    pub result_retention_hours: i64,
    /// Days task records and keys are kept.
    pub record_retention_days: i64,
    /// What a task costs that is ordered from now on, above 0; those that are there keep their own price.
    pub price: Credits,
}

impl Default for StoreOptions {
    fn default() -> Self {
        use upscale_core::limits::{
            DEADLINE_SECONDS, LEASE_SECONDS, PRICE, RECORD_RETENTION_DAYS, RESULT_RETENTION_HOURS,
        };
        Self {
            deadline_seconds: DEADLINE_SECONDS,
            lease_seconds: LEASE_SECONDS,
            result_retention_hours: RESULT_RETENTION_HOURS,
            record_retention_days: RECORD_RETENTION_DAYS,
            price: PRICE,
        }
    }
}

/// An account and its money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Stable identifier, `acc_…`.
    pub id: AccountId,
    /// Set by the operator or the owner, 1 to 100 characters.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its first purchase opened access, if any did.
    pub activated_at: Option<Timestamp>,
    /// Credits that can be reserved; below zero when a payment went back whose credits were spent.
    pub available: Credits,
    /// Credits reserved by processing tasks and by refunds still pending.
    pub reserved: Credits,
    /// Credits charged so far.
    pub charged: Credits,
    /// Tasks that have not ended, 0 to the account's limit (20 unless set otherwise).
    pub active_tasks: u32,
    /// Tasks accepted since 00:00 UTC, 0 to the account's limit (2,500 unless set otherwise).
    pub accepted_today: u32,
    /// What an operator set in place of the contract's limits.
    pub own_limits: OwnLimits,
    /// Whether an audit found its ledger inconsistent: it takes no new tasks until an audit is clean.
    pub stopped: bool,
}

/// What became of a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurchaseOutcome {
    /// The credits are available now.
    Credited,
    /// This reference was credited before with the same account and amount; nothing changed.
    AlreadyCredited,
    /// This reference was credited before to another account or with another amount; nothing changed.
    ReferenceTaken,
    /// There is no such account.
    NoSuchAccount,
}

/// One API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Identifier of the key, `key_…`; no secret.
    pub id: KeyId,
    /// The account whose tasks it reads and creates.
    pub account_id: AccountId,
    /// What it may do.
    pub permission: Permission,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// From when on it is refused (a rotation sets a moment in the future).
    pub revoked_at: Option<Timestamp>,
    /// Whether it worked when this was read.
    pub is_live: bool,
    /// The last characters of the secret, to recognise it by.
    pub hint: String,
    /// What its owner calls it; may be empty.
    pub name: String,
}

impl KeyRecord {
    /// Where a list goes on after this key.
    #[must_use]
    pub fn cursor(&self) -> KeyCursor {
        KeyCursor {
            is_live: self.is_live,
            created_at: self.created_at,
            id: self.id,
        }
    }
}

/// The last key of a page: the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCursor {
    /// Whether it worked; those that work are listed first.
    pub is_live: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Identifier of the key, `key_…`; orders keys of the same moment.
    pub id: KeyId,
}

/// What became of a new key, or of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    /// There it is, with its secret this once.
    Made(KeyRecord, ApiKey),
    /// The account has as many keys that work as it may (50); nothing changed.
    TooMany,
    /// There is no such account, or no such key that works.
    Unknown,
}

impl KeyOutcome {
    /// The key and its secret, if one was made.
    #[must_use]
    pub fn made(self) -> Option<(KeyRecord, ApiKey)> {
        match self {
            Self::Made(record, key) => Some((record, key)),
            Self::TooMany | Self::Unknown => None,
        }
    }
}

/// Who is calling: what authentication needs to know, read in one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account behind the key.
    pub account_id: AccountId,
    /// The key that was used.
    pub key_id: KeyId,
    /// What the key may do.
    pub permission: Permission,
    /// Whether the account has ever paid.
    pub activated: bool,
    /// When the key was last recorded as used.
    pub last_used_at: Option<Timestamp>,
}

/// The create-request window after this request was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWindow {
    /// Whether this request is within the limit.
    pub allowed: bool,
    /// Create requests a minute, 60 unless an operator set another limit.
    pub limit: u32,
    /// Requests left in the window, 0 to `limit`.
    pub remaining: u32,
    /// End of the window, a full minute of the store's clock.
    pub reset_at: Timestamp,
    /// The store's time when it counted.
    pub now: Timestamp,
}

impl RateWindow {
    /// The window of this number, after a request was counted as its `counted`-th; none when it was full.
    pub(crate) fn counted(counted: Option<u32>, limit: u32, window: i64, now: Timestamp) -> Self {
        Self {
            allowed: counted.is_some(),
            limit,
            remaining: counted.map_or(0, |requests| limit.saturating_sub(requests)),
            reset_at: Timestamp::from_micros(0).plus_seconds((window + 1) * CREATE_WINDOW_SECONDS),
            now,
        }
    }
}

/// The answer to a create.
#[derive(Debug, Clone, PartialEq)]
pub enum CreateOutcome {
    /// Accepted now: reserved, queued, durable.
    Created(Task),
    /// The key and the parameters are known: the task as it is now.
    Replayed(Task),
    /// The key is known with other parameters.
    Conflict,
    /// As many are active as this account may have: 20, unless an operator set another limit.
    ActiveLimit {
        /// The account's own limit, in tasks.
        limit: u32,
        /// Seconds until a task may have ended, 1–30.
        retry_after_seconds: i64,
    },
    /// As many were accepted today as may be: 2,500, unless an operator set another limit.
    DailyLimit {
        /// The account's own limit, in tasks.
        limit: u32,
        /// Seconds until 00:00 UTC, ≥ 1.
        retry_after_seconds: i64,
    },
    /// Fewer credits than the price.
    InsufficientCredits {
        /// Credits that could be reserved, below `price`.
        available: Credits,
        /// What the task would have cost.
        price: Credits,
    },
    /// The backlog would pass the deadline, or the account is stopped by a breached invariant.
    Overloaded {
        /// Seconds after which to ask again, 1–60.
        retry_after_seconds: i64,
    },
}

/// A job taken by a worker. Every later report about it carries `attempt`, the fence.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The task to do.
    pub task_id: TaskId,
    /// The account that ordered the task.
    pub account_id: AccountId,
    /// 1 for the first claim; the fencing token.
    pub attempt: i64,
    /// Transient failures so far.
    pub transient_failures: u32,
    /// When they began; none before the first.
    pub failing_since: Option<Timestamp>,
    /// Crashes of its own child so far.
    pub crashes: u32,
    /// Attempts so far that ended with their process or their lease.
    pub interruptions: u32,
    /// Where the source is.
    pub source_url: SourceUrl,
    /// Scale and options of the order.
    pub parameters: Parameters,
    /// The create request that ordered it, for logs.
    pub request_id: RequestId,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it must be terminal.
    pub deadline_at: Timestamp,
    /// The store's time of the claim; the lease counts from here.
    pub claimed_at: Timestamp,
}

impl Claim {
    /// The failures of the task, this one of its present attempt among them.
    #[must_use]
    pub fn failures(&self, failure: AttemptFailure, now: Timestamp) -> Failures {
        Failures {
            transient: self.transient_failures + u32::from(failure == AttemptFailure::Transient),
            crashes: self.crashes + u32::from(failure == AttemptFailure::Crash),
            failing_for_seconds: self
                .failing_since
                .map_or(0, |since| now.seconds_since(since)),
        }
    }
}

/// How an attempt ended for good.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// The bytes exist, durable, under `name`.
    Succeeded(ResultFile),
    /// Nothing is charged; the refund follows at once.
    Failed(FailureMessage),
}

/// Whether a report about a claim took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceOutcome {
    /// The claim was still this worker's: the report is committed.
    Done,
    /// The claim is no longer this worker's: nothing changed.
    Lost,
}

/// What is known of a result file by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRecord {
    /// The task it belongs to.
    pub task_id: TaskId,
    /// Size, checksum and dimensions, as recorded when the task succeeded.
    pub file: ResultFile,
    /// When the task succeeded.
    pub finished_at: Timestamp,
    /// Whether retention has removed the bytes.
    pub removed: bool,
}

/// A key that signs result URLs.
#[derive(Clone)]
pub struct SigningKey {
    /// Short name carried in the URL.
    pub id: String,
    /// Key of HMAC-SHA256, 32 random bytes.
    pub secret: [u8; 32],
}

/// What becomes of the URLs that were signed before a new signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldLinks {
    /// They work until they expire.
    Expire,
    /// They are refused from now on: the old secret has leaked.
    Refuse,
}

/// One ledger line, both legs in one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    /// Position in the ledger; grows with every line, not always by 1.
    pub sequence: i64,
    /// When the line was written, by the store's clock.
    pub at: Timestamp,
    /// What it is for.
    pub kind: LedgerKind,
    /// Always positive; the kind says from where to where, and for an adjustment the next field.
    pub amount: Credits,
    /// Whether what is available grows by it.
    pub comes_in: bool,
    /// The task, where it is about one.
    pub task_id: Option<TaskId>,
    /// The reference of the payment or adjustment, where it is about one.
    pub external_reference: Option<String>,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditReport {
    /// Invariants that were checked, by name (`I1` …).
    pub checked: Vec<String>,
    /// What is wrong; empty when all is well.
    pub breaches: Vec<Breach>,
}

/// An invariant that does not hold for one account, or for the whole ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Number of the invariant, `I1` to `I14`; `audit_checks.rs` lists them.
    pub invariant: String,
    /// The account, where one can be named.
    pub account_id: Option<AccountId>,
    /// What was expected and what stands there.
    pub detail: String,
}

/// The queue at a glance, for admission, metrics and operators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueGlance {
    /// Jobs waiting for a claim.
    pub waiting: u32,
    /// Jobs under a live lease.
    pub claimed: u32,
    /// Slots of workers that reported within the last lease.
    pub live_slots: u32,
    /// Moving average of slot-seconds a job takes.
    pub seconds_per_job: f64,
    /// Age of the oldest open job in seconds; 0 when there is none.
    pub oldest_seconds: i64,
}

/// A database transaction that has been open for long; see [`crate::Operator::list_old_transactions`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldTransaction {
    /// The server's process id, to end it with `pg_terminate_backend`.
    pub process: i64,
    /// PostgreSQL role of the session.
    pub user: String,
    /// What the session calls itself.
    pub application: String,
    /// Such as `idle in transaction`.
    pub state: String,
    /// Seconds since it began.
    pub seconds: i64,
}
