//! Orders of credits and the payment service's events: what they mean is judged in `payments`. A payment's rows are
//! written under its own lock (the one a purchase by hand takes on its reference), its account's after that.

use upscale_core::{
    AccountId, CheckoutId, Credits, Currency, Package, Returns, limits::CHECKOUTS_PER_HOUR,
};

use super::{
    PaidFacts, PaymentFacts, Payments, Verdict, balance, check_event, cursor_values, judge,
    movement_reference,
};
use crate::{
    Checkout, CheckoutOutcome, DisputeStep, PaidSession, PaymentCursor, PaymentEvent,
    PaymentFilter, PaymentNews, PaymentOutcome, PaymentRecord, PaymentState, StoreError,
    accounts::{
        ledger::{Transfer, transfer},
        purchase::{find_purchase, purchase},
    },
    row::Row,
    tx::{Reference, Tx},
};

/// As [`payment_record`] reads it.
const SELECT_PAYMENT: &str = "SELECT payment.id, payment.state, payment.first_at, payment.account_id, payment.price,
     payment.currency, payment.credits, payment.invoice, payment.refusal, payment.taken_back, package,
     EXISTS (SELECT 1 FROM payment_return WHERE payment_id = payment.id AND kind = 'dispute' AND undone = 0) AS in_dispute
     FROM payment LEFT JOIN checkout ON checkout.id = checkout_id";

impl Payments<'_> {
    /// Keeps an order, so that a payment can be compared with it.
    pub async fn open_checkout(
        self,
        account: &AccountId,
        package: &Package,
    ) -> Result<CheckoutOutcome, StoreError> {
        let (account, package) = (*account, package.clone());
        self.store
            .write(async move |tx: &mut Tx| open_checkout(tx, &account, &package).await)
            .await
    }

    /// Takes in one event: itself, its payment and the ledger in one transaction, so that an event that comes again
    /// after a crash finds all of it or nothing. Events may come in any order and any number of times.
    pub async fn record_event(self, event: &PaymentEvent) -> Result<PaymentOutcome, StoreError> {
        check_event(event)?;
        let event = event.clone();
        self.store
            .write(async move |tx: &mut Tx| record_event(tx, &event).await)
            .await
    }

    /// An order of this account with the payment that was credited for it, if one was.
    pub async fn find_checkout(
        self,
        account: &AccountId,
        checkout: &CheckoutId,
    ) -> Result<Option<(Checkout, Option<PaymentRecord>)>, StoreError> {
        let (account, id) = (*account, *checkout);
        self.store
            .read(async move |tx: &mut Tx| {
                let checkout = find_checkout(tx, &id).await?;
                let Some(checkout) = checkout.filter(|checkout| checkout.account_id == account)
                else {
                    return Ok(None);
                };
                let sql = format!("{SELECT_PAYMENT} WHERE checkout_id = $1 AND state = 'credited'");
                let payment = tx.find(&sql, &[&id], payment_record).await?;
                Ok(Some((checkout, payment)))
            })
            .await
    }

    /// Payments, newest first.
    pub async fn list(
        self,
        filter: &PaymentFilter,
        limit: u32,
    ) -> Result<Vec<PaymentRecord>, StoreError> {
        self.list_after(filter, None, limit).await
    }

    /// The same, those after this one: a page of them.
    pub async fn list_after(
        self,
        filter: &PaymentFilter,
        after: Option<&PaymentCursor>,
        limit: u32,
    ) -> Result<Vec<PaymentRecord>, StoreError> {
        let (condition, value) = match filter {
            PaymentFilter::All => ("$1 = ''", String::new()),
            PaymentFilter::OfAccount(account) => ("payment.account_id = $1", account.to_string()),
            PaymentFilter::Refused => ("state = 'refused' AND $1 = ''", String::new()),
        };
        let sql = format!(
            "{SELECT_PAYMENT} WHERE {condition} AND (first_at < $2 OR (first_at = $2 AND payment.id > $3))
             ORDER BY first_at DESC, payment.id LIMIT $4"
        );
        let (first_at, id) = cursor_values(after);
        self.store
            .read(async move |tx: &mut Tx| {
                tx.list(&sql, &[&value, &first_at, &id, &limit], payment_record)
                    .await
            })
            .await
    }
}

