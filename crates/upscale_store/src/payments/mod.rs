//! Purchases through a payment service: the order before it hears of us, and its signed events after. What an event
//! means is judged here, from facts that an engine gathered under its locks; whether it was signed is judged before.

use upscale_core::{
    AccountId, CheckoutId, Credits, Currency, Package, Returns, Timestamp, credits_to_take_back,
    returned_amount,
};

use crate::{Store, StoreError};

mod events;

/// The verbs of purchases through a payment service; of [`Store::payments`].
#[derive(Debug, Clone, Copy)]
pub struct Payments<'a> {
    pub(crate) store: &'a Store,
}

/// An order of credits at the price of its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Its name, also for the payment service.
    pub id: CheckoutId,
    /// Who gets the credits.
    pub account_id: AccountId,
    /// What is bought, as the price table had it then.
    pub package: Package,
    /// When it was ordered.
    pub created_at: Timestamp,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckoutOutcome {
    /// It is kept: a payment may follow.
    Opened(Checkout),
    /// 20 were begun within the last hour.
    TooMany,
    /// There is no such account.
    NoSuchAccount,
}

/// One event of the payment service, its signature checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentEvent {
    /// Stripe's id of the event (`evt_…`), at most 100 bytes; each is processed once.
    pub id: String,
    /// What the service calls it.
    pub kind: String,
    /// What happened to which payment.
    pub news: PaymentNews,
}

/// What an event tells. Payments by their own ids (`pi_…`), amounts in the currency's smallest unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentNews {
    /// An order was paid.
    Paid(PaidSession),
    /// So much of a payment went back to the payer, in all.
    ChargeReturned {
        /// Stripe's id of the payment (`pi_…`).
        payment: String,
        /// Sum of its refunds so far, in the currency's smallest unit.
        returned: i64,
    },
    /// One refund of a payment.
    Refund {
        /// Stripe's id of the payment (`pi_…`).
        payment: String,
        /// Stripe's id of the refund (`re_…`).
        refund: String,
        /// In the currency's smallest unit, > 0.
        amount: i64,
        /// Whether it came to nothing: the money is ours again.
        failed: bool,
    },
    /// A dispute moved money.
    Dispute {
        /// Stripe's id of the payment (`pi_…`).
        payment: String,
        /// Stripe's id of the dispute (`dp_…`).
        dispute: String,
        /// In the currency's smallest unit, > 0.
        amount: i64,
        /// From us, or back to us.
        step: DisputeStep,
    },
    /// Nothing that moves credits.
    Nothing,
}

/// What a dispute did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisputeStep {
    /// The money is with the payer.
    Withdrawn,
    /// The dispute was won: the money is back.
    Reinstated,
}

/// A paid order as the payment service tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidSession {
    /// Stripe's id of the payment (`pi_…`).
    pub payment: String,
    /// The order it names.
    pub checkout: CheckoutId,
    /// The account it names.
    pub account: String,
    /// Total paid, in the currency's smallest unit.
    pub price: i64,
    /// ISO 4217 code, as the payment service reports it.
    pub currency: Currency,
    /// The invoice (`in_…`), where one was made.
    pub invoice: Option<String>,
}

/// What an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentOutcome {
    /// The credits are available now.
    Credited(AccountId, Credits),
    /// It was paid, and does not fit what was ordered: no one was credited, an operator must look.
    Refused(String),
    /// Credits were taken back.
    TakenBack(AccountId, Credits),
    /// Credits are there again.
    Reinstated(AccountId, Credits),
    /// Remembered; no credits moved.
    Noted,
    /// This event was processed before; nothing changed.
    Repeated,
}

/// Where a payment stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentState {
    /// Money that went back was reported, and never that it came.
    Unknown,
    /// The account has the credits of its order.
    Credited,
    /// It did not fit its order, for this reason.
    Refused(String),
}

/// A payment, as its events have told it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRecord {
    /// `pi_…`, also the purchase's reference in the ledger.
    pub id: String,
    /// Credited, refused, or known by refunds alone.
    pub state: PaymentState,
    /// When its first event was processed, by the store's clock.
    pub first_at: Timestamp,
    /// The account that ordered it; none where no order fits.
    pub account_id: Option<AccountId>,
    /// Name of the package that was ordered; none where no order fits.
    pub package: Option<String>,
    /// What was paid, in the currency's smallest unit.
    pub price: Option<(i64, Currency)>,
    /// What it was credited with.
    pub credits: Option<Credits>,
    /// Stripe's id of the invoice (`in_…`), where one was made.
    pub invoice: Option<String>,
    /// Credits that are gone again.
    pub taken_back: Credits,
    /// Whether a dispute holds money of it that was not given back.
    pub in_dispute: bool,
}

/// Where a list of payments goes on: after this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentCursor {
    /// `first_at` of the last payment of the page before.
    pub first_at: Timestamp,
    /// Its id, for those of the same moment.
    pub id: String,
}

/// Which payments to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentFilter {
    /// Payments of all accounts, and those without one.
    All,
    /// Payments of one account.
    OfAccount(AccountId),
    /// Those that wait for an operator.
    Refused,
}

