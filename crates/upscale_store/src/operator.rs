//! What an operator does and looks at: limits and adjustments with a reason that is kept, refunds that hang, tasks of
//! anyone, workers. Who may do so is decided before this is called.

use upscale_core::{
    AccountId, Credits, KeyId, OwnLimits, RequestId, Task, TaskId, Timestamp, TokenHash, UserId,
    limits::{ACCOUNT_LIMIT_MAX, NAME_CHARS_MAX, REASON_CHARS_MAX},
};

use crate::{
    Account, KeyRecord, LedgerKind, LedgerLine, PurchaseOutcome, Purse, Store, StoreError, User,
    purchase::check_reference, store::count_refunds,
};

/// Who did something, and why: kept with what was done, for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnBehalf {
    /// The person or program, 1 to 100 characters.
    pub operator: String,
    /// 1 to 500 characters.
    pub reason: String,
}

/// What became of an adjustment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdjustOutcome {
    /// The credits are there or gone now.
    Adjusted,
    /// This reference was used before with the same account and amount; nothing changed.
    AlreadyAdjusted,
    /// This reference was used before otherwise; nothing changed.
    ReferenceTaken,
    /// More was to be taken than is available; nothing changed.
    TooLittle {
        /// What there is.
        available: Credits,
    },
    /// There is no such account.
    NoSuchAccount,
}

/// What became of the retry of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundOutcome {
    /// The credits are back now.
    Refunded,
    /// They were before.
    AlreadyRefunded,
    /// Nothing is owed: the task is processing or succeeded.
    NotFailed,
    /// There is no such task.
    NoSuchTask,
}

/// The things an operator does that leave a line of who and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Gave or took credits.
    Adjust,
    /// Set an account's limits.
    Limits,
    /// Returned the credits of a failed task.
    Refund,
    /// Booked a purchase.
    Credit,
    /// Revoked a key.
    Revoke,
    /// Made a link that sets a new password.
    Reset,
}

impl ActionKind {
    const ALL: [Self; 6] = [
        Self::Adjust,
        Self::Limits,
        Self::Refund,
        Self::Credit,
        Self::Revoke,
        Self::Reset,
    ];

    /// As rows and commands have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adjust => "adjust",
            Self::Limits => "limits",
            Self::Refund => "refund",
            Self::Credit => "credit",
            Self::Revoke => "revoke",
            Self::Reset => "reset",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One thing an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorAction {
    /// Order of writing.
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// To which account.
    pub account_id: AccountId,
    /// Who.
    pub operator: String,
    /// What.
    pub action: ActionKind,
    /// Amounts, limits and ids, in words.
    pub detail: String,
    /// Why.
    pub reason: String,
}

/// The last account of a page: the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCursor {
    /// When it was made.
    pub created_at: Timestamp,
    /// Its name.
    pub id: AccountId,
}

/// Which tasks to list; each kind is found by an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorTaskFilter {
    /// One account's, newest first.
    OfAccount(AccountId),
    /// Those of one create request.
    OfRequest(RequestId),
    /// Waiting or being worked on, in the order they are to be done.
    Processing,
    /// Failed, and their credits are not back.
    RefundPending,
}

/// A task with what only an operator sees of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorTask {
    /// As its owner sees it.
    pub task: Task,
    /// Where the source is, as it was sent; its query may be a secret of the customer's.
    pub source_url: String,
    /// The request that created it.
    pub request_id: RequestId,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// While work is owed.
    pub job: Option<JobRecord>,
}

/// How far the work on a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Claims so far.
    pub attempt: u32,
    /// Attempts that ended in a failure that may pass.
    pub transient_failures: u32,
    /// Attempts that vanished.
    pub crashes: u32,
    /// Who has it; none while it waits.
    pub worker: Option<String>,
}

/// A worker that reported lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Random, for as long as its process lives.
    pub id: String,
    /// Jobs it takes at a time.
    pub slots: u32,
    /// When it last reported.
    pub seen_at: Timestamp,
    /// Whether that was within the last lease.
    pub alive: bool,
}

/// All transfers of one kind and direction together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerSum {
    /// What they are for.
    pub kind: LedgerKind,
    /// The purse they left.
    pub debit: Purse,
    /// The purse they entered.
    pub credit: Purse,
    /// How many.
    pub transfers: u64,
    /// How much in all.
    pub amount: Credits,
}

