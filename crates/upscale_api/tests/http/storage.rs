//! While results cannot be stored the process is not ready and takes no new tasks; what it accepted before it still
//! answers for.

use std::fs;

use crate::harness::{App, image_body, with_app};

#[tokio::test]
async fn while_results_cannot_be_stored_nothing_new_is_taken_and_what_was_accepted_is_answered() {
    with_app(async |app: &App| {
        let ready = async || app.request_without_key("GET", "/readyz").send().await;
        let create = async |key: &str, more: &str| app.create(key, &image_body(more)).send().await;
        app.state.try_storage().await;
        assert_eq!(ready().await.status, 200);
        let accepted = app.created("accepted-before").await;

        fs::remove_dir(app.path("results")).unwrap();
        app.state.try_storage().await;
        ready().await.expect(503, "service_unavailable");
        let before = app.account_now().await;
        let refused = create("asked-meanwhile", "").await;
        refused.expect(503, "service_unavailable");
        assert_eq!(refused.number("retry-after"), 5);
        let after = app.account_now().await;
        assert_eq!(
            (after.available, after.reserved, after.active_tasks),
            (before.available, before.reserved, before.active_tasks)
        );
        let replayed = create("accepted-before", "").await;
        replayed.expect(202, "");
        assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
        assert_eq!(replayed.json()["id"], accepted.as_str());
        let conflict = create("accepted-before", r#","scale":4"#).await;
        conflict.expect(409, "idempotency_conflict");
        app.read(&accepted).await.expect(200, "");

        fs::create_dir(app.path("results")).unwrap();
        app.state.try_storage().await;
        assert_eq!(ready().await.status, 200);
        app.created("asked-meanwhile").await;
    })
    .await;
}
