//! Forgotten passwords by mail: who asks learns nothing, who reads the mailbox sets a password, once, and no one is
//! flooded.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use upscale_api::{ConsoleOptions, Mail, MailError, SendMail};

use super::{
    browser::{Browser, Console, Page, with_console, with_console_set},
    forms::code_of,
};

pub(super) const URL: &str = "https://console.example.org";

/// Mails that were handed over, and leave to hand over more.
#[derive(Clone, Default)]
pub(super) struct Mailbox {
    mails: Arc<Mutex<Vec<Mail>>>,
    /// None: at once.
    leave: Option<Arc<Semaphore>>,
}

impl Mailbox {
    fn send_mail(&self) -> SendMail {
        let it = self.clone();
        Arc::new(move |mail| {
            let it = it.clone();
            Box::pin(async move {
                if let Some(leave) = &it.leave {
                    leave.acquire().await.unwrap().forget();
                }
                let is_refused = mail.to.as_str().starts_with("refused");
                it.mails.lock().unwrap().push(mail);
                match is_refused {
                    true => Err(MailError("the server said 550".to_owned())),
                    false => Ok(()),
                }
            })
        })
    }

    fn count(&self) -> usize {
        self.mails.lock().unwrap().len()
    }

    /// Waits until so many were handed over.
    pub(super) async fn wait_for(&self, count: usize) -> Vec<Mail> {
        for _ in 0..2_000 {
            if self.count() >= count {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let mails = self.mails.lock().unwrap().clone();
        assert_eq!(mails.len(), count, "{mails:?}");
        mails
    }
}

pub(super) async fn with_mail(mailbox: &Mailbox, test: impl AsyncFnOnce(&Console<'_>)) {
    let options = ConsoleOptions {
        url: Some(URL.to_owned()),
        send_mail: Some(mailbox.send_mail()),
    };
    with_console_set(options, None, test).await;
}

/// Someone who signed up, and confirmed the address where this mailbox has no mail but that.
pub(super) async fn sign_up<'a>(
    console: &'a Console<'_>,
    mailbox: &Mailbox,
    name: &str,
) -> Browser<'a> {
    let mut browser = sign_up_alone(console, name).await;
    if let Some(leave) = &mailbox.leave {
        leave.add_permits(1);
    }
    let path = link_to(console, "verify", &mailbox.wait_for(1).await[0]);
    browser
        .get(&path)
        .await
        .has("Confirm that this address is yours");
    let page = browser.post_from(URL, &path, &[]).await;
    assert_eq!(page.header("location"), "/settings?done=verified");
    mailbox.mails.lock().unwrap().clear();
    browser
}

/// Someone who signed up and has confirmed nothing yet.
pub(super) async fn sign_up_alone<'a>(console: &'a Console<'_>, name: &str) -> Browser<'a> {
    let mut browser = console.browser("192.0.2.1");
    browser.get("/sign-up").await;
    let email = format!("{name}@example.org");
    let fields = [("email", email.as_str()), ("password", "correct horse")];
    let page = browser.post_from(URL, "/sign-up", &fields).await;
    assert_eq!(page.status, 303);
    browser
}

async fn ask(console: &Console<'_>, from: &str, email: &str) -> Page {
    let mut guest = console.browser(from);
    guest.get("/reset").await.has("Send link");
    guest.post_from(URL, "/reset", &[("email", email)]).await
}

#[tokio::test]
async fn a_mailed_link_sets_a_password_once_within_the_hour() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        sign_up(console, &mailbox, "ann").await;
        let asked = ask(console, "192.0.2.2", " Ann@Example.org ").await;
        assert_eq!(asked.status, 200);
        asked.has("we have sent it a link");
        let mail = mailbox.wait_for(1).await.remove(0);
        assert_eq!(mail.to.as_str(), "ann@example.org");
        let first = link(console, &mail);
        // The next one is the one that counts.
        ask(console, "192.0.2.2", "ann@example.org").await;
        let mail = mailbox.wait_for(2).await.remove(1);
        let second = link(console, &mail);
        let mut guest = console.browser("192.0.2.3");
        assert_eq!(guest.get(&first).await.status, 404);
        guest.get(&second).await.has("ann@example.org");
        let set = [("password", "a new battery")];
        assert_eq!(
            guest.post_from(URL, &second, &set).await.header("location"),
            "/sign-in"
        );
        assert_eq!(guest.get(&second).await.status, 404);
        let reported = mailbox.wait_for(3).await.remove(2);
        assert!(
            reported.text.starts_with("Your password was changed"),
            "{reported:?}"
        );
        guest.get("/sign-in").await;
        let fields = [("email", "ann@example.org"), ("password", "a new battery")];
        assert_eq!(
            guest
                .post_from(URL, "/sign-in", &fields)
                .await
                .header("location"),
            "/"
        );

