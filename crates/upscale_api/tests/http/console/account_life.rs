//! An account's life in Settings: another e-mail address, all that is kept as a file, the end.

use serde_json::Value;

use super::{
    browser::{Console, with_console},
    mails::{Mailbox, URL, link_to, sign_up, sign_up_alone, with_mail},
};
use crate::harness::IMAGE;

const PASSWORD: (&str, &str) = ("password", "correct horse");

#[tokio::test]
async fn an_address_is_changed_by_its_new_mailbox_and_the_old_one_is_told() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        let mut ann = sign_up(console, &mailbox, "ann").await;
        ann.get("/settings").await.has("Change email address");
        let ask = [("email", " Anna@Example.org "), PASSWORD];
        let asked = ann.post_from(URL, "/settings/email", &ask).await;
        assert_eq!(asked.status, 200, "{asked:?}");
        asked.has("anna@example.org");
        let mail = mailbox.wait_for(1).await.remove(0);
        assert_eq!(mail.to.as_str(), "anna@example.org");
        let link = link_to(console, "settings/email", &mail);

        // Elsewhere the link says whose browser it wants, and does nothing.
        let mut guest = console.browser("192.0.2.9");
        guest
            .get(&link)
            .await
            .has("Sign in as <strong>ann@example.org</strong>");
        let refused = guest.post_from(URL, &link, &[]).await;
        assert_eq!(refused.header("location"), "/sign-in");

        ann.get(&link).await.has("from now on?");
        let changed = ann.post_from(URL, &link, &[]).await;
        assert_eq!(changed.header("location"), "/settings?done=email");
        let settings = ann.get("/settings?done=email").await;
        settings.has("Email address changed");
        settings.has("anna@example.org");
        assert_eq!(ann.get(&link).await.status, 404);
        let reported = mailbox.wait_for(2).await.remove(1);
        assert_eq!(reported.to.as_str(), "ann@example.org");
        assert!(
            reported.text.contains("was changed to anna@example.org"),
            "{reported:?}"
        );

        guest.get("/sign-in").await;
        for (email, status) in [("ann@example.org", 422), ("anna@example.org", 303)] {
            let fields = [("email", email), PASSWORD];
            assert_eq!(
                guest.post_from(URL, "/sign-in", &fields).await.status,
                status
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_new_address_stands_beside_its_field_and_nothing_is_mailed() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        let mut ann = sign_up(console, &mailbox, "ann").await;
        sign_up_alone(console, "bob").await;
        mailbox.wait_for(1).await;
        ann.get("/settings").await;
        for (email, password, field, words) in [
            (
                "new@example.org",
                "wrong horse",
                "email-password",
                "Incorrect password",
            ),
            (
                "nowhere",
                "correct horse",
                "new-email",
                "looks like name@example.com",
            ),
            ("ann@example.org", "correct horse", "new-email", "already"),
            (
                "bob@example.org",
                "correct horse",
                "new-email",
                "already exists",
            ),
        ] {
            let fields = [("email", email), ("password", password)];
            let page = ann.post_from(URL, "/settings/email", &fields).await;
            assert_eq!(page.status, 422, "{email}");
            let problem = page.between(&format!("id=\"{field}-problem\">"), "</p>");
            assert!(problem.unwrap().contains(words), "{email}");
            page.has(&format!("value=\"{email}\""));
        }
        let mut asked = Vec::new();
        for number in 0..6 {
            let email = format!("new{number}@example.org");
            let fields = [("email", email.as_str()), PASSWORD];
            asked.push(ann.post_from(URL, "/settings/email", &fields).await.status);
        }
        assert_eq!(asked, [200, 200, 200, 200, 200, 429]);
        mailbox.wait_for(6).await;
    })
    .await;
}

#[tokio::test]
async fn without_mail_no_address_is_changed_and_the_page_says_so() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        ann.get("/settings").await.has("This service sends no mail");
        let fields = [("email", "new@example.org"), PASSWORD];
        assert_eq!(ann.post("/settings/email", &fields).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn all_that_an_account_has_is_one_json_file_without_a_secret() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "2").await;
        ann.get("/keys").await;
        let made = ann
            .post("/keys", &[("name", "shop"), ("permission", "all")])
            .await;
        let secret = made
            .between("<code id=\"secret\" tabindex=\"0\">", "</code>")
            .unwrap();
        app.keep_secret(&secret);
        let form = ann.get("/playground").await;
        let key = form
            .between("name=\"idempotency_key\" value=\"", "\"")
            .unwrap();
        app.keep_secret(&key);
        let order = [
            ("image_url", IMAGE),
            ("scale", "4"),
            ("idempotency_key", &key),
        ];
        assert_eq!(ann.post("/playground", &order).await.status, 303);

        ann.get("/settings").await.has("href=\"/settings/export\"");
        let file = ann.get("/settings/export").await;
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, "application/json")
        );
        assert!(
            file.header("content-disposition")
                .contains("upscale-data.json")
        );
        let data: Value = serde_json::from_str(&file.text).unwrap();
        assert_eq!(data["account"]["id"], account.as_str());
        assert_eq!(data["account"]["credits_available"], 1.3);
        assert_eq!(data["user"]["email"], "ann@example.org");
        assert_eq!(data["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(data["keys"][0]["name"], "shop");
        assert_eq!(data["tasks"][0]["image_url"], IMAGE);
        assert_eq!(
            (&data["tasks"][0]["scale"], &data["tasks"][0]["status"]),
            (&4.into(), &"processing".into())
        );
        let kinds: Vec<&str> = data["ledger"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["reserve", "purchase"]);
        assert_eq!(data["payments"], Value::Array(Vec::new()));
        for hidden in [secret.as_str(), &key, "argon2"] {
            file.lacks(hidden);
        }
    })
    .await;
}

