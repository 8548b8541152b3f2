//! The console in a real Chromium, beside the real service: from signing up to the ledger. Every page is photographed
//! in light, in dark and narrow; the pictures stay under `target/console` for people to look at.

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

use fantoccini::{Client, Locator};
use serde_json::{Value, json};

use self::{
    chromium::{Chromium, photograph},
    harness::World,
};

const PASSWORD: &str = "a battery of horses";

/// Clicks what this CSS names and waits for the page that follows.
async fn click(browser: &Client, css: &str) {
    let element = browser.wait().for_element(Locator::Css(css)).await;
    element
        .unwrap_or_else(|error| panic!("{css}: {error}"))
        .click()
        .await
        .unwrap();
}

async fn fill(browser: &Client, css: &str, text: &str) {
    let field = browser.wait().for_element(Locator::Css(css)).await.unwrap();
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

/// The text of the first element, once there is one.
async fn text(browser: &Client, css: &str) -> String {
    let element = browser.wait().for_element(Locator::Css(css)).await;
    element
        .unwrap_or_else(|error| panic!("{css}: {error}"))
        .text()
        .await
        .unwrap()
}

async fn run(browser: &Client, script: &str) -> Value {
    browser.execute(script, Vec::new()).await.unwrap()
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

#[tokio::test]
async fn from_signing_up_to_the_ledger() {
    let Some(chromium) = Chromium::find() else {
        return;
    };
    let world =
        tokio::task::spawn_blocking(|| World::start_with(&["--console-listen", "127.0.0.1:0"]));
    let world = world.await.unwrap();
    let console = world.serve().console.clone().unwrap();
    let source = world.picture("/harbour.png", 320, 240);
    let chromium = chromium
        .start(&world.host.browser_rule(), &world.path("chromium"))
        .await;
    let browser = chromium.browser().await;

    // Sign up.
    browser.goto(&format!("{console}/sign-up")).await.unwrap();
    photograph(&browser, "sign-up").await;
    fill(&browser, "#email", "ann@example.org").await;
    fill(&browser, "#password", "short").await;
    click(&browser, "main button[type=submit]").await;
    assert!(
        text(&browser, "#password-problem")
            .await
            .contains("at least 10")
    );
    let kept = browser
        .find(Locator::Css("#email"))
        .await
        .unwrap()
        .prop("value")
        .await
        .unwrap();
    assert_eq!(kept.as_deref(), Some("ann@example.org"));
    photograph(&browser, "sign-up-problem").await;
    fill(&browser, "#password", PASSWORD).await;
    click(&browser, "main button[type=submit]").await;
    assert_eq!(text(&browser, "#available").await, "0");
    photograph(&browser, "overview-new").await;

    // The operator credits the account.
    let users = world.operator.run(&["user", "list"]);
    let account = users["users"][0]["account"].as_str().unwrap().to_owned();
    world.credit(&account, "10", "browser-1");

    // A key, by keyboard alone.
    browser.goto(&format!("{console}/keys")).await.unwrap();
    fill(&browser, "#name", "shop <backend> & co\n").await;
    let secret = text(&browser, "#secret").await;
    assert!(secret.starts_with("usk_live_"), "{secret}");
    world
        .recorder
        .keep_secret("key made in the console", &secret);
    assert!(
        text(&browser, "tbody td")
            .await
            .contains("shop <backend> & co")
    );
    click(&browser, "button[data-copy=secret]").await;
    photograph(&browser, "keys").await;

    // The playground, a mistake first.
    browser
        .goto(&format!("{console}/playground"))
        .await
        .unwrap();
    fill(&browser, "#image_url", "http://images.example.org/a.png").await;
    click(&browser, "form.card button[type=submit]").await;
    assert!(
        text(&browser, "#image-problem")
            .await
            .contains("image_url is invalid")
    );
    photograph(&browser, "playground-problem").await;
    fill(&browser, "#image_url", &source).await;
    click(&browser, "form.card button[type=submit]").await;
    let state = text(&browser, "#outcome .state").await;
    assert!(
        ["processing", "succeeded"].contains(&state.as_str()),
        "{state}"
    );
    photograph(&browser, "playground-processing").await;
    // The page's own script sees the end and loads the page again.
    let slider = Locator::Css("[data-compare].sliding .handle");
    let patience = std::time::Duration::from_secs(120);
    browser
        .wait()
        .at_most(patience)
        .for_element(slider)
        .await
        .unwrap();
    check_slider(&browser).await;
    photograph(&browser, "playground-result").await;
    check_console(&browser, "playground").await;
    let task = text(&browser, ".facts code").await;
    assert!(task.starts_with("ups_"), "{task}");

    // The task, the lists, the ledger.
    for (path, name, expected) in [
        (format!("/tasks/{task}"), "task", "320 × 240 → 640 × 480"),
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
        browser.goto(&format!("{console}{path}")).await.unwrap();
        let main = text(&browser, "main").await;
        assert!(main.contains(expected), "{path} lacks {expected:?}: {main}");
        check_console(&browser, &path).await;
        photograph(&browser, name).await;
    }
    browser.goto(&format!("{console}/credits")).await.unwrap();
    let rows = run(&browser, "return [...document.querySelectorAll('#ledger tbody tr')].map(row => row.cells[2].textContent)").await;
    assert_eq!(
        rows,
        json!([
            "Charged: the task succeeded",
            "Reserved for a task",
            "Purchase"
        ])
    );

    // A revoked key is asked about first.
    browser.goto(&format!("{console}/keys")).await.unwrap();
    click(&browser, "a.danger").await;
    photograph(&browser, "key-revoke").await;
    click(&browser, "main button.danger").await;
    assert!(text(&browser, "tr.past").await.contains("revoked"));
    click(&browser, ".who button").await;
    assert_eq!(text(&browser, "h1").await, "Sign in");
    photograph(&browser, "sign-in").await;
    chromium.stop(browser).await;
    let mut world = world;
    tokio::task::spawn_blocking(move || world.finish())
        .await
        .unwrap();
}

/// The two pictures lie over each other, and the arrow keys move what is shown of each.
async fn check_slider(browser: &Client) {
    let geometry = "const [a, b] = [...document.querySelectorAll('[data-compare] img')].map(i => i.getBoundingClientRect());
         return [a.left - b.left, a.top - b.top, a.width - b.width, a.height - b.height].map(Math.abs)";
    let apart = run(browser, geometry).await;
    for distance in apart.as_array().unwrap() {
        assert!(distance.as_f64().unwrap() < 1.0, "{apart}");
    }
    let shown = "return document.querySelector('[data-compare]').style.getPropertyValue('--shown')";
    assert_eq!(run(browser, shown).await, "50%");
    let handle = browser.find(Locator::Css(".handle")).await.unwrap();
    handle.send_keys("\u{e012}\u{e012}\u{e012}").await.unwrap();
    assert_eq!(run(browser, shown).await, "49.7%");
    let loaded =
        "return [...document.querySelectorAll('[data-compare] img')].map(i => i.naturalWidth)";
    assert_eq!(run(browser, loaded).await, json!([320, 640]));
}