        ask(console, "192.0.2.2", "ann@example.org").await;
        let mail = mailbox.wait_for(4).await.remove(3);
        let third = link(console, &mail);
        let mut late = console.browser("192.0.2.4");
        console.app.clock.advance_seconds(3_599);
        assert_eq!(late.get(&third).await.status, 200);
        console.app.clock.advance_seconds(1);
        assert_eq!(late.get(&third).await.status, 404);
    })
    .await;
}

fn link(console: &Console<'_>, mail: &Mail) -> String {
    link_to(console, "reset", mail)
}

/// The path of the one link in a mail, which is a secret.
pub(super) fn link_to(console: &Console<'_>, page: &str, mail: &Mail) -> String {
    let path = format!("/{page}/");
    let (_, rest) = mail.text.split_once(&format!("{URL}{path}")).unwrap();
    let token = rest.split_whitespace().next().unwrap();
    console.app.keep_secret(token);
    assert_eq!(mail.text.matches(&path).count(), 1);
    format!("{path}{token}")
}

#[tokio::test]
async fn the_answer_is_the_same_whether_or_not_anyone_signs_in_with_the_address_and_comes_before_any_mail()
 {
    // Nothing is handed over until this test gives leave.
    let mailbox = Mailbox {
        leave: Some(Arc::new(Semaphore::new(0))),
        ..Mailbox::default()
    };
    with_mail(&mailbox, async |console: &Console<'_>| {
        sign_up(console, &mailbox, "ann").await;
        sign_up(console, &mailbox, "refused").await;
        let mut answers = Vec::new();
        for email in [
            "ann@example.org",
            "nobody@example.org",
            "refused@example.org",
        ] {
            let page = ask(console, "192.0.2.2", email).await;
            assert_eq!(page.status, 200, "{email}");
            let main = page.between("<main", "</main>").unwrap();
            answers.push(main.replace(email, "…"));
        }
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
        assert_eq!(mailbox.count(), 0);
        mailbox.leave.as_ref().unwrap().add_permits(10);
        let mut to: Vec<String> = mailbox
            .wait_for(2)
            .await
            .iter()
            .map(|mail| mail.to.to_string())
            .collect();
        to.sort();
        assert_eq!(to, ["ann@example.org", "refused@example.org"]);
        for mail in mailbox.mails.lock().unwrap().iter() {
            link(console, mail);
        }
    })
    .await;
}