impl OnBehalf {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for (what, text, most) in [
            ("operator", &self.operator, NAME_CHARS_MAX),
            ("reason", &self.reason, REASON_CHARS_MAX),
        ] {
            let chars = text.trim().chars().count();
            if !(1..=most).contains(&chars) {
                return Err(StoreError::Refused(format!(
                    "the {what} of {chars} characters: 1 to {most} are allowed"
                )));
            }
        }
        Ok(())
    }
}

/// More or fewer than 0 credits, and a reference of 1 to 200 bytes.
pub(crate) fn check_adjustment(credits: Credits, reference: &str) -> Result<(), StoreError> {
    if credits == Credits::ZERO || credits.thousandths() == i64::MIN {
        return Err(StoreError::Refused(format!(
            "an adjustment by {credits} credits: it must be above or below 0"
        )));
    }
    check_reference(reference)
}

/// An adjustment without its sign: how much, and whether it is given.
pub(crate) fn direction(credits: Credits) -> (Credits, bool) {
    let size = Credits::from_thousandths(credits.thousandths().saturating_abs());
    (size, credits > Credits::ZERO)
}

/// Each limit that is set is 1 to a million.
pub(crate) fn check_limits(own: OwnLimits) -> Result<(), StoreError> {
    let set = [
        own.create_requests_per_minute,
        own.active_tasks,
        own.daily_tasks,
    ];
    match set
        .into_iter()
        .flatten()
        .find(|limit| !(1..=ACCOUNT_LIMIT_MAX).contains(limit))
    {
        None => Ok(()),
        Some(limit) => Err(StoreError::Refused(format!(
            "a limit of {limit}: 1 to {ACCOUNT_LIMIT_MAX} are allowed"
        ))),
    }
}

/// How the kept action says it.
pub(crate) fn show_limits(own: OwnLimits) -> String {
    let show = |limit: Option<u32>| limit.map_or("contract".to_owned(), |limit| limit.to_string());
    format!(
        "requests a minute {}, active {}, a day {}",
        show(own.create_requests_per_minute),
        show(own.active_tasks),
        show(own.daily_tasks)
    )
}

