//! Keys, the playground, settings: what they do, and what they say when they cannot.

use totp_rs::{Builder, Secret};

use super::browser::{Console, with_console};
use crate::harness::IMAGE;

#[tokio::test]
async fn a_key_is_shown_once_rotated_with_overlap_and_revoked_after_a_question() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        console.pay("ann", "10").await;
        ann.get("/keys").await.has("No keys yet");
        let page = ann
            .post("/keys", &[("name", "shop"), ("permission", "all")])
            .await;
        assert_eq!(page.status, 201);
        let secret = page
            .between("<code id=\"secret\" tabindex=\"0\">", "</code>")
            .unwrap();
        app.keep_secret(&secret);
        let later = ann.get("/keys").await;
        later.lacks(&secret);
        later.has("shop");
        let read = app
            .request_without_key("GET", "/api/v1/upscales/ups_x")
            .key(&secret);
        read.send().await.expect(404, "task_not_found");

        let id = later
            .between("<a class=\"button\" href=\"/keys/", "/rotate\"")
            .unwrap();
        let rotate = format!("/keys/{id}/rotate");
        ann.get(&rotate).await.has("<option value=\"3600\">");
        assert_eq!(ann.post(&rotate, &[("overlap", "7")]).await.status, 400);
        // Newest first, and the clock stands: of two made in one moment either may be first.
        app.clock.advance_seconds(1);
        let page = ann.post(&rotate, &[("overlap", "3600")]).await;
        let successor = page
            .between("<code id=\"secret\" tabindex=\"0\">", "</code>")
            .unwrap();
        page.has("until ");
        for (seconds, old_works) in [(0, true), (3_600, false)] {
            app.clock.advance_seconds(seconds);
            for (key, works) in [(&secret, old_works), (&successor, true)] {
                let read = app
                    .request_without_key("GET", "/api/v1/upscales/ups_x")
                    .key(key);
                assert_eq!(read.send().await.status == 404, works, "{seconds}");
            }
        }
        let live = page
            .between("class=\"button danger\" href=\"/keys/", "/revoke\"")
            .unwrap();
        let path = format!("/keys/{live}/revoke");
        ann.get(&path).await.has("cannot be undone");
        assert_eq!(
            ann.post(&path, &[]).await.header("location"),
            "/keys?done=revoked"
        );
        let read = app
            .request_without_key("GET", "/api/v1/upscales/ups_x")
            .key(&successor);
        read.send().await.expect(401, "invalid_api_key");
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_key_stands_beside_its_field() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        ann.get("/keys").await;
        let long = "n".repeat(101);
        let page = ann
            .post("/keys", &[("name", &long), ("permission", "read")])
            .await;
        assert_eq!(page.status, 422);
        page.has("this one has 101");
        page.has(&format!("value=\"{long}\""));
        page.has("<option value=\"read\" selected>");
        let page = ann
            .post("/keys", &[("name", "x"), ("permission", "root")])
            .await;
        page.has("Choose permissions");
        ann.get("/keys").await.has("No keys yet");
    })
    .await;
}

#[tokio::test]
async fn the_playground_orders_as_the_api_does_once_however_often_its_form_is_sent() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let fields = [
            ("image_url", IMAGE),
            ("scale", "4"),
            ("face_enhance", "true"),
        ];
        ann.get("/playground").await.has("needs a first purchase");
        let refused = ann.post("/playground", &fields).await;
        assert_eq!(refused.status, 403);
        refused.has("API access requires");
        let account = console.pay("ann", "1").await;
        let form = ann.get("/playground").await;
        let key = form
            .between("name=\"idempotency_key\" value=\"", "\"")
            .unwrap();
        app.keep_secret(&key);
        let fields = [&fields[..], &[("idempotency_key", key.as_str())]].concat();
        let sent = ann.post("/playground", &fields).await;
        let again = ann.post("/playground", &fields).await;
        assert_eq!((sent.status, again.status), (303, 303));
        assert_eq!(sent.header("location"), again.header("location"));
        let standing = app.store.accounts().find(&account).await.unwrap().unwrap();
        assert_eq!(
            (
                standing.available.thousandths(),
                standing.reserved.thousandths()
            ),
            (300, 700)
        );
        let page = ann.get(sent.header("location")).await;
        page.has("data-watch=\"/tasks/ups_");
        page.has("&#34;scale&#34;: 4, &#34;face_enhance&#34;: true");
        page.has(&format!("value=\"{IMAGE}\""));
        let other = [
            &fields[1..],
            &[("image_url", "https://images.example.org/b.png")],
        ]
        .concat();
        let conflict = ann.post("/playground", &other).await;
        assert_eq!(conflict.status, 409);
        conflict.has("ordered another image before");
        let fresh = conflict
            .between("name=\"idempotency_key\" value=\"", "\"")
            .unwrap();
        assert_ne!(fresh, key);
        let poor = [
            &other[..2],
            &other[3..],
            &[("idempotency_key", fresh.as_str())],
        ]
        .concat();
        let poor = ann.post("/playground", &poor).await;
        assert_eq!(poor.status, 402);
        poor.has("Not enough credits");
    })
    .await;
}

