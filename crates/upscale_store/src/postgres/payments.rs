//! Orders of credits and the payment service's events: what they mean is judged in `payments.rs` beside the engines.
//! A payment's rows are written under its own lock (the one a purchase by hand takes on its reference), its
//! account's after that.

use tokio_postgres::Row;
use upscale_core::{
    AccountId, CheckoutId, Credits, Currency, Package, Returns, limits::CHECKOUTS_PER_HOUR,
};

use super::{
    Db, Tx,
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
        let mut tx = self.begin().await?;
        let opened = open_checkout(&mut tx, account, package).await;
        tx.end(opened).await
    }

    pub(crate) async fn record_payment_event(
        &self,
        event: &PaymentEvent,
    ) -> Result<PaymentOutcome, StoreError> {
        let mut tx = self.begin().await?;
        let outcome = record_event(&mut tx, event).await;
        tx.end(outcome).await
    }

    pub(crate) async fn list_payments(
        &self,
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
        let tx = self.read().await?;
        tx.list(
            &sql,
            &[&value, &first_at, &id, &i64::from(limit)],
            payment_record,
        )
        .await
    }

    pub(crate) async fn find_checkout(
        &self,
        id: &CheckoutId,
    ) -> Result<Option<(Checkout, Option<PaymentRecord>)>, StoreError> {
        let tx = self.read().await?;
        let Some(checkout) = find_checkout(&tx, id).await? else {
            return Ok(None);
        };
        let sql = format!("{SELECT_PAYMENT} WHERE checkout_id = $1 AND state = 'credited'");
        let payment = tx.find(&sql, &[&id.as_str()], payment_record).await?;
        Ok(Some((checkout, payment)))
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
            &[&account.as_str(), &tx.now.plus_seconds(-3_600).micros()],
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
            &id.as_str(),
            &account.as_str(),
            &package.name,
            &package.credits.thousandths(),
            &package.price,
            &package.currency.as_str(),
            &tx.now.micros(),
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
        let lock = "SELECT pg_advisory_xact_lock(1, hashtext($1))";
        tx.execute(lock, &[&payment]).await?;
    }
    let known = "SELECT 1 FROM payment_event WHERE id = $1";
    if tx.find(known, &[&event.id], |_| Ok(())).await?.is_some() {
        return Ok(PaymentOutcome::Repeated);
    }
    if let Some(payment) = payment {
        tx.execute(
            "INSERT INTO payment (id, state, first_at) VALUES ($1, 'unknown', $2) ON CONFLICT DO NOTHING",
            &[&payment, &tx.now.micros()],
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
                &tx.now.micros(),
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
                "UPDATE payment SET returned = greatest(returned, $2) WHERE id = $1",
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
                &[&paid.checkout.as_str()],
                |row| Ok(row.try_get(0)?),
            )
            .await?,
        purchase: tx
            .find(
                "SELECT account_id, amount FROM ledger WHERE kind = 'purchase' AND external_reference = $1",
                &[&paid.payment],
                |row| Ok((row.try_get(0)?, row.try_get(1)?)),
            )
            .await?,
    });
    let (checkout, is_new) = match verdict {
        Verdict::Refuse(reason) => return refuse(tx, paid, reason).await,
        Verdict::Credit(checkout) => (checkout, true),
        Verdict::Record(checkout) => (checkout, false),
    };
    keep_credited(tx, paid, &checkout).await?;
    let (account, credits) = (checkout.account_id, checkout.package.credits);
    if is_new {
        transfer(tx, &account, &Transfer::Purchase(&paid.payment), credits).await?;
        tx.execute_one(
            "UPDATE account SET activated_at = coalesce(activated_at, $2) WHERE id = $1",
            &[&account.as_str(), &tx.now.micros()],
        )
        .await?;
    }
    // Its money may have gone back before anybody said that it came.
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
            &checkout.account_id.as_str(),
            &checkout.id.as_str(),
            &paid.price,
            &paid.currency.as_str(),
            &checkout.package.credits.thousandths(),
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
            &i64::from(!is_undone),
            &i64::from(is_undone),
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
        &[&payment, &target.thousandths()],
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
                let account: Option<&str> = row.try_get("account_id")?;
                let number = |column: &str| row.try_get::<_, Option<i64>>(column);
                Ok(PaymentFacts {
                    is_credited: row.try_get::<_, &str>("state")? == "credited",
                    account: account.and_then(AccountId::parse),
                    credits: Credits::from_thousandths(number("credits")?.unwrap_or(0)),
                    price: number("price")?.unwrap_or(0),
                    taken_back: Credits::from_thousandths(row.try_get("taken_back")?),
                })
            },
        )
        .await?;
    found.ok_or_else(|| StoreError::Corrupt(format!("the payment {payment} is not there")))
}

async fn returns(tx: &Tx, payment: &str) -> Result<Returns, StoreError> {
    let found = tx
        .find(
            "SELECT (SELECT returned FROM payment WHERE id = $1) AS told,
                 CAST(coalesce(sum(CASE WHEN kind = 'refund' AND undone = 0 THEN amount END), 0) AS BIGINT) AS refunds,
                 CAST(coalesce(sum(CASE WHEN kind = 'refund' THEN undone END), 0) AS BIGINT) AS failed,
                 CAST(coalesce(sum(CASE WHEN kind = 'dispute' AND undone = 0 THEN amount END), 0) AS BIGINT)
                     AS disputes
             FROM payment_return WHERE payment_id = $1",
            &[&payment],
            |row| {
                Ok(Returns {
                    told_by_charge: row.try_get("told")?,
                    refunds: row.try_get("refunds")?,
                    a_refund_failed: row.try_get::<_, i64>("failed")? > 0,
                    disputes: row.try_get("disputes")?,
                })
            },
        )
        .await?;
    Ok(found.unwrap_or_default())
}

async fn find_checkout(tx: &Tx, id: &CheckoutId) -> Result<Option<Checkout>, StoreError> {
    let sql = "SELECT * FROM checkout WHERE id = $1";
    tx.find(sql, &[&id.as_str()], |row| {
        Ok(Checkout {
            id: *id,
            account_id: account_id(row)?,
            package: Package {
                name: row.try_get("package")?,
                credits: Credits::from_thousandths(row.try_get("credits")?),
                price: row.try_get("price")?,
                currency: parsed(row, "currency", |text| Currency::parse(text).ok())?,
            },
            created_at: time(row, "created_at")?,
        })
    })
    .await
}

fn payment_record(row: &Row) -> Result<PaymentRecord, StoreError> {
    let account: Option<&str> = row.try_get("account_id")?;
    let (price, currency): (Option<i64>, Option<&str>) =
        (row.try_get("price")?, row.try_get("currency")?);
    let currency = currency.and_then(|code| Currency::parse(code).ok());
    let state: &str = row.try_get("state")?;
    Ok(PaymentRecord {
        id: row.try_get("id")?,
        state: match (state, row.try_get::<_, Option<String>>("refusal")?) {
            ("credited", _) => PaymentState::Credited,
            ("refused", Some(reason)) => PaymentState::Refused(reason),
            _ => PaymentState::Unknown,
        },
        first_at: time(row, "first_at")?,
        account_id: account.and_then(AccountId::parse),
        package: row.try_get("package")?,
        price: price.zip(currency),
        credits: row
            .try_get::<_, Option<i64>>("credits")?
            .map(Credits::from_thousandths),
        invoice: row.try_get("invoice")?,
        taken_back: Credits::from_thousandths(row.try_get("taken_back")?),
        in_dispute: row.try_get("in_dispute")?,
    })
}
