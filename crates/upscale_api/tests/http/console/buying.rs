//! Buying credits in the console: the way to Stripe and back, what is said when it cannot be, what became of payments, and
//! the ledger in words and as a file.

use std::sync::{Arc, Mutex};

use upscale_api::{ConsoleOptions, NewSession, SessionError, Stripe};
use upscale_core::{AccountId, Credits, Currency, Package};
use upscale_store::{
    DisputeStep, OnBehalf, PaidSession, PaymentEvent, PaymentNews, PaymentOutcome, Store,
};

use super::browser::{Browser, Console, with_console, with_console_set};

pub(super) type Asked = Arc<Mutex<Vec<NewSession>>>;

const STRIPE: &str = "https://checkout.example";

/// A console with two packages and a Stripe that says yes, but for the package `huge`.
pub(super) async fn with_shop(test: impl AsyncFnOnce(&Console<'_>, &Asked)) {
    let asked = Asked::default();
    let orders = Arc::clone(&asked);
    let package = |name: &str, credits: &str, price| Package {
        name: name.to_owned(),
        credits: Credits::parse(credits).unwrap(),
        price,
        currency: Currency::parse("eur").unwrap(),
    };
    let stripe = Stripe {
        packages: Arc::from([
            package("small", "100", 990),
            package("huge", "9000", 49_900),
        ]),
        webhook_secrets: Arc::from(["whsec_of_no_one_in_this_test".to_owned()]),
        is_live: false,
        checkout_origin: Arc::from(STRIPE),
        open_session: Arc::new(move |order| {
            let answer = match order.checkout.package.name.as_str() {
                "huge" => Err(SessionError("answered 500".to_owned())),
                _ => Ok(format!("{STRIPE}/c/pay/1#x")),
            };
            orders.lock().unwrap().push(order);
            Box::pin(async move { answer })
        }),
    };
    with_console_set(
        ConsoleOptions::default(),
        Some(stripe),
        async |console: &Console<'_>| test(console, &asked).await,
    )
    .await;
}

/// The visitor's order, as Stripe got it.
pub(super) async fn order(browser: &mut Browser<'_>, asked: &Asked) -> NewSession {
    browser.get("/credits").await;
    let page = browser.post("/credits", &[("package", "small")]).await;
    assert_eq!(page.status, 303, "{page:?}");
    assert_eq!(page.header("location"), format!("{STRIPE}/c/pay/1#x"));
    asked.lock().unwrap().last().unwrap().clone()
}

async fn receive(store: &Store, id: &str, news: PaymentNews) -> PaymentOutcome {
    let event = PaymentEvent {
        id: id.to_owned(),
        kind: "a kind".to_owned(),
        news,
    };
    store.payments().record_event(&event).await.unwrap()
}

fn paid(order: &NewSession, payment: &str) -> PaymentNews {
    PaymentNews::Paid(PaidSession {
        payment: payment.to_owned(),
        checkout: order.checkout.id,
        account: order.checkout.account_id.to_string(),
        price: order.checkout.package.price,
        currency: order.checkout.package.currency.clone(),
        invoice: Some("in_1".to_owned()),
    })
}

/// Path and query of an address of ours.
fn path(url: &str) -> &str {
    &url[url.find("/credits").unwrap()..]
}

#[tokio::test]
async fn a_package_is_bought_on_stripes_page_and_the_way_back_says_what_is_known() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let mut ann = console.signed_up("ann").await;
        let shop = ann.get("/credits").await;
        shop.has("Buy 100 credits for 9.90 EUR");
        shop.has("142 upscales");
        shop.has("Stripe is in test mode");
        shop.lacks("The operator of this service sells credits");
        let policy = shop.header("content-security-policy");
        assert!(
            policy.contains(&format!("form-action 'self' {STRIPE};")),
            "{policy}"
        );
        let elsewhere = ann.get("/keys").await;
        let policy = elsewhere.header("content-security-policy");
        assert!(!policy.contains(STRIPE), "{policy}");

        let order = order(&mut ann, asked).await;
        assert_eq!(order.email.as_deref(), Some("ann@example.org"));
        let origin = format!("http://{}", console.address);
        assert!(
            order
                .success_url
                .starts_with(&format!("{origin}/credits?order=chk_"))
        );
        ann.get(path(&order.cancel_url))
            .await
            .has("You returned without paying");
        // Back before Stripe has told: nothing is claimed, and the page asks again.
        let back = ann.get(path(&order.success_url)).await;
        back.has("Waiting for Stripe to confirm your payment");
        back.has(order.checkout.id.as_str());
        let watch = back.between("data-watch=\"", "\"").unwrap();
        assert_eq!(ann.get(&watch).await.text, r#"{"state":"processing"}"#);

        receive(&console.app.store, "evt_1", paid(&order, "pi_1")).await;
        assert_eq!(ann.get(&watch).await.text, r#"{"state":"credited"}"#);
        for url in [&order.success_url, &order.cancel_url] {
            let back = ann.get(path(url)).await;
            back.has("Payment received. 100 credits added");
            back.has("<strong id=\"available\">100</strong>");
            back.lacks("API access requires");
        }
    })
    .await;
}

