//! The console in a real Chromium, beside the real service: from signing up to the ledger. Every page is photographed
//! in light, in dark and narrow, on a wide screen and on a phone; the pictures stay under `target/console` for people to look at.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the harness"
)]
#[path = "../harness/mod.rs"]
mod harness;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the judge"
)]
#[path = "../history/mod.rs"]
mod history;

mod chromium;
mod operators;
mod owner;
mod slider;
mod stripe;

use std::time::{Duration, Instant};

use fantoccini::{Client, Locator, elements::Element, error::CmdError};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::{
    chromium::{Chromium, photograph},
    harness::World,
    slider::check_slider,
    stripe::{SECRET_KEY, Stripe, WEBHOOK_SECRET},
};

const PASSWORD: &str = "a battery of horses";
/// A bound against hanging, not a promise of speed.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The first element of this CSS, once there is one.
async fn find(browser: &Client, css: &str) -> Element {
    let waiting = browser.wait().at_most(WAIT_MAX);
    let element = waiting.for_element(Locator::Css(css)).await;
    element.unwrap_or_else(|error| panic!("{css}: {error}"))
}

/// What comes of a deed on that element. Done again where a page that refreshes itself replaced it in between.
async fn with<T>(
    browser: &Client,
    css: &str,
    deed: impl AsyncFn(Element) -> Result<T, CmdError>,
) -> T {
    loop {
        match deed(find(browser, css).await).await {
            Err(error) if error.is_stale_element_reference() => {}
            done => return done.unwrap_or_else(|error| panic!("{css}: {error}")),
        }
    }
}

/// Clicks what this CSS names and waits for the page that follows.
async fn click(browser: &Client, css: &str) {
    with(browser, css, async |element| element.click().await).await;
}

async fn fill(browser: &Client, css: &str, text: &str) {
    let deed = async |field: Element| {
        field.clear().await?;
        field.send_keys(text).await
    };
    with(browser, css, deed).await;
}

/// The text of the first element, once there is one.
async fn text(browser: &Client, css: &str) -> String {
    with(browser, css, async |element| element.text().await).await
}

async fn run(browser: &Client, script: &str) -> Value {
    browser.execute(script, Vec::new()).await.unwrap()
}

