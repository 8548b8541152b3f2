//! Keys by the dozen: no page hides one that works, and no form makes more than may work at a time.

use upscale_core::{Permission, limits::LIVE_KEYS_MAX};

use super::browser::{Console, with_console};

#[tokio::test]
async fn a_key_that_works_is_on_the_first_page_however_many_were_rotated_and_the_rest_follows() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "1").await;
        let accounts = console.app.store.accounts();
        let made = accounts.create_key(&account, Permission::All, "the one");
        let (mut key, _) = made.await.unwrap().made().unwrap();
        for _ in 0..60 {
            console.app.clock.advance_seconds(1);
            let rotated = accounts.rotate_key(&key.id, 0).await;
            (key, _) = rotated.unwrap().made().unwrap();
        }
        let first = ann.get("/keys").await;
        first.has(&format!("/keys/{}/revoke", key.id));
        assert_eq!(first.text.matches("/revoke\"").count(), 1);
        assert_eq!(first.text.matches("the one").count(), 50);
        let next = first.between("href=\"/keys?after=", "\"").unwrap();
        let second = ann.get(&format!("/keys?after={next}")).await;
        assert_eq!(second.text.matches("the one").count(), 11);
        second.lacks("Older keys");
        // What no link of ours holds counts as none.
        for wrong in ["", "live", "live-1", "alive-1-key_x", "live-x-key_x"] {
            let page = ann.get(&format!("/keys?after={wrong}")).await;
            page.has(&format!("/keys/{}/revoke", key.id));
        }
    })
    .await;
}

#[tokio::test]
async fn the_form_makes_no_more_keys_than_may_work_at_a_time_and_neither_does_a_rotation() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "1").await;
        let accounts = console.app.store.accounts();
        let mut last = None;
        for _ in 0..LIVE_KEYS_MAX {
            let made = accounts.create_key(&account, Permission::All, "").await;
            last = made.unwrap().made();
        }
        let (last, _) = last.unwrap();
        ann.get("/keys").await;
        let fields = [("name", "one more"), ("permission", "all")];
        let refused = ann.post("/keys", &fields).await;
        assert_eq!(refused.status, 422);
        refused.has("You already have 50 working keys");
        refused.has("value=\"one more\"");
        let rotate = format!("/keys/{}/rotate", last.id);
        let refused = ann.post(&rotate, &[("overlap", "3600")]).await;
        assert_eq!(refused.status, 422);
        refused.has("You already have 50 working keys");
        let page = ann.post(&rotate, &[("overlap", "0")]).await;
        assert_eq!(page.status, 201);
        let secret = page.between("id=\"secret\" tabindex=\"0\">", "<").unwrap();
        console.app.keep_secret(&secret);
    })
    .await;
}