#[tokio::test]
async fn a_user_is_notified_of_every_change_of_how_they_sign_in() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        let mut ann = sign_up(console, &mailbox, "ann").await;
        ann.get("/settings").await;
        let fields = [("current", "correct horse"), ("new", "a new battery")];
        let wrong = [("current", "wrong horse"), ("new", "a new battery")];
        ann.post_from(URL, "/settings/password", &wrong).await;
        ann.post_from(URL, "/settings/password", &fields).await;
        mailbox.wait_for(1).await;
        ann.get("/settings").await;
        let page = ann.post_from(URL, "/settings/second-factor", &[]).await;
        let secret = page.between("name=\"secret\" value=\"", "\"").unwrap();
        console.app.keep_secret(&secret);
        let code = code_of(&secret, console.app.store.now().unix_seconds());
        let on = [("secret", secret.as_str()), ("code", code.as_str())];
        ann.post_from(URL, "/settings/second-factor/on", &on).await;
        mailbox.wait_for(2).await;
        let off = [("password", "a new battery")];
        ann.post_from(URL, "/settings/second-factor/off", &off)
            .await;
        let reported = mailbox.wait_for(3).await;
        for (mail, what) in reported.iter().zip([
            "Your password was changed",
            "Two-factor authentication was turned on",
            "Two-factor authentication was turned off",
        ]) {
            assert_eq!(mail.to.as_str(), "ann@example.org");
            assert!(mail.text.starts_with(what), "{mail:?}");
            assert!(mail.text.contains(&format!("{URL}/reset now")), "{mail:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_stands_beside_the_field_and_no_one_is_flooded() {
    let mailbox = Mailbox::default();
    with_mail(&mailbox, async |console: &Console<'_>| {
        sign_up(console, &mailbox, "ann").await;
        let page = ask(console, "192.0.2.2", "not an address").await;
        assert_eq!(page.status, 422);
        let problem = page.between("id=\"email-problem\">", "</p>").unwrap();
        assert!(problem.contains("looks like name@example.com"), "{problem}");
        page.has("value=\"not an address\"");
        // Three an hour for one box, however many ask and from wherever; the fourth hears what the first heard.
        for number in 0..5 {
            let page = ask(console, &format!("203.0.113.{number}"), "ann@example.org").await;
            assert_eq!(page.status, 200);
            page.has("we have sent it a link");
            mailbox.wait_for(3.min(number + 1)).await;
        }
        for mail in mailbox.wait_for(3).await {
            link(console, &mail);
        }
        // And one place asks thirty times a quarter of an hour.
        let mut statuses = Vec::new();
        for number in 0..32 {
            let email = format!("user{number}@example.org");
            statuses.push(ask(console, "198.51.100.1", &email).await.status);
        }
        assert_eq!(statuses[..30], [200; 30]);
        assert_eq!(statuses[30..], [429; 2]);
        let forged = console
            .browser("192.0.2.5")
            .post_from(
                "https://evil.example",
                "/reset",
                &[("email", "ann@example.org")],
            )
            .await;
        assert_eq!(forged.status, 403);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_holds_64_mails_and_no_request() {
    let mailbox = Mailbox {
        leave: Some(Arc::new(Semaphore::new(0))),
        ..Mailbox::default()
    };
    with_mail(&mailbox, async |console: &Console<'_>| {
        let store = &console.app.store;
        for number in 0..70 {
            let email = format!("user{number}@example.org");
            let parsed = upscale_core::Email::parse(&email).unwrap();
            store.users().create(None, &parsed, None).await.unwrap();
            let page = ask(console, &format!("203.0.113.{}", number / 20), &email).await;
            assert_eq!(page.status, 200);
        }
        mailbox.leave.as_ref().unwrap().add_permits(1_000);
        for mail in mailbox.wait_for(64).await {
            link(console, &mail);
        }
    })
    .await;
}

#[tokio::test]
async fn without_mail_or_an_address_of_our_own_the_page_names_the_operator() {
    with_console(async |console: &Console<'_>| {
        let mut guest = console.browser("192.0.2.2");
        guest
            .get("/reset")
            .await
            .has("ask the operator of this service for a link");
        guest.get("/sign-in").await;
        let page = guest.post("/reset", &[("email", "ann@example.org")]).await;
        assert_eq!(page.status, 404);
    })
    .await;
    let mailbox = Mailbox::default();
    let options = ConsoleOptions {
        url: None,
        send_mail: Some(mailbox.send_mail()),
    };
    with_console_set(options, None, async |console: &Console<'_>| {
        let mut guest = console.browser("192.0.2.2");
        guest
            .get("/reset")
            .await
            .has("ask the operator of this service for a link");
    })
    .await;
}