async fn open_checkout(
    tx: &mut Tx,
    account: &AccountId,
    package: &Package,
) -> Result<CheckoutOutcome, StoreError> {
    if !tx.lock_account(account).await? {
        return Ok(CheckoutOutcome::NoSuchAccount);
    }
    let begun = tx
        .number(
            "SELECT count(*) FROM checkout WHERE account_id = $1 AND created_at > $2",
            &[account, &tx.now.plus_seconds(-3_600)],
        )
        .await?;
    if begun >= i64::from(CHECKOUTS_PER_HOUR) {
        return Ok(CheckoutOutcome::TooMany);
    }
    let id = CheckoutId::random()?;
    tx.execute_one(
        "INSERT INTO checkout (id, account_id, package, credits, price, currency, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &id,
            account,
            &package.name,
            &package.credits,
            &package.price,
            &package.currency.as_str(),
            &tx.now,
        ],
    )
    .await?;
    Ok(CheckoutOutcome::Opened(Checkout {
        id,
        account_id: *account,
        package: package.clone(),
        created_at: tx.now,
    }))
}

async fn record_event(tx: &mut Tx, event: &PaymentEvent) -> Result<PaymentOutcome, StoreError> {
    let payment = event.news.payment();
    if let Some(payment) = payment {
        tx.lock_reference(Reference::Payment, payment).await?;
    }
    let known = "SELECT 1 FROM payment_event WHERE id = $1";
    if tx.exists(known, &[&event.id]).await? {
        return Ok(PaymentOutcome::Repeated);
    }
    if let Some(payment) = payment {
        tx.execute(
            "INSERT INTO payment (id, state, first_at) VALUES ($1, 'unknown', $2) ON CONFLICT DO NOTHING",
            &[&payment, &tx.now],
        )
        .await?;
    }
    let outcome = take_in(tx, event).await?;
    let written = tx
        .execute(
            "INSERT INTO payment_event (id, kind, received_at, payment_id, outcome) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            &[
                &event.id,
                &event.kind,
                &tx.now,
                &payment,
                &outcome.in_words(),
            ],
        )
        .await?;
    match (written, payment) {
        (1, _) => Ok(outcome),
        // What moves nothing has no lock: its twin was first.
        (_, None) => Ok(PaymentOutcome::Repeated),
        (_, Some(payment)) => Err(StoreError::Corrupt(format!(
            "the event {} of {payment} is there, and of another payment",
            event.id
        ))),
    }
}

async fn take_in(tx: &mut Tx, event: &PaymentEvent) -> Result<PaymentOutcome, StoreError> {
    match &event.news {
        PaymentNews::Nothing => Ok(PaymentOutcome::Noted),
        PaymentNews::Paid(paid) => take_in_paid(tx, event, paid).await,
        PaymentNews::ChargeReturned { payment, returned } => {
            tx.execute_one(
                "UPDATE payment SET returned = CASE WHEN returned > $2 THEN returned ELSE $2 END WHERE id = $1",
                &[payment, returned],
            )
            .await?;
            move_credits(tx, event, payment).await
        }
        PaymentNews::Refund {
            payment,
            refund,
            amount,
            failed,
        } => {
            keep_return(tx, payment, ("refund", refund), *amount, *failed).await?;
            move_credits(tx, event, payment).await
        }
        PaymentNews::Dispute {
            payment,
            dispute,
            amount,
            step,
        } => {
            let is_won = *step == DisputeStep::Reinstated;
            keep_return(tx, payment, ("dispute", dispute), *amount, is_won).await?;
            move_credits(tx, event, payment).await
        }
    }
}

