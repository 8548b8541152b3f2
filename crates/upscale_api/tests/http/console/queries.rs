//! Queries of the customers' pages that no page of ours wrote.

use super::{
    browser::{Console, with_console},
    buying::{Asked, order as checkout, with_shop},
    pages::order,
};
use crate::queries::check_queries;

#[tokio::test]
async fn the_list_of_tasks_begins_anew_where_it_cannot_read_its_query() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let mut cursors = Vec::new();
        for (key, succeeds) in [("failed", false), ("also-failed", false), ("running", true)] {
            app.clock.advance_seconds(1);
            let id = order(console, &account, key).await;
            cursors.push(format!("{}-{id}", app.clock.now().micros()));
            if !succeeds {
                app.fail_next("It is no image").await;
            }
        }
        let after = format!("after={}", cursors[1]);
        let twice = format!("{after}&after={}", cursors[0]);
        let unread_first = format!("after=x&{after}");
        let no_task = format!("after={}", cursors[1].replace("ups_", "acc_"));
        let no_moment = format!("after=x{}", cursors[1]);
        let failed_after = format!("state=failed&{after}");
        let turned = format!("{after}&state=failed&state=all");
        check_queries(
            "/tasks",
            &[
                (
                    "",
                    &[
                        "state=",
                        "state",
                        "state=all",
                        "state=bogus",
                        "state=FAILED",
                        "state=%zz",
                        "state=%ff",
                        "state=bogus&state=failed",
                        "State=failed",
                        "after=",
                        "after=7",
                        "after=-",
                        &no_task,
                        &no_moment,
                        &unread_first,
                        "x=1&x=2",
                        "&&=",
                        "[]=%00",
                    ],
                ),
                (
                    "state=failed",
                    &[
                        "state=failed&state=processing",
                        "x=1&state=failed",
                        "%73tate=fail%65d",
                        "&state=failed&",
                    ],
                ),
                ("state=processing", &[]),
                (&after, &[&twice]),
                (&failed_after, &[&turned]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_credits_say_what_they_can_read_of_an_order_and_begin_anew_otherwise() {
    with_shop(async |console: &Console<'_>, asked: &Asked| {
        let mut ann = console.signed_up("ann").await;
        console.pay("ann", "10").await;
        console.pay("ann", "10").await;
        let order = checkout(&mut ann, asked).await.checkout.id;
        let (paid, left) = (format!("order={order}"), format!("left={order}"));
        let unread = format!("order=x&{left}");
        let empty = format!("order=&{left}");
        let both = format!("{left}&{paid}");
        let twice = format!("{paid}&order=x");
        let unread_first = format!("order=x&{paid}");
        check_queries(
            "/credits",
            &[
                (
                    "",
                    &[
                        "before=",
                        "before=x",
                        "before=1.5",
                        "before=%zz",
                        "before=99999999999999999999",
                        "before=x&before=0",
                        "purchases=",
                        "purchases=7",
                        "purchases=x-y",
                        "order=",
                        "order=x",
                        "left=x",
                        &unread_first,
                        "x=1&x=2",
                        "&&=",
                    ],
                ),
                (
                    "before=0",
                    &[
                        "before=0&before=x",
                        "before=-5",
                        "before=%2B0",
                        "%62efore=0",
                    ],
                ),
                (&paid, &[&twice, &both, &unread]),
                (&left, &[&empty]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_playground_shows_the_task_it_is_asked_for_or_that_there_is_none() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let id = order(console, &account, "shown").await;
        let (task, unread) = (format!("task={id}"), format!("task=x&task={id}"));
        let (twice, empty) = (format!("{task}&task=x"), format!("task=&task={id}"));
        check_queries(
            "/playground",
            &[
                ("", &["task=", "task", &empty, "x=1", "&&="]),
                (&task, &[&twice]),
                ("task=x", &["task=%zz", "task=%ff", &unread]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_notice_is_shown_for_what_was_done_and_for_nothing_else() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        for path in ["/keys", "/settings"] {
            let nothing = [
                "done=",
                "done",
                "done=x",
                "done=%zz",
                "done=%ff",
                "done=x&done=revoked",
                "x=1&x=2",
                "&&=",
            ];
            check_queries(
                path,
                &[
                    ("", &nothing),
                    ("done=revoked", &["done=revoked&done=x", "%64one=revoked"]),
                    ("done=password", &[]),
                    ("done=second-factor-on", &[]),
                    ("done=second-factor-off", &[]),
                ],
                async |path| ann.get(path).await,
            )
            .await;
        }
    })
    .await;
}