/// Any text as part of a pattern of SQL's LIKE, whose escape is `\`.
pub(crate) fn pattern_of(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.trim().chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

impl Store {
    /// Sets the account's limits in place of what was set before; a number that is none is the contract's. Counts
    /// from the next request on. Where nothing changes nothing is recorded. None when there is no such account.
    pub async fn set_limits(
        &self,
        account: &AccountId,
        own: OwnLimits,
        by: &OnBehalf,
    ) -> Result<Option<Account>, StoreError> {
        match self {
            Self::Sqlite(db) => db.set_limits(account, own, by).await,
            Self::Postgres(db) => db.set_limits(account, own, by).await,
        }
    }

    /// Gives (above 0) or takes (below 0) credits, once a reference (1 to 200 bytes). Never takes more than is
    /// available, and opens no access: that is what a purchase does.
    pub async fn adjust_account(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<AdjustOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.adjust_account(account, credits, reference, by).await,
            Self::Postgres(db) => db.adjust_account(account, credits, reference, by).await,
        }
    }

    /// Returns the credits of a failed task whose refund hangs.
    pub async fn retry_refund(
        &self,
        task: &TaskId,
        by: &OnBehalf,
    ) -> Result<RefundOutcome, StoreError> {
        let outcome = match self {
            Self::Sqlite(db) => db.retry_refund(task, by).await?,
            Self::Postgres(db) => db.retry_refund(task, by).await?,
        };
        if outcome == RefundOutcome::Refunded {
            count_refunds(1);
        }
        Ok(outcome)
    }

    /// Books a purchase that an operator was told of: as [`Store::credit_account`], with who and why.
    pub async fn book_purchase(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
        by: &OnBehalf,
    ) -> Result<PurchaseOutcome, StoreError> {
        match self {
            Self::Sqlite(db) => db.book_purchase(account, credits, reference, by).await,
            Self::Postgres(db) => db.book_purchase(account, credits, reference, by).await,
        }
    }

    /// Revokes anybody's key: refused from the next request on. Recorded once; none when there is no such key.
    pub async fn revoke_key_of_anyone(
        &self,
        key: &KeyId,
        by: &OnBehalf,
    ) -> Result<Option<KeyRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.revoke_key_of_anyone(key, by).await,
            Self::Postgres(db) => db.revoke_key_of_anyone(key, by).await,
        }
    }

    /// A link that sets a new password, as [`Store::create_reset`], for a user who asked an operator. The same link
    /// asked for again changes and records nothing. None when there is no such user.
    pub async fn reset_password_of(
        &self,
        user: &UserId,
        reset: &TokenHash,
        seconds: i64,
        by: &OnBehalf,
    ) -> Result<Option<User>, StoreError> {
        match self {
            Self::Sqlite(db) => db.reset_password_of(user, reset, seconds, by).await,
            Self::Postgres(db) => db.reset_password_of(user, reset, seconds, by).await,
        }
    }

    /// What operators did, of one account or of all: those whose number is below this one, newest first.
    pub async fn list_actions(
        &self,
        account: Option<&AccountId>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<OperatorAction>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_actions(account, before, limit).await,
            Self::Postgres(db) => db.list_actions(account, before, limit).await,
        }
    }

    /// Accounts whose id, name or a user's e-mail address holds this text (ASCII letters in whichever case), newest
    /// first. Looks at every account.
    pub async fn search_accounts(
        &self,
        text: &str,
        after: Option<&AccountCursor>,
        limit: u32,
    ) -> Result<Vec<Account>, StoreError> {
        match self {
            Self::Sqlite(db) => db.search_accounts(text, after, limit).await,
            Self::Postgres(db) => db.search_accounts(text, after, limit).await,
        }
    }

    /// The people who sign in for this account, oldest first, at most 10,000.
    pub async fn list_users_of(&self, account: &AccountId) -> Result<Vec<User>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_users_of(account).await,
            Self::Postgres(db) => db.list_users_of(account).await,
        }
    }

    /// Accounts that take no new tasks because an audit found their books wrong.
    pub async fn list_stopped_accounts(&self) -> Result<Vec<AccountId>, StoreError> {
        let stopped = match self {
            Self::Sqlite(db) => db.list_stopped().await?,
            Self::Postgres(db) => db.list_stopped().await?,
        };
        Ok(stopped.into_iter().collect())
    }

    /// The transfers of one task, oldest first; they outlive its record.
    pub async fn list_ledger_of_task(&self, task: &TaskId) -> Result<Vec<LedgerLine>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_ledger_of_task(task).await,
            Self::Postgres(db) => db.list_ledger_of_task(task).await,
        }
    }

    /// The ledger's lines from this moment on added up, kind by kind. Reads them and those of the hour before.
    pub async fn sum_ledger_since(&self, from: Timestamp) -> Result<Vec<LedgerSum>, StoreError> {
        match self {
            Self::Sqlite(db) => db.sum_ledger_since(from).await,
            Self::Postgres(db) => db.sum_ledger_since(from).await,
        }
    }

    /// The task, whoever's it is.
    pub async fn find_task_of_anyone(
        &self,
        task: &TaskId,
    ) -> Result<Option<OperatorTask>, StoreError> {
        match self {
            Self::Sqlite(db) => db.find_task_of_anyone(task).await,
            Self::Postgres(db) => db.find_task_of_anyone(task).await,
        }
    }

    /// Tasks of anyone.
    pub async fn list_tasks_of_anyone(
        &self,
        filter: &OperatorTaskFilter,
        limit: u32,
    ) -> Result<Vec<OperatorTask>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_tasks_of_anyone(filter, limit).await,
            Self::Postgres(db) => db.list_tasks_of_anyone(filter, limit).await,
        }
    }

    /// Workers that reported within the last day, the latest first.
    pub async fn list_workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        match self {
            Self::Sqlite(db) => db.list_workers().await,
            Self::Postgres(db) => db.list_workers().await,
        }
    }

    /// The ledger of all accounts added up, kind by kind. Reads every line.
    pub async fn sum_ledger(&self) -> Result<Vec<LedgerSum>, StoreError> {
        match self {
            Self::Sqlite(db) => db.sum_ledger().await,
            Self::Postgres(db) => db.sum_ledger().await,
        }
    }
}
