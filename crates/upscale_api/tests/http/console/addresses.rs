//! Whose address it is: where links are mailed, nothing of worth is done under an address that no one has proved; and who
//! proves it later has the account alone.

use upscale_core::{Email, Permission, SecretToken};
use upscale_store::User;

use super::{
    browser::{Console, with_console},
    forms::code_of,
    mails::{Mailbox, URL, link_to, sign_up, sign_up_alone, with_mail},
};

async fn user(console: &Console<'_>, name: &str) -> User {
    let email = Email::parse(&format!("{name}@example.org")).unwrap();
    let found = console.app.store.users().find(&email).await;
    found.unwrap().unwrap()
}

#[tokio::test]
async fn until_an_address_is_confirmed_there_is_no_key_no_second_factor_and_no_purchase() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        let mut ann = sign_up_alone(console, "ann").await;
        for path in ["/", "/keys", "/credits", "/settings"] {
            ann.get(path).await.has("Confirm your email address");
        }
        let key = [("name", "ci"), ("permission", "all")];
        for (path, fields) in [
            ("/keys", &key[..]),
            ("/keys/key_x/rotate", &[("overlap", "0")]),
            ("/settings/second-factor", &[]),
            ("/settings/second-factor/on", &[]),
            ("/credits", &[("package", "small")]),
        ] {
            let page = ann.post_from(URL, path, fields).await;
            assert_eq!(page.status, 403, "{path}");
            page.has("Confirm your email address first");
        }
        let path = link_to(console, "verify", &mailbox.wait_for(1).await[0]);
        ann.get(&path).await;
        ann.post_from(URL, &path, &[]).await;
        ann.get("/settings?done=verified")
            .await
            .has("Email address confirmed");
        ann.get("/keys").await.lacks("Confirm your email");
        assert_eq!(ann.post_from(URL, "/keys", &key).await.status, 201);
        let page = ann.post_from(URL, "/settings/second-factor", &[]).await;
        assert_eq!(page.status, 200);
        let secret = page.between("name=\"secret\" value=\"", "\"").unwrap();
        console.app.keep_secret(&secret);
    })
    .await;
}

#[tokio::test]
async fn the_link_counts_once_within_a_day_and_for_its_own_user_alone() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        // An impostor signs up with Bob's address. Bob, or whatever opens the links of his mails, confirms nothing by it.
        let mut bob = sign_up(console, &mailbox, "bob").await;
        let mut impostor = sign_up_alone(console, "bobs.second").await;
        let first = link_to(console, "verify", &mailbox.wait_for(1).await[0]);
        bob.get(&first).await.has("to lock them out");
        assert_eq!(bob.post_from(URL, &first, &[]).await.status, 404);
        let mut guest = console.browser("192.0.2.9");
        guest.get(&first).await.has("Sign in as");
        let page = guest.post_from(URL, &first, &[]).await;
        assert_eq!(page.header("location"), "/sign-in");
        assert_eq!(user(console, "bobs.second").await.verified_at, None);

        // A new link ends the one before; three are mailed within an hour.
        impostor.get("/keys").await;
        let again = impostor.post_from(URL, "/verify", &[]).await;
        again.has("We have sent a link to");
        let second = link_to(console, "verify", &mailbox.wait_for(2).await[1]);
        assert_eq!(impostor.get(&first).await.status, 404);
        impostor.get("/keys").await;
        impostor.post_from(URL, "/verify", &[]).await;
        let third = link_to(console, "verify", &mailbox.wait_for(3).await[2]);
        let refused = impostor.post_from(URL, "/verify", &[]).await;
        assert_eq!(refused.status, 429);
        refused.has("Too many attempts");
        assert_eq!(impostor.get(&second).await.status, 404);
        console.app.clock.advance_seconds(86_399);
        assert_eq!(impostor.get(&third).await.status, 200);
        console.app.clock.advance_seconds(1);
        assert_eq!(impostor.get(&third).await.status, 404);
        assert_eq!(impostor.post_from(URL, &third, &[]).await.status, 404);
        impostor.post_from(URL, "/verify", &[]).await;
        let last = link_to(console, "verify", &mailbox.wait_for(4).await[3]);
        impostor.get(&last).await;
        assert_eq!(impostor.post_from(URL, &last, &[]).await.status, 303);
        assert_eq!(impostor.post_from(URL, &last, &[]).await.status, 404);
        // There is nothing more to confirm.
        let page = impostor.post_from(URL, "/verify", &[]).await;
        assert_eq!(page.header("location"), "/settings");
    })
    .await;
}

