//! Orders of credits and the payment service's events: what they mean is judged in `payments.rs` beside the engines.

use rusqlite::{Row, params};
use upscale_core::{
    AccountId, CheckoutId, Credits, Currency, Package, Returns, limits::CHECKOUTS_PER_HOUR,
};

use super::{
    Db, Tx,
    accounts::find_account,
    ledger::transfer,
    rows::{account_id, parsed, time},
};
use crate::{
    Checkout, CheckoutOutcome, DisputeStep, PaidSession, PaymentCursor, PaymentEvent,
    PaymentFilter, PaymentNews, PaymentOutcome, PaymentRecord, PaymentState, StoreError,
    payments::{
        PaidFacts, PaymentFacts, Verdict, balance, cursor_values, judge, movement_reference,
    },
    transfer::Transfer,
};

/// As [`payment_record`] reads it.
const SELECT_PAYMENT: &str = "SELECT payment.*, package, EXISTS (SELECT 1 FROM payment_return
     WHERE payment_id = payment.id AND kind = 'dispute' AND undone = 0) AS in_dispute
     FROM payment LEFT JOIN checkout ON checkout.id = checkout_id";

impl Db {
    pub(crate) async fn open_checkout(
        &self,
        account: &AccountId,
        package: &Package,
    ) -> Result<CheckoutOutcome, StoreError> {
        let (account, package) = (*account, package.clone());
        self.write(move |tx| open_checkout(tx, &account, package))
            .await
    }

    pub(crate) async fn record_payment_event(
        &self,
        event: &PaymentEvent,
    ) -> Result<PaymentOutcome, StoreError> {
        let event = event.clone();
        self.write(move |tx| record_event(tx, &event)).await
    }

    pub(crate) async fn list_payments(
        &self,
        filter: &PaymentFilter,
        after: Option<&PaymentCursor>,
        limit: u32,
    ) -> Result<Vec<PaymentRecord>, StoreError> {
        let (condition, value) = match filter {
            PaymentFilter::All => ("?1 = ''", String::new()),
            PaymentFilter::OfAccount(account) => ("payment.account_id = ?1", account.to_string()),
            PaymentFilter::Refused => ("state = 'refused' AND ?1 = ''", String::new()),
        };
        let sql = format!(
            "{SELECT_PAYMENT} WHERE {condition} AND (first_at < ?2 OR (first_at = ?2 AND payment.id > ?3))
             ORDER BY first_at DESC, payment.id LIMIT ?4"
        );
        let (first_at, id) = cursor_values(after);
        self.read(move |tx| tx.list(&sql, params![value, first_at, id, limit], payment_record))
            .await
    }

    pub(crate) async fn find_checkout(
        &self,
        id: &CheckoutId,
    ) -> Result<Option<(Checkout, Option<PaymentRecord>)>, StoreError> {
        let id = *id;
        self.read(move |tx| {
            let Some(checkout) = find_checkout(tx, &id)? else {
                return Ok(None);
            };
            let sql = format!("{SELECT_PAYMENT} WHERE checkout_id = ?1 AND state = 'credited'");
            Ok(Some((
                checkout,
                tx.find(&sql, [id.as_str()], payment_record)?,
            )))
        })
        .await
    }
}

fn open_checkout(
    tx: &Tx<'_>,
    account: &AccountId,
    package: Package,
) -> Result<CheckoutOutcome, StoreError> {
    if find_account(tx, account)?.is_none() {
        return Ok(CheckoutOutcome::NoSuchAccount);
    }
    let begun = tx.number(
        "SELECT count(*) FROM checkout WHERE account_id = ?1 AND created_at > ?2",
        params![account.as_str(), tx.now.plus_seconds(-3_600).micros()],
    )?;
    if begun >= i64::from(CHECKOUTS_PER_HOUR) {
        return Ok(CheckoutOutcome::TooMany);
    }
    let id = CheckoutId::random()?;
    tx.execute_one(
        "INSERT INTO checkout (id, account_id, package, credits, price, currency, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            id.as_str(),
            account.as_str(),
            package.name,
            package.credits.thousandths(),
            package.price,
            package.currency.as_str(),
            tx.now.micros()
        ],
    )?;
    Ok(CheckoutOutcome::Opened(Checkout {
        id,
        account_id: *account,
        package,
        created_at: tx.now,
    }))
}

