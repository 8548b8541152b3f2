//! Browsers that an owner signed in with before: wrong passwords typed elsewhere keep none of them out.

use upscale_core::{Email, SecretToken};

use super::browser::{Browser, Console, Page, with_console};

const COOKIE: &str = "upscale-browser";

async fn sign_in(browser: &mut Browser<'_>, email: &str, password: &str) -> Page {
    browser.get("/sign-in").await;
    let fields = [("email", email), ("password", password)];
    browser.post("/sign-in", &fields).await
}

async fn sign_out(browser: &mut Browser<'_>) {
    browser.get("/settings").await;
    let page = browser.post("/sign-out", &[]).await;
    assert_eq!(page.header("location"), "/sign-in");
}

/// Twelve wrong passwords for Ann, each from another place: the last two are not looked at any more.
async fn lock_out(console: &Console<'_>) {
    let mut statuses = Vec::new();
    for number in 0..12 {
        let mut bot = console.browser(&format!("203.0.113.{number}"));
        statuses.push(
            sign_in(&mut bot, "ann@example.org", "guess again")
                .await
                .status,
        );
    }
    assert_eq!(statuses, [&[422; 10][..], &[429; 2]].concat());
}

#[tokio::test]
async fn wrong_passwords_of_unknown_callers_never_lock_out_a_browser_that_the_owner_signed_in_with()
{
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        sign_out(&mut ann).await;
        lock_out(console).await;
        let mut elsewhere = console.browser("192.0.2.50");
        let page = sign_in(&mut elsewhere, "ann@example.org", "correct horse").await;
        assert_eq!(page.status, 429, "a browser that no one knows waits");
        let page = sign_in(&mut ann, " Ann@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
        // Not even when they come from the same place, as in an office.
        sign_out(&mut ann).await;
        for number in 0..31 {
            let mut bot = console.browser("192.0.2.1");
            sign_in(&mut bot, &format!("user{number}@example.org"), "guess").await;
        }
        let mut bot = console.browser("192.0.2.1");
        assert_eq!(
            sign_in(&mut bot, "x@example.org", "guess").await.status,
            429
        );
        let page = sign_in(&mut ann, "ann@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
    })
    .await;
}

#[tokio::test]
async fn a_known_browser_has_ten_tries_of_its_own_and_takes_none_from_others() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        sign_out(&mut ann).await;
        for number in 0..12 {
            let page = sign_in(&mut ann, "ann@example.org", "guess again").await;
            assert_eq!(page.status, if number < 10 { 422 } else { 429 }, "{number}");
        }
        let mut elsewhere = console.browser("192.0.2.50");
        let page = sign_in(&mut elsewhere, "ann@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
        console.app.clock.advance_seconds(900);
        let page = sign_in(&mut ann, "ann@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
    })
    .await;
}

#[tokio::test]
async fn the_cookie_counts_for_its_own_user_and_only_when_we_made_it() {
    with_console(async |console: &Console<'_>| {
        let ann = console.signed_up("ann").await;
        let eve = console.signed_up("eve").await;
        assert_ne!(ann.cookies[COOKIE], eve.cookies[COOKIE]);
        let invented = SecretToken::random().unwrap().reveal().to_owned();
        console.app.keep_secret(&invented);
        // Five with Eve's cookie and five with one of no one's are the ten of all that are not Ann's.
        for (number, cookie) in [&eve.cookies[COOKIE], &invented]
            .into_iter()
            .cycle()
            .take(12)
            .enumerate()
        {
            let mut bot = console.browser(&format!("203.0.113.{number}"));
            bot.cookies.insert(COOKIE.to_owned(), cookie.clone());
            let page = sign_in(&mut bot, "ann@example.org", "guess again").await;
            assert_eq!(page.status, if number < 10 { 422 } else { 429 }, "{number}");
        }
        // Who signs in as another gets a cookie of their own, and the first user's is not theirs.
        let mut shared = console.browser("192.0.2.60");
        let anns = ann.cookies[COOKIE].clone();
        shared.cookies.insert(COOKIE.to_owned(), anns.clone());
        let page = sign_in(&mut shared, "eve@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
        assert_ne!(shared.cookies[COOKIE], anns);
        let mut again = console.browser("192.0.2.61");
        again.cookies.insert(COOKIE.to_owned(), anns.clone());
        let page = sign_in(&mut again, "ann@example.org", "correct horse").await;
        assert_eq!(page.header("location"), "/");
        assert_eq!(again.cookies[COOKIE], anns, "known already");
        let cookies = page.headers.get_all("set-cookie").iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
        let cookie = cookies.find(|cookie| cookie.starts_with(COOKIE)).unwrap();
        assert!(
            cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=7776000"),
            "{cookie}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_new_password_forgets_browsers_and_the_one_that_sets_it_by_a_link_is_known_at_once() {
    with_console(async |console: &Console<'_>| {
        let mut old = console.signed_up("ann").await;
        sign_out(&mut old).await;
        let store = &console.app.store;
        let email = Email::parse("ann@example.org").unwrap();
        let user = store.users().find(&email).await.unwrap().unwrap();
        let token = SecretToken::random().unwrap();
        console.app.keep_secret(token.reveal());
        let hash = token.hash();
        let made = store.users().create_reset(&user.id, &hash, 3_600);
        made.await.unwrap();
        lock_out(console).await;
        let path = format!("/reset/{}", token.reveal());
        let mut ann = console.browser("192.0.2.2");
        ann.get(&path).await.has("ann@example.org");
        let set = ann.post(&path, &[("password", "a new battery")]).await;
        assert_eq!(set.header("location"), "/sign-in");
        let page = sign_in(&mut ann, "ann@example.org", "a new battery").await;
        assert_eq!(page.header("location"), "/");
        let page = sign_in(&mut old, "ann@example.org", "a new battery").await;
        assert_eq!(page.status, 429, "what was known under the old password");
    })
    .await;
}

#[tokio::test]
async fn who_is_signed_in_changes_the_password_whatever_others_try() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        lock_out(console).await;
        ann.get("/settings").await;
        let wrong = [("current", "wrong horse"), ("new", "a new battery")];
        let mut statuses = Vec::new();
        for _ in 0..9 {
            statuses.push(ann.post("/settings/password", &wrong).await.status);
        }
        assert_eq!(statuses, [422; 9]);
        let right = [("current", "correct horse"), ("new", "a new battery")];
        let page = ann.post("/settings/password", &right).await;
        assert_eq!(page.header("location"), "/settings?done=password");
        ann.get("/settings").await;
        let again = ann.post("/settings/password", &wrong).await;
        assert_eq!(again.status, 429, "ten tries a quarter of an hour");
        // And goes on to be known under the new one.
        sign_out(&mut ann).await;
        let page = sign_in(&mut ann, "ann@example.org", "a new battery").await;
        assert_eq!(page.header("location"), "/");
    })
    .await;
}
