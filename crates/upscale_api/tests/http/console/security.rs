//! What an attacker would try, a test each: planted sessions, forged forms, scripts in names and addresses, other
//! accounts' ids, frames, and guessing at many forms.

use upscale_core::{IdempotencyKey, NewTask, Parameters, Permission, RequestId, Scale, SourceUrl};

use super::browser::{Console, with_console, with_console_at};

#[tokio::test]
async fn a_session_id_that_was_there_before_signing_in_is_worth_nothing_after() {
    with_console(async |console: &Console<'_>| {
        console.signed_up("ann").await;
        // The attacker plants a cookie of their own, of either kind, and one of a session that is theirs.
        let eve = console.signed_up("eve").await;
        let planted = eve.cookies["upscale-session"].clone();
        let mut victim = console.browser("192.0.2.7");
        victim.get("/sign-in").await;
        let visitor = victim.cookies["upscale-visitor"].clone();
        let fields = [("email", "ann@example.org"), ("password", "correct horse")];
        victim.post("/sign-in", &fields).await;
        let session = victim.cookies["upscale-session"].clone();
        assert!(session != visitor && session != planted);
        assert!(!victim.cookies.contains_key("upscale-visitor"));
        for known in [&visitor, &planted] {
            let mut attacker = console.browser("192.0.2.8");
            attacker
                .cookies
                .insert("upscale-session".to_owned(), known.clone());
            attacker.get("/").await.lacks("ann@example.org");
        }
        // Signing in where someone is signed in already ends that session.
        let mut shared = console.browser("192.0.2.9");
        shared
            .cookies
            .insert("upscale-session".to_owned(), planted.clone());
        shared.get("/settings").await.has("eve@example.org");
        let page = shared.post("/sign-in", &fields).await;
        assert_eq!(page.status, 303);
        shared.get("/settings").await.has("ann@example.org");
        let mut attacker = console.browser("192.0.2.8");
        attacker
            .cookies
            .insert("upscale-session".to_owned(), planted);
        assert_eq!(attacker.get("/settings").await.status, 303);
    })
    .await;
}

#[tokio::test]
async fn a_form_without_its_token_or_from_another_origin_changes_nothing() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let eve = console.signed_up("eve").await;
        ann.get("/keys").await;
        let (ours, fields) = (
            ann.form_token.clone(),
            [("name", "x"), ("permission", "all")],
        );
        for token in ["", "0", &eve.form_token, &ours.to_uppercase(), &ours[1..]] {
            let forged = [&fields[..], &[("form", token)]].concat();
            let page = ann.post("/keys", &forged).await;
            assert_eq!(page.status, 403, "{token}");
            page.has("Nothing was changed");
        }
        let host = console.address.to_string();
        for origin in [
            "null",
            "https://evil.example",
            &format!("https://{host}"),
            &format!("http://{host}.evil.example"),
        ] {
            let forged = [&fields[..], &[("form", ours.as_str())]].concat();
            let page = ann.post_from(origin, "/keys", &forged).await;
            assert_eq!(page.status, 403, "{origin}");
        }
        ann.get("/keys").await.has("No keys yet");
        for path in [
            "/sign-out",
            "/sign-out-everywhere",
            "/settings/password",
            "/settings/second-factor",
            "/playground",
        ] {
            let page = ann.post_from("https://evil.example", path, &[]).await;
            assert_eq!(page.status, 403, "{path}");
        }
        assert_eq!(ann.get("/").await.status, 200);
        let mut guest = console.browser("192.0.2.3");
        guest.get("/sign-in").await;
        let fields = [
            ("email", "ann@example.org"),
            ("password", "correct horse"),
            ("form", ""),
        ];
        assert_eq!(guest.post("/sign-in", &fields).await.status, 403);
    })
    .await;
}