#[tokio::test]
async fn the_file_has_nothing_of_anothers_and_is_made_ten_times_an_hour() {
    with_console(async |console: &Console<'_>| {
        console.signed_up("ann").await;
        console.pay("ann", "2").await;
        let mut bob = console.signed_up("bob").await;
        let file = bob.get("/settings/export").await;
        let data: Value = serde_json::from_str(&file.text).unwrap();
        for list in ["keys", "tasks", "ledger", "payments"] {
            assert_eq!(data[list], Value::Array(Vec::new()), "{list}");
        }
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses.push(bob.get("/settings/export").await.status);
        }
        assert_eq!((statuses[8], statuses[9]), (200, 429));
        assert_eq!(
            console
                .browser("192.0.2.7")
                .get("/settings/export")
                .await
                .status,
            303
        );
    })
    .await;
}

#[tokio::test]
async fn a_file_of_more_rows_than_a_part_has_each_of_them_once() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "1").await;
        for number in 0..1_200 {
            let credits = upscale_core::Credits::parse("0.001").unwrap();
            let reference = format!("drop {number}");
            let booked = app
                .store
                .accounts()
                .credit(&account, credits, &reference)
                .await;
            booked.unwrap();
        }
        let file = ann.get("/settings/export").await;
        let data: Value = serde_json::from_str(&file.text).unwrap();
        let lines = data["ledger"].as_array().unwrap();
        let mut numbers: Vec<i64> = lines
            .iter()
            .map(|line| line["line"].as_i64().unwrap())
            .collect();
        numbers.dedup();
        assert_eq!(numbers.len(), 1_201);
        let sum: f64 = lines
            .iter()
            .map(|line| line["change_of_available"].as_f64().unwrap())
            .sum();
        assert!((sum - 2.2).abs() < 1e-9, "{sum}");
    })
    .await;
}

#[tokio::test]
async fn an_account_is_deleted_by_password_and_address_and_its_books_stay() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = sign_up(console, &mailbox, "ann").await;
        let account = console.pay("ann", "10").await;
        ann.get("/keys").await;
        let made = ann
            .post_from(URL, "/keys", &[("name", "shop"), ("permission", "all")])
            .await;
        let secret = made
            .between("<code id=\"secret\" tabindex=\"0\">", "</code>")
            .unwrap();
        app.keep_secret(&secret);
        let settings = ann.get("/settings").await;
        settings.has("You have 10 credits. They are lost:");
        for (confirm, password, field) in [
            ("", "correct horse", "confirm"),
            ("bob@example.org", "correct horse", "confirm"),
            ("ann@example.org", "wrong horse", "delete-password"),
        ] {
            let fields = [("confirm", confirm), ("password", password)];
            let page = ann.post_from(URL, "/settings/delete", &fields).await;
            assert_eq!(page.status, 422, "{confirm}");
            page.has(&format!("aria-describedby=\"{field}-problem\""));
        }
        let fields = [("confirm", "ann@example.org"), PASSWORD];
        let gone = ann.post_from(URL, "/settings/delete", &fields).await;
        assert_eq!(gone.header("location"), "/sign-in?done=account-deleted");
        ann.get("/sign-in?done=account-deleted")
            .await
            .has("Your account was deleted");
        assert_eq!(ann.get("/settings").await.header("location"), "/sign-in");
        let read = app
            .request_without_key("GET", "/api/v1/upscales/ups_x")
            .key(&secret);
        read.send().await.expect(401, "invalid_api_key");
        let reported = mailbox.wait_for(1).await.remove(0);
        assert!(reported.text.contains("was deleted"), "{reported:?}");
        let left = app.store.accounts().find(&account).await.unwrap().unwrap();
        assert_eq!(
            (left.name.as_str(), left.available.thousandths()),
            ("Deleted account", 10_000)
        );
        assert_eq!(app.store.users().list().await.unwrap(), []);
        ann.get("/sign-in").await;
        assert_eq!(
            ann.post_from(URL, "/sign-in", &[("email", "ann@example.org"), PASSWORD])
                .await
                .status,
            422
        );
    })
    .await;
}
