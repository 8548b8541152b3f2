//! What each page shows, and what a machine can say of its looks.

use rusqlite::Connection;
use upscale_core::{AccountId, RequestId, TaskId};

use super::browser::{Admin, By, with_admin};
use crate::console::looks::check_looks;

#[tokio::test]
async fn the_overview_says_how_queue_workers_books_and_the_day_stand() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, store) = (admin.app, &admin.app.store);
        let mut ann = admin.signed_in(By::Token).await;
        ann.get("/")
            .await
            .has("No worker has reported within a day");
        store
            .tasks()
            .report_worker("silent-worker", 3)
            .await
            .unwrap();
        app.clock.advance_seconds(61);
        store
            .tasks()
            .report_worker("lively-worker", 2)
            .await
            .unwrap();
        app.created("it-succeeds").await;
        app.succeed_next(b"a picture").await;
        app.created("it-fails").await;
        app.fail_next("no picture").await;
        let working = app.created("is-worked-on").await;
        store.tasks().claim("lively-worker", 1, &[]).await.unwrap();
        app.created("it-waits").await;
        app.clock.advance_seconds(7);
        let page = ann.get("/").await;
        assert_eq!(page.status, 200);
        for text in [
            "id=\"waiting\">1<",
            "id=\"claimed\">1<",
            "of 2 live slots",
            "the oldest open job is 7 s old",
            "accepted up to 162 s",
            "<strong>4</strong><span class=\"muted\">tasks",
            "<strong>0.7</strong><span class=\"muted\">1 succeeded",
            "<strong>0.7</strong><span class=\"muted\">1 failed",
            "<strong>100</strong><span class=\"muted\">credits",
            ">live<",
            ">silent<",
            "7 s ago",
            "<code>lively-w</code>",
            "balanced",
            working.as_str(),
        ] {
            page.has(text);
        }
        // Another day: nothing of this one counts.
        app.clock.advance_seconds(86_400);
        let mut ann = admin.signed_in(By::Token).await;
        ann.get("/")
            .await
            .has("<strong>0</strong><span class=\"muted\">0 succeeded");
    })
    .await;
}

#[tokio::test]
async fn an_inconsistent_ledger_is_shown_with_the_account_that_it_stops() {
    with_admin(async |admin: &Admin<'_>| {
        let account = &admin.app.account;
        let database = Connection::open(admin.app.path("upscale.db")).unwrap();
        let change = |by: i64| {
            let sql = "UPDATE account SET available = available + ?1 WHERE id = ?2";
            database.execute(sql, (by, account.as_str())).unwrap();
        };
        change(1_000);
        let mut ann = admin.signed_in(By::Socket).await;
        let page = ann.get("/").await;
        page.has("breaches. The accounts take no new tasks");
        page.has(&format!("<a href=\"/accounts/{account}\">{account}</a>"));
        let page = ann.get("/").await;
        page.has("takes no new tasks: an audit found a ledger inconsistency");
        ann.get(&format!("/accounts/{account}"))
            .await
            .has("New tasks of this account are paused");
        change(-1_000);
        // The answer is good for a minute, and no longer.
        ann.get("/").await.has("breaches.");
        admin.app.clock.advance_seconds(61);
        ann.get("/").await.has("balanced");
    })
    .await;
}