#[tokio::test]
async fn who_resets_the_password_of_an_address_no_one_proved_has_the_account_alone() {
    with_console(async |console: &Console<'_>| {
        let store = &console.app.store;
        let mut impostor = console.signed_up("ann").await;
        impostor.get("/keys").await;
        let fields = [("name", "theirs"), ("permission", "all")];
        let made = impostor.post("/keys", &fields).await;
        let secret = made.between("id=\"secret\" tabindex=\"0\">", "<").unwrap();
        console.app.keep_secret(&secret);
        let key = upscale_core::ApiKey::parse(&secret).unwrap().hash();
        impostor.get("/settings").await;
        let page = impostor.post("/settings/second-factor", &[]).await;
        let totp = page.between("name=\"secret\" value=\"", "\"").unwrap();
        console.app.keep_secret(&totp);
        let code = code_of(&totp, store.now().unix_seconds());
        let on = [("secret", totp.as_str()), ("code", code.as_str())];
        impostor.post("/settings/second-factor/on", &on).await;
        assert!(user(console, "ann").await.totp_secret.is_some());
        assert!(store.accounts().find_caller(&key).await.unwrap().is_some());

        let mut ann = console.browser("192.0.2.2");
        reset(console, &mut ann, "a new battery", true).await;
        assert_eq!(store.accounts().find_caller(&key).await.unwrap(), None);
        assert_eq!(impostor.get("/keys").await.status, 303);
        let found = user(console, "ann").await;
        assert!(found.totp_secret.is_none() && found.verified_at.is_some());
        ann.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "a new battery")];
        let page = ann.post("/sign-in", &fields).await;
        assert_eq!(page.header("location"), "/");

        // From now on the address is proved: another reset leaves the keys as they are.
        let made = store
            .accounts()
            .create_key(&found.account_id, Permission::All, "")
            .await;
        let (_, own) = made.unwrap().made().unwrap();
        reset(console, &mut ann, "a third battery", false).await;
        let caller = store.accounts().find_caller(&own.hash()).await.unwrap();
        assert!(caller.is_some());
    })
    .await;
}

#[tokio::test]
async fn who_was_made_by_an_operator_keeps_the_keys_of_the_account() {
    with_console(async |console: &Console<'_>| {
        let store = &console.app.store;
        let email = Email::parse("ann@example.org").unwrap();
        let made = store
            .users()
            .create(Some(&console.app.account), &email, None);
        made.await.unwrap();
        let mut ann = console.browser("192.0.2.2");
        reset(console, &mut ann, "a new battery", false).await;
        let read = console.app.request("GET", "/api/v1/upscales/ups_x");
        read.send().await.expect(404, "task_not_found");
    })
    .await;
}

/// Sets Ann's password by a link, whose page says what will be lost.
async fn reset(
    console: &Console<'_>,
    browser: &mut super::browser::Browser<'_>,
    password: &str,
    is_unproved: bool,
) {
    let token = SecretToken::random().unwrap();
    console.app.keep_secret(token.reveal());
    let ann = user(console, "ann").await;
    let users = console.app.store.users();
    users
        .create_reset(&ann.id, &token.hash(), 60)
        .await
        .unwrap();
    let path = format!("/reset/{}", token.reveal());
    let page = browser.get(&path).await;
    assert_eq!(page.text.contains("never confirmed"), is_unproved);
    let set = browser.post(&path, &[("password", password)]).await;
    assert_eq!(set.header("location"), "/sign-in");
}
