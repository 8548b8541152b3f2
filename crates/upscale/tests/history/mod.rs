//! What clients of a service saw, in the order they saw it, and the judge of it. Pure: no network, no clock.
//! Anyone who records (the harness) stamps each request with the moments between which the service answered it.

mod check;
mod check_accounts;
mod known_violations;

pub use check::check;

/// Microseconds since the recording began.
pub type Micros = u64;

/// A request was sent at `started` and its answer was there at `answered` (or given up on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub started: Micros,
    pub answered: Micros,
}

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub creates: Vec<Create>,
    pub reads: Vec<Read>,
    pub downloads: Vec<Download>,
    /// As the operator saw them at the end, when every task was terminal.
    pub balances: Vec<Balance>,
    /// Every ledger line of these accounts that names a task.
    pub transfers: Vec<Transfer>,
    /// The end's audit: one line a breach.
    pub audit_breaches: Vec<String>,
}

/// One create request.
#[derive(Debug, Clone)]
pub struct Create {
    pub span: Span,
    pub account: String,
    pub key: String,
    /// Equal exactly when two requests ask for the same.
    pub parameters: String,
    pub outcome: Outcome,
    pub window: Option<Window>,
    /// `Idempotent-Replayed: true` was there.
    pub replayed: bool,
}

/// The three `X-RateLimit` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub limit: u32,
    pub remaining: u32,
    pub reset: i64,
}

/// One read of a task.
#[derive(Debug, Clone)]
pub struct Read {
    pub span: Span,
    /// The account that asked, not the one that owns.
    pub account: String,
    pub id: String,
    pub outcome: Outcome,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// 202 to a create, 200 to a read.
    Task(Seen),
    /// An error of the contract.
    Refused { status: u16, code: String },
    /// No answer: refused, reset, cut. Whether it was done is not known.
    Lost,
}

/// A task as one answer showed it. Credits are thousandths; `reserved` is 0 where the field is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub id: String,
    pub state: State,
    pub reserved: i64,
    pub charged: i64,
}

/// The contract's states, the failed one split by its refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Processing,
    Succeeded,
    FailedRefundPending,
    FailedRefunded,
}

/// A result that was fetched and decoded.
#[derive(Debug, Clone)]
pub struct Download {
    pub id: String,
    /// Width and height of scale × source.
    pub expected: (u32, u32),
    /// Width and height of the decoded PNG, or what was wrong with the bytes.
    pub found: Result<(u32, u32), String>,
}

/// An account's money in thousandths.
#[derive(Debug, Clone)]
pub struct Balance {
    pub account: String,
    pub purchased: i64,
    pub available: i64,
    pub reserved: i64,
    pub charged: i64,
}

/// One ledger line: `reserve`, `charge` or `refund` for a task.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub account: String,
    pub kind: String,
    pub task: String,
}

/// The numbers the judge holds a service to.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Thousandths a success costs.
    pub price: i64,
    pub active_tasks_max: usize,
    pub daily_tasks_max: usize,
    /// Nothing is processing this long after it was accepted.
    pub terminal_within: Micros,
}

impl Default for Rules {
    /// The contract's; 330 s is the 270 s deadline and one lease.
    fn default() -> Self {
        Self {
            price: 700,
            active_tasks_max: 20,
            daily_tasks_max: 2_500,
            terminal_within: 330_000_000,
        }
    }
}

/// A broken promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promise {
    AcceptedStaysReadable,
    OneIdPerKey,
    OneKeyPerId,
    ConflictIffOtherParameters,
    ReplayIsMarked,
    EveryKeyIsResolved,
    StatesMoveForward,
    BillingFollowsState,
    BalanceFollowsTasks,
    LedgerFollowsTasks,
    ActiveLimitHolds,
    CreateRateHolds,
    DailyLimitHolds,
    ResultsAreWhole,
    TerminalInTime,
    OthersSeeNothing,
    NoInternalError,
    AuditIsClean,
}

/// Which promise, and the facts that break it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    pub detail: String,
}

impl History {
    /// Every sighting of a task by its owner or creator, in order of the answers.
    pub fn sightings(&self) -> Vec<(Span, &str, &Seen)> {
        let creates = self
            .creates
            .iter()
            .filter_map(|create| match &create.outcome {
                Outcome::Task(seen) => Some((create.span, create.account.as_str(), seen)),
                _ => None,
            });
        let reads = self.reads.iter().filter_map(|read| match &read.outcome {
            Outcome::Task(seen) => Some((read.span, read.account.as_str(), seen)),
            _ => None,
        });
        let mut sightings: Vec<_> = creates.chain(reads).collect();
        sightings.sort_by_key(|(span, ..)| span.answered);
        sightings
    }

    /// Ids of accepted tasks with their accounts, each once, in order of acceptance.
    pub fn accepted(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        for create in &self.creates {
            if let Outcome::Task(seen) = &create.outcome
                && !found.iter().any(|&(id, _)| id == seen.id)
            {
                found.push((seen.id.as_str(), create.account.as_str()));
            }
        }
        found
    }
}

impl State {
    /// Terminal for the client: polling stops.
    pub fn is_terminal(self) -> bool {
        self != Self::Processing
    }

    /// Whether an earlier `self` may be followed by `later`.
    pub fn may_become(self, later: Self) -> bool {
        match self {
            Self::Processing => true,
            Self::Succeeded => later == Self::Succeeded,
            Self::FailedRefundPending => {
                matches!(later, Self::FailedRefundPending | Self::FailedRefunded)
            }
            Self::FailedRefunded => later == Self::FailedRefunded,
        }
    }
}
