//! Who is not signed in: the sign-in page and its messages, passwords that are forgotten.

use upscale_core::{Email, SecretToken};

use super::browser::{Console, with_console};

#[tokio::test]
async fn every_page_that_needs_a_session_leads_to_the_sign_in_page() {
    with_console(async |console: &Console<'_>| {
        let mut guest = console.browser("192.0.2.1");
        for path in [
            "/",
            "/keys",
            "/credits",
            "/tasks",
            "/playground",
            "/docs",
            "/settings",
            "/tasks/x",
            "/keys/x/revoke",
            "/credits/ledger.csv",
            "/credits/orders/x/state",
        ] {
            let page = guest.get(path).await;
            assert_eq!(
                (page.status, page.header("location")),
                (303, "/sign-in"),
                "{path}"
            );
        }
        guest.get("/sign-in").await;
        for path in [
            "/sign-out",
            "/sign-out-everywhere",
            "/keys",
            "/credits",
            "/playground",
            "/settings/password",
            "/keys/x/rotate",
        ] {
            let page = guest.post(path, &[]).await;
            assert_eq!(
                (page.status, page.header("location")),
                (303, "/sign-in"),
                "{path}"
            );
        }
        assert_eq!(guest.get("/nothing").await.status, 404);
        assert_eq!(guest.get("/assets/console.css.map").await.status, 404);
        assert_eq!(guest.post("/tasks", &[]).await.status, 405);
    })
    .await;
}

#[tokio::test]
async fn signing_up_out_and_in_again() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let page = ann.get("/").await;
        assert_eq!(page.status, 200);
        page.has("ann@example.org");
        page.has("Your first purchase enables the API");
        assert_eq!(ann.get("/sign-in").await.status, 303);
        let page = ann.post("/sign-out", &[]).await;
        assert_eq!(page.header("location"), "/sign-in");
        assert_eq!(ann.get("/").await.status, 303);
        ann.get("/sign-in").await;
        let fields = [
            ("email", " Ann@Example.org "),
            ("password", "correct horse"),
        ];
        assert_eq!(ann.post("/sign-in", &fields).await.header("location"), "/");
        assert_eq!(ann.get("/").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_sign_up_stands_beside_its_field_and_what_was_typed_stays() {
    with_console(async |console: &Console<'_>| {
        console.signed_up("ann").await;
        let mut guest = console.browser("192.0.2.2");
        guest.get("/sign-up").await;
        for (email, password, field, sentence) in [
            (
                "not an address",
                "correct horse",
                "email-problem",
                "looks like name@example.com",
            ),
            (
                "bob@example.org",
                "short",
                "password-problem",
                "at least 10 characters",
            ),
            (
                "ann@example.org",
                "correct horse",
                "email-problem",
                "An account with this email already exists",
            ),
        ] {
            let fields = [("email", email), ("password", password)];
            let page = guest.post("/sign-up", &fields).await;
            assert_eq!(page.status, 422, "{email}");
            let problem = page.between(&format!("id=\"{field}\">"), "</p>").unwrap();
            assert!(problem.contains(sentence), "{problem}");
            page.has(&format!(
                "aria-describedby=\"{}",
                if field == "email-problem" {
                    field
                } else {
                    "password-hint password-problem"
                }
            ));
            page.has(&format!("value=\"{email}\""));
            page.lacks(password);
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_get_the_same_answer() {
    with_console(async |console: &Console<'_>| {
        console.signed_up("ann").await;
        let mut answers = Vec::new();
        for email in ["ann@example.org", "eve@example.org", "nonsense"] {
            let mut guest = console.browser("192.0.2.2");
            guest.get("/sign-in").await;
            let fields = [("email", email), ("password", "wrong horse")];
            let page = guest.post("/sign-in", &fields).await;
            assert_eq!(page.status, 422);
            page.has(&format!("value=\"{email}\""));
            answers.push(page.between("role=\"alert\"", "</p>").unwrap());
        }
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_reset_link_sets_a_password_once_and_signs_every_browser_out() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let email = Email::parse("ann@example.org").unwrap();
        let user = console
            .app
            .store
            .users()
            .find(&email)
            .await
            .unwrap()
            .unwrap();
        let token = SecretToken::random().unwrap();
        console.app.keep_secret(token.reveal());
        console
            .app
            .store
            .users()
            .create_reset(&user.id, &token.hash(), 3_600)
            .await
            .unwrap();
        let path = format!("/reset/{}", token.reveal());
        let mut guest = console.browser("192.0.2.2");
        guest.get(&path).await.has("ann@example.org");
        let short = guest.post(&path, &[("password", "short")]).await;
        assert_eq!(short.status, 422);
        short.has("at least 10 characters");
        let set = guest.post(&path, &[("password", "a new battery")]).await;
        assert_eq!((set.status, set.header("location")), (303, "/sign-in"));
        assert_eq!(
            ann.get("/").await.status,
            303,
            "the old session must be over"
        );
        assert_eq!(guest.get(&path).await.status, 404);
        assert_eq!(
            guest
                .post(&path, &[("password", "a third battery")])
                .await
                .status,
            404
        );
        guest.get("/sign-in").await;
        let old = [("email", "ann@example.org"), ("password", "correct horse")];
        assert_eq!(guest.post("/sign-in", &old).await.status, 422);
        let new = [("email", "ann@example.org"), ("password", "a new battery")];
        assert_eq!(guest.post("/sign-in", &new).await.status, 303);
        guest.get("/reset").await.has("operator");
    })
    .await;
}