/// Looks until the script says true.
async fn until(browser: &Client, what: &str, script: &str) {
    let begun = Instant::now();
    while run(browser, script).await != json!(true) {
        assert!(begun.elapsed() < WAIT_MAX, "{what}: not in {WAIT_MAX:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Nothing was refused by the pages' own policy, and no script broke.
async fn check_console(browser: &Client, page: &str) {
    let loaded =
        "return performance.getEntriesByType('resource').map(entry => new URL(entry.name).origin)";
    let origins = run(browser, loaded).await;
    let here = run(browser, "return location.origin").await;
    for origin in origins.as_array().unwrap() {
        let origin_text = origin.as_str().unwrap();
        let is_picture =
            origin_text.contains("images.upscale-tests.org") || origin_text.contains("127.0.0.1");
        assert!(*origin == here || is_picture, "{page} loaded from {origin}");
    }
}

const WATCH_COPY: &str = "const button = document.querySelector('button[data-copy=secret]');
     window.said = '';
     new MutationObserver(() => { window.said += button.textContent; }).observe(button, { childList: true });";

/// One customer's visit.
struct Visit {
    browser: Client,
    console: String,
    world: World,
    stripe: Stripe,
}

#[tokio::test]
async fn from_signing_up_to_the_ledger() {
    let Some(chromium) = Chromium::find() else {
        return;
    };
    let stripe = Stripe::start().await;
    let flags = stripe.flags();
    let world = tokio::task::spawn_blocking(move || prepare(&flags));
    let world = world.await.unwrap();
    stripe.tell(&world.serve().api);
    let chromium = chromium
        .start(&world.host.browser_rule(), &world.path("chromium"))
        .await;
    let visit = Visit {
        browser: chromium.browser().await,
        console: world.serve().console.clone().unwrap(),
        world,
        stripe,
    };
    visit.sign_up().await;
    visit.buy().await;
    visit.make_a_key().await;
    let task = visit.play().await;
    visit.look_around(&task).await;
    visit.look_at_the_sign_in_page().await;
    visit.revoke_and_leave().await;
    chromium.stop(visit.browser).await;
    let mut world = visit.world;
    tokio::task::spawn_blocking(move || world.finish())
        .await
        .unwrap();
}

fn prepare(flags: &[String]) -> World {
    let mut all = vec!["--console-listen", "127.0.0.1:0"];
    all.extend(flags.iter().map(String::as_str));
    let variables = [
        ("UPSCALE_STRIPE_SECRET_KEY", SECRET_KEY),
        ("UPSCALE_STRIPE_WEBHOOK_SECRET", WEBHOOK_SECRET),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut world = World::prepare_in(TempDir::new().unwrap(), &all, variables.to_vec());
    world.serve_again();
    world
}

impl Visit {
    async fn goto(&self, path: &str) {
        let url = format!("{}{path}", self.console);
        self.browser.goto(&url).await.unwrap();
    }

    fn account(&self) -> String {
        let users = self.world.operator.run(&["user", "list"]);
        users["users"][0]["account"].as_str().unwrap().to_owned()
    }

    /// A mistake first: what was typed stays, but for the password.
    async fn sign_up(&self) {
        let browser = &self.browser;
        self.goto("/sign-up").await;
        photograph(browser, "sign-up").await;
        fill(browser, "#email", "ann@example.org").await;
        fill(browser, "#password", "short").await;
        click(browser, "main button[type=submit]").await;
        let problem = text(browser, "#password-problem").await;
        assert!(problem.contains("at least 10"), "{problem}");
        let email = browser.find(Locator::Css("#email")).await.unwrap();
        let kept = email.prop("value").await.unwrap();
        assert_eq!(kept.as_deref(), Some("ann@example.org"));
        photograph(browser, "sign-up-problem").await;
        fill(browser, "#password", PASSWORD).await;
        click(browser, "main button[type=submit]").await;
        assert_eq!(text(browser, "#available").await, "0");
        photograph(browser, "overview-new").await;
    }

    /// To Stripe and back without paying, then again, paying; the event comes after the buyer.
    async fn buy(&self) {
        let browser = &self.browser;
        self.goto("/credits").await;
        photograph(browser, "credits-new").await;
        check_focus(browser).await;
        click(browser, "button[value=studio]").await;
        text(browser, "#pay").await;
        let title = text(browser, "h1").await;
        assert_eq!(title, "Pay 4900 for 500 credits");
        click(browser, "#back").await;
        text(browser, "main#main").await;
        let notice = text(browser, "p.notice").await;
        assert!(notice.contains("without paying"), "{notice}");
        click(browser, "button[value=starter]").await;
        click(browser, "#pay").await;
        let notice = text(browser, "div.notice").await;
        assert!(notice.contains("Waiting for Stripe"), "{notice}");
        assert_eq!(text(browser, "#available").await, "0");
        photograph(browser, "credits-waiting").await;
        self.stripe.send_event();
        // The page's own script sees that the event has come.
        let notice = text(browser, "p.notice.good").await;
        assert!(notice.contains("50 credits added"), "{notice}");
        assert_eq!(text(browser, "#available").await, "50");
        assert!(text(browser, "tr.purchase").await.contains("5.90 EUR"));
        check_console(browser, "credits").await;
        photograph(browser, "credits-bought").await;
        self.world.bought(&self.account(), 50_000);
        let asked = self.stripe.last("customer_email");
        assert_eq!(asked, "ann@example.org");
    }

    /// By keyboard alone; shown once, and copied.
    async fn make_a_key(&self) {
        let browser = &self.browser;
        self.goto("/keys").await;
        fill(browser, "#name", "shop <backend> & co\n").await;
        let secret = text(browser, "#secret").await;
        assert!(secret.starts_with("usk_live_"), "{secret}");
        let recorder = &self.world.recorder;
        recorder.keep_secret("key made in the console", &secret);
        let name = text(browser, "tbody td").await;
        assert!(name.contains("shop <backend> & co"), "{name}");
        // It says so for two seconds, which may pass between two looks: what it said is kept.
        run(browser, WATCH_COPY).await;
        click(browser, "button[data-copy=secret]").await;
        let reported = "return /Copied|Selected/.test(window.said)";
        until(browser, "the button says that it copied", reported).await;
        photograph(browser, "keys").await;
        self.goto("/keys").await;
        let page = text(browser, "main").await;
        assert!(!page.contains(&secret), "the key is shown twice");
    }

    /// A mistake first; the task that came of it.
    async fn play(&self) -> String {
        let browser = &self.browser;
        let source = self.world.picture("/harbour.png", 720, 540);
        self.goto("/playground").await;
        fill(browser, "#image_url", "http://images.example.org/a.png").await;
        click(browser, "#order").await;
        let problem = text(browser, "#image-problem").await;
        assert!(problem.contains("image URL cannot be used"), "{problem}");
        photograph(browser, "playground-problem").await;
        fill(browser, "#image_url", &source).await;
        let key = "return document.querySelector('[name=idempotency_key]').value";
        let key = run(browser, key).await.as_str().unwrap().to_owned();
        let started = self.world.recorder.now();
        click(browser, "#order").await;
        let state = text(browser, "#outcome .state").await;
        assert!(
            ["processing", "succeeded"].contains(&state.as_str()),
            "{state}"
        );
        photograph(browser, "playground-processing").await;
        // The page's own script sees the end and loads the page again.
        find(browser, "[data-compare].sliding .knob").await;
        check_slider(browser).await;
        check_console(browser, "playground").await;
        let task = text(browser, ".facts code").await;
        assert!(task.starts_with("ups_"), "{task}");
        let order = json!({ "image_url": source, "scale": 2, "face_enhance": false });
        let recorder = &self.world.recorder;
        recorder.record_ordered(started, &self.account(), &key, &order, &task);
        task
    }

    /// The task, the lists, the ledger.
    async fn look_around(&self, task: &str) {
        let browser = &self.browser;
        for (path, name, expected) in [
            (format!("/tasks/{task}"), "task", "720 × 540 → 1440 × 1080"),
            ("/tasks".to_owned(), "tasks", "0.7 charged"),
            (
                "/credits".to_owned(),
                "credits",
                "Charged: the task succeeded",
            ),
            (
                "/".to_owned(),
                "overview",
                "1 succeeded, 0 failed, 0.7 credits charged",
            ),
            ("/docs".to_owned(), "docs", "Quick start"),
            ("/settings".to_owned(), "settings", "ann@example.org"),
        ] {
            self.goto(&path).await;
            let main = text(browser, "main").await;
            assert!(main.contains(expected), "{path} lacks {expected:?}: {main}");
            check_console(browser, &path).await;
            photograph(browser, name).await;
        }
        self.goto("/credits").await;
        let rows = run(browser, "return [...document.querySelectorAll('#ledger tbody tr')].map(row => row.cells[2].textContent)").await;
        assert_eq!(
            rows,
            json!([
                "Charged: the task succeeded",
                "Reserved for a task",
                "Purchase"
            ])
        );
    }

    /// The second factor's QR code and the way to a new password.
    async fn look_at_the_sign_in_page(&self) {
        let browser = &self.browser;
        self.goto("/settings").await;
        click(browser, "form[action='/settings/second-factor'] button").await;
        let drawn = "const box = document.querySelector('.qr path').getBBox(); return [box.width, box.height]";
        text(browser, "#secret").await;
        let size = run(browser, drawn).await;
        assert!(
            size[0].as_f64().unwrap() >= 21.0 && size[0] == size[1],
            "{size}"
        );
        photograph(browser, "second-factor").await;
        self.goto("/reset").await;
        photograph(browser, "reset").await;
    }

    /// A revoked key is asked about first.
    async fn revoke_and_leave(&self) {
        let browser = &self.browser;
        self.goto("/keys").await;
        click(browser, "a.danger").await;
        photograph(browser, "key-revoke").await;
        click(browser, "main button.danger").await;
        assert!(text(browser, "tr.past").await.contains("revoked"));
        click(browser, ".who button").await;
        // A click may return before its page is there: read at once, the heading was "Keys" on a busy machine.
        let heading = "return document.querySelector('h1')?.textContent.trim() === 'Sign in'";
        until(browser, "the way out", heading).await;
        photograph(browser, "sign-in").await;
    }
}

/// Whatever the Tab key reaches shows that it was reached.
async fn check_focus(browser: &Client) {
    let ring = "const it = document.activeElement; const style = getComputedStyle(it);
         return [it.tagName, it.textContent.trim().slice(0, 40), style.outlineStyle, parseFloat(style.outlineWidth)]";
    let mut reached = Vec::new();
    for _ in 0..16 {
        let tab = browser.active_element().await.unwrap();
        tab.send_keys("\u{e004}").await.unwrap();
        let found = run(browser, ring).await;
        if found[0] == "BODY" {
            break;
        }
        assert_eq!(found[2], "solid", "{found}");
        assert!(found[3].as_f64().unwrap() >= 2.0, "{found}");
        reached.push(found[1].as_str().unwrap().to_owned());
    }
    for name in ["Skip to the page", "Credits", "Sign out", "Buy"] {
        assert!(reached.iter().any(|one| one == name), "{name}: {reached:?}");
    }
}