fn record_event(tx: &Tx<'_>, event: &PaymentEvent) -> Result<PaymentOutcome, StoreError> {
    let known = "SELECT 1 FROM payment_event WHERE id = ?1";
    if tx.find(known, [&event.id], |_| Ok(()))?.is_some() {
        return Ok(PaymentOutcome::Repeated);
    }
    if let Some(payment) = event.news.payment() {
        tx.execute(
            "INSERT INTO payment (id, state, first_at) VALUES (?1, 'unknown', ?2) ON CONFLICT DO NOTHING",
            params![payment, tx.now.micros()],
        )?;
    }
    let outcome = take_in(tx, event)?;
    tx.execute_one(
        "INSERT INTO payment_event (id, kind, received_at, payment_id, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            event.id,
            event.kind,
            tx.now.micros(),
            event.news.payment(),
            outcome.in_words()
        ],
    )?;
    Ok(outcome)
}

fn take_in(tx: &Tx<'_>, event: &PaymentEvent) -> Result<PaymentOutcome, StoreError> {
    match &event.news {
        PaymentNews::Nothing => Ok(PaymentOutcome::Noted),
        PaymentNews::Paid(paid) => take_in_paid(tx, event, paid),
        PaymentNews::ChargeReturned { payment, returned } => {
            tx.execute_one(
                "UPDATE payment SET returned = max(returned, ?2) WHERE id = ?1",
                params![payment, returned],
            )?;
            move_credits(tx, event, payment)
        }
        PaymentNews::Refund {
            payment,
            refund,
            amount,
            failed,
        } => {
            keep_return(tx, payment, ("refund", refund), *amount, *failed)?;
            move_credits(tx, event, payment)
        }
        PaymentNews::Dispute {
            payment,
            dispute,
            amount,
            step,
        } => {
            let is_won = *step == DisputeStep::Reinstated;
            keep_return(tx, payment, ("dispute", dispute), *amount, is_won)?;
            move_credits(tx, event, payment)
        }
    }
}

fn take_in_paid(
    tx: &Tx<'_>,
    event: &PaymentEvent,
    paid: &PaidSession,
) -> Result<PaymentOutcome, StoreError> {
    if payment_facts(tx, &paid.payment)?.is_credited {
        return Ok(PaymentOutcome::Noted);
    }
    let verdict = judge(PaidFacts {
        paid,
        checkout: find_checkout(tx, &paid.checkout)?,
        other_payment: tx.find(
            "SELECT id FROM payment WHERE checkout_id = ?1 AND state = 'credited'",
            [paid.checkout.as_str()],
            |row| Ok(row.get(0)?),
        )?,
        purchase: tx.find(
            "SELECT account_id, amount FROM ledger WHERE kind = 'purchase' AND external_reference = ?1",
            [&paid.payment],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?,
    });
    let (checkout, is_new) = match verdict {
        Verdict::Refuse(reason) => return refuse(tx, paid, reason),
        Verdict::Credit(checkout) => (checkout, true),
        Verdict::Record(checkout) => (checkout, false),
    };
    keep_credited(tx, paid, &checkout)?;
    let (account, credits) = (checkout.account_id, checkout.package.credits);
    if is_new {
        transfer(tx, &account, &Transfer::Purchase(&paid.payment), credits)?;
        tx.execute_one(
            "UPDATE account SET activated_at = coalesce(activated_at, ?2) WHERE id = ?1",
            params![account.as_str(), tx.now.micros()],
        )?;
    }
    // Its money may have gone back before anybody said that it came.
    move_credits(tx, event, &paid.payment)?;
    Ok(if is_new {
        PaymentOutcome::Credited(account, credits)
    } else {
        PaymentOutcome::Noted
    })
}

fn keep_credited(tx: &Tx<'_>, paid: &PaidSession, checkout: &Checkout) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE payment SET state = 'credited', account_id = ?2, checkout_id = ?3, price = ?4, currency = ?5,
             credits = ?6, invoice = ?7, refusal = NULL WHERE id = ?1",
        params![
            paid.payment,
            checkout.account_id.as_str(),
            checkout.id.as_str(),
            paid.price,
            paid.currency.as_str(),
            checkout.package.credits.thousandths(),
            paid.invoice
        ],
    )
}

fn refuse(tx: &Tx<'_>, paid: &PaidSession, reason: String) -> Result<PaymentOutcome, StoreError> {
    // The account is kept only where it is one: its owner and the operator see the payment there.
    tx.execute_one(
        "UPDATE payment SET state = 'refused', refusal = ?2, price = ?3, currency = ?4, invoice = ?5,
             account_id = (SELECT id FROM account WHERE id = ?6) WHERE id = ?1",
        params![
            paid.payment,
            reason,
            paid.price,
            paid.currency.as_str(),
            paid.invoice,
            paid.account
        ],
    )?;
    Ok(PaymentOutcome::Refused(reason))
}

