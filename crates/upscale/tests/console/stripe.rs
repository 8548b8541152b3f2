//! As much of Stripe as a purchase needs: a session is made, its page has a button, and pressing it leads back at once;
//! the signed event comes later, as it does in life: when the test has seen what it wants to see before.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{RawForm, State},
    response::{Html, Redirect},
    routing::{get, post},
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::harness::client::send;

pub(crate) const SECRET_KEY: &str = "sk_test_of_the_browser_test";
pub(crate) const WEBHOOK_SECRET: &str = "whsec_of_the_browser_test";

/// A running fake.
#[derive(Clone)]
pub(crate) struct Stripe {
    pub(crate) url: String,
    shared: Arc<Mutex<Shared>>,
    may_tell: Arc<tokio::sync::Notify>,
}

#[derive(Default)]
struct Shared {
    /// The last session's form.
    session: HashMap<String, String>,
    api: String,
}

impl Stripe {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stripe = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            shared: Arc::default(),
            may_tell: Arc::default(),
        };
        let router = Router::new()
            .route("/v1/checkout/sessions", post(open_session))
            .route("/c/pay/1", get(page).post(pay))
            .with_state(stripe.clone());
        tokio::spawn(upscale_api::serve(
            listener,
            router,
            upscale_api::ServeLimits::default(),
            std::future::pending(),
        ));
        stripe
    }

    /// Flags by which `serve` finds it.
    pub(crate) fn flags(&self) -> Vec<String> {
        [
            "--stripe-api",
            &self.url,
            "--stripe-checkout-url",
            &self.url,
            "--package",
            "starter=50:5.90:eur",
            "--package",
            "studio=500:49:eur",
            "--package",
            "agency=5000:390:eur",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// A field of the last session that was asked for.
    pub(crate) fn last(&self, field: &str) -> String {
        self.shared.lock().unwrap().session[field].clone()
    }

    /// Lets the event of the last payment go.
    pub(crate) fn send_event(&self) {
        self.may_tell.notify_one();
    }

    /// Whose webhook is told.
    pub(crate) fn tell(&self, api: &str) {
        api.clone_into(&mut self.shared.lock().unwrap().api);
    }
}

async fn open_session(State(stripe): State<Stripe>, RawForm(form): RawForm) -> Json<Value> {
    let fields = url::form_urlencoded::parse(&form).into_owned().collect();
    stripe.shared.lock().unwrap().session = fields;
    Json(json!({ "id": "cs_test_1", "url": format!("{}/c/pay/1", stripe.url) }))
}

async fn page(State(stripe): State<Stripe>) -> Html<String> {
    let session = stripe.shared.lock().unwrap().session.clone();
    Html(format!(
        "<!doctype html><title>Pay</title><h1>Pay {} for {}</h1><form method=post><button id=pay>Pay</button></form>\
         <a id=back href=\"{}\">Back</a>",
        session["line_items[0][price_data][unit_amount]"],
        session["line_items[0][price_data][product_data][name]"],
        session["cancel_url"],
    ))
}

async fn pay(State(stripe): State<Stripe>) -> Redirect {
    let (session, api) = {
        let shared = stripe.shared.lock().unwrap();
        (shared.session.clone(), shared.api.clone())
    };
    let back = Redirect::to(&session["success_url"]);
    tokio::spawn(async move {
        stripe.may_tell.notified().await;
        let reported = tokio::task::spawn_blocking(move || tell(&session, &api));
        assert_eq!(reported.await.unwrap(), Some(200));
    });
    back
}

/// The status that the webhook answered.
fn tell(session: &HashMap<String, String>, api: &str) -> Option<u16> {
    let price: i64 = session["line_items[0][price_data][unit_amount]"]
        .parse()
        .unwrap();
    let object = json!({
        "id": "cs_test_1", "object": "checkout.session", "mode": "payment", "payment_status": "paid",
        "payment_intent": "pi_3TestOfTheBrowser", "client_reference_id": session["client_reference_id"],
        "amount_total": price, "currency": session["line_items[0][price_data][currency]"], "invoice": "in_1Test",
        "metadata": { "account": session["metadata[account]"], "package": session["metadata[package]"] }
    });
    let event = json!({
        "id": "evt_1", "object": "event", "api_version": "2024-06-20", "created": 1, "livemode": false,
        "pending_webhooks": 1, "type": "checkout.session.completed", "data": { "object": object }
    })
    .to_string();
    let at = upscale_core::Clock::System.now().unix_seconds();
    let mut mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).unwrap();
    mac.update(format!("{at}.{event}").as_bytes());
    let signature = data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes());
    let signature = format!("t={at},v1={signature}");
    let headers = [("stripe-signature", signature.as_str())];
    let url = format!("{api}/webhooks/stripe");
    let answer = send("POST", &url, &headers, Some(event.as_bytes()));
    answer.map(|answer| answer.status)
}
