//! What an attacker would try against an operator: forged forms, scripts in what customers name and send, a name of
//! elsewhere that resolves to this machine, frames, planted cookies.

use upscale_core::{
    AccountId, Credits, Email, FailureMessage, IdempotencyKey, NewTask, Parameters, Permission,
    RequestId, Scale, SourceUrl, TaskId,
};
use upscale_store::{Settlement, Spent};

use super::browser::{Admin, By, TOKEN, with_admin};

#[tokio::test]
async fn a_form_without_its_token_or_from_another_origin_changes_nothing() {
    with_admin(async |admin: &Admin<'_>| {
        let adjust = format!("/accounts/{}/adjust", admin.app.account);
        let fields = [("credits", "1000"), ("reason", "mine")];
        for by in [By::Token, By::Socket] {
            let mut ann = admin.signed_in(by).await;
            ann.get("/").await;
            let ours = ann.held["form"].clone();
            let mut eve = admin.signed_in(by).await;
            eve.get("/").await;
            for token in ["", "0", &eve.held["form"].clone(), &ours[1..]] {
                let forged = [&fields[..], &[("form", token)]].concat();
                let page = ann.post(&adjust, &forged).await;
                assert_eq!(page.status, 403, "{token}");
            }
            for origin in ["null", "https://evil.example", "http://localhost:1"] {
                let page = ann.post_from(origin, &adjust, &fields).await;
                assert_eq!(page.status, 403, "{origin}");
            }
            for path in ["/sign-out", "/sign-in"] {
                let page = ann
                    .post_from("https://evil.example", path, &[("token", TOKEN)])
                    .await;
                assert_eq!(page.status, 403, "{path}");
            }
            assert_eq!(ann.get("/").await.status, 200, "still signed in");
        }
        let actions = admin.actions().await;
        assert_eq!(actions, []);
    })
    .await;
}

#[tokio::test]
async fn a_name_of_elsewhere_that_resolves_to_this_machine_is_shown_nothing() {
    with_admin(async |admin: &Admin<'_>| {
        let port = admin.address.port();
        for by in [By::Token, By::Socket] {
            let mut browser = admin.signed_in(by).await;
            for host in [
                "rebound.example.org".to_owned(),
                format!("rebound.example.org:{port}"),
                format!("127.0.0.1.example.org:{port}"),
                "192.168.0.1".to_owned(),
            ] {
                browser.host.clone_from(&host);
                for path in ["/", "/sign-in", "/accounts", "/assets/console.css"] {
                    let page = browser.get(path).await;
                    assert_eq!(page.status, 421, "{host} {path}");
                    page.lacks("ccounts\"");
                }
            }
            for host in [format!("localhost:{port}"), format!("[::1]:{port}")] {
                browser.host = host;
                assert_eq!(browser.get("/").await.status, 200);
            }
        }
    })
    .await;
}

/// An account whose every text is this one, and its failed task.
async fn named(admin: &Admin<'_>, text: &str) -> (AccountId, TaskId) {
    let store = &admin.app.store;
    let account = store.accounts().create(text).await.unwrap().id;
    let credits = Credits::from_thousandths(10_000);
    let credited = store.accounts().credit(&account, credits, text).await;
    credited.unwrap();
    let made = store
        .accounts()
        .create_key(&account, Permission::All, text)
        .await;
    made.unwrap().made().unwrap();
    let email = Email::parse("o'brien@example.org").unwrap();
    let made = store.users().create(Some(&account), &email, None).await;
    made.unwrap();
    let order = NewTask {
        source_url: SourceUrl::parse("https://pictures.example.org/a.png?q='%22").unwrap(),
        parameters: Parameters::at(Scale::X2),
    };
    let key = IdempotencyKey::parse(b"hostile-key").unwrap();
    let request = RequestId::random().unwrap();
    let created = store.tasks().create(&account, &key, &order, &request).await;
    created.unwrap();
    let claim = store.tasks().claim("w", 1, &[]).await.unwrap().remove(0);
    let failure = Settlement::Failed(FailureMessage::new(text));
    let settled = store
        .tasks()
        .settle(&claim.task_id, claim.attempt, failure, Spent::slot(1.0));
    settled.await.unwrap();
    (account, claim.task_id)
}

#[tokio::test]
async fn what_customers_name_and_send_stays_text_on_every_page() {
    with_admin(async |admin: &Admin<'_>| {
        let script = "<script>alert(1)</script>";
        let hostile = format!("\"'>{script}<img src=x onerror=alert(1)>");
        let (account, id) = named(admin, &hostile).await;
        let store = &admin.app.store;
        let key = store
            .accounts()
            .list_keys(&account, None, 100)
            .await
            .unwrap()
            .remove(0);
        let user = store.users().list_of(&account).await.unwrap().remove(0).id;
        let task = store.operator().find_task(&id).await.unwrap().unwrap();
        let request = task.request_id;
        let mut ann = admin.signed_in(By::Token).await;
        ann.get(&format!("/accounts/{account}")).await;
        let fields = [("credits", "1"), ("reason", hostile.as_str())];
        let page = ann
            .post(&format!("/accounts/{account}/adjust"), &fields)
            .await;
        assert_eq!(page.status, 303, "{page:?}");
        for path in [
            "/".to_owned(),
            "/accounts".to_owned(),
            format!("/accounts?q={}", "%3Cscript%3Ealert(1)%3C/script%3E"),
            format!("/accounts/{account}"),
            format!("/accounts/{account}/ledger"),
            format!("/accounts/{account}/tasks"),
            format!("/accounts/{account}/keys/{key}", key = key.id),
            format!("/accounts/{account}/users/{user}"),
            format!("/tasks/{id}"),
            format!("/tasks?request={request}"),
            "/payments".to_owned(),
            "/actions".to_owned(),
        ] {
            let page = ann.get(&path).await;
            assert_eq!(page.status, 200, "{path}");
            page.lacks("<script>alert");
            page.lacks("<img src=x");
        }
        ann.get(&format!("/tasks/{id}"))
            .await
            .has("&#60;script&#62;alert(1)");
        // And what is wrong with a form.
        let wrong = [("credits", script), ("reason", "")];
        let page = ann
            .post(&format!("/accounts/{account}/adjust"), &wrong)
            .await;
        assert_eq!(page.status, 422);
        page.lacks("<script>alert");
        page.has("value=\"&#60;script&#62;");
    })
    .await;
}

#[tokio::test]
async fn a_planted_cookie_is_worth_nothing_after_signing_in() {
    with_admin(async |admin: &Admin<'_>| {
        let mut victim = admin.browser(By::Token);
        victim.get("/sign-in").await;
        let planted = victim.cookies["upscale-operator-visitor"].clone();
        victim
            .post("/sign-in", &[("name", "Ann"), ("token", TOKEN)])
            .await;
        assert!(!victim.cookies.contains_key("upscale-operator-visitor"));
        assert_ne!(victim.cookies["upscale-operator"], planted);
        let mut attacker = admin.browser(By::Token);
        attacker
            .cookies
            .insert("upscale-operator".to_owned(), planted);
        assert_eq!(attacker.get("/").await.status, 303);
    })
    .await;
}
