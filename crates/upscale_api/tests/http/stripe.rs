//! Stripe's webhook as Stripe calls it: signed bodies over a socket, told twice, too late, changed on the way, in the
//! wrong order; and the wish to buy, with a Stripe of the test's own behind it.

use std::sync::{Arc, Mutex};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use upscale_api::{BuyOutcome, NewSession, SessionError, Stripe};
use upscale_core::{AccountId, Credits, Currency, Package, hex};
use upscale_store::{PaymentFilter, PaymentState};

use crate::{
    client::Answer,
    harness::{App, NOON, Settings, with_app, with_app_set},
};

const SECRET: &str = "whsec_of_the_first_endpoint_of_this_test";
const NEXT_SECRET: &str = "whsec_of_its_replacement_in_this_test";

type Asked = Arc<Mutex<Vec<NewSession>>>;

/// With two secrets, one package, and a Stripe that says yes to all but the third order.
async fn with_stripe(test: impl AsyncFnOnce(&App, &Stripe, &Asked)) {
    let asked = Asked::default();
    let orders = Arc::clone(&asked);
    let stripe = Stripe {
        packages: Arc::from([package()]),
        webhook_secrets: Arc::from([NEXT_SECRET.to_owned(), SECRET.to_owned()]),
        is_live: false,
        checkout_origin: Arc::from("https://checkout.example"),
        open_session: Arc::new(move |order| {
            let number = {
                let mut orders = orders.lock().unwrap();
                orders.push(order);
                orders.len()
            };
            Box::pin(async move {
                match number {
                    3 => Err(SessionError("answered 500".to_owned())),
                    _ => Ok(format!("https://checkout.example/{number}")),
                }
            })
        }),
    };
    let settings = Settings {
        stripe: Some(stripe.clone()),
        ..Settings::default()
    };
    with_app_set(settings, async |app| {
        app.keep_secret(SECRET);
        app.keep_secret(NEXT_SECRET);
        test(app, &stripe, &asked).await;
    })
    .await;
}

fn package() -> Package {
    Package {
        name: "hundred".to_owned(),
        credits: Credits::parse("100").unwrap(),
        price: 1_000,
        currency: Currency::parse("usd").unwrap(),
    }
}

fn signed(secret: &str, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    format!("t={at},v1={}", hex(&mac.finalize().into_bytes()))
}

async fn post(app: &App, body: &str, signature: &str) -> Answer {
    let asking = app.request_without_key("POST", "/webhooks/stripe");
    let asking = asking.header("content-type", "application/json; charset=utf-8");
    asking
        .header("stripe-signature", signature)
        .body(body)
        .send()
        .await
}

/// Signed now, as it should be.
async fn receive(app: &App, id: &str, kind: &str, object: &Value) -> Answer {
    let body = event(id, kind, object);
    let now = app.store.now().unix_seconds();
    post(app, &body, &signed(SECRET, now, &body)).await
}

fn event(id: &str, kind: &str, object: &Value) -> String {
    json!({
        "id": id, "object": "event", "api_version": "2024-06-20", "created": NOON, "livemode": false,
        "pending_webhooks": 1, "type": kind, "data": { "object": object }
    })
    .to_string()
}

/// What Stripe tells of the last order once it is paid.
fn session(asked: &Asked) -> Value {
    let orders = asked.lock().unwrap();
    let order = orders.last().unwrap();
    json!({
        "id": "cs_test_1", "object": "checkout.session", "mode": "payment", "payment_status": "paid",
        "payment_intent": "pi_1", "client_reference_id": order.checkout.id.as_str(), "amount_total": 1000,
        "currency": "usd", "invoice": "in_1",
        "metadata": { "account": order.checkout.account_id.as_str(), "package": "hundred" }
    })
}

async fn buys(app: &App, stripe: &Stripe, account: &AccountId) -> BuyOutcome {
    let page = "https://console.example.org/credits";
    stripe.buy(&app.store, account, "hundred", page, None).await
}

async fn available(app: &App) -> String {
    app.account_now().await.available.to_string()
}

const COMPLETED: &str = "checkout.session.completed";