#[tokio::test]
async fn a_search_leads_from_any_id_or_name_to_what_it_names() {
    with_admin(async |admin: &Admin<'_>| {
        let store = &admin.app.store;
        let task = admin.app.created("searched").await;
        let request = store
            .operator()
            .find_task(&task)
            .await
            .unwrap()
            .unwrap()
            .request_id;
        let mut ann = admin.signed_in(By::Token).await;
        for (typed, place) in [
            (task.to_string(), format!("/tasks/{task}")),
            (
                format!("%20{request}%20"),
                format!("/tasks?request={request}"),
            ),
            (
                admin.app.account.to_string(),
                format!("/accounts/{}", admin.app.account),
            ),
            ("a%26b+c".to_owned(), "/accounts?q=a%26b+c".to_owned()),
        ] {
            let page = ann.get(&format!("/search?q={typed}")).await;
            assert_eq!(
                (page.status, page.header("location")),
                (303, place.as_str())
            );
            assert_eq!(ann.get(&place).await.status, 200, "{place}");
        }
        ann.get(&format!("/tasks?request={request}"))
            .await
            .has(task.as_str());
        let no_ones = RequestId::random().unwrap();
        ann.get(&format!("/tasks?request={no_ones}"))
            .await
            .has("a refused request creates no task");
        for path in [
            format!("/tasks/{}", TaskId::random().unwrap()),
            format!("/accounts/{}", AccountId::random().unwrap()),
            "/tasks/x".to_owned(),
            "/nothing".to_owned(),
        ] {
            assert_eq!(ann.get(&path).await.status, 404, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn accounts_ledger_tasks_and_actions_come_page_by_page() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, store) = (admin.app, &admin.app.store);
        for number in 0..51 {
            app.clock.advance_seconds(1);
            store
                .accounts()
                .create(&format!("shop number {number}"))
                .await
                .unwrap();
        }
        store.tasks().report_worker("plenty", 1_000).await.unwrap();
        for number in 0..52 {
            app.clock.advance_seconds(31);
            store.tasks().report_worker("plenty", 1_000).await.unwrap();
            app.created(&format!("task-number-{number}")).await;
            app.succeed_next(format!("picture {number}").as_bytes())
                .await;
        }
        let mut ann = admin.signed_in(By::Token).await;
        let account = format!("/accounts/{}", app.account);
        ann.get(&account).await;
        for number in 0..51 {
            let fields = [("credits", "0.001"), ("reason", "page by page")];
            ann.held.insert("nonce", format!("{number:0>26}"));
            let page = ann.post(&format!("{account}/adjust"), &fields).await;
            assert_eq!(page.status, 303, "{page:?}");
        }
        for (path, row, rows) in [
            ("/accounts?q=shop+number".to_owned(), "<code>acc_", [50, 1]),
            ("/actions".to_owned(), "page by page</td>", [50, 1]),
            (
                format!("{account}/tasks?state=succeeded"),
                "class=\"state succeeded\"",
                [50, 2],
            ),
        ] {
            let first = ann.get(&path).await;
            assert_eq!(first.text.matches(row).count(), rows[0], "{path}");
            let next = first
                .between("<a class=\"button\" href=\"", "\" rel=\"next\"")
                .unwrap();
            let second = ann
                .get(&next.replace("&amp;", "&").replace("&#38;", "&"))
                .await;
            assert_eq!(second.text.matches(row).count(), rows[1], "{next}");
            second.lacks("rel=\"next\"");
        }
        let ledger = ann.get(&format!("{account}/ledger")).await;
        assert_eq!(ledger.text.matches("<td>adjustment</td>").count(), 50);
        ann.get("/accounts?q=no+such+shop")
            .await
            .has("No accounts match “no such shop”");
    })
    .await;
}

#[tokio::test]
async fn one_task_is_told_from_order_to_money() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, store) = (admin.app, &admin.app.store);
        let mut ann = admin.signed_in(By::Socket).await;
        let task = app.created("its-story").await;
        let path = format!("/tasks/{task}");
        ann.get(&path).await.has("it waits");
        let claim = store
            .tasks()
            .claim("a-long-worker-name", 1, &[])
            .await
            .unwrap()
            .remove(0);
        let page = ann.get(&path).await;
        page.has("by the worker <code>a-long-w</code>");
        page.has("<dt>Attempt</dt><dd>1");
        let failed = upscale_core::AttemptFailure::Transient;
        store
            .tasks()
            .retry_later(&task, claim.attempt, failed, 0)
            .await
            .unwrap();
        ann.get(&path)
            .await
            .has("<dt>Temporary failures</dt><dd>1</dd>");
        let file = app.succeed_next(b"a picture").await;
        let page = ann.get(&path).await;
        for text in [
            "succeeded",
            "0.7 charged",
            &file.sha256,
            "2 × 2 pixels",
            "<td>reserve</td>",
            "<td>charge</td>",
        ] {
            page.has(text);
        }
        page.lacks("Refund now");
        // The file's name opens the file, so it is no operator's business.
        page.lacks(&file.name);
    })
    .await;
}

#[tokio::test]
async fn every_page_has_one_heading_a_language_and_a_label_for_each_field() {
    with_admin(async |admin: &Admin<'_>| {
        let task = admin.app.created("its-looks").await;
        let store = &admin.app.store;
        let key = store
            .accounts()
            .list_keys(&admin.app.account, None, 100)
            .await
            .unwrap()
            .remove(0)
            .id;
        let email = upscale_core::Email::parse("ann@example.org").unwrap();
        store
            .users()
            .create(Some(&admin.app.account), &email, None)
            .await
            .unwrap();
        let user = store.users().find(&email).await.unwrap().unwrap().id;
        let account = format!("/accounts/{}", admin.app.account);
        let mut no_one = admin.browser(By::Token);
        check_looks("/sign-in", &no_one.get("/sign-in").await);
        let mut ann = admin.signed_in(By::Token).await;
        for path in [
            "/".to_owned(),
            "/accounts".to_owned(),
            account.clone(),
            format!("{account}/ledger"),
            format!("{account}/tasks"),
            format!("{account}/keys"),
            format!("{account}/keys/{key}"),
            format!("{account}/users/{user}"),
            "/payments".to_owned(),
            "/payments?show=refused".to_owned(),
            "/tasks".to_owned(),
            format!("/tasks/{task}"),
            "/actions".to_owned(),
            "/nothing".to_owned(),
        ] {
            check_looks(&path, &ann.get(&path).await);
        }
    })
    .await;
}
