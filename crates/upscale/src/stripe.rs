//! The one call to Stripe: a Checkout Session for an order, and the configuration it needs. By hand and not by a
//! client library: it is one form and one answer.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use reqwest::{Client, Response, StatusCode, header};
use serde_json::Value;
use upscale_api::{NewSession, OpenSession, SessionError, Stripe};
use url::form_urlencoded::Serializer;

use crate::{args::StripeArgs, secret};

/// Whose shapes the fields below are; an account's own default may be another.
const API_VERSION: &str = "2024-06-20";
/// One try; a page waits for it.
const TRY_TIMEOUT: Duration = Duration::from_secs(4);
/// The second is made with the same Idempotency-Key, so that Stripe makes one session.
const TRIES: u32 = 2;
/// A session has some kilobytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
const SECRET_KEY_VARIABLE: &str = "UPSCALE_STRIPE_SECRET_KEY";
const WEBHOOK_SECRET_VARIABLE: &str = "UPSCALE_STRIPE_WEBHOOK_SECRET";

/// Purchases as configured; none without a secret key.
///
/// # Errors
/// When a part is missing or cannot be: half a configuration would take money and credit no one.
pub(crate) fn configured(args: &StripeArgs) -> anyhow::Result<Option<Stripe>> {
    let secret_key = secret::read(SECRET_KEY_VARIABLE, args.stripe_secret_key_file.as_deref())?;
    let webhook_secrets = secret::read(
        WEBHOOK_SECRET_VARIABLE,
        args.stripe_webhook_secret_file.as_deref(),
    )?;
    let Some(secret_key) = secret_key else {
        ensure!(
            webhook_secrets.is_none() && args.package.is_empty(),
            "packages and the webhook secret need Stripe's secret key: set \
             {SECRET_KEY_VARIABLE} or --stripe-secret-key-file"
        );
        return Ok(None);
    };
    let webhook_secrets: Vec<String> = webhook_secrets
        .iter()
        .flat_map(|text| text.split([',', '\n']))
        .map(|secret| secret.trim().to_owned())
        .filter(|secret| !secret.is_empty())
        .collect();
    ensure!(
        !webhook_secrets.is_empty(),
        "payments would never be reported: set {WEBHOOK_SECRET_VARIABLE} or --stripe-webhook-secret-file"
    );
    ensure!(
        !args.package.is_empty(),
        "nothing is for sale: name a --package"
    );
    check_names(args)?;
    Ok(Some(Stripe {
        packages: args.package.clone().into(),
        webhook_secrets: webhook_secrets.into(),
        is_live: secret_key.contains("_live_"),
        checkout_origin: origin(&args.stripe_checkout_url)?.into(),
        open_session: open_session(&args.stripe_api, &secret_key)?,
    }))
}

fn origin(url: &str) -> anyhow::Result<String> {
    let url = url::Url::parse(url).with_context(|| format!("Stripe's pages at {url}"))?;
    Ok(url.origin().ascii_serialization())
}

fn check_names(args: &StripeArgs) -> anyhow::Result<()> {
    let mut names: Vec<&str> = args.package.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("two packages are called {}", pair[0]),
        None => Ok(()),
    }
}

/// What calls Stripe.
fn open_session(api: &str, secret_key: &str) -> anyhow::Result<OpenSession> {
    let mut authorization = header::HeaderValue::try_from(format!("Bearer {secret_key}"))
        .ok()
        .context(
            "the Stripe secret key contains a character that is not allowed in an HTTP header",
        )?;
    authorization.set_sensitive(true);
    // Where results are in a bucket it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .timeout(TRY_TIMEOUT)
        // A key must not follow a redirect to another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("upscale/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("no client for Stripe")?;
    let url = format!("{api}/v1/checkout/sessions");
    let call = Arc::new(Call {
        client,
        url,
        authorization,
    });
    Ok(Arc::new(move |order| {
        let call = Arc::clone(&call);
        Box::pin(async move { call.open(&order).await.map_err(SessionError) })
    }))
}

struct Call {
    client: Client,
    url: String,
    authorization: header::HeaderValue,
}

impl Call {
    /// The page's address, or why there is none, without anything secret.
    async fn open(&self, order: &NewSession) -> Result<String, String> {
        let form = form(order);
        let mut why = String::new();
        for _ in 0..TRIES {
            match self.send(order, &form).await {
                Ok(response) if is_passing(response.status()) => {
                    why = format!("answered {}", response.status());
                }
                Ok(response) => return read(response, self.url.starts_with("https://")).await,
                Err(error) => why = format!("not reached: {}", error.without_url()),
            }
        }
        Err(format!("{why}, {TRIES} times"))
    }

