//! The ways credits may move, as one balanced row each: what both engines write into their ledgers.

use upscale_core::{Credits, TaskId};

/// What a transfer is for.
pub(crate) enum Transfer<'a> {
    /// Money came in, under the payment's reference: cash → available.
    Purchase(&'a str),
    /// A task was accepted: available → held.
    Reserve(&'a TaskId),
    /// It succeeded: held → revenue.
    Charge(&'a TaskId),
    /// It failed: held → available.
    Refund(&'a TaskId),
    /// The payer has money back, refunded or disputed: available → cash, below zero if need be.
    Reversal(&'a str),
    /// The dispute was won: cash → available.
    Reinstatement(&'a str),
    /// An operator gives: the house's → available.
    AdjustmentUp(&'a str),
    /// An operator takes: available → the house's.
    AdjustmentDown(&'a str),
}

impl Transfer<'_> {
    /// Kind, the purse the amount leaves, the purse it enters.
    pub(crate) fn legs(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Purchase(_) => ("purchase", "cash", "available"),
            Self::Reserve(_) => ("reserve", "available", "held"),
            Self::Charge(_) => ("charge", "held", "revenue"),
            Self::Refund(_) => ("refund", "held", "available"),
            Self::Reversal(_) => ("reversal", "available", "cash"),
            Self::Reinstatement(_) => ("reinstatement", "cash", "available"),
            Self::AdjustmentUp(_) => ("adjustment", "house", "available"),
            Self::AdjustmentDown(_) => ("adjustment", "available", "house"),
        }
    }

    /// The task it is about, or the reference of the payment or adjustment: one of the two.
    pub(crate) fn about(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Purchase(reference)
            | Self::Reversal(reference)
            | Self::Reinstatement(reference)
            | Self::AdjustmentUp(reference)
            | Self::AdjustmentDown(reference) => (None, Some(reference)),
            Self::Reserve(task) | Self::Charge(task) | Self::Refund(task) => {
                (Some(task.as_str()), None)
            }
        }
    }

    /// What the account's active tasks change by: one is there with its reserve and gone with its charge. A task that
    /// failed is not active from its failure on, before its refund.
    pub(crate) fn active_change(&self) -> i64 {
        match self {
            Self::Reserve(_) => 1,
            Self::Charge(_) => -1,
            Self::Purchase(_)
            | Self::Refund(_)
            | Self::Reversal(_)
            | Self::Reinstatement(_)
            | Self::AdjustmentUp(_)
            | Self::AdjustmentDown(_) => 0,
        }
    }

    /// What the account's available, held and charged balances change by, and what was taken back of it in all, in
    /// thousandths.
    pub(crate) fn changes(&self, amount: Credits) -> [i64; 4] {
        let (_, debit, credit) = self.legs();
        let [available, held, revenue, cash] =
            ["available", "held", "revenue", "cash"].map(|purse| {
                (i64::from(credit == purse) - i64::from(debit == purse)) * amount.thousandths()
            });
        [available, held, revenue, cash.max(0)]
    }
}
