//! An account's owner from the first mail to the last page, where the service sends mail: the address is confirmed, sample
//! pictures are upscaled, the address is changed, the data are downloaded, the account is deleted. On the way the pictures
//! that the book shows of the console are taken, of samples that come with the service.
//!
//! `UPSCALE_BLESS=1 cargo test --locked --workspace --test console owner` writes them to `docs/pictures`.

use std::{fs, net::TcpListener, path::Path};

use fantoccini::Client;
use serde_json::json;
use tempfile::TempDir;

use super::{
    PASSWORD, check_console,
    chromium::{Chromium, photograph, picture},
    click, fill, find,
    harness::{
        mail_server::{self, MailServer},
        operator::Operator,
        serve::{Serve, upscale},
    },
    run, text, until,
};

/// Of the operators' console.
const TOKEN: &str = "token of the operators in the book";
/// The largest picture that the book may show, in bytes.
const PICTURE_BYTES_MAX: usize = 250_000;

/// A service that sends mail, its operator, and the browser of its only customer.
struct Visit {
    browser: Client,
    serve: Serve,
    console: String,
    mail: MailServer,
    operator: Operator,
}

/// Browsers send the origin that they see: the console must know its port before it has it.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn start(folder: &Path, mail: &MailServer) -> Serve {
    let password = folder.join("smtp-password");
    fs::write(&password, format!("{}\n", mail_server::PASSWORD)).unwrap();
    let console = free_address();
    let flags = [
        "--console-listen",
        &console,
        "--console-url",
        &format!("http://{console}"),
        "--admin-listen",
        "127.0.0.1:0",
        "--mail-from",
        "Upscale <console@upscale-tests.org>",
        "--smtp-password-file",
        password.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let mut command = upscale();
    command
        .env("UPSCALE_SMTP_URL", mail.url())
        .env("SSL_CERT_FILE", &mail.root_file)
        .env("UPSCALE_ADMIN_TOKEN", TOKEN);
    Serve::start_as(command, &folder.join("data"), &flags, &folder.join("log"))
}

#[tokio::test]
async fn an_owner_confirms_upscales_moves_and_leaves() {
    let Some(chromium) = Chromium::find() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let mail = MailServer::start(folder.path());
    let serve = start(folder.path(), &mail);
    let nowhere = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
    let chromium = chromium
        .start(nowhere, &folder.path().join("chromium"))
        .await;
    let visit = Visit {
        browser: chromium.browser().await,
        console: serve.console.clone().unwrap(),
        serve,
        mail,
        operator: Operator::new(folder.path().join("data"), Vec::new()),
    };
    visit.sign_up().await;
    let account = visit.upscale_samples().await;
    visit.take_pictures(&account).await;
    visit.change_address().await;
    visit.download().await;
    visit.leave(&account).await;
    assert_eq!(visit.operator.audit_breaches(), Vec::<String>::new());
    chromium.stop(visit.browser).await;
    assert_eq!(visit.serve.stop().code(), Some(0));
}

impl Visit {
    async fn goto(&self, path: &str) {
        let url = format!("{}{path}", self.console);
        self.browser.goto(&url).await.unwrap();
    }

    /// Opens the link in the newest of so many mails.
    async fn open_mail(&self, count: usize, page: &str) {
        let mail = self.mail.wait_for(count).pop().unwrap();
        let (_, rest) = mail
            .text
            .split_once(&format!("{}{page}/", self.console))
            .unwrap();
        let token = rest.split_whitespace().next().unwrap();
        self.goto(&format!("{page}/{token}")).await;
    }

    async fn sign_up(&self) {
        let browser = &self.browser;
        self.goto("/sign-up").await;
        fill(browser, "#email", "ann@example.org").await;
        fill(browser, "#password", PASSWORD).await;
        click(browser, "main button[type=submit]").await;
        find(browser, "#available").await;
        photograph(browser, "owner-not-confirmed").await;
        self.goto("/settings").await;
        photograph(browser, "owner-settings-not-confirmed").await;
        self.open_mail(1, "/verify").await;
        photograph(browser, "owner-confirm").await;
        click(browser, "main button[type=submit]").await;
        let notice = text(browser, "p.notice").await;
        assert!(notice.contains("confirmed"), "{notice}");
        photograph(browser, "owner-confirmed").await;
    }