#[tokio::test]
async fn a_script_in_a_key_name_an_e_mail_or_a_task_address_stays_text() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        ann.get("/keys").await;
        let name = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
        let page = ann
            .post("/keys", &[("name", name), ("permission", "all")])
            .await;
        assert_eq!(page.status, 201);
        page.lacks("<script>alert");
        page.has("&#60;script&#62;alert(1)");
        let again = ann
            .post("/keys", &[("name", name), ("permission", "none\"><b>")])
            .await;
        assert_eq!(again.status, 422);
        again.lacks("<b>");
        again.lacks("<img src=x");

        // The characters of an address that could break out of an attribute; <, > and " are refused at the border.
        let url = "https://images.example.org/a'onerror='alert(1)'&x=1.png";
        let task = NewTask {
            source_url: SourceUrl::parse(url).unwrap(),
            parameters: Parameters::at(Scale::X2),
        };
        let key = IdempotencyKey::parse(b"a-hostile-address").unwrap();
        let request = RequestId::random().unwrap();
        let store = &console.app.store;
        store
            .tasks()
            .create(&account, &key, &task, &request)
            .await
            .unwrap();
        let typed = "https://images.example.org/\"><script>alert(2)</script>.png";
        let page = ann
            .post("/playground", &[("image_url", typed), ("scale", "2\"><i>")])
            .await;
        assert_eq!(page.status, 422);
        page.lacks("<script>alert");
        page.lacks("<i>");
        for path in ["/", "/tasks"] {
            let page = ann.get(path).await;
            page.lacks("'onerror='");
            page.has("a&#39;onerror=&#39;alert(1)&#39;&#38;x=1.png");
        }
        let mut guest = console.browser("192.0.2.5");
        guest.get("/sign-in").await;
        let fields = [("email", "\"><script>alert(3)</script>"), ("password", "x")];
        guest.post("/sign-in", &fields).await.lacks("<script>alert");
    })
    .await;
}

#[tokio::test]
async fn another_accounts_tasks_keys_and_lines_do_not_exist() {
    with_console(async |console: &Console<'_>| {
        let store = &console.app.store;
        console.signed_up("ann").await;
        let anns = console.pay("ann", "10").await;
        let (key, _) = store
            .accounts()
            .create_key(&anns, Permission::All, "ann's")
            .await
            .unwrap()
            .made()
            .unwrap();
        let task = NewTask {
            source_url: SourceUrl::parse("https://images.example.org/private.png").unwrap(),
            parameters: Parameters::at(Scale::X2),
        };
        let name = IdempotencyKey::parse(b"anns-private").unwrap();
        let request = RequestId::random().unwrap();
        store
            .tasks()
            .create(&anns, &name, &task, &request)
            .await
            .unwrap();
        let tasks = store
            .tasks()
            .list(&anns, upscale_store::TaskFilter::All, None, 1)
            .await
            .unwrap();
        let task = tasks[0].task.id.to_string();
        let mut eve = console.signed_up("eve").await;
        eve.get("/keys").await.lacks(&key.hint);
        eve.get("/tasks").await.lacks("private.png");
        eve.get("/credits").await.lacks("payment of ann");
        let before = [
            &format!("/tasks?after={}-{task}", i64::MAX),
            "/credits?before=9223372036854775807",
        ]
        .map(str::to_owned);
        for path in &before {
            let page = eve.get(path).await;
            page.lacks("private.png");
            page.lacks("payment of ann");
        }
        for path in [
            format!("/tasks/{task}"),
            format!("/tasks/{task}/state"),
            format!("/playground?task={task}"),
            format!("/keys/{}/revoke", key.id.as_str()),
        ] {
            assert_eq!(eve.get(&path).await.status, 404, "{path}");
        }
        let id = key.id.as_str();
        assert_eq!(
            eve.post(&format!("/keys/{id}/revoke"), &[]).await.status,
            404
        );
        let rotate = eve
            .post(&format!("/keys/{id}/rotate"), &[("overlap", "0")])
            .await;
        assert_eq!(rotate.status, 404);
        let still = store
            .accounts()
            .find_key(&anns, &key.id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(still.revoked_at, None);
    })
    .await;
}

#[tokio::test]
async fn no_page_can_be_framed_and_cookies_are_for_this_host_over_tls_alone() {
    // That every answer carries the headers is checked by the browser itself, for every page of every test.
    with_console_at(
        Some("https://console.example.org"),
        async |console: &Console<'_>| {
            let mut guest = console.browser("192.0.2.1");
            for path in ["/sign-in", "/nothing", "/assets/console.css", "/"] {
                let page = guest.get(path).await;
                assert_eq!(page.header("x-frame-options"), "DENY", "{path}");
                assert!(
                    page.header("content-security-policy")
                        .contains("frame-ancestors 'none'")
                );
                assert!(
                    page.header("strict-transport-security")
                        .starts_with("max-age=")
                );
            }
            guest.cookies.clear();
            let page = guest.get("/sign-up").await;
            let planted = page.header("set-cookie");
            let rest = planted.strip_prefix("__Host-upscale-visitor=").unwrap();
            assert!(
                rest.contains("; Path=/; HttpOnly; SameSite=Lax; ") && rest.ends_with("; Secure"),
                "{planted}"
            );
            assert!(!planted.contains("Domain"), "{planted}");
            let fields = [("email", "ann@example.org"), ("password", "correct horse")];
            let plain = guest.post("/sign-up", &fields).await;
            assert_eq!(plain.status, 403, "the origin must be the configured one");
            let page = guest
                .post_from("https://console.example.org", "/sign-up", &fields)
                .await;
            assert_eq!(page.status, 303);
            let cookies: Vec<_> = page.headers.get_all("set-cookie").iter().collect();
            assert!(
                cookies
                    .iter()
                    .all(|cookie| cookie.to_str().unwrap().ends_with("; Secure"))
            );
            assert!(guest.cookies.contains_key("__Host-upscale-session"));
        },
    )
    .await;
}

