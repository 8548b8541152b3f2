//! The operators' console in the same browser: signed in by its token, through every page and two of its forms.

use std::time::Duration;

use fantoccini::{Client, Locator};

use super::{
    check_console,
    chromium::{Chromium, photograph},
    click, fill,
    harness::{World, client::order, image_host::Behaviour, pictures::Picture},
    text,
};

const TOKEN: &str = "canary-of-the-operators-token-in-chromium";

/// A house with something on every page: a task that succeeded, one that failed, one under way, a payment that was
/// credited to no one, accounts with names that want to be code.
fn furnished() -> (World, String, String) {
    let variables = vec![("UPSCALE_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())];
    let folder = tempfile::TempDir::new().unwrap();
    let flags = [
        "--admin-listen",
        "127.0.0.1:0",
        "--console-listen",
        "127.0.0.1:0",
    ];
    let mut world = World::prepare_in(folder, &flags, variables);
    world
        .recorder
        .keep_secret("token of the operators' console", TOKEN);
    world.serve_again();
    let customer = world.customer("100");
    let source = world.picture("/harbour.png", 64, 48);
    let task = customer.upscale("operators-key-1", &order(&source, 2)).id();
    let gone = world.host.set("/gone.png", Behaviour::Status(404));
    customer.fail("operators-key-2", &order(&gone, 4));
    let held = Behaviour::Held(Picture::render(8, 8, 2).png());
    let held = world.serve_so("/held.png", held, (8, 8));
    customer
        .create("operators-key-3", &order(&held, 2))
        .expect(202, "");
    for name in ["Flower shop <b>Rosa</b> & sons", "A museum"] {
        world.operator.create_account(name);
    }
    let create = [
        "user",
        "create",
        "ann@example.org",
        "--account",
        &customer.account,
        "--console-url",
        "https://c.example.org",
    ];
    let link = world.operator.run(&create);
    world
        .recorder
        .keep_secret("link for a password", link["link"].as_str().unwrap());
    let database = rusqlite::Connection::open(world.data().join("upscale.db")).unwrap();
    database.busy_timeout(Duration::from_secs(30)).unwrap();
    let refused = "INSERT INTO payment (id, state, first_at, refusal) VALUES
         ('pi_3PabcDEFghi', 'refused', 1790000000000000, '12.00 EUR was paid, 9.90 EUR was ordered')";
    database.execute(refused, []).unwrap();
    (world, customer.account, task)
}

#[tokio::test]
async fn an_operator_finds_their_way_through_every_page() {
    let Some(chromium) = Chromium::find() else {
        return;
    };
    let furnished = tokio::task::spawn_blocking(furnished).await.unwrap();
    let (mut world, account, task) = furnished;
    let admin = world.serve().admin.clone().unwrap();
    let rule = world.host.browser_rule();
    let chromium = chromium.start(&rule, &world.path("chromium")).await;
    let browser = chromium.browser().await;

    come_in(&browser, &admin).await;
    // A search by the task's id leads to its story.
    fill(&browser, "#q", &format!("{task}\n")).await;
    // The overview has no such list, so this is the page that follows.
    assert!(text(&browser, ".facts").await.contains(&task));
    assert!(text(&browser, "main h2").await.contains("succeeded"));
    photograph(&browser, "operators-task").await;
    let address = format!("{admin}/accounts/{account}");
    adjust(&browser, &address).await;
    look(&browser, &admin, &account).await;

    // Given back, so that the world's own reckoning fits.
    let credits = ["account", "adjust", &account, "4.5"];
    let back = [&credits[..], &["--reason", "it was right"]].concat();
    world.operator.run(&back);
    click(&browser, ".who button").await;
    assert_eq!(text(&browser, "label[for=token]").await, "Operators' token");
    chromium.stop(browser).await;
    tokio::task::spawn_blocking(move || world.finish())
        .await
        .unwrap();
}

/// Led to the sign-in page, a mistake first.
async fn come_in(browser: &Client, admin: &str) {
    browser.goto(&format!("{admin}/tasks")).await.unwrap();
    fill(browser, "#sign-in-name", "Ann").await;
    fill(browser, "#token", "not the token").await;
    click(browser, "main button[type=submit]").await;
    let problem = text(browser, "#token-problem").await;
    assert_eq!(problem, "This is not the token.");
    photograph(browser, "operators-sign-in").await;
    fill(browser, "#token", TOKEN).await;
    click(browser, "main button[type=submit]").await;
    assert!(text(browser, "#books").await.contains("invariants hold"));
    photograph(browser, "operators-overview").await;
}

/// An adjustment without a reason, then with one.
async fn adjust(browser: &Client, address: &str) {
    browser.goto(address).await.unwrap();
    photograph(browser, "operators-account").await;
    click(browser, "details.change summary").await;
    fill(browser, "#adjust-credits", "-4.5").await;
    click(browser, "details.change[open] button").await;
    let problem = text(browser, "#adjust-reason-problem").await;
    assert!(problem.contains("reason has 1 to 500"), "{problem}");
    photograph(browser, "operators-account-problem").await;
    fill(browser, "#adjust-reason", "credited twice").await;
    click(browser, "details.change[open] button").await;
    let problem = text(browser, "#adjust-credits-problem").await;
    assert!(problem.contains("removes 4.5 credits"), "{problem}");
    click(browser, "#adjust-confirm").await;
    click(browser, "details.change[open] button").await;
    assert!(text(browser, ".notice.good").await.contains("adjusted"));
    // One section at a time: what was done is behind its own tab.
    assert_eq!(text(browser, "#actions tbody").await, "");
    click(browser, "a[href='#of-actions']").await;
    assert!(
        text(browser, "#actions tbody")
            .await
            .contains("credited twice")
    );
}

/// Every page that is left, from the links of the account on.
async fn look(browser: &Client, admin: &str, account: &str) {
    let key = browser.find(Locator::Css("a.button.danger")).await.unwrap();
    let key = key.attr("href").await.unwrap().unwrap();
    let user = browser
        .find(Locator::Css("a.button[href*='/users/']"))
        .await
        .unwrap();
    let user = user.attr("href").await.unwrap().unwrap();
    for (path, name, expected) in [
        (key, "operators-key", "This cannot be undone"),
        (user, "operators-user", "ann@example.org"),
        (
            "/accounts".to_owned(),
            "operators-accounts",
            "Flower shop <b>Rosa</b> & sons",
        ),
        (
            format!("/accounts/{account}/ledger"),
            "operators-ledger",
            "adjustment",
        ),
        (
            format!("/accounts/{account}/tasks"),
            "operators-account-tasks",
            "404",
        ),
        ("/tasks".to_owned(), "operators-tasks", "processing"),
        (
            "/payments".to_owned(),
            "operators-payments",
            "9.90 EUR was ordered",
        ),
        ("/actions".to_owned(), "operators-actions", "credited twice"),
    ] {
        browser.goto(&format!("{admin}{path}")).await.unwrap();
        let main = text(browser, "main").await;
        assert!(main.contains(expected), "{path} lacks {expected:?}: {main}");
        check_console(browser, &path).await;
        photograph(browser, name).await;
    }
}