fn keep_return(
    tx: &Tx<'_>,
    payment: &str,
    (kind, id): (&str, &str),
    amount: i64,
    is_undone: bool,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO payment_return (id, payment_id, kind, amount, begun, undone) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (id) DO UPDATE SET begun = begun | excluded.begun, undone = undone | excluded.undone",
        params![id, payment, kind, amount, !is_undone, is_undone],
    )
}

/// Takes back or gives again what the reports about the payment's money have changed.
fn move_credits(
    tx: &Tx<'_>,
    event: &PaymentEvent,
    payment: &str,
) -> Result<PaymentOutcome, StoreError> {
    let facts = payment_facts(tx, payment)?;
    let Some(account) = facts.account.filter(|_| facts.is_credited) else {
        return Ok(PaymentOutcome::Noted);
    };
    let (target, difference) = balance(&facts, returns(tx, payment)?);
    if difference == 0 {
        return Ok(PaymentOutcome::Noted);
    }
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
    transfer(tx, &account, &movement, size)?;
    tx.execute_one(
        "UPDATE payment SET taken_back = ?2 WHERE id = ?1",
        params![payment, target.thousandths()],
    )?;
    Ok(outcome)
}

fn payment_facts(tx: &Tx<'_>, payment: &str) -> Result<PaymentFacts, StoreError> {
    let found = tx.find(
        "SELECT state, account_id, price, credits, taken_back FROM payment WHERE id = ?1",
        [payment],
        |row| {
            let account: Option<String> = row.get("account_id")?;
            Ok(PaymentFacts {
                is_credited: row.get::<_, String>("state")? == "credited",
                account: account.as_deref().and_then(AccountId::parse),
                credits: Credits::from_thousandths(
                    row.get::<_, Option<i64>>("credits")?.unwrap_or(0),
                ),
                price: row.get::<_, Option<i64>>("price")?.unwrap_or(0),
                taken_back: Credits::from_thousandths(row.get("taken_back")?),
            })
        },
    )?;
    found.ok_or_else(|| StoreError::Corrupt(format!("the payment {payment} is not there")))
}

fn returns(tx: &Tx<'_>, payment: &str) -> Result<Returns, StoreError> {
    let found = tx.find(
        "SELECT (SELECT returned FROM payment WHERE id = ?1) AS told,
             coalesce(sum(CASE WHEN kind = 'refund' AND undone = 0 THEN amount END), 0) AS refunds,
             coalesce(sum(CASE WHEN kind = 'refund' THEN undone END), 0) AS failed,
             coalesce(sum(CASE WHEN kind = 'dispute' AND undone = 0 THEN amount END), 0) AS disputes
         FROM payment_return WHERE payment_id = ?1",
        [payment],
        |row| {
            Ok(Returns {
                told_by_charge: row.get("told")?,
                refunds: row.get("refunds")?,
                a_refund_failed: row.get::<_, i64>("failed")? > 0,
                disputes: row.get("disputes")?,
            })
        },
    )?;
    Ok(found.unwrap_or_default())
}

fn find_checkout(tx: &Tx<'_>, id: &CheckoutId) -> Result<Option<Checkout>, StoreError> {
    tx.find(
        "SELECT * FROM checkout WHERE id = ?1",
        [id.as_str()],
        |row| {
            Ok(Checkout {
                id: *id,
                account_id: account_id(row)?,
                package: Package {
                    name: row.get("package")?,
                    credits: Credits::from_thousandths(row.get("credits")?),
                    price: row.get("price")?,
                    currency: parsed(row, "currency", |text| Currency::parse(text).ok())?,
                },
                created_at: time(row, "created_at")?,
            })
        },
    )
}

fn payment_record(row: &Row<'_>) -> Result<PaymentRecord, StoreError> {
    let account: Option<String> = row.get("account_id")?;
    let (price, currency): (Option<i64>, Option<String>) =
        (row.get("price")?, row.get("currency")?);
    let currency = currency.and_then(|code| Currency::parse(&code).ok());
    let state: String = row.get("state")?;
    Ok(PaymentRecord {
        id: row.get("id")?,
        state: match (state.as_str(), row.get::<_, Option<String>>("refusal")?) {
            ("credited", _) => PaymentState::Credited,
            ("refused", Some(reason)) => PaymentState::Refused(reason),
            _ => PaymentState::Unknown,
        },
        first_at: time(row, "first_at")?,
        account_id: account.as_deref().and_then(AccountId::parse),
        package: row.get("package")?,
        price: price.zip(currency),
        credits: row
            .get::<_, Option<i64>>("credits")?
            .map(Credits::from_thousandths),
        invoice: row.get("invoice")?,
        taken_back: Credits::from_thousandths(row.get("taken_back")?),
        in_dispute: row.get("in_dispute")?,
    })
}