#[tokio::test]
async fn orders_of_the_playground_count_in_the_accounts_minute() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "100").await;
        for _ in 0..60 {
            console
                .app
                .store
                .accounts()
                .count_create_request(&account)
                .await
                .unwrap();
        }
        ann.get("/playground").await;
        let fields = [
            ("image_url", IMAGE),
            ("scale", "2"),
            ("idempotency_key", "console-12345678"),
        ];
        let page = ann.post("/playground", &fields).await;
        assert_eq!(page.status, 429);
        page.has("More than 60 create requests in one minute");
        page.has(&format!("value=\"{IMAGE}\""));
        assert!(page.header("retry-after").parse::<i64>().unwrap() >= 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_an_order_stands_beside_its_field_and_nothing_is_reserved() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        ann.get("/playground").await;
        for (url, scale, sentence) in [
            (
                "http://images.example.org/a.png",
                "2",
                "This image URL cannot be used",
            ),
            (
                "https://127.0.0.1/a.png",
                "2",
                "This image URL cannot be used",
            ),
            ("", "2", "This image URL cannot be used"),
            (IMAGE, "3", "Choose 2x or 4x"),
        ] {
            let fields = [
                ("image_url", url),
                ("scale", scale),
                ("idempotency_key", "console-12345678"),
            ];
            let page = ann.post("/playground", &fields).await;
            assert_eq!(page.status, 422, "{url} {scale}");
            page.has(sentence);
            page.has(&format!("value=\"{url}\""));
        }
        let standing = console
            .app
            .store
            .accounts()
            .find(&account)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(standing.reserved.thousandths(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_changed_password_signs_the_other_browsers_out_and_this_one_goes_on() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let mut elsewhere = console.browser("192.0.2.4");
        elsewhere.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "correct horse")];
        elsewhere.post("/sign-in", &fields).await;
        ann.get("/settings").await;
        for (current, new, sentence) in [
            ("wrong horse", "a new battery", "Incorrect password"),
            ("correct horse", "short", "at least 10 characters"),
        ] {
            let page = ann
                .post("/settings/password", &[("current", current), ("new", new)])
                .await;
            assert_eq!(page.status, 422);
            page.has(sentence);
        }
        let before = ann.cookies["upscale-session"].clone();
        let fields = [("current", "correct horse"), ("new", "a new battery")];
        assert_eq!(ann.post("/settings/password", &fields).await.status, 303);
        assert_ne!(ann.cookies["upscale-session"], before);
        assert_eq!(ann.get("/settings").await.status, 200);
        assert_eq!(elsewhere.get("/").await.status, 303);
    })
    .await;
}