#[tokio::test]
async fn a_purchase_is_paid_told_and_credited_once() {
    with_stripe(async |app, stripe, asked| {
        let outcome = buys(app, stripe, &app.account).await;
        assert!(matches!(outcome, BuyOutcome::PayAt(url) if url == "https://checkout.example/1"));
        let order = asked.lock().unwrap()[0].clone();
        let id = order.checkout.id.as_str();
        let page = "https://console.example.org/credits";
        assert_eq!(order.success_url, format!("{page}?order={id}"));
        assert_eq!(order.cancel_url, format!("{page}?left={id}"));
        assert_eq!(
            (&order.checkout.package, &order.checkout.account_id),
            (&package(), &app.account)
        );
        assert_eq!(available(app).await, "100");
        let unpaid = session(asked).to_string().replace("\"paid\"", "\"unpaid\"");
        receive(
            app,
            "evt_0",
            COMPLETED,
            &serde_json::from_str(&unpaid).unwrap(),
        )
        .await
        .expect(200, "");
        assert_eq!(available(app).await, "100");
        receive(
            app,
            "evt_1",
            "checkout.session.async_payment_succeeded",
            &session(asked),
        )
        .await
        .expect(200, "");
        assert_eq!(available(app).await, "200");
        for id in ["evt_1", "evt_2"] {
            receive(app, id, COMPLETED, &session(asked))
                .await
                .expect(200, "");
        }
        assert_eq!(available(app).await, "200");
        let line = &app
            .store
            .accounts()
            .list_ledger(&app.account, 1)
            .await
            .unwrap()[0];
        assert_eq!(line.external_reference.as_deref(), Some("pi_1"));
    })
    .await;
}

#[tokio::test]
async fn what_is_not_signed_just_now_by_a_known_secret_changes_nothing() {
    with_stripe(async |app, stripe, asked| {
        buys(app, stripe, &app.account).await;
        let body = event("evt_1", COMPLETED, &session(asked));
        let refuse = async |body: &str, signature: &str| {
            post(app, body, signature)
                .await
                .expect(400, "invalid_request");
        };
        refuse(&body, "").await;
        refuse(&body, "nonsense").await;
        refuse(&body, &signed("whsec_of_another_process", NOON, &body)).await;
        refuse(&body, &signed(SECRET, NOON - 301, &body)).await;
        refuse(&body, &signed(SECRET, NOON + 301, &body)).await;
        let signature = signed(SECRET, NOON, &body);
        refuse(&body.replace("1000", "9999"), &signature).await;
        refuse(&format!("{body} "), &signature).await;
        // The recording of a good call, played later.
        app.clock.advance_seconds(301);
        refuse(&body, &signature).await;
        app.clock.advance_seconds(-301);
        assert_eq!(available(app).await, "100");
        let unsigned = app
            .request_without_key("POST", "/webhooks/stripe")
            .body(&body);
        unsigned.send().await.expect(400, "invalid_request");
        // Both secrets count while one is replaced.
        let replaced = signed(NEXT_SECRET, NOON, &body);
        post(app, &body, &replaced).await.expect(200, "");
        post(app, &body, &signature).await.expect(200, "");
        assert_eq!(available(app).await, "200");
    })
    .await;
}