async fn take_in_paid(
    tx: &mut Tx,
    event: &PaymentEvent,
    paid: &PaidSession,
) -> Result<PaymentOutcome, StoreError> {
    if payment_facts(tx, &paid.payment).await?.is_credited {
        return Ok(PaymentOutcome::Noted);
    }
    let checkout = find_checkout(tx, &paid.checkout).await?;
    if let Some(checkout) = &checkout {
        // Two payments of one order have locks of their own; the account's keeps them apart.
        tx.lock_account(&checkout.account_id).await?;
    }
    let verdict = judge(PaidFacts {
        paid,
        checkout,
        other_payment: tx
            .find(
                "SELECT id FROM payment WHERE checkout_id = $1 AND state = 'credited'",
                &[&paid.checkout],
                |row| row.string("id"),
            )
            .await?,
        purchase: find_purchase(tx, &paid.payment).await?,
    });
    let (checkout, is_new) = match verdict {
        Verdict::Refuse(reason) => return refuse(tx, paid, reason).await,
        Verdict::Credit(checkout) => (checkout, true),
        Verdict::Record(checkout) => (checkout, false),
    };
    keep_credited(tx, paid, &checkout).await?;
    let (account, credits) = (checkout.account_id, checkout.package.credits);
    if is_new {
        purchase(tx, &account, credits, &paid.payment).await?;
    }
    // Its money may have gone back before anyone said that it came.
    move_credits(tx, event, &paid.payment).await?;
    Ok(if is_new {
        PaymentOutcome::Credited(account, credits)
    } else {
        PaymentOutcome::Noted
    })
}

async fn keep_credited(tx: &Tx, paid: &PaidSession, checkout: &Checkout) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE payment SET state = 'credited', account_id = $2, checkout_id = $3, price = $4, currency = $5,
             credits = $6, invoice = $7, refusal = NULL WHERE id = $1",
        &[
            &paid.payment,
            &checkout.account_id,
            &checkout.id,
            &paid.price,
            &paid.currency.as_str(),
            &checkout.package.credits,
            &paid.invoice,
        ],
    )
    .await
}

async fn refuse(tx: &Tx, paid: &PaidSession, reason: String) -> Result<PaymentOutcome, StoreError> {
    // The account is kept only where it is one: its owner and the operator see the payment there.
    tx.execute_one(
        "UPDATE payment SET state = 'refused', refusal = $2, price = $3, currency = $4, invoice = $5,
             account_id = (SELECT id FROM account WHERE id = $6) WHERE id = $1",
        &[
            &paid.payment,
            &reason,
            &paid.price,
            &paid.currency.as_str(),
            &paid.invoice,
            &paid.account,
        ],
    )
    .await?;
    Ok(PaymentOutcome::Refused(reason))
}

async fn keep_return(
    tx: &Tx,
    payment: &str,
    (kind, id): (&str, &str),
    amount: i64,
    is_undone: bool,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO payment_return AS kept (id, payment_id, kind, amount, begun, undone)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (id) DO UPDATE SET begun = kept.begun | excluded.begun, undone = kept.undone | excluded.undone",
        &[
            &id,
            &payment,
            &kind,
            &amount,
            &!is_undone,
            &is_undone,
        ],
    )
    .await
}

/// Takes back or gives again what the reports about the payment's money have changed.
async fn move_credits(
    tx: &mut Tx,
    event: &PaymentEvent,
    payment: &str,
) -> Result<PaymentOutcome, StoreError> {
    let facts = payment_facts(tx, payment).await?;
    let Some(account) = facts.account.filter(|_| facts.is_credited) else {
        return Ok(PaymentOutcome::Noted);
    };
    let (target, difference) = balance(&facts, returns(tx, payment).await?);
    if difference == 0 {
        return Ok(PaymentOutcome::Noted);
    }
    tx.lock_account(&account).await?;
    let reference = movement_reference(payment, event);
    let size = Credits::from_thousandths(difference.saturating_abs());
    let (movement, outcome) = if difference > 0 {
        (
            Transfer::Reversal(&reference),
            PaymentOutcome::TakenBack(account, size),
        )
    } else {
        (
            Transfer::Reinstatement(&reference),
            PaymentOutcome::Reinstated(account, size),
        )
    };
    transfer(tx, &account, &movement, size).await?;
    tx.execute_one(
        "UPDATE payment SET taken_back = $2 WHERE id = $1",
        &[&payment, &target],
    )
    .await?;
    Ok(outcome)
}