#[tokio::test]
async fn a_second_factor_is_asked_for_and_no_code_is_taken_twice() {
    with_console(async |console: &Console<'_>| {
        let now = || console.app.store.now().unix_seconds();
        let mut ann = console.signed_up("ann").await;
        ann.get("/settings").await;
        let page = ann.post("/settings/second-factor", &[]).await;
        let secret = page.between("name=\"secret\" value=\"", "\"").unwrap();
        console.app.keep_secret(&secret);
        page.has("otpauth://totp/Upscale:ann%40example.org?secret=");
        let wrong = [("secret", secret.as_str()), ("code", "000000")];
        ann.post("/settings/second-factor/on", &wrong)
            .await
            .has("Incorrect code.");
        let code = code_of(&secret, now());
        let right = [("secret", secret.as_str()), ("code", code.as_str())];
        let on = ann.post("/settings/second-factor/on", &right).await;
        assert_eq!(on.status, 201);
        ann.get("/settings")
            .await
            .has("Two-factor authentication is on");

        let mut guest = console.browser("192.0.2.6");
        guest.get("/sign-in").await;
        let password = [("email", "ann@example.org"), ("password", "correct horse")];
        let asked = guest.post("/sign-in", &password).await;
        assert_eq!(asked.status, 422);
        asked.has("name=\"code\"");
        let used = [&password[..], &[("code", code.as_str())]].concat();
        guest.post("/sign-in", &used).await.has("already used");
        console.app.clock.advance_seconds(30);
        let next = code_of(&secret, now());
        let fresh = [&password[..], &[("code", next.as_str())]].concat();
        assert_eq!(guest.post("/sign-in", &fresh).await.status, 303);

        guest.get("/settings").await;
        let wrong = guest
            .post(
                "/settings/second-factor/off",
                &[("password", "wrong horse")],
            )
            .await;
        wrong.has("Incorrect password");
        let off = guest
            .post(
                "/settings/second-factor/off",
                &[("password", "correct horse")],
            )
            .await;
        assert_eq!(off.status, 303);
        guest
            .get("/settings")
            .await
            .has("Two-factor authentication is off");
    })
    .await;
}

/// As an authenticator shows it.
pub(super) fn code_of(secret: &str, seconds: i64) -> String {
    let secret = Secret::try_from_base32(secret).unwrap();
    let totp = Builder::new().with_secret(secret).build().unwrap();
    totp.generate(seconds.unsigned_abs()).to_string()
}

#[tokio::test]
async fn a_recovery_code_stands_in_for_the_authenticator_once_and_not_once_there_are_new_ones() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        ann.get("/settings").await;
        let none = ann.post("/settings/recovery-codes", &[]).await;
        assert_eq!(none.status, 404, "there is no second factor");
        ann.get("/settings").await;
        let page = ann.post("/settings/second-factor", &[]).await;
        let secret = page.between("name=\"secret\" value=\"", "\"").unwrap();
        console.app.keep_secret(&secret);
        let code = code_of(&secret, console.app.store.now().unix_seconds());
        let right = [("secret", secret.as_str()), ("code", code.as_str())];
        let on = ann.post("/settings/second-factor/on", &right).await;
        let codes = on.between("<code>", "</code>").unwrap();
        let codes: Vec<String> = codes.lines().map(str::to_owned).collect();
        assert_eq!(codes.len(), 8);
        codes.iter().for_each(|code| console.app.keep_secret(code));
        ann.get("/settings").await.has("8 left.");

        let password = [("email", "ann@example.org"), ("password", "correct horse")];
        let mut lost = console.browser("192.0.2.8");
        for (code, status) in [(&codes[3], 303), (&codes[3], 422)] {
            lost.cookies.clear();
            lost.get("/sign-in").await;
            let typed = code.to_uppercase().replace('-', " ");
            let fields = [&password[..], &[("code", typed.as_str())]].concat();
            let page = lost.post("/sign-in", &fields).await;
            assert_eq!(page.status, status, "{code}");
        }
        ann.get("/settings").await.has("7 left.");
        let wrong = [("password", "wrong horse")];
        let wrong = ann.post("/settings/recovery-codes", &wrong).await;
        assert_eq!(wrong.status, 422);
        ann.get("/settings").await;
        let right = [("password", "correct horse")];
        let renewed = ann.post("/settings/recovery-codes", &right).await;
        assert_eq!(renewed.status, 201);
        renewed.lacks(&codes[0]);
        lost.get("/sign-in").await;
        let old = [&password[..], &[("code", codes[0].as_str())]].concat();
        assert_eq!(lost.post("/sign-in", &old).await.status, 422);
    })
    .await;
}
