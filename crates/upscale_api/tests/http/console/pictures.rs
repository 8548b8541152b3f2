//! Pictures that the console hands out itself, lists that are searched, and what stands around answers that are no page.

use upscale_core::{SAMPLES, limits::PRICE};

use super::{
    browser::{Browser, Console, with_console},
    pages::order,
};

/// A playground's form with this image, sent to this address.
async fn send(ann: &mut Browser<'_>, path: &str, image_url: &str) -> super::browser::Page {
    let page = ann.get("/playground").await;
    let key = page.between("name=\"idempotency_key\" value=\"", "\"");
    let fields = [
        ("idempotency_key", key.unwrap().to_owned()),
        ("image_url", image_url.to_owned()),
        ("scale", "4".to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    ann.post(path, &fields).await
}

#[tokio::test]
async fn thumbnails_and_downloads_are_their_owners_as_long_as_the_result() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let shown = order(console, &account, "shown").await;
        app.succeed_next_shown(b"the result", b"small").await;
        let plain = order(console, &account, "plain").await;
        app.succeed_next(b"another").await;

        let list = ann.get("/tasks").await;
        list.has(&format!("<img src=\"/tasks/{shown}/thumbnail\""));
        list.lacks(&format!("/tasks/{plain}/thumbnail"));
        list.has(">shown.png</a>");
        list.has("title=\"https://pictures.example.org/shown.png\"");
        let small = ann.get(&format!("/tasks/{shown}/thumbnail")).await;
        assert_eq!((small.status, small.text.as_str()), (200, "small"));
        assert_eq!(small.header("content-type"), "image/png");
        assert_eq!(small.header("content-length"), "5");
        assert_eq!(small.header("cache-control"), "private, max-age=3600");
        let file = ann.get(&format!("/tasks/{shown}/download")).await;
        assert_eq!((file.status, file.text.as_str()), (200, "the result"));
        let name = file.header("content-disposition");
        assert_eq!(name, "attachment; filename=\"shown-2x.png\"");
        let missing = ann.get(&format!("/tasks/{plain}/thumbnail")).await;
        assert_eq!(missing.status, 404);
        ann.get(&format!("/tasks/{shown}"))
            .await
            .has("data-focus-x=\"125\" data-focus-y=\"875\"");

        let mut bob = console.signed_up("bob").await;
        let mut guest = console.browser("192.0.2.9");
        for path in [
            format!("/tasks/{shown}/thumbnail"),
            format!("/tasks/{shown}/download"),
        ] {
            assert_eq!(bob.get(&path).await.status, 404, "{path}");
            assert_eq!(guest.get(&path).await.header("location"), "/sign-in");
        }
        assert_eq!(app.sweep_after_hours(49).await, 2);
        for path in [
            format!("/tasks/{shown}/thumbnail"),
            format!("/tasks/{shown}/download"),
        ] {
            assert_eq!(ann.get(&path).await.status, 404, "{path}");
        }
        ann.get("/tasks").await.lacks("/thumbnail");
    })
    .await;
}

#[tokio::test]
async fn tasks_are_searched_by_name_scale_and_day_and_the_address_keeps_what_was_asked() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        order(console, &account, "harbour").await;
        order(console, &account, "panel").await;
        let today = "2026-01-15";
        for (query, harbour, panel) in [
            ("", true, true),
            ("?q=HARB", true, false),
            ("?q=%20panel.png%20", false, true),
            ("?q=%25", false, false),
            ("?scale=2", true, true),
            ("?scale=4", false, false),
            (&format!("?from={today}&until={today}"), true, true),
            ("?until=2026-01-14", false, false),
            ("?from=2026-01-16", false, false),
            ("?from=nonsense&scale=3", true, true),
        ] {
            let page = ann.get(&format!("/tasks{query}")).await;
            assert_eq!(page.status, 200);
            for (name, is_there) in [("harbour.png</a>", harbour), ("panel.png</a>", panel)] {
                assert_eq!(page.text.contains(name), is_there, "{query}: {name}");
            }
        }
        let page = ann.get("/tasks?q=a%26b&scale=4&from=2026-01-01").await;
        page.has("value=\"a&#38;b\"");
        page.has("value=\"2026-01-01\"");
        page.has("href=\"/tasks?q=a%26b&#38;scale=4&#38;from=2026-01-01&#38;state=failed\"");
        page.has("No tasks match.");
    })
    .await;
}