    async fn send(&self, order: &NewSession, form: &str) -> reqwest::Result<Response> {
        let request = self
            .client
            .post(&self.url)
            .header(header::AUTHORIZATION, self.authorization.clone())
            .header("stripe-version", API_VERSION)
            .header("idempotency-key", order.checkout.id.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(form.to_owned()).send().await
    }
}

/// Busy, broken, or still at our first try.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::CONFLICT
}

fn form(order: &NewSession) -> String {
    let (checkout, package) = (&order.checkout, &order.checkout.package);
    let (id, account) = (checkout.id.as_str(), checkout.account_id.as_str());
    let price = package.price.to_string();
    let product = format!("{} credits", package.credits);
    let mut form = Serializer::new(String::new());
    for (name, value) in [
        ("mode", "payment"),
        ("client_reference_id", id),
        ("success_url", &order.success_url),
        ("cancel_url", &order.cancel_url),
        ("line_items[0][quantity]", "1"),
        (
            "line_items[0][price_data][currency]",
            package.currency.as_str(),
        ),
        ("line_items[0][price_data][unit_amount]", &price),
        (
            "line_items[0][price_data][product_data][name]",
            product.as_str(),
        ),
        ("metadata[account]", account),
        ("metadata[package]", &package.name),
        ("payment_intent_data[metadata][account]", account),
        ("payment_intent_data[metadata][checkout]", id),
        ("invoice_creation[enabled]", "true"),
    ] {
        form.append_pair(name, value);
    }
    if let Some(email) = &order.email {
        form.append_pair("customer_email", email);
    }
    form.finish()
}

async fn read(mut response: Response, must_be_https: bool) -> Result<String, String> {
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broke_off)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            return Err(format!("answered with more than {ANSWER_BYTES_MAX} bytes"));
        }
    }
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !status.is_success() {
        // Its message may quote what was sent; type and code do not.
        let word = |name: &str| answer["error"][name].as_str().unwrap_or("none").to_owned();
        return Err(format!(
            "answered {status}, type {}, code {}",
            word("type"),
            word("code")
        ));
    }
    let url = answer["url"].as_str().unwrap_or_default();
    if url.starts_with("https://") || (!must_be_https && url.starts_with("http://")) {
        return Ok(url.to_owned());
    }
    Err("answered without the page's address".to_owned())
}