#[tokio::test]
async fn what_was_paid_otherwise_than_ordered_is_acknowledged_and_credits_no_one() {
    with_stripe(async |app, stripe, asked| {
        buys(app, stripe, &app.account).await;
        for (n, (name, value)) in [
            ("amount_total", json!(1)),
            ("amount_total", json!(100_000)),
            ("currency", json!("eur")),
            ("metadata", json!({ "account": "acc_of_another" })),
            (
                "client_reference_id",
                json!("chk_3k9v1c7m5x8q2w4e6r0t1y3n5p"),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let mut session = session(asked);
            session[name] = value;
            receive(app, &format!("evt_{n}"), COMPLETED, &session)
                .await
                .expect(200, "");
        }
        assert_eq!(available(app).await, "100");
        let refused = app
            .store
            .payments()
            .list(&PaymentFilter::Refused, 10)
            .await
            .unwrap();
        assert!(
            matches!(&refused[..], [one] if matches!(one.state, PaymentState::Refused(_))),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn money_that_goes_back_takes_its_credits_along_in_whichever_order_it_is_told() {
    with_stripe(async |app, stripe, asked| {
        buys(app, stripe, &app.account).await;
        let charge = |returned| json!({ "id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_refunded": returned });
        // Told before the payment itself.
        receive(app, "evt_1", "charge.refunded", &charge(250)).await.expect(200, "");
        assert_eq!(available(app).await, "100");
        receive(app, "evt_2", COMPLETED, &session(asked)).await.expect(200, "");
        assert_eq!(available(app).await, "175");
        let dispute = json!({ "id": "dp_1", "payment_intent": "pi_1", "amount": 750 });
        receive(app, "evt_3", "charge.dispute.funds_withdrawn", &dispute).await.expect(200, "");
        assert_eq!(available(app).await, "100");
        receive(app, "evt_4", "charge.dispute.funds_reinstated", &dispute).await.expect(200, "");
        assert_eq!(available(app).await, "175");
        receive(app, "evt_5", "charge.refunded", &charge(1000)).await.expect(200, "");
        receive(app, "evt_1", "charge.refunded", &charge(250)).await.expect(200, "");
        assert_eq!(available(app).await, "100");
    })
    .await;
}

#[tokio::test]
async fn unknown_events_are_acknowledged_and_unusable_ones_are_not() {
    with_stripe(async |app, _, _| {
        for kind in ["customer.created", "an.event.of.tomorrow"] {
            receive(app, kind, kind, &json!({ "id": "x" }))
                .await
                .expect(200, "");
        }
        let unusable = json!({ "id": "ch_1", "payment_intent": "pi_1" });
        receive(app, "evt_1", "charge.refunded", &unusable)
            .await
            .expect(400, "invalid_request");
        let not_json = "hello";
        let signature = signed(SECRET, NOON, not_json);
        post(app, not_json, &signature)
            .await
            .expect(400, "invalid_request");
        let large = format!("{{\"id\":\"{}\"}}", "x".repeat(512 * 1024));
        let signature = signed(SECRET, NOON, &large);
        post(app, &large, &signature)
            .await
            .expect(400, "invalid_request");
        app.request_without_key("GET", "/webhooks/stripe")
            .send()
            .await
            .expect(405, "method_not_allowed");
    })
    .await;
}

#[tokio::test]
async fn a_wish_to_buy_says_what_became_of_it() {
    with_stripe(async |app, stripe, asked| {
        let nothing = stripe.buy(&app.store, &app.account, "thousand", "https://a", None);
        let nothing = nothing.await;
        assert!(matches!(nothing, BuyOutcome::NoSuchPackage));
        for n in 1..=20 {
            let outcome = buys(app, stripe, &app.account).await;
            match n {
                3 => assert!(matches!(outcome, BuyOutcome::Unavailable(_)), "{outcome:?}"),
                _ => assert!(matches!(outcome, BuyOutcome::PayAt(_)), "{outcome:?}"),
            }
        }
        let one_more = buys(app, stripe, &app.account).await;
        assert!(matches!(one_more, BuyOutcome::TooMany));
        assert_eq!(asked.lock().unwrap().len(), 20);
        let elsewhere = Stripe {
            checkout_origin: Arc::from("https://pay.example"),
            ..stripe.clone()
        };
        let buyer = app.store.accounts().create("Another").await.unwrap().id;
        let outcome = buys(app, &elsewhere, &buyer).await;
        assert!(
            matches!(&outcome, BuyOutcome::Unavailable(why) if why.contains("https://pay.example")),
            "{outcome:?}"
        );
        let no_one = AccountId::random().unwrap();
        let outcome = buys(app, stripe, &no_one).await;
        assert!(matches!(outcome, BuyOutcome::Unavailable(_)), "{outcome:?}");
    })
    .await;
}

#[tokio::test]
async fn without_stripe_there_is_no_webhook() {
    with_app(async |app| {
        let body = event("evt_1", COMPLETED, &json!({}));
        post(app, &body, &signed(SECRET, NOON, &body))
            .await
            .expect(404, "not_found");
    })
    .await;
}

#[tokio::test]
async fn a_header_that_cannot_be_right_is_refused_before_the_body_is_waited_for() {
    with_stripe(async |app, _, _| {
        let now = app.store.now().unix_seconds();
        let digest = "ab".repeat(32);
        for header in [
            String::new(),
            "Stripe-Signature: x\r\n".to_owned(),
            format!("Stripe-Signature: t={now}\r\n"),
            format!("Stripe-Signature: t={now},v1=abab\r\n"),
            format!("Stripe-Signature: t={},v1={digest}\r\n", now - 301),
            format!("Stripe-Signature: t={now},v1={digest}\r\nContent-Encoding: gzip\r\n"),
        ] {
            let mut stream = TcpStream::connect(app.api).await.unwrap();
            // A client that asks first is not even told to go on.
            let head = format!(
                "POST /webhooks/stripe HTTP/1.1\r\nHost: a\r\n{header}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = vec![0; 16];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer[..12], b"HTTP/1.1 400", "{header}");
        }
    })
    .await;
}
