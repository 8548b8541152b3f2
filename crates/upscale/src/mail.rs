//! Mail to the console's users, through the operator's own mail server: the configuration it needs, and the connection.
//! What is written, and how much of it may wait, is the console's.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
    transport::smtp::Error,
};
use upscale_api::{Mail, MailError, SendMail};
use url::{Host, Url};

use crate::args::FrontArgs;

/// One try, from the connection to the server's last word.
const TRY_TIMEOUT: Duration = Duration::from_secs(15);
/// A server that is busy or away is asked again.
const TRIES: u32 = 3;
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// The way to send mail as configured; none without a server.
///
/// # Errors
/// When a part is missing or cannot be, or links or passwords would travel in clear. The server's address may hold a
/// password, so no message quotes it.
pub(crate) fn configured(args: &FrontArgs) -> anyhow::Result<Option<SendMail>> {
    let mail = &args.mail;
    let Some(text) = &mail.smtp_url else {
        ensure!(
            mail.mail_from.is_none() && mail.smtp_password_file.is_none(),
            "a sender or a password needs a mail server: set UPSCALE_SMTP_URL"
        );
        return Ok(None);
    };
    let from = mail.mail_from.as_deref();
    let from = from.context("mail needs a sender: set --mail-from")?;
    let from: Mailbox = from
        .parse()
        .context("--mail-from must be an address such as Upscale <console@example.com>")?;
    ensure!(
        args.console_listen.is_some() && args.console_url.is_some(),
        "emails contain links to the console: set --console-listen and --console-url"
    );
    let url = server(text, mail.smtp_password_file.as_deref())?;
    Ok(Some(send_mail(&url, from)?))
}

/// The server's address with its password, checked.
fn server(text: &str, password_file: Option<&Path>) -> anyhow::Result<Url> {
    let mut url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "smtp" | "smtps") && url.has_host())
        .context("UPSCALE_SMTP_URL must look like smtps://user@mail.example.com")?;
    let is_encrypted = url.scheme() == "smtps" || url.query() == Some("tls=required");
    ensure!(
        is_encrypted || is_loopback(&url),
        "links that set passwords are sent only over TLS, except to a server on this machine: smtps://…, or smtp://…?tls=required"
    );
    if let Some(path) = password_file {
        ensure!(
            url.password().is_none() && !url.username().is_empty(),
            "with --smtp-password-file, the server's URL must contain a user and no password"
        );
        let password = std::fs::read_to_string(path)
            .with_context(|| format!("the password in {}", path.display()))?;
        let is_set = url.set_password(Some(password.trim())).is_ok();
        ensure!(is_set, "the server's URL cannot contain a password");
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn send_mail(url: &Url, from: Mailbox) -> anyhow::Result<SendMail> {
    // Where results are in a bucket it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str());
    let server = server
        .ok()
        .context("UPSCALE_SMTP_URL is not the URL of a mail server")?
        .timeout(Some(TRY_TIMEOUT))
        .build();
    Ok(std::sync::Arc::new(move |mail| {
        let (server, from) = (server.clone(), from.clone());
        Box::pin(async move {
            let message = message(&mail, from).map_err(MailError)?;
            send(&server, &message).await.map_err(MailError)
        })
    }))
}

fn message(mail: &Mail, from: Mailbox) -> Result<Message, String> {
    let to = mail.to.as_str().parse();
    let to = to.map_err(|_| "the user's address is not a valid email address".to_owned())?;
    Message::builder()
        .from(from)
        .to(Mailbox::new(None, to))
        .subject(&mail.subject)
        .message_id(None)
        .header(ContentType::TEXT_PLAIN)
        .body(mail.text.clone())
        .map_err(|error| error.to_string())
}

async fn send(
    server: &AsyncSmtpTransport<Tokio1Executor>,
    message: &Message,
) -> Result<(), String> {
    let mut why = String::new();
    for number in 1..=TRIES {
        if number > 1 {
            tokio::time::sleep(PAUSE).await;
        }
        match tokio::time::timeout(TRY_TIMEOUT, server.send(message.clone())).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) if error.is_permanent() => return Err(describe(&error)),
            Ok(Err(error)) => why = describe(&error),
            Err(_) => why = format!("no answer within {TRY_TIMEOUT:?}"),
        }
    }
    Err(format!("{why}, {TRIES} times"))
}

/// Without the server's words: they quote the user's address.
fn describe(error: &Error) -> String {
    match error.status() {
        Some(code) => format!("the server answered {code}"),
        None => error.to_string(),
    }
}
