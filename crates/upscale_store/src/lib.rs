//! What must survive a crash: tasks, queue, ledger, limits, keys and result files. Every rule of when and
//! how much is decided in `upscale_core`; here facts are gathered and rows written, in one transaction a verb.

mod answers;
mod audit;
#[cfg(test)]
mod conformance;
mod results;
mod sqlite;
mod store;
mod sweep;

pub use answers::{
    Account, AuditReport, Breach, Caller, Claim, CreateOutcome, FenceOutcome, KeyRecord,
    LedgerLine, OldLinks, PurchaseOutcome, QueueGlance, RateWindow, ResultRecord, Settlement,
    SigningKey, StoreError, StoreOptions,
};
pub use results::{ResultBody, Results};
pub use store::Store;
