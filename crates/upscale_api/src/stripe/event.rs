//! Stripe's events as the store understands them. Only the few fields that matter are read: Stripe adds others at any
//! time. Types that move no credits, and payments that are no order of ours, are nothing.

use serde_json::Value;
use upscale_core::{CheckoutId, Currency};
use upscale_store::{DisputeStep, PaidSession, PaymentEvent, PaymentNews};

/// The event is signed and yet not what its type says; the words are for the log and for Stripe's list of failed calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event without a usable {0}")]
pub(super) struct NotUsable(&'static str);

/// Reads a signed body.
pub(super) fn parse(body: &[u8], is_live: bool) -> Result<PaymentEvent, NotUsable> {
    let event: Value = serde_json::from_slice(body).map_err(|_| NotUsable("JSON object"))?;
    let id = text(&event, "id").ok_or(NotUsable("id"))?;
    let kind = text(&event, "type").ok_or(NotUsable("type"))?;
    // Test payments must buy nothing where real ones do, even if someone set up both secrets.
    let is_of_this_mode = event["livemode"].as_bool() == Some(is_live);
    let news = if is_of_this_mode {
        news(&kind, &event["data"]["object"])?
    } else {
        PaymentNews::Nothing
    };
    Ok(PaymentEvent { id, kind, news })
}

fn news(kind: &str, object: &Value) -> Result<PaymentNews, NotUsable> {
    match kind {
        "checkout.session.completed" | "checkout.session.async_payment_succeeded" => paid(object),
        "charge.refunded" => Ok(match id_of(&object["payment_intent"]) {
            None => PaymentNews::Nothing,
            Some(payment) => PaymentNews::ChargeReturned {
                payment,
                returned: amount(object, "amount_refunded")?,
            },
        }),
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
            refund(object)
        }
        "charge.dispute.funds_withdrawn" => dispute(object, DisputeStep::Withdrawn),
        "charge.dispute.funds_reinstated" => dispute(object, DisputeStep::Reinstated),
        _ => Ok(PaymentNews::Nothing),
    }
}

/// Completed is not paid: a bank transfer takes days, and its success is an event of its own.
fn paid(session: &Value) -> Result<PaymentNews, NotUsable> {
    let checkout = text(session, "client_reference_id").and_then(|id| CheckoutId::parse(&id));
    let Some(checkout) = checkout.filter(|_| session["payment_status"] == "paid") else {
        return Ok(PaymentNews::Nothing);
    };
    let currency = text(session, "currency").and_then(|code| Currency::parse(&code).ok());
    Ok(PaymentNews::Paid(PaidSession {
        payment: id_of(&session["payment_intent"]).ok_or(NotUsable("payment_intent"))?,
        checkout,
        account: text(&session["metadata"], "account").unwrap_or_default(),
        price: amount(session, "amount_total")?,
        currency: currency.ok_or(NotUsable("currency"))?,
        invoice: id_of(&session["invoice"]),
    }))
}

fn refund(refund: &Value) -> Result<PaymentNews, NotUsable> {
    let Some(payment) = id_of(&refund["payment_intent"]) else {
        return Ok(PaymentNews::Nothing);
    };
    Ok(PaymentNews::Refund {
        payment,
        refund: text(refund, "id").ok_or(NotUsable("refund's id"))?,
        amount: amount(refund, "amount")?,
        failed: matches!(refund["status"].as_str(), Some("failed" | "canceled")),
    })
}

fn dispute(dispute: &Value, step: DisputeStep) -> Result<PaymentNews, NotUsable> {
    let Some(payment) = id_of(&dispute["payment_intent"]) else {
        return Ok(PaymentNews::Nothing);
    };
    Ok(PaymentNews::Dispute {
        payment,
        dispute: text(dispute, "id").ok_or(NotUsable("dispute's id"))?,
        amount: amount(dispute, "amount")?,
        step,
    })
}

fn text(object: &Value, name: &str) -> Option<String> {
    object[name].as_str().map(str::to_owned)
}

