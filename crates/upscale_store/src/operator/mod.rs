//! What an operator does and looks at: limits and adjustments with a reason that is kept, refunds that hang, tasks of
//! anyone, workers. Who may do so is decided before this is called.

use upscale_core::{
    AccountId, Credits, OwnLimits, RequestId, Task, Timestamp,
    limits::{ACCOUNT_LIMIT_MAX, NAME_CHARS_MAX, REASON_CHARS_MAX},
};

use crate::{LedgerKind, Purse, Store, StoreError, accounts::purchase::check_reference};

mod actions;
mod lately;
mod overview;

pub use self::lately::HourOfWork;

/// The verbs of operators, on anyone's account, with who and why where they change something; of [`Store::operator`].
#[derive(Debug, Clone, Copy)]
pub struct Operator<'a> {
    pub(crate) store: &'a Store,
}

/// Who did something, and why: kept with what was done, forever.
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
        /// Credits that could be taken, fewer than asked for.
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
    /// An earlier refund had returned them; nothing changed.
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
    /// Booked credits for money received outside of Stripe.
    Credit,
    /// Revoked one API key of the account.
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
    /// Position in the audit trail; grows with every action.
    pub sequence: i64,
    /// When it was committed, by the store's clock.
    pub at: Timestamp,
    /// The account that was changed.
    pub account_id: AccountId,
    /// Name of the operator: from `--operator`, or as typed at sign-in, with the user's number where the socket gives it.
    pub operator: String,
    /// Kind of change.
    pub action: ActionKind,
    /// Amounts, limits and ids, in words.
    pub detail: String,
    /// Reason that the operator gave; required.
    pub reason: String,
}

/// The last account of a page: the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCursor {
    /// When it was made.
    pub created_at: Timestamp,
    /// Identifier of that account, for those of the same moment.
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
    /// When the task succeeded or failed; none while it is processing.
    pub finished_at: Option<Timestamp>,
    /// Its job in the queue; none once the task has ended.
    pub job: Option<JobRecord>,
}

/// How far the work on a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Number of the latest attempt; 0 before the first claim.
    pub attempt: u32,
    /// Attempts that ended in a failure that may pass.
    pub transient_failures: u32,
    /// Attempts whose child crashed.
    pub crashes: u32,
    /// Identifier of the worker that has claimed it; none while it waits.
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
    /// Number of ledger lines.
    pub transfers: u64,
    /// Sum of their amounts, ≥ 0.
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