#[tokio::test]
async fn a_sample_is_shown_to_all_and_ordered_like_any_image() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut guest = console.browser("192.0.2.9");
        for sample in SAMPLES {
            let picture = guest.get(&format!("/samples/{}", sample.file_name)).await;
            assert_eq!(
                (picture.status, picture.header("content-type")),
                (200, "image/png")
            );
        }
        assert_eq!(guest.get("/samples/other.png").await.status, 404);
        assert_eq!(guest.get("/samples/..%2Fkeys").await.status, 404);

        let mut ann = console.signed_up("ann").await;
        ann.get("/").await.has("/playground?sample=harbour.png");
        console.pay("ann", "10").await;
        let page = ann.get("/playground?sample=harbour.png").await;
        page.has(&format!("value=\"{}\"", SAMPLES[0].url()));
        page.has("360 × 240 pixels");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("img-src 'self';"), "{policy}");
        let made = send(&mut ann, "/playground", &SAMPLES[0].url()).await;
        let task = made.header("location").to_owned();
        app.succeed_next(b"larger").await;
        let page = ann.get(&task).await;
        page.has("<figure class=\"before\"><img src=\"/samples/harbour.png\"");
        page.lacks("Your browser loads the source from");
        page.has(&format!("{PRICE} charged"));
    })
    .await;
}

#[tokio::test]
async fn a_preview_loads_one_origin_more_orders_nothing_and_says_what_is_wrong_in_the_forms_words()
{
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let page = send(
            &mut ann,
            "/playground/preview",
            "https://shop.example.com/a.jpg?t=1",
        )
        .await;
        assert_eq!(page.status, 200);
        page.has("<img src=\"https://shop.example.com/a.jpg?t=1\"");
        page.has("data-caps-4=\"750000 500000\"");
        page.has("name=\"scale\" value=\"4\" checked");
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains("img-src 'self' https://shop.example.com;"),
            "{policy}"
        );
        let wrong = send(
            &mut ann,
            "/playground/preview",
            "http://shop.example.com/a.jpg",
        )
        .await;
        assert_eq!(wrong.status, 422);
        wrong.has("This image URL cannot be used: it must start with https://.");
        wrong.lacks("image_url is invalid");
        let policy = wrong.header("content-security-policy");
        assert!(policy.contains("img-src 'self';"), "{policy}");
        let tasks = console.app.store.tasks();
        let tasks = tasks.list(&account, upscale_store::TaskFilter::All, None, 9);
        assert_eq!(tasks.await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_no_page_keeps_the_navigation_of_who_is_signed_in() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let page = ann.get("/nothing").await;
        assert_eq!(page.status, 404);
        page.has("This page does not exist.");
        page.has("<a href=\"/tasks\">");
        page.has("ann@example.org");
        let mut guest = console.browser("192.0.2.9");
        let page = guest.get("/nothing").await;
        assert_eq!(page.status, 404);
        page.lacks("<a href=\"/tasks\">");
    })
    .await;
}

#[tokio::test]
async fn a_session_elsewhere_is_listed_and_ended_and_no_one_elses_is() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let mut other = console.browser("192.0.2.7");
        other.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "correct horse")];
        assert_eq!(other.post("/sign-in", &fields).await.status, 303);
        let mut bob = console.signed_up("bob").await;

        let page = ann.get("/settings").await;
        page.has("this browser");
        let end = page
            .between("action=\"/settings/sessions/", "\"")
            .unwrap()
            .to_owned();
        let end = format!("/settings/sessions/{end}");
        bob.get("/settings").await;
        assert_eq!(bob.post(&end, &[]).await.status, 404);
        assert_eq!(other.get("/settings").await.status, 200);
        ann.get("/settings").await;
        assert_eq!(ann.post(&end, &[]).await.status, 303);
        assert_eq!(other.get("/settings").await.header("location"), "/sign-in");
        ann.get("/settings?done=session-ended")
            .await
            .has("That browser was signed out.");
    })
    .await;
}
