//! What must survive a crash: tasks, queue, ledger, limits, keys and result files. Every rule of when and
//! how much is decided in `upscale_core`; here facts are gathered and rows written, in one transaction a verb.

mod accounts;
mod answers;
mod audit;
mod audit_checks;
mod clock_watch;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod faults;
mod operator;
mod param;
mod payments;
mod postgres;
mod results;
mod retention;
mod row;
mod schema;
mod sealing;
mod secret_keys;
mod signing_key;
mod sqlite;
mod store;
mod sweep;
mod tasks;
mod tx;
mod users;

pub use accounts::{
    Accounts,
    ledger::{LedgerKind, Purse},
};
pub use answers::{
    Account, AuditReport, Breach, Caller, Claim, CreateOutcome, FenceOutcome, KeyCursor,
    KeyOutcome, KeyRecord, LedgerLine, OldLinks, OldTransaction, PurchaseOutcome, QueueGlance,
    RateWindow, ResultRecord, Settlement, SigningKey, StoreError, StoreOptions,
};
pub use clock_watch::ClockLook;
pub use operator::{
    AccountCursor, ActionKind, AdjustOutcome, HourOfWork, JobRecord, LedgerSum, OnBehalf, Operator,
    OperatorAction, OperatorTask, OperatorTaskFilter, RefundOutcome, WorkerRecord,
};
pub use payments::{
    Checkout, CheckoutOutcome, DisputeStep, PaidSession, PaymentCursor, PaymentEvent,
    PaymentFilter, PaymentNews, PaymentOutcome, PaymentRecord, PaymentState, Payments,
};
pub use results::{BucketOptions, CheckStep, Link, ResultBody, Results};
pub use sealing::{Sealed, SecretsReport, StoredSecret};
pub use secret_keys::{SecretKeys, SecretKeysError};
pub use sqlite::{DATABASE_FILE, back_up};
pub use store::Store;
pub use tasks::{
    Tasks,
    history::{
        DayOfUse, SEARCHED_MAX, Spent, Stages, TaskCursor, TaskFilter, TaskRecord, TaskSearch,
    },
};
pub use users::{
    AttemptOutcome, DeletionOutcome, EmailChangeOutcome, Session, SessionRecord, User, UserOutcome,
    Users,
};
