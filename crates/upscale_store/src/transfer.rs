//! The five ways credits may move, as one balanced row each: what both engines write into their ledgers.

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
}

impl Transfer<'_> {
    /// Kind, the purse the amount leaves, the purse it enters.
    pub(crate) fn legs(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Purchase(_) => ("purchase", "cash", "available"),
            Self::Reserve(_) => ("reserve", "available", "held"),
            Self::Charge(_) => ("charge", "held", "revenue"),
            Self::Refund(_) => ("refund", "held", "available"),
        }
    }

    /// The task it is about, or the payment's reference: one of the two.
    pub(crate) fn about(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Purchase(reference) => (None, Some(reference)),
            Self::Reserve(task) | Self::Charge(task) | Self::Refund(task) => {
                (Some(task.as_str()), None)
            }
        }
    }

    /// What the account's available, held and charged balances change by, in thousandths.
    pub(crate) fn changes(&self, amount: Credits) -> [i64; 3] {
        let (_, debit, credit) = self.legs();
        ["available", "held", "revenue"].map(|purse| {
            (i64::from(credit == purse) - i64::from(debit == purse)) * amount.thousandths()
        })
    }
}