#[tokio::test]
async fn what_keeps_a_customer_from_buying_stands_beside_the_form() {
    with_shop(async |console: &Console<'_>, _| {
        let mut ann = console.signed_up("ann").await;
        ann.get("/credits").await;
        for (package, status, sentence) in [
            ("free", 422, "not for sale any more"),
            ("", 422, "not for sale any more"),
            (
                "huge",
                503,
                "Stripe cannot be reached at the moment. Nothing was charged",
            ),
        ] {
            let page = ann.post("/credits", &[("package", package)]).await;
            assert_eq!(page.status, status, "{package}");
            page.has(sentence);
            page.has("id=\"buy-problem\"");
            let policy = page.header("content-security-policy");
            assert!(policy.contains(STRIPE), "{policy}");
        }
        for _ in 0..19 {
            let page = ann.post("/credits", &[("package", "small")]).await;
            assert_eq!(page.status, 303);
        }
        let page = ann.post("/credits", &[("package", "small")]).await;
        assert_eq!(page.status, 429);
        page.has("Too many checkouts were started within the hour");
        // No one else's form buys, and no one else's browser.
        let page = ann
            .post_from("https://evil.example", "/credits", &[("package", "small")])
            .await;
        assert_eq!(page.status, 403);
        let mut guest = console.browser("192.0.2.9");
        assert_eq!(
            guest
                .post("/credits", &[("package", "small")])
                .await
                .header("location"),
            "/sign-in"
        );
    })
    .await;
}

#[tokio::test]
async fn another_accounts_order_and_payments_do_not_exist() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let mut ann = console.signed_up("ann").await;
        let order = order(&mut ann, asked).await;
        receive(&console.app.store, "evt_1", paid(&order, "pi_of_ann")).await;
        ann.get("/credits").await.has("pi_of_ann");
        let mut eve = console.signed_up("eve").await;
        for path in [path(&order.success_url), path(&order.cancel_url)] {
            let page = eve.get(path).await;
            assert_eq!(page.status, 200);
            page.lacks("credits added");
            page.lacks("Stripe has not told");
        }
        let id = order.checkout.id.as_str();
        let state = format!("/credits/orders/{id}/state");
        assert_eq!(eve.get(&state).await.status, 404);
        let beyond = format!("/credits?purchases={}-a", i64::MAX);
        for path in ["/credits", &beyond, "/credits/ledger.csv"] {
            eve.get(path).await.lacks("pi_of_ann");
        }
    })
    .await;
}

#[tokio::test]
async fn a_payments_state_is_said_in_words_and_every_payment_stands_on_one_page() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let store = &console.app.store;
        let mut ann = console.signed_up("ann").await;
        ann.get("/credits").await.lacks("Purchases</h2>");
        let mut last = order(&mut ann, asked).await;
        for number in 0..12 {
            if number > 0 {
                last = order(&mut ann, asked).await;
            }
            let payment = format!("pi_{number:02}");
            receive(store, &format!("evt_{number}"), paid(&last, &payment)).await;
            console.app.clock.advance_seconds(1);
        }
        let refund = |payment: &str, returned| PaymentNews::ChargeReturned {
            payment: payment.to_owned(),
            returned,
        };
        receive(store, "evt_a", refund("pi_10", 990)).await;
        receive(store, "evt_b", refund("pi_09", 99)).await;
        let dispute = PaymentNews::Dispute {
            payment: "pi_08".to_owned(),
            dispute: "dp_1".to_owned(),
            amount: 990,
            step: DisputeStep::Withdrawn,
        };
        receive(store, "evt_c", dispute).await;
        // Paid twice: the operator has to look, and the reason is for his eyes.
        receive(store, "evt_d", paid(&last, "pi_twice")).await;
        let page = ann.get("/credits").await;
        for words in [
            ">paid</span>",
            ">refunded</span>",
            ">refunded in part</span>",
            "10 credits reversed",
            ">disputed</span>",
            ">paid, not credited</span>",
            "contact the operator",
            "9.90 EUR",
            "in_1",
        ] {
            page.has(words);
        }
        page.lacks("was paid before");
        assert_eq!(page.text.matches("<tr class=\"purchase\">").count(), 10);
        let older = page
            .between("href=\"/credits?purchases=", "#purchases\"")
            .unwrap();
        let rest = ann.get(&format!("/credits?purchases={older}")).await;
        assert_eq!(rest.text.matches("<tr class=\"purchase\">").count(), 3);
        rest.has("pi_00");
        rest.lacks("Older purchases");
    })
    .await;
}

