//! What each form does: once, with a name and a reason, and with a sentence beside the field when something is wrong.

use rusqlite::Connection;
use upscale_core::{Credits, Email, KeyId, SecretToken, UserId};
use upscale_store::Account;

use super::browser::{Admin, Browser, By, CONSOLE_URL, with_admin};

async fn account(admin: &Admin<'_>) -> Account {
    let found = admin.app.store.accounts().find(&admin.app.account).await;
    found.unwrap().unwrap()
}

/// The account's page, so that the browser holds its form's number.
async fn at_account<'a>(admin: &'a Admin<'_>, by: By) -> (Browser<'a>, String) {
    let mut browser = admin.signed_in(by).await;
    let path = format!("/accounts/{}", admin.app.account);
    browser.get(&path).await;
    (browser, path)
}

#[tokio::test]
async fn a_balance_is_adjusted_once_however_often_the_form_is_sent() {
    with_admin(async |admin: &Admin<'_>| {
        for (by, expected) in [(By::Token, 95_500), (By::Socket, 91_000)] {
            let (mut ann, path) = at_account(admin, by).await;
            let held = ann.held.clone();
            let fields = [("credits", " −4.5 "), ("reason", " credited twice ")];
            // The second click sends the very same form.
            for expected in ["adjusted", "before"] {
                ann.held.clone_from(&held);
                let page = ann.post(&format!("{path}/adjust"), &fields).await;
                assert_eq!(page.header("location"), format!("{path}?done={expected}"));
            }
            let page = ann.get(&format!("{path}?done=adjusted")).await;
            page.has("Balance adjusted");
            page.has("credited twice</td>");
            let available = account(admin).await.available;
            assert_eq!(available.thousandths(), expected);
        }
        let done = admin.actions().await;
        assert_eq!(done.len(), 2, "{done:?}");
        assert!(done[0].operator.starts_with("Ann (uid "), "{done:?}");
        assert_eq!(done[1].operator, "Ann");
        for one in done {
            assert_eq!(
                (one.action.as_str(), one.reason.as_str()),
                ("adjust", "credited twice")
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_stands_beside_the_field_and_what_was_typed_stays() {
    with_admin(async |admin: &Admin<'_>| {
        let (mut ann, path) = at_account(admin, By::Token).await;
        for (form, fields, sentence) in [
            (
                "adjust",
                [("credits", "many"), ("reason", "a gift")],
                "Not an amount of credits",
            ),
            (
                "adjust",
                [("credits", "0"), ("reason", "a gift")],
                "An adjustment is above or below 0.",
            ),
            (
                "adjust",
                [("credits", "5"), ("reason", " ")],
                "A reason has 1 to 500 characters, this one 0.",
            ),
            (
                "adjust",
                [("credits", "-100.001"), ("reason", "all")],
                "100 credits are available: -100.001 cannot be taken.",
            ),
            (
                "limits",
                [("active", "0"), ("reason", "less")],
                "A limit is 1 to 1000000, or contract.",
            ),
            (
                "limits",
                [("active", "30"), ("reason", "")],
                "A reason has 1 to 500",
            ),
            (
                "purchase",
                [("credits", "0"), ("reference", "bank 1")],
                "A purchase must be of more than 0 credits.",
            ),
            (
                "purchase",
                [("credits", "5"), ("reference", "")],
                "A reference has 1 to 200 bytes, this one 0.",
            ),
        ] {
            let page = ann.post(&format!("{path}/{form}"), &fields).await;
            assert_eq!(page.status, 422, "{form} {fields:?}");
            page.has(sentence);
            page.has("aria-invalid=\"true\"");
            for (_, typed) in fields.iter().filter(|(_, typed)| !typed.trim().is_empty()) {
                page.has(&format!("value=\"{typed}\""));
            }
            assert_eq!(
                page.text.matches("<details class=\"change\" open>").count(),
                1
            );
        }
        assert_eq!(admin.actions().await, []);
        assert_eq!(
            account(admin).await.available,
            Credits::from_thousandths(100_000)
        );
    })
    .await;
}

#[tokio::test]
async fn a_form_that_comes_back_with_another_amount_is_no_second_click() {
    with_admin(async |admin: &Admin<'_>| {
        let (mut ann, path) = at_account(admin, By::Token).await;
        let adjust = format!("{path}/adjust");
        ann.held.insert("nonce", "1".repeat(26));
        ann.post(&adjust, &[("credits", "5"), ("reason", "a gift")])
            .await;
        ann.held.insert("nonce", "1".repeat(26));
        let page = ann
            .post(&adjust, &[("credits", "6"), ("reason", "a gift")])
            .await;
        assert_eq!(page.status, 422);
        page.has("This form was sent before with another amount");
        page.lacks(&format!("name=\"nonce\" value=\"{}", "1".repeat(26)));
        assert_eq!(
            account(admin).await.available,
            Credits::from_thousandths(105_000)
        );
    })
    .await;
}

#[tokio::test]
async fn limits_are_set_and_taken_back_and_the_same_ones_leave_no_line() {
    with_admin(async |admin: &Admin<'_>| {
        let (mut ann, path) = at_account(admin, By::Token).await;
        let limits = format!("{path}/limits");
        let set = [
            ("requests", ""),
            ("active", "40"),
            ("daily", "contract"),
            ("reason", "contract of May"),
        ];
        for expected in ["limits", "same"] {
            let page = ann.post(&limits, &set).await;
            assert_eq!(page.header("location"), format!("{path}?done={expected}"));
        }
        let own = account(admin).await.own_limits;
        assert_eq!((own.active_tasks, own.daily_tasks), (Some(40), None));
        let page = ann.get(&path).await;
        page.has("<dd>40 <span class=\"muted\">its own</span></dd>");
        page.has("name=\"active\" type=\"text\" value=\"40\"");
        ann.get("/accounts").await.has("own limits");
        ann.post(&limits, &[("active", ""), ("reason", "it ended")])
            .await;
        assert_eq!(
            account(admin).await.own_limits,
            upscale_core::OwnLimits::default()
        );
        assert_eq!(admin.actions().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_purchase_by_hand_opens_the_account_once_a_reference() {
    with_admin(async |admin: &Admin<'_>| {
        let store = &admin.app.store;
        let new = store.accounts().create("pays by bank").await.unwrap().id;
        let mut ann = admin.signed_in(By::Token).await;
        let path = format!("/accounts/{new}");
        ann.get(&path)
            .await
            .has("not yet: the first purchase enables the API");
        let fields = [
            ("credits", "12.5"),
            ("reference", "bank 7"),
            ("reason", "statement of 3 May"),
        ];
        for expected in ["purchased", "before"] {
            let page = ann.post(&format!("{path}/purchase"), &fields).await;
            assert_eq!(page.header("location"), format!("{path}?done={expected}"));
        }
        let found = store.accounts().find(&new).await.unwrap().unwrap();
        assert_eq!(found.available, Credits::from_thousandths(12_500));
        assert!(found.activated_at.is_some());
        let other = format!("/accounts/{}", admin.app.account);
        let page = ann.post(&format!("{other}/purchase"), &fields).await;
        assert_eq!(page.status, 422);
        page.has("This payment was credited before, to another account or with another amount.");
        assert_eq!(admin.actions().await.len(), 1);
        ann.get(&path).await.has("bank 7");
    })
    .await;
}

#[tokio::test]
async fn a_key_is_revoked_with_a_reason_and_only_by_its_own_accounts_page() {
    with_admin(async |admin: &Admin<'_>| {
        let store = &admin.app.store;
        let key = store
            .accounts()
            .list_keys(&admin.app.account, None, 100)
            .await
            .unwrap()
            .remove(0);
        let mut ann = admin.signed_in(By::Token).await;
        let path = format!("/accounts/{}/keys/{}", admin.app.account, key.id);
        ann.get(&path).await.has("This cannot be undone");
        assert_eq!(ann.post(&path, &[("reason", "")]).await.status, 422);
        let other = store.accounts().create("another").await.unwrap().id;
        let elsewhere = format!("/accounts/{other}/keys/{}", key.id);
        let unknown = format!(
            "/accounts/{}/keys/{}",
            admin.app.account,
            KeyId::random().unwrap()
        );
        for wrong in [elsewhere.as_str(), &unknown, "/accounts/acc_x/keys/key_x"] {
            let page = ann.post(wrong, &[("reason", "leaked")]).await;
            assert_eq!(page.status, 404, "{wrong}");
        }
        for _ in 0..2 {
            let page = ann.post(&path, &[("reason", "leaked")]).await;
            assert_eq!(page.status, 303);
        }
        ann.get(&path).await.has("revoked already");
        assert_eq!(admin.app.created_with_status("after-all").await, 401);
        let done = admin.actions().await;
        assert_eq!(done.len(), 1);
        assert_eq!(
            (done[0].action.as_str(), done[0].reason.as_str()),
            ("revoke", "leaked")
        );
    })
    .await;
}

#[tokio::test]
async fn a_link_for_a_password_is_shown_once_and_a_second_click_makes_no_second() {
    with_admin(async |admin: &Admin<'_>| {
        let store = &admin.app.store;
        let email = Email::parse("ann@example.org").unwrap();
        store
            .users()
            .create(Some(&admin.app.account), &email, None)
            .await
            .unwrap();
        let user = store.users().find(&email).await.unwrap().unwrap().id;
        let mut ann = admin.signed_in(By::Token).await;
        let path = format!("/accounts/{}/users/{user}", admin.app.account);
        ann.get(&path).await.lacks("/reset/");
        let held = ann.held.clone();
        admin.app.keep_secret(&held["secret"]);
        let mut links = Vec::new();
        for _ in 0..2 {
            ann.held.clone_from(&held);
            let page = ann.post(&path, &[("reason", "she called")]).await;
            assert_eq!(page.status, 200);
            links.push(
                page.between("<code id=\"link\" tabindex=\"0\">", "<")
                    .unwrap(),
            );
        }
        assert_eq!(links[0], links[1]);
        let secret = links[0]
            .strip_prefix(&format!("{CONSOLE_URL}/reset/"))
            .unwrap();
        let hash = SecretToken::parse(secret).unwrap().hash();
        assert_eq!(
            store.users().find_reset(&hash).await.unwrap().unwrap().id,
            user
        );
        let done = admin.actions().await;
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].detail, "a link for ann@example.org");
        let no_one = format!(
            "/accounts/{}/users/{}",
            admin.app.account,
            UserId::random().unwrap()
        );
        assert_eq!(ann.get(&no_one).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn a_refund_that_hangs_is_shown_retried_once_and_says_by_whom() {
    with_admin(async |admin: &Admin<'_>| {
        let task = admin.app.created("hanging-refund").await;
        // As if the process died between the two steps: the second cannot be written.
        let database = Connection::open(admin.app.path("upscale.db")).unwrap();
        let hold = "CREATE TRIGGER held BEFORE INSERT ON ledger WHEN NEW.kind = 'refund'
             BEGIN SELECT RAISE (ABORT, 'held by the test'); END";
        database.execute(hold, []).unwrap();
        admin.app.fail_next("The source answered 404").await;
        let mut ann = admin.signed_in(By::Socket).await;
        for path in ["/", "/tasks?show=refund-pending"] {
            let page = ann.get(path).await;
            page.has(task.as_str());
            page.has("refund under way");
        }
        let path = format!("/tasks/{task}");
        ann.get(&path).await.has("Refund now");
        let refund = format!("{path}/refund");
        let page = ann.post(&refund, &[("reason", "")]).await;
        assert_eq!(page.status, 422);
        page.has("A reason has 1 to 500 characters");
        database.execute("DROP TRIGGER held", []).unwrap();
        for expected in ["refunded", "before"] {
            let page = ann.post(&refund, &[("reason", "hung since noon")]).await;
            assert_eq!(page.header("location"), format!("{path}?done={expected}"));
        }
        let page = ann.get(&path).await;
        page.has("refund</td>");
        page.lacks("Refund now");
        ann.get("/").await.has("No refunds are pending.");
        assert_eq!(
            account(admin).await.available,
            Credits::from_thousandths(100_000)
        );
        let done = admin.actions().await;
        assert_eq!((done.len(), done[0].action.as_str()), (1, "refund"));
        let processing = admin.app.created("it-goes-on").await;
        let page = ann
            .post(&format!("/tasks/{processing}/refund"), &[("reason", "x")])
            .await;
        assert_eq!(page.status, 422);
        page.has("This task has not failed: nothing is owed.");
    })
    .await;
}
