//! Who comes in: by the socket everyone, to look; by loopback anyone who has the token; and changes by a name alone.

use std::os::unix::fs::MetadataExt;

use super::browser::{Admin, By, TOKEN, with_admin};

const PAGES: [&str; 6] = [
    "/",
    "/accounts",
    "/tasks",
    "/payments",
    "/actions",
    "/search?q=x",
];

#[tokio::test]
async fn without_the_token_nothing_is_shown_and_the_form_leads_in() {
    with_admin(async |admin: &Admin<'_>| {
        let account = &admin.app.account;
        let mut browser = admin.browser(By::Token);
        for path in PAGES
            .map(str::to_owned)
            .into_iter()
            .chain([format!("/accounts/{account}")])
        {
            let page = browser.get(&path).await;
            assert_eq!(
                (page.status, page.header("location")),
                (303, "/sign-in"),
                "{path}"
            );
            assert_eq!(page.text, "");
        }
        let page = browser.get("/sign-in").await;
        page.has("Operators' token");
        page.lacks("Audit trail");
        let page = browser
            .post("/sign-in", &[("name", "Ann"), ("token", "guess")])
            .await;
        assert_eq!(page.status, 422);
        page.has("This is not the token.");
        page.has("value=\"Ann\"");
        page.lacks("guess");
        let page = browser
            .post("/sign-in", &[("name", " "), ("token", TOKEN)])
            .await;
        assert_eq!(page.status, 422);
        page.has("A name has 1 to 100 characters, this one 0.");
        page.lacks(TOKEN);
        browser
            .post("/sign-in", &[("name", "Ann"), ("token", TOKEN)])
            .await;
        for path in PAGES {
            assert!(
                [200, 303].contains(&browser.get(path).await.status),
                "{path}"
            );
        }
        browser.get("/").await.has("Ann");
    })
    .await;
}

#[tokio::test]
async fn by_the_socket_everyone_looks_and_a_name_is_needed_to_change() {
    with_admin(async |admin: &Admin<'_>| {
        let path = format!("/accounts/{}", admin.app.account);
        let mut browser = admin.browser(By::Socket);
        browser.get(&path).await.has("Enter yours");
        let adjust = format!("{path}/adjust");
        let fields = [("credits", "5"), ("reason", "a gift")];
        let page = browser.post(&adjust, &fields).await;
        assert_eq!((page.status, page.header("location")), (303, "/sign-in"));
        let page = browser.get("/sign-in").await;
        page.lacks("name=\"token\"");
        let page = browser.post("/sign-in", &[("name", "Ann")]).await;
        assert_eq!(page.status, 303);
        browser.get(&path).await;
        assert_eq!(browser.post(&adjust, &fields).await.status, 303);
        // What the kernel says stands beside what was typed.
        let user = std::fs::metadata(admin.app.path("admin.sock"))
            .unwrap()
            .uid();
        let actions = admin.actions().await;
        assert_eq!(actions[0].operator, format!("Ann (uid {user})"));
    })
    .await;
}

#[tokio::test]
async fn scripts_bring_the_token_with_each_request_and_a_name_for_what_they_change() {
    with_admin(async |admin: &Admin<'_>| {
        let path = format!("/accounts/{}", admin.app.account);
        let adjust = format!("{path}/adjust");
        let fields = [("credits", "1"), ("reason", "by a script")];
        for (by, bearer) in [(By::Token, true), (By::Socket, false)] {
            let mut script = admin.browser(by);
            if bearer {
                script
                    .headers
                    .push(("authorization", format!("Bearer {TOKEN}")));
            }
            assert_eq!(script.get(&path).await.status, 200);
            if bearer {
                assert!(script.cookies.is_empty(), "a script needs no cookie");
                script.held.clear();
                let page = script.post(&adjust, &fields).await;
                assert_eq!(page.status, 400);
                page.has("Upscale-Operator");
            }
            script.cookies.clear();
            script.held.clear();
            script
                .headers
                .push(("upscale-operator", "nightly job".to_owned()));
            let page = script.post(&adjust, &fields).await;
            assert_eq!(page.status, 303, "{page:?}");
        }
        let mut wrong = admin.browser(By::Token);
        for bearer in ["Bearer wrong", "Basic eDp5", "Bearer", ""] {
            wrong.headers = vec![("authorization", bearer.to_owned())];
            let page = wrong.get(&path).await;
            assert_eq!(
                (page.status, page.header("www-authenticate")),
                (401, "Bearer")
            );
        }
        let actions = admin.actions().await;
        assert_eq!(actions.len(), 2);
        assert_eq!(actions[1].operator, "nightly job");
    })
    .await;
}

#[tokio::test]
async fn wrong_tokens_are_throttled_while_sessions_and_the_right_one_go_on() {
    with_admin(async |admin: &Admin<'_>| {
        let mut inside = admin.signed_in(By::Token).await;
        let mut guessing = admin.browser(By::Token);
        guessing.get("/sign-in").await;
        let wrong = "a guess that is as long as a token has to be";
        let fields = [("name", "Eve"), ("token", wrong)];
        for _ in 0..10 {
            assert_eq!(guessing.post("/sign-in", &fields).await.status, 422);
        }
        let page = guessing.post("/sign-in", &fields).await;
        assert_eq!((page.status, page.header("retry-after")), (429, "60"));
        let mut script = admin.browser(By::Token);
        let bearer = |token: &str| vec![("authorization", format!("Bearer {token}"))];
        script.headers = bearer(wrong);
        assert_eq!(script.get("/").await.status, 429);
        // No one but who guesses is kept out.
        script.headers = bearer(TOKEN);
        assert_eq!(script.get("/").await.status, 200);
        assert_eq!(inside.get("/").await.status, 200);
        let mut right = admin.browser(By::Token);
        right.get("/sign-in").await;
        let fields = [("name", "Ann"), ("token", TOKEN)];
        assert_eq!(right.post("/sign-in", &fields).await.status, 303);
        script.headers = bearer(wrong);
        assert_eq!(script.get("/").await.status, 429);
        admin.app.clock.advance_seconds(60);
        assert_eq!(script.get("/").await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_by_signing_out_and_after_twelve_hours() {
    with_admin(async |admin: &Admin<'_>| {
        let mut browser = admin.signed_in(By::Token).await;
        let stolen = browser.cookies.clone();
        browser.get("/").await;
        let page = browser.post("/sign-out", &[]).await;
        assert_eq!((page.status, page.header("location")), (303, "/sign-in"));
        let mut thief = admin.browser(By::Token);
        thief.cookies = stolen;
        assert_eq!(
            thief.get("/").await.status,
            303,
            "the cookie is worth nothing"
        );
        let mut later = admin.signed_in(By::Token).await;
        admin.app.clock.advance_seconds(12 * 3_600 - 1);
        assert_eq!(later.get("/").await.status, 200);
        admin.app.clock.advance_seconds(1);
        assert_eq!(later.get("/").await.status, 303);
    })
    .await;
}