#[tokio::test]
async fn who_owes_is_told_so_until_a_purchase_has_filled_the_hole() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let (app, store) = (console.app, &console.app.store);
        let mut ann = console.signed_up("ann").await;
        let bought = order(&mut ann, asked).await;
        receive(store, "evt_1", paid(&bought, "pi_1")).await;
        super::pages::order(console, &bought.checkout.account_id, "done").await;
        app.succeed_next(b"x").await;
        let back = PaymentNews::ChargeReturned {
            payment: "pi_1".to_owned(),
            returned: 990,
        };
        receive(store, "evt_2", back).await;
        let page = ann.get("/").await;
        page.has("Your balance is below zero");
        page.has("<strong id=\"available\">-0.7</strong>");
        page.has("for 0 upscales");
        let again = order(&mut ann, asked).await;
        receive(store, "evt_3", paid(&again, "pi_2")).await;
        ann.get("/").await.lacks("Your balance is below zero");
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_line_is_said_in_words_and_the_file_sums_up_to_what_is_available() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let (app, store) = (console.app, &console.app.store);
        let mut ann = console.signed_up("ann").await;
        let bought = order(&mut ann, asked).await;
        let account: AccountId = bought.checkout.account_id;
        receive(store, "evt_1", paid(&bought, "pi_1")).await;
        for (id, step) in [
            ("evt_2", DisputeStep::Withdrawn),
            ("evt_3", DisputeStep::Reinstated),
        ] {
            let news = PaymentNews::Dispute {
                payment: "pi_1".to_owned(),
                dispute: "dp_1".to_owned(),
                amount: 99,
                step,
            };
            receive(store, id, news).await;
        }
        let by = OnBehalf {
            operator: "olga".to_owned(),
            reason: "a reason for colleagues".to_owned(),
        };
        for (thousandths, reference) in [(2_000, "goodwill, ticket 7"), (-500, "ticket 8")] {
            let credits = Credits::from_thousandths(thousandths);
            store
                .operator()
                .adjust(&account, credits, reference, &by)
                .await
                .unwrap();
        }
        super::pages::order(console, &account, "done").await;
        app.succeed_next(b"x").await;
        super::pages::order(console, &account, "failed").await;
        app.fail_next("It is no image").await;

        let page = ann.get("/credits").await;
        for words in [
            "Purchase</td>",
            "Reversed: the payment was refunded or disputed",
            "Reinstated: the dispute was won or the refund failed",
            "Added by the operator",
            "Removed by the operator",
            "Reserved for a task",
            "Charged: the task succeeded",
            "Refunded: the task failed",
            "goodwill, ticket 7",
        ] {
            page.has(words);
        }
        page.lacks("Transfer</td>");
        page.lacks("colleagues");
        let file = ann.get("/credits/ledger.csv").await;
        assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
        assert!(
            file.header("content-disposition")
                .contains("upscale-ledger.csv")
        );
        file.has("line,at,kind,credits,change_of_available,task,reference\n");
        file.has("\"goodwill, ticket 7\"");
        file.lacks("colleagues");
        check_sum(console, &account, &file.text, 9).await;
    })
    .await;
}

/// The file has so many lines, each once, and their changes sum up to what is available.
async fn check_sum(console: &Console<'_>, account: &AccountId, file: &str, lines: usize) {
    let mut reader = csv::Reader::from_reader(file.as_bytes());
    let (mut sum, mut numbers) = (0, Vec::new());
    for row in reader.records() {
        let row = row.unwrap();
        numbers.push(row[0].parse::<i64>().unwrap());
        let (sign, size) = match row[4].strip_prefix('-') {
            Some(size) => (-1, size),
            None => (1, &row[4]),
        };
        sum += sign * Credits::parse(size).unwrap().thousandths();
    }
    assert!(numbers.is_sorted_by(|one, next| one > next));
    assert_eq!(numbers.len(), lines);
    let standing = console.app.store.accounts().find(account).await.unwrap();
    assert_eq!(standing.unwrap().available.thousandths(), sum);
}

#[tokio::test]
async fn a_ledger_longer_than_a_part_comes_whole() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "1").await;
        for number in 0..1_000 {
            let reference = format!("payment {number}");
            let one = Credits::from_thousandths(1_000);
            let store = &console.app.store;
            store
                .accounts()
                .credit(&account, one, &reference)
                .await
                .unwrap();
        }
        let file = ann.get("/credits/ledger.csv").await;
        check_sum(console, &account, &file.text, 1_001).await;
        let mut no_one = console.signed_up("bob").await;
        let empty = no_one.get("/credits/ledger.csv").await;
        assert_eq!(empty.text.lines().count(), 1);
    })
    .await;
}

#[tokio::test]
async fn without_stripe_the_page_says_who_sells_and_no_form_leads_away() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let page = ann.get("/credits").await;
        page.has("The operator of this service sells credits");
        page.has("<code id=\"account\" tabindex=\"0\">acc_");
        page.lacks("action=\"/credits\"");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("form-action 'self';"), "{policy}");
        assert_eq!(
            ann.post("/credits", &[("package", "small")]).await.status,
            404
        );
    })
    .await;
}