/// A payment's row while its event is taken in.
pub(crate) struct PaymentFacts {
    pub(crate) is_credited: bool,
    pub(crate) account: Option<AccountId>,
    pub(crate) credits: Credits,
    pub(crate) price: i64,
    pub(crate) taken_back: Credits,
}

/// What is known when an order is reported paid.
pub(crate) struct PaidFacts<'a> {
    pub(crate) paid: &'a PaidSession,
    pub(crate) checkout: Option<Checkout>,
    /// Another payment that was credited for the same order.
    pub(crate) other_payment: Option<String>,
    /// A purchase that stands in the ledger under this payment: whose, how many thousandths.
    pub(crate) purchase: Option<(String, i64)>,
}

/// What follows from a paid order.
pub(crate) enum Verdict {
    /// Write the purchase and the payment.
    Credit(Checkout),
    /// An operator credited it by hand: write the payment alone.
    Record(Checkout),
    /// It does not fit.
    Refuse(String),
}

/// Compares what was paid with what was ordered.
pub(crate) fn judge(facts: PaidFacts<'_>) -> Verdict {
    let paid = facts.paid;
    let Some(checkout) = facts.checkout else {
        return Verdict::Refuse(format!("there is no order {}", paid.checkout));
    };
    let package = &checkout.package;
    if paid.account != checkout.account_id.as_str() {
        return Verdict::Refuse(format!(
            "the payment names the account {}, its order {}",
            paid.account, checkout.account_id
        ));
    }
    if paid.currency != package.currency || paid.price != package.price {
        return Verdict::Refuse(format!(
            "{} was paid, {} was ordered",
            paid.currency.show(paid.price),
            package.currency.show(package.price)
        ));
    }
    if let Some(other) = facts.other_payment {
        return Verdict::Refuse(format!("the order was paid before, by {other}"));
    }
    match facts.purchase {
        None => Verdict::Credit(checkout),
        Some((owner, amount))
            if owner == checkout.account_id.as_str() && amount == package.credits.thousandths() =>
        {
            Verdict::Record(checkout)
        }
        Some((owner, amount)) => Verdict::Refuse(format!(
            "it was credited by hand to {owner} with {} credits",
            Credits::from_thousandths(amount)
        )),
    }
}

/// How the credits of a credited payment have to move after what was reported of it: what is to be taken back in all,
/// and the difference to what was (above 0: more, below: less).
pub(crate) fn balance(payment: &PaymentFacts, returns: Returns) -> (Credits, i64) {
    let returned = returned_amount(returns, payment.price);
    let target = credits_to_take_back(payment.credits, payment.price, returned);
    (
        target,
        target.thousandths() - payment.taken_back.thousandths(),
    )
}

/// The reference of a reversal or reinstatement: one a payment and event.
pub(crate) fn movement_reference(payment: &str, event: &PaymentEvent) -> String {
    format!("{payment} {}", event.id)
}

/// Ids come from outside: they become references, whose length the ledger limits.
pub(crate) fn check_event(event: &PaymentEvent) -> Result<(), StoreError> {
    let mut ids = vec![event.id.as_str(), event.kind.as_str()];
    match &event.news {
        PaymentNews::Paid(paid) => {
            ids.extend([paid.payment.as_str()]);
            ids.extend(paid.invoice.as_deref());
        }
        PaymentNews::ChargeReturned { payment, .. } => ids.push(payment),
        PaymentNews::Refund {
            payment, refund, ..
        } => ids.extend([payment.as_str(), refund]),
        PaymentNews::Dispute {
            payment, dispute, ..
        } => ids.extend([payment.as_str(), dispute]),
        PaymentNews::Nothing => {}
    }
    match ids
        .iter()
        .find(|id| id.is_empty() || id.len() > EVENT_ID_BYTES_MAX)
    {
        None => Ok(()),
        Some(id) => Err(StoreError::Refused(format!(
            "an id of {} bytes in a payment's event: 1 to {EVENT_ID_BYTES_MAX} are allowed",
            id.len()
        ))),
    }
}

/// Longest id or name in an event; half of a reference, which holds two.
pub(crate) const EVENT_ID_BYTES_MAX: usize = 99;

/// Where a list begins: without a cursor before every payment.
pub(crate) fn cursor_values(after: Option<&PaymentCursor>) -> (i64, String) {
    after.map_or((i64::MAX, String::new()), |after| {
        (after.first_at.micros(), after.id.clone())
    })
}

impl PaymentNews {
    /// The payment it is about.
    pub(crate) fn payment(&self) -> Option<&str> {
        match self {
            Self::Paid(paid) => Some(&paid.payment),
            Self::ChargeReturned { payment, .. }
            | Self::Refund { payment, .. }
            | Self::Dispute { payment, .. } => Some(payment),
            Self::Nothing => None,
        }
    }
}

impl PaymentOutcome {
    /// As the event's row keeps it.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Credited(account, credits) => format!("credited {account} with {credits}"),
            Self::Refused(reason) => format!("refused: {reason}"),
            Self::TakenBack(account, credits) => format!("took {credits} back from {account}"),
            Self::Reinstated(account, credits) => format!("reinstated {credits} of {account}"),
            Self::Noted => "noted".to_owned(),
            Self::Repeated => "repeated".to_owned(),
        }
    }
}