async fn payment_facts(tx: &Tx, payment: &str) -> Result<PaymentFacts, StoreError> {
    let found = tx
        .find(
            "SELECT state, account_id, price, credits, taken_back FROM payment WHERE id = $1",
            &[&payment],
            |row| {
                let account = row.text_if_any("account_id")?;
                let number = |column: &str| row.number_if_any(column);
                Ok(PaymentFacts {
                    is_credited: row.text("state")? == "credited",
                    account: account.and_then(AccountId::parse),
                    credits: Credits::from_thousandths(number("credits")?.unwrap_or(0)),
                    price: number("price")?.unwrap_or(0),
                    taken_back: row.credits("taken_back")?,
                })
            },
        )
        .await?;
    found.ok_or_else(|| StoreError::Corrupt(format!("the payment {payment} is not there")))
}

async fn returns(tx: &Tx, payment: &str) -> Result<Returns, StoreError> {
    let found = tx
        .find(
            "SELECT (SELECT returned FROM payment WHERE id = $1) AS returned_before,
                 CAST(coalesce(sum(CASE WHEN kind = 'refund' AND undone = 0 THEN amount END), 0) AS BIGINT) AS refunds,
                 CAST(coalesce(sum(CASE WHEN kind = 'refund' THEN undone END), 0) AS BIGINT) AS failed,
                 CAST(coalesce(sum(CASE WHEN kind = 'dispute' AND undone = 0 THEN amount END), 0) AS BIGINT)
                     AS disputes
             FROM payment_return WHERE payment_id = $1",
            &[&payment],
            |row| {
                Ok(Returns {
                    returned_by_charge: row.number("returned_before")?,
                    refunds: row.number("refunds")?,
                    a_refund_failed: row.flag("failed")?,
                    disputes: row.number("disputes")?,
                })
            },
        )
        .await?;
    Ok(found.unwrap_or_default())
}

async fn find_checkout(tx: &Tx, id: &CheckoutId) -> Result<Option<Checkout>, StoreError> {
    let sql = "SELECT account_id, package, credits, price, currency, created_at FROM checkout WHERE id = $1";
    tx.find(sql, &[id], |row| {
        Ok(Checkout {
            id: *id,
            account_id: row.account_id()?,
            package: Package {
                name: row.string("package")?,
                credits: row.credits("credits")?,
                price: row.number("price")?,
                currency: row.parsed("currency", |text| Currency::parse(text).ok())?,
            },
            created_at: row.time("created_at")?,
        })
    })
    .await
}

fn payment_record(row: &dyn Row) -> Result<PaymentRecord, StoreError> {
    let account = row.text_if_any("account_id")?;
    let price = row.number_if_any("price")?;
    let currency = row
        .text_if_any("currency")?
        .and_then(|code| Currency::parse(code).ok());
    Ok(PaymentRecord {
        id: row.string("id")?,
        state: match (row.text("state")?, row.string_if_any("refusal")?) {
            ("credited", _) => PaymentState::Credited,
            ("refused", Some(reason)) => PaymentState::Refused(reason),
            _ => PaymentState::Unknown,
        },
        first_at: row.time("first_at")?,
        account_id: account.and_then(AccountId::parse),
        package: row.string_if_any("package")?,
        price: price.zip(currency),
        credits: row.number_if_any("credits")?.map(Credits::from_thousandths),
        invoice: row.string_if_any("invoice")?,
        taken_back: row.credits("taken_back")?,
        in_dispute: row.flag("in_dispute")?,
    })
}