    /// Credits and a key by the operator, then both samples and one picture that is nowhere; the account.
    async fn upscale_samples(&self) -> String {
        let browser = &self.browser;
        let users = self.operator.run(&["user", "list"]);
        let account = users["users"][0]["account"].as_str().unwrap().to_owned();
        self.operator.credit(&account, "100", "invoice-1");
        self.operator.create_key(&account, None);
        let of_sample = "https://samples.upscale.example.com";
        let nowhere = "https://images.example.com/street.jpg".to_owned();
        for (source, scale) in [
            (format!("{of_sample}/harbour.png"), 2),
            (nowhere, 2),
            // Last, so that it is the first of the list: letters weigh less than a photograph.
            (format!("{of_sample}/panel.png"), 4),
        ] {
            self.goto("/playground").await;
            fill(browser, "#image_url", &source).await;
            click(browser, &format!("input[name=scale][value='{scale}']")).await;
            click(browser, "#order").await;
            let over = "return /succeeded|failed/.test(document.querySelector('#outcome .state')?.textContent)";
            until(browser, &source, over).await;
        }
        account
    }

    /// Pages as the book shows them.
    async fn take_pictures(&self, account: &str) {
        let browser = &self.browser;
        self.goto("/").await;
        picture(browser, "console-overview", (1080, 620), PICTURE_BYTES_MAX).await;
        self.goto("/tasks").await;
        let shown = "return [...document.querySelectorAll('.thumb img')].every(i => i.complete)";
        until(browser, "thumbnails", shown).await;
        picture(browser, "console-tasks", (1080, 520), PICTURE_BYTES_MAX).await;
        click(browser, ".tasks .what a").await;
        find(browser, "[data-compare].sliding .knob").await;
        let shown =
            "return [...document.querySelectorAll('[data-compare] img')].every(i => i.complete)";
        until(browser, "both pictures", shown).await;
        picture(browser, "console-task", (840, 660), PICTURE_BYTES_MAX).await;

        let admin = self.serve.admin.clone().unwrap();
        browser.goto(&format!("{admin}/")).await.unwrap();
        fill(browser, "#sign-in-name", "Olga").await;
        fill(browser, "#token", TOKEN).await;
        click(browser, "main button[type=submit]").await;
        find(browser, "#books").await;
        picture(browser, "console-operators", (1080, 720), PICTURE_BYTES_MAX).await;
        browser
            .goto(&format!("{admin}/accounts/{account}"))
            .await
            .unwrap();
        let tab = "return getComputedStyle(document.querySelector('.filters a')).backgroundColor
            !== getComputedStyle(document.querySelector('.filters a:last-child')).backgroundColor";
        until(browser, "the first section is marked as the one shown", tab).await;
    }

    /// A wrong password first; the old address is told.
    async fn change_address(&self) {
        let browser = &self.browser;
        self.goto("/settings").await;
        check_console(browser, "/settings").await;
        photograph(browser, "owner-settings").await;
        fill(browser, "#new-email", "anna@example.org").await;
        fill(browser, "#email-password", "another battery").await;
        click(browser, "form[action='/settings/email'] button").await;
        let problem = text(browser, "#email-password-problem").await;
        assert!(problem.contains("password"), "{problem}");
        photograph(browser, "owner-settings-problem").await;
        fill(browser, "#email-password", PASSWORD).await;
        click(browser, "form[action='/settings/email'] button").await;
        assert!(
            text(browser, "[role=status]")
                .await
                .contains("anna@example.org")
        );
        photograph(browser, "owner-address-mailed").await;
        self.open_mail(2, "/settings/email").await;
        photograph(browser, "owner-address-confirm").await;
        click(browser, "main button[type=submit]").await;
        assert_eq!(text(browser, ".facts dd").await, "anna@example.org");
        photograph(browser, "owner-address-changed").await;
        assert_eq!(self.mail.wait_for(3)[2].to, "ann@example.org");
    }

    /// One file with all of it.
    async fn download(&self) {
        let browser = &self.browser;
        self.goto("/settings").await;
        let link = "return document.querySelector('a[download]').getAttribute('href')";
        assert_eq!(run(browser, link).await, json!("/settings/export"));
        let exported = "const answer = await fetch('/settings/export'); const all = await answer.json();
            return [answer.headers.get('content-disposition').startsWith('attachment'), all.tasks.length]";
        let exported = format!("return (async () => {{ {exported} }})()");
        assert_eq!(run(browser, &exported).await, json!([true, 3]));
    }

    /// What is typed wrong deletes nothing.
    async fn leave(&self, account: &str) {
        let browser = &self.browser;
        let delete = "form[action='/settings/delete'] button";
        fill(browser, "#confirm", "ann@example.org").await;
        fill(browser, "#delete-password", PASSWORD).await;
        click(browser, delete).await;
        text(browser, "#confirm-problem").await;
        photograph(browser, "owner-delete-problem").await;
        fill(browser, "#confirm", "anna@example.org").await;
        fill(browser, "#delete-password", PASSWORD).await;
        click(browser, delete).await;
        let gone = "return !document.querySelector('.top nav a')";
        until(browser, "signed out", gone).await;
        photograph(browser, "owner-deleted").await;
        let name = self.operator.show(account)["name"].clone();
        assert_eq!(name, "Deleted account");
    }
}