/// An id, or the object with it where it was expanded.
fn id_of(value: &Value) -> Option<String> {
    let id = value.as_str().or_else(|| value["id"].as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

fn amount(object: &Value, name: &'static str) -> Result<i64, NotUsable> {
    let amount = object[name].as_i64().filter(|amount| *amount >= 0);
    amount.ok_or(NotUsable(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, object: &Value) -> Result<PaymentNews, NotUsable> {
        let event =
            json!({ "id": "evt_1", "type": kind, "livemode": false, "data": { "object": object } });
        parse(event.to_string().as_bytes(), false).map(|event| event.news)
    }

    fn session() -> Value {
        json!({
            "id": "cs_1", "object": "checkout.session", "payment_status": "paid", "payment_intent": "pi_1",
            "client_reference_id": "chk_3k9v1c7m5x8q2w4e6r0t1y3n5p", "amount_total": 1000, "currency": "usd",
            "metadata": { "account": "acc_1", "package": "hundred" }, "invoice": "in_1", "mode": "payment"
        })
    }

    fn with(mut object: Value, name: &str, value: Value) -> Value {
        object[name] = value;
        object
    }

    #[test]
    fn a_paid_session_is_read_whichever_event_tells_of_it() {
        for kind in [
            "checkout.session.completed",
            "checkout.session.async_payment_succeeded",
        ] {
            let Ok(PaymentNews::Paid(paid)) = read(kind, &session()) else {
                panic!("{kind}");
            };
            assert_eq!(
                (paid.payment.as_str(), paid.account.as_str(), paid.price),
                ("pi_1", "acc_1", 1_000)
            );
            assert_eq!(
                (paid.currency.as_str(), paid.invoice.as_deref()),
                ("usd", Some("in_1"))
            );
        }
        let expanded = with(session(), "payment_intent", json!({ "id": "pi_9" }));
        let news = read("checkout.session.completed", &expanded);
        assert!(matches!(news, Ok(PaymentNews::Paid(paid)) if paid.payment == "pi_9"));
    }

    #[test]
    fn what_is_not_paid_not_ours_or_of_the_other_mode_is_nothing() {
        let completed = "checkout.session.completed";
        for (name, value) in [
            ("payment_status", json!("unpaid")),
            ("payment_status", json!("no_payment_required")),
            ("client_reference_id", json!(null)),
            ("client_reference_id", json!("order 17 of another shop")),
        ] {
            assert_eq!(
                read(completed, &with(session(), name, value)),
                Ok(PaymentNews::Nothing),
                "{name}"
            );
        }
        let live = json!({ "id": "evt_1", "type": completed, "livemode": true, "data": { "object": session() } });
        let news = |is_live| parse(live.to_string().as_bytes(), is_live).unwrap().news;
        assert_eq!(news(false), PaymentNews::Nothing);
        assert!(matches!(news(true), PaymentNews::Paid(_)));
        for kind in [
            "customer.created",
            "charge.dispute.created",
            "checkout.session.expired",
            "",
        ] {
            assert_eq!(read(kind, &session()), Ok(PaymentNews::Nothing), "{kind}");
        }
    }

    #[test]
    fn money_that_goes_back_is_read_from_charges_refunds_and_disputes() {
        let charge = json!({ "id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_refunded": 250 });
        let returned = PaymentNews::ChargeReturned {
            payment: "pi_1".to_owned(),
            returned: 250,
        };
        assert_eq!(read("charge.refunded", &charge), Ok(returned));
        for (status, failed) in [
            ("succeeded", false),
            ("pending", false),
            ("failed", true),
            ("canceled", true),
        ] {
            let refund =
                json!({ "id": "re_1", "payment_intent": "pi_1", "amount": 250, "status": status });
            let news = read("refund.updated", &refund).unwrap();
            assert!(
                matches!(news, PaymentNews::Refund { failed: seen, amount: 250, .. } if seen == failed),
                "{status}"
            );
        }
        let dispute = json!({ "id": "dp_1", "payment_intent": "pi_1", "amount": 1000 });
        for (kind, expected) in [
            ("charge.dispute.funds_withdrawn", DisputeStep::Withdrawn),
            ("charge.dispute.funds_reinstated", DisputeStep::Reinstated),
        ] {
            let news = read(kind, &dispute).unwrap();
            assert!(
                matches!(news, PaymentNews::Dispute { step, .. } if step == expected),
                "{kind}"
            );
        }
        let without = json!({ "id": "re_1", "payment_intent": null, "amount": 250 });
        assert_eq!(read("refund.created", &without), Ok(PaymentNews::Nothing));
    }

    #[test]
    fn an_event_that_is_not_what_its_type_says_is_not_usable() {
        let completed = "checkout.session.completed";
        for (name, value) in [
            ("payment_intent", json!(null)),
            ("amount_total", json!("1000")),
            ("amount_total", json!(-1)),
            ("amount_total", json!(10.5)),
            ("currency", json!("dollars")),
        ] {
            assert!(
                read(completed, &with(session(), name, value)).is_err(),
                "{name}"
            );
        }
        for body in [
            "",
            "[]",
            "null",
            "{\"id\":1}",
            "{\"id\":\"evt_1\"}",
            "\u{0}",
        ] {
            assert!(parse(body.as_bytes(), false).is_err(), "{body}");
        }
    }
}
