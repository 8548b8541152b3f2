//! Queries of the operators' pages that no page of ours wrote.

use upscale_core::{AccountId, RequestId};
use upscale_store::{PaymentEvent, PaymentNews};

use super::browser::{Admin, By, with_admin};
use crate::queries::check_queries;

/// For a page that shows what it was asked for, and all where it cannot read it.
const UNREAD: [&str; 5] = ["x=1", "x=1&x=2", "&&=", "%zz=%ff", "[]=%00"];

/// What filters by account: ours and another account's, one of each, and what is read as no filter.
struct ByAccount {
    ours: String,
    theirs: String,
    twice: String,
    unread_first: String,
}

impl ByAccount {
    fn of(account: AccountId) -> Self {
        let no_ones = AccountId::random().unwrap();
        let (ours, theirs) = (format!("account={account}"), format!("account={no_ones}"));
        Self {
            twice: format!("{ours}&{theirs}"),
            unread_first: format!("account=x&{ours}"),
            ours,
            theirs,
        }
    }
}

const UNREAD_ACCOUNTS: [&str; 3] = ["account=", "account=x", "account=%zz"];

#[tokio::test]
async fn payments_are_all_shown_where_the_query_cannot_be_read() {
    with_admin(async |admin: &Admin<'_>| {
        let app = admin.app;
        let mut ann = admin.signed_in(By::Token).await;
        let event = PaymentEvent {
            id: "evt_1".to_owned(),
            kind: "a kind".to_owned(),
            news: PaymentNews::ChargeReturned {
                payment: "pi_1".to_owned(),
                returned: 1,
            },
        };
        app.store.payments().record_event(&event).await.unwrap();
        let by = ByAccount::of(app.account);
        let both = format!("show=refused&{}", by.ours);
        let more = [
            &by.unread_first,
            "show=",
            "show=all",
            "show=x",
            "show=REFUSED",
            "show=x&show=refused",
        ];
        let all: Vec<&str> = UNREAD_ACCOUNTS
            .into_iter()
            .chain(UNREAD)
            .chain(more)
            .collect();
        check_queries(
            "/payments",
            &[
                ("", &all),
                ("show=refused", &["show=refused&show=all"]),
                (&by.ours, &[&by.twice, &both]),
                (&by.theirs, &[]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn actions_are_all_shown_where_the_query_cannot_be_read() {
    with_admin(async |admin: &Admin<'_>| {
        let account = admin.app.account;
        let mut ann = admin.signed_in(By::Token).await;
        let page = format!("/accounts/{account}");
        ann.get(&page).await;
        let fields = [("credits", "1"), ("reason", "a change of ours")];
        let adjusted = ann.post(&format!("{page}/adjust"), &fields).await;
        assert_eq!(adjusted.status, 303);
        let by = ByAccount::of(account);
        let none = format!("{}&before=0", by.ours);
        let more = ["before=", "before=x", "before=1.5", "before=x&before=0"];
        let all: Vec<&str> = UNREAD_ACCOUNTS
            .into_iter()
            .chain(UNREAD)
            .chain(more)
            .collect();
        check_queries(
            "/actions",
            &[
                ("", &all),
                (
                    "before=0",
                    &["before=0&before=x", "before=-5", "before=%30"],
                ),
                (&by.ours, &[&by.twice]),
                (&by.theirs, &[]),
                (&none, &[]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn tasks_are_all_shown_where_the_query_cannot_be_read() {
    with_admin(async |admin: &Admin<'_>| {
        admin.app.created("is-processing").await;
        let mut ann = admin.signed_in(By::Token).await;
        let request = RequestId::random().unwrap();
        let (of_request, unread_request) = (
            format!("request={request}"),
            format!("request=x&request={request}"),
        );
        let both = format!("show=refund-pending&{of_request}&request=x");
        let more = [
            "show=",
            "show=x",
            "show=processing",
            "request=",
            "request=x",
        ];
        let processing: Vec<&str> = UNREAD
            .into_iter()
            .chain(more)
            .chain([unread_request.as_str(), "show=x&show=refund-pending"])
            .collect();
        check_queries(
            "/tasks",
            &[
                ("", &processing),
                (
                    "show=refund-pending",
                    &["show=refund-pending&show=x", "show=refund%2Dpending"],
                ),
                (&of_request, &[&both]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn accounts_and_searches_take_what_is_typed_first() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, account) = (admin.app, admin.app.account);
        let mut ann = admin.signed_in(By::Token).await;
        let last = format!("after={}-{account}", app.clock.now().micros());
        let no_account = last.replace("acc_", "ups_");
        let twice = format!("{last}&after=x");
        let more = ["q=", "q", "after=", "after=7", "after=x-y", &no_account];
        let all: Vec<&str> = UNREAD.into_iter().chain(more).collect();
        check_queries(
            "/accounts",
            &[
                ("", &all),
                (
                    "q=test",
                    &["q=test&q=x", "x=1&q=test", "q=t%65st", "q=test&after=x"],
                ),
                ("q=%ff", &["q=%EF%BF%BD"]),
                ("q=%zz", &["q=%25zz"]),
                ("q=a%26b+c", &["q=a%26b%20c"]),
                (&last, &[&twice]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
        check_queries(
            "/",
            &[
                ("", &UNREAD),
                ("q=x", &["q=x&q=y", "%71=x"]),
                ("q=%3Cb%3E", &[]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
        let (found, spaced) = (format!("q={account}"), format!("q=+{account}%20&q=x"));
        check_queries(
            "/search",
            &[
                ("", &["q=", "q=+", "x=1&x=2", "&&="]),
                (&found, &[&spaced]),
                ("q=x", &["q=x&q=y"]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn pages_of_one_account_and_one_task_ignore_what_they_cannot_read() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, account) = (admin.app, admin.app.account);
        let mut ann = admin.signed_in(By::Token).await;
        let task = app.created("is-failed").await;
        app.fail_next("It is no image").await;
        let page = format!("/accounts/{account}");
        let more = ["done=", "done", "done=x", "done=%zz", "done=x&done=same"];
        let nothing: Vec<&str> = UNREAD.into_iter().chain(more).collect();
        check_queries(
            &page,
            &[
                ("", &nothing),
                ("done=limits", &["done=limits&done=x", "%64one=limits"]),
                ("done=same", &[]),
                ("done=adjusted", &[]),
                ("done=purchased", &[]),
                ("done=before", &[]),
                ("done=revoked", &[]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
        check_queries(
            &format!("/tasks/{task}"),
            &[
                (
                    "",
                    &["done=", "done=limits", "done=x&done=before", "x=1", "&&="],
                ),
                ("done=refunded", &["done=refunded&done=x"]),
                ("done=before", &[]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn lists_of_one_account_ignore_what_they_cannot_read() {
    with_admin(async |admin: &Admin<'_>| {
        let (app, account) = (admin.app, admin.app.account);
        let mut ann = admin.signed_in(By::Token).await;
        let task = app.created("is-failed").await;
        let last = format!("after={}-{task}", app.clock.now().micros());
        app.fail_next("It is no image").await;
        let page = format!("/accounts/{account}");
        let more = ["before=", "before=x", "before=1.5", "before=x&before=0"];
        let all: Vec<&str> = UNREAD.into_iter().chain(more).collect();
        check_queries(
            &format!("{page}/ledger"),
            &[
                ("", &all),
                (
                    "before=0",
                    &["before=0&before=x", "before=-5", "before=%2B0"],
                ),
            ],
            async |path| ann.get(path).await,
        )
        .await;
        let no_task = last.replace("ups_", "acc_");
        let more = [
            "state=",
            "state=all",
            "state=x",
            "state=x&state=failed",
            "after=",
            "after=x",
            &no_task,
        ];
        let all: Vec<&str> = UNREAD.into_iter().chain(more).collect();
        let twice = format!("{last}&after=x&state=x");
        check_queries(
            &format!("{page}/tasks"),
            &[
                ("", &all),
                (
                    "state=failed",
                    &["state=failed&state=all", "x=1&state=failed"],
                ),
                ("state=processing", &[]),
                (&last, &[&twice]),
            ],
            async |path| ann.get(path).await,
        )
        .await;
    })
    .await;
}