fn broke_off(error: reqwest::Error) -> String {
    format!("the answer broke off: {}", error.without_url())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::{Router, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
    use upscale_core::{AccountId, CheckoutId, Credits, Currency, Package, Timestamp};
    use upscale_store::Checkout;

    use super::*;

    type Answers = Arc<Vec<(u16, String)>>;
    type Received = Arc<Mutex<Vec<(HeaderMap, String)>>>;

    /// A Stripe on loopback that answers with these, one after the other; the last one forever.
    async fn fake(answers: &[(u16, &str)]) -> (String, Received) {
        let received = Received::default();
        let answers: Vec<(u16, String)> = answers
            .iter()
            .map(|&(status, body)| (status, body.to_owned()))
            .collect();
        let state = (Arc::clone(&received), Arc::new(answers));
        let router = Router::new()
            .route("/v1/checkout/sessions", post(answer))
            .with_state(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(upscale_api::serve(
            listener,
            router,
            upscale_api::ServeLimits::default(),
            std::future::pending(),
        ));
        (api, received)
    }

    async fn answer(
        State((received, answers)): State<(Received, Answers)>,
        headers: HeaderMap,
        body: String,
    ) -> impl IntoResponse {
        let mut received = received.lock().unwrap();
        received.push((headers, body));
        let (status, body) = answers[(received.len() - 1).min(answers.len() - 1)].clone();
        (StatusCode::from_u16(status).unwrap(), body)
    }

    fn order() -> NewSession {
        NewSession {
            checkout: Checkout {
                id: CheckoutId::random().unwrap(),
                account_id: AccountId::random().unwrap(),
                package: Package {
                    name: "hundred".to_owned(),
                    credits: Credits::parse("100").unwrap(),
                    price: 1_990,
                    currency: Currency::parse("eur").unwrap(),
                },
                created_at: Timestamp::from_micros(0),
            },
            success_url: "https://console.example/credits?paid=1&more=ü".to_owned(),
            cancel_url: "https://console.example/credits".to_owned(),
            email: Some("a+b@example.org".to_owned()),
        }
    }

    #[tokio::test]
    async fn a_session_is_asked_for_as_stripe_documents_it() {
        let (api, received) =
            fake(&[(200, r#"{"id":"cs_1","url":"https://checkout.example/1"}"#)]).await;
        let order = order();
        let url = open_session(&api, "sk_test_1").unwrap()(order.clone())
            .await
            .unwrap();
        assert_eq!(url, "https://checkout.example/1");
        let received = received.lock().unwrap();
        let (headers, body) = &received[0];
        assert_eq!(headers["authorization"], "Bearer sk_test_1");
        assert_eq!(headers["stripe-version"], API_VERSION);
        assert_eq!(headers["idempotency-key"], order.checkout.id.as_str());
        assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
        let sent: Vec<(String, String)> = url::form_urlencoded::parse(body.as_bytes())
            .into_owned()
            .collect();
        let value = |name: &str| {
            sent.iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(value("mode"), Some("payment"));
        assert_eq!(
            value("client_reference_id"),
            Some(order.checkout.id.as_str())
        );
        assert_eq!(
            value("line_items[0][price_data][unit_amount]"),
            Some("1990")
        );
        assert_eq!(value("line_items[0][price_data][currency]"), Some("eur"));
        assert_eq!(
            value("metadata[account]"),
            Some(order.checkout.account_id.as_str())
        );
        assert_eq!(value("metadata[package]"), Some("hundred"));
        assert_eq!(value("success_url"), Some(order.success_url.as_str()));
        assert_eq!(value("customer_email"), Some("a+b@example.org"));
    }

    #[tokio::test]
    async fn a_passing_fault_is_tried_again_with_the_same_key() {
        let (api, received) =
            fake(&[(500, ""), (200, r#"{"url":"https://checkout.example/1"}"#)]).await;
        assert!(
            open_session(&api, "sk_test_1").unwrap()(order())
                .await
                .is_ok()
        );
        let received = received.lock().unwrap();
        let keys: Vec<_> = received
            .iter()
            .map(|(headers, _)| &headers["idempotency-key"])
            .collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], keys[1]);
    }

    #[tokio::test]
    async fn a_refusal_is_told_by_type_and_code_and_without_anything_secret() {
        let refusal = r#"{"error":{"type":"invalid_request_error","code":"amount_too_small","message":"sk_test_1 says a+b@example.org"}}"#;
        let (api, received) = fake(&[(400, refusal)]).await;
        let error = open_session(&api, "sk_test_1").unwrap()(order())
            .await
            .unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("invalid_request_error") && words.contains("amount_too_small"),
            "{words}"
        );
        assert!(
            !words.contains("sk_test_1") && !words.contains("example.org"),
            "{words}"
        );
        assert_eq!(received.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_answer_without_an_address_or_without_end_is_refused() {
        let endless = format!("{{\"url\":\"{}\"}}", "x".repeat(ANSWER_BYTES_MAX));
        for body in ["", "[]", "{}", r#"{"url":"javascript:alert(1)"}"#, &endless] {
            let (api, _) = fake(&[(200, body)]).await;
            assert!(
                open_session(&api, "sk_test_1").unwrap()(order())
                    .await
                    .is_err()
            );
        }
        let unreachable = open_session("http://127.0.0.1:1", "sk_test_1").unwrap()(order()).await;
        assert!(unreachable.unwrap_err().to_string().contains("not reached"));
    }

    #[test]
    fn half_a_configuration_is_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let package = order().checkout.package;
        let args = |key: Option<_>, webhook: Option<_>, package: &[Package]| StripeArgs {
            stripe_secret_key_file: key,
            stripe_webhook_secret_file: webhook,
            stripe_api: "https://api.stripe.com".to_owned(),
            stripe_checkout_url: "https://checkout.stripe.com".to_owned(),
            package: package.to_vec(),
        };
        let (key, webhook) = (
            file("key", "sk_live_1\n"),
            file("webhook", "whsec_1\nwhsec_2\n"),
        );
        let one = std::slice::from_ref(&package);
        let whole = configured(&args(key.clone(), webhook.clone(), one))
            .unwrap()
            .unwrap();
        assert!(whole.is_live);
        assert_eq!(*whole.webhook_secrets, ["whsec_1", "whsec_2"]);
        assert!(configured(&args(None, None, &[])).unwrap().is_none());
        for half in [
            args(None, webhook.clone(), one),
            args(None, None, one),
            args(key.clone(), None, one),
            args(key.clone(), file("empty", " \n"), one),
            args(key.clone(), webhook.clone(), &[]),
            args(
                key.clone(),
                webhook.clone(),
                &[package.clone(), package.clone()],
            ),
            args(Some(folder.path().join("nothing")), webhook, one),
        ] {
            assert!(configured(&half).is_err(), "{half:?}");
        }
    }
}
