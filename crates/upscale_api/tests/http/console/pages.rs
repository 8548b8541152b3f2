//! What the pages show of an account: figures, tasks in every state, every line of the ledger.

use upscale_core::{
    Credits, IdempotencyKey, NewTask, OwnLimits, Parameters, RequestId, Scale, SourceUrl,
};
use upscale_store::{CreateOutcome, OnBehalf};

use super::browser::{Console, with_console};

pub(super) async fn order(
    console: &Console<'_>,
    account: &upscale_core::AccountId,
    key: &str,
) -> String {
    let task = NewTask {
        source_url: SourceUrl::parse(&format!("https://pictures.example.org/{key}.png")).unwrap(),
        parameters: Parameters::at(Scale::X2),
    };
    let name = IdempotencyKey::parse(format!("key-of-{key}").as_bytes()).unwrap();
    let request = RequestId::random().unwrap();
    let made = console
        .app
        .store
        .tasks()
        .create(account, &name, &task, &request);
    match made.await.unwrap() {
        CreateOutcome::Created(task) => task.id.to_string(),
        other => panic!("{key}: {other:?}"),
    }
}

#[tokio::test]
async fn a_task_is_shown_in_its_three_states_with_its_pictures_and_its_money() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let done = order(console, &account, "done").await;
        app.succeed_next(b"not a picture, but no one looks").await;
        let failed = order(console, &account, "failed").await;
        app.fail_next("The source answered 404").await;
        let running = order(console, &account, "running").await;

        let list = ann.get("/tasks").await;
        for (id, state) in [
            (&done, "succeeded"),
            (&failed, "failed"),
            (&running, "processing"),
        ] {
            list.has(id);
            let state_page = ann.get(&format!("/tasks/{id}/state")).await;
            assert_eq!(state_page.text, format!(r#"{{"state":"{state}"}}"#));
            let only = ann.get(&format!("/tasks?state={state}")).await;
            let shown = only.text.matches("<td class=\"what\">").count();
            assert_eq!(shown, 1, "{state}");
            only.has(id);
        }
        list.has("The source answered 404. No credits were charged.");
        list.has("0 charged, 0.7 returned");

        let page = ann.get(&format!("/tasks/{done}")).await;
        let files = format!("http://{}", app.files);
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains(&format!(
                "img-src 'self' {files} https://pictures.example.org;"
            )),
            "{policy}"
        );
        let url = page
            .between("<figure class=\"after\"><img src=\"", "\"")
            .unwrap()
            .replace("&#38;", "&");
        assert_eq!(app.download("GET", &url).send().await.status, 200);
        page.has("<img src=\"https://pictures.example.org/done.png\"");
        page.has("Your browser loads the source from <strong>pictures.example.org</strong>");
        page.has("0.7 charged");
        page.has("req_");
        let page = ann.get(&format!("/tasks/{failed}")).await;
        page.has("No credits were charged");
        let policy = page.header("content-security-policy");
        assert!(!policy.contains("pictures.example.org"), "{policy}");
        // The page that watches shows the pictures when they are there, so it may load them already.
        let page = ann.get(&format!("/tasks/{running}")).await;
        page.has("data-watch");
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains(" https://pictures.example.org;"),
            "{policy}"
        );

        // After retention the page says so and offers no link.
        assert_eq!(app.sweep_after_hours(49).await, 1);
        app.store.tasks().reap().await.unwrap();
        ann.get("/sign-in").await;
        let page = ann.get(&format!("/tasks/{done}")).await;
        page.has("The file has been deleted");
        page.lacks("/r/");
        ann.get("/tasks").await.lacks("/r/");
    })
    .await;
}

#[tokio::test]
async fn the_overview_shows_the_balance_this_month_and_what_runs() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        order(console, &account, "done").await;
        app.succeed_next(b"x").await;
        order(console, &account, "failed").await;
        app.fail_next("It is no image").await;
        let running = order(console, &account, "running").await;
        let page = ann.get("/").await;
        page.has("<strong id=\"available\">8.6</strong>");
        page.has("for 12 upscales");
        page.has("1 succeeded, 1 failed, 0.7 credits charged");
        page.has("15 Jan: 1 succeeded, 1 failed");
        page.has(&running);
        page.lacks("API access requires");
        page.has("of 20 at a time");
        page.has("of 2,500 a day");
        page.lacks("class=\"notice bad\"");
        // An operator's limits are this account's.
        let own = OwnLimits {
            active_tasks: Some(7),
            daily_tasks: Some(12_000),
            ..OwnLimits::default()
        };
        let by = OnBehalf {
            operator: "olga".to_owned(),
            reason: "asked for it".to_owned(),
        };
        app.store
            .operator()
            .set_limits(&account, own, &by)
            .await
            .unwrap();
        let page = ann.get("/").await;
        page.has("of 7 at a time");
        page.has("of 12,000 a day");
    })
    .await;
}

#[tokio::test]
async fn every_line_of_the_ledger_and_every_task_stands_on_exactly_one_page() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "100").await;
        for number in 0..45 {
            order(console, &account, &format!("task-{number}")).await;
            app.succeed_next(b"x").await;
        }
        for number in 0..15 {
            let reference = format!("payment {number}");
            let one = Credits::from_thousandths(1_000);
            app.store
                .accounts()
                .credit(&account, one, &reference)
                .await
                .unwrap();
        }
        for (first, mark, each, sizes) in [
            (
                "/credits",
                "<td data-label=\"Line\">",
                "href=\"/credits?before=",
                &[50, 50, 6][..],
            ),
            (
                "/tasks",
                "<td class=\"what\">",
                "href=\"/tasks?state=all&#38;after=",
                &[20, 20, 5],
            ),
        ] {
            let (mut path, mut found) = (first.to_owned(), Vec::new());
            loop {
                let page = ann.get(&path).await;
                found.push(page.text.matches(mark).count());
                let Some(next) = page.between(each, "\"") else {
                    break;
                };
                path = format!(
                    "{}{next}",
                    each.trim_start_matches("href=\"").replace("&#38;", "&")
                );
            }
            assert_eq!(found, sizes, "{first}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_docs_are_the_openapi_document_with_this_services_address() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let page = ann.get("/docs").await;
        for text in [
            "/api/v1/upscales/{id}",
            "Idempotency-Key",
            "idempotency_conflict",
            "CreateUpscaleBody",
            "face_enhance",
        ] {
            page.has(text);
        }
        page.has(&format!("http://{}/api/v1/upscales", console.app.api));
    })
    .await;
}
