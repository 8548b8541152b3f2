//! The commands of operators on accounts, tasks and the ledger.

use clap::{Args, Subcommand};
use upscale_core::Credits;

use super::{
    location::DataArgs,
    parse::{
        OneLimit, parse_limit, parse_name, parse_reason, parse_reference, parse_signed_credits,
    },
};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account; prints its ID.
    Create {
        /// What you call it, 1 to 100 characters.
        #[arg(value_parser = parse_name)]
        name: String,
        /// Book its first credits at once.
        #[arg(long, value_name = "CREDITS", value_parser = Credits::parse)]
        credit: Option<Credits>,
        /// Make it a key at once; the secret is shown this once.
        #[arg(long)]
        key: bool,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Enter a purchase; the first one enables API access.
    Credit {
        /// The account's id, `acc_…`.
        account: String,
        /// How many, such as 100 or 0.7.
        #[arg(value_parser = Credits::parse)]
        credits: Credits,
        /// The payment's own id: the same reference is credited once, however often this is called.
        #[arg(long, value_parser = parse_reference)]
        reference: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show an account and its balances.
    Show {
        /// The account's id, `acc_…`.
        account: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show all accounts, oldest first.
    List {
        /// Only those whose id or name holds this, in whichever case.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        #[command(flatten)]
        data: DataArgs,
    },
    /// List an account's ledger, newest first (as `ledger list`).
    Ledger {
        /// The account's id, `acc_…`.
        account: String,
        /// Lines shown at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Set the limits of one account, or show them if none is given.
    Limits {
        /// The account's id, `acc_…`.
        account: String,
        #[command(flatten)]
        limits: LimitArgs,
        /// Reason; recorded with the change, and needed when something is.
        #[arg(long, value_parser = parse_reason)]
        reason: Option<String>,
        /// Name of the operator; by default the user of this machine.
        #[arg(long, value_name = "NAME", value_parser = parse_name)]
        operator: Option<String>,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Add credits without a payment, or remove some (a number below 0); does not enable API access.
    Adjust {
        /// The account's id, `acc_…`.
        account: String,
        /// How many, such as 5 or -0.7.
        #[arg(value_parser = parse_signed_credits, allow_negative_numbers = true)]
        credits: Credits,
        /// Counts once, however often this is called with it; by default a new one.
        #[arg(long, value_parser = parse_reference)]
        reference: Option<String>,
        #[command(flatten)]
        action: ActionArgs,
        #[command(flatten)]
        data: DataArgs,
    },
    /// List operators' actions, newest first: limits, adjustments, refunds.
    Actions {
        /// The account's id, `acc_…`; by default all.
        account: Option<String>,
        /// Lines shown at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
    /// List payments, newest first.
    Payments {
        /// The account's id, `acc_…`; by default all.
        #[arg(conflicts_with = "refused")]
        account: Option<String>,
        /// Only those that did not fit their order and wait for an operator.
        #[arg(long)]
        refused: bool,
        /// Lines shown at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
}

impl AccountCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::Create { data, .. }
            | Self::Credit { data, .. }
            | Self::Show { data, .. }
            | Self::List { data, .. }
            | Self::Ledger { data, .. }
            | Self::Limits { data, .. }
            | Self::Adjust { data, .. }
            | Self::Actions { data, .. }
            | Self::Payments { data, .. } => data,
        }
    }
}

/// Each is a number, or `contract` for the contract's own; what is not named stays.
#[derive(Debug, Clone, Args)]
pub(crate) struct LimitArgs {
    /// Create requests in one minute.
    #[arg(long, value_name = "N|contract", value_parser = parse_limit)]
    pub(crate) requests_per_minute: Option<OneLimit>,
    /// Tasks processing at a time.
    #[arg(long, value_name = "N|contract", value_parser = parse_limit)]
    pub(crate) active_tasks: Option<OneLimit>,
    /// Tasks accepted in one UTC day.
    #[arg(long, value_name = "N|contract", value_parser = parse_limit)]
    pub(crate) daily_tasks: Option<OneLimit>,
}

/// Who and why.
#[derive(Debug, Clone, Args)]
pub(crate) struct ActionArgs {
    /// Reason; recorded with the change.
    #[arg(long, value_parser = parse_reason)]
    pub(crate) reason: String,
    /// Name of the operator; by default the user of this machine.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) operator: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Show tasks: those processing, unless others are named.
    List {
        /// One account's, newest first.
        #[arg(long, value_name = "ACCOUNT", conflicts_with = "refund_pending")]
        account: Option<String>,
        /// Those that failed and whose credits are not back.
        #[arg(long)]
        refund_pending: bool,
        /// Lines shown at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show the task with this id, or that of this create request.
    Show {
        /// `ups_…` or `req_…`.
        id: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Retry the stuck refund of a failed task.
    Refund {
        /// The task's id, `ups_…`.
        task: String,
        #[command(flatten)]
        action: ActionArgs,
        #[command(flatten)]
        data: DataArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List an account's ledger, newest first.
    List {
        /// The account's id, `acc_…`.
        account: String,
        /// Lines shown at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Add up the transfers of all accounts, kind by kind.
    Sums {
        #[command(flatten)]
        data: DataArgs,
    },
    /// Check every invariant that the ledger and the rows beside it can show; exit status 1 when one is broken.
    Check {
        #[command(flatten)]
        data: DataArgs,
    },
}

impl TaskCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::List { data, .. } | Self::Show { data, .. } | Self::Refund { data, .. } => data,
        }
    }
}

impl LedgerCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::List { data, .. } | Self::Sums { data } | Self::Check { data } => data,
        }
    }
}