#[tokio::test]
async fn spraying_passwords_over_many_addresses_or_from_many_places_is_stopped() {
    with_console(async |console: &Console<'_>| {
        console.signed_up("ann").await;
        // One place, a different user each time.
        let mut sprayer = console.browser("198.51.100.1");
        sprayer.get("/sign-in").await;
        let mut statuses = Vec::new();
        for number in 0..32 {
            let email = format!("user{number}@example.org");
            let page = sprayer
                .post(
                    "/sign-in",
                    &[("email", &email), ("password", "Summer2026!")],
                )
                .await;
            statuses.push(page.status);
        }
        assert_eq!(statuses[..30], [422; 30]);
        assert_eq!(statuses[30..], [429; 2]);
        // Many places, one user; even the right password does not get through once there were too many.
        for number in 0..12 {
            let mut bot = console.browser(&format!("203.0.113.{number}"));
            bot.get("/sign-in").await;
            let password = if number == 11 {
                "correct horse"
            } else {
                "guess again"
            };
            let page = bot
                .post(
                    "/sign-in",
                    &[("email", "ANN@example.org"), ("password", password)],
                )
                .await;
            let expected = if number < 10 { 422 } else { 429 };
            assert_eq!(page.status, expected, "{number}");
            if page.status == 429 {
                page.has("Too many attempts. Wait 15 minutes");
                assert_eq!(page.header("retry-after"), "900");
            }
        }
        console.app.clock.advance_seconds(900);
        let mut ann = console.browser("203.0.113.99");
        ann.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "correct horse")];
        assert_eq!(ann.post("/sign-in", &fields).await.status, 303);
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_one_accounts_pages_is_stopped_and_others_look_on() {
    with_console(async |console: &Console<'_>| {
        let ann = console.signed_up("ann").await;
        let mut bob = console.signed_up("bob").await;
        let flood = (0..150).map(async |_| {
            let mut tab = console.browser("192.0.2.1");
            tab.cookies = ann.cookies.clone();
            let page = tab.get("/settings").await;
            (page.status, page.header("retry-after").to_owned())
        });
        let answers = futures_util::future::join_all(flood).await;
        let refused: Vec<_> = answers
            .iter()
            .filter(|(status, _)| *status == 429)
            .collect();
        assert!((1..=50).contains(&refused.len()), "{}", refused.len());
        assert!(refused.iter().all(|(_, wait)| wait == "1"), "{refused:?}");
        assert_eq!(bob.get("/settings").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn one_address_opens_ten_accounts_an_hour() {
    with_console(async |console: &Console<'_>| {
        let mut statuses = Vec::new();
        for number in 0..12 {
            let mut guest = console.browser("198.51.100.2");
            guest.get("/sign-up").await;
            let email = format!("user{number}@example.org");
            let fields = [("email", email.as_str()), ("password", "correct horse")];
            statuses.push(guest.post("/sign-up", &fields).await.status);
        }
        assert_eq!(statuses, [&[303; 10][..], &[429; 2]].concat());
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_after_a_week_and_everywhere_when_asked() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let mut elsewhere = console.browser("192.0.2.4");
        elsewhere.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "correct horse")];
        elsewhere.post("/sign-in", &fields).await;
        assert_eq!(elsewhere.get("/").await.status, 200);
        ann.get("/settings").await;
        ann.post("/sign-out-everywhere", &[]).await;
        assert_eq!(
            [ann.get("/").await.status, elsewhere.get("/").await.status],
            [303; 2]
        );
        ann.get("/sign-in").await;
        ann.post("/sign-in", &fields).await;
        console.app.clock.advance_seconds(7 * 86_400 - 1);
        assert_eq!(ann.get("/").await.status, 200);
        console.app.clock.advance_seconds(1);
        assert_eq!(ann.get("/").await.status, 303);
    })
    .await;
}
