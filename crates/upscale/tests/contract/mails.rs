//! Confirmed addresses and forgotten passwords by mail, through the real binary and a mail server that wants TLS and a password.

use std::fs;

use crate::harness::{
    World,
    client::{Answer, send},
    mail_server::{MailServer, PASSWORD, USER},
    serve::{tail, upscale},
};
use tempfile::TempDir;

const URL: &str = "https://console.upscale-tests.org";

/// A world with a console that can send mail.
fn world_with_mail() -> (MailServer, World) {
    let folder = TempDir::new().unwrap();
    let server = MailServer::start(folder.path());
    let password = folder.path().join("smtp-password");
    fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let flags = [
        "--console-listen",
        "127.0.0.1:0",
        "--console-url",
        URL,
        "--mail-from",
        "Upscale <console@upscale-tests.org>",
        "--smtp-password-file",
        password.to_str().unwrap(),
    ];
    let root = server.root_file.to_string_lossy().into_owned();
    let variables = vec![
        ("UPSCALE_SMTP_URL".to_owned(), server.url()),
        ("SSL_CERT_FILE".to_owned(), root),
    ];
    let mut world = World::prepare_in(folder, &flags, variables);
    world
        .recorder
        .keep_secret("password of the mail server", PASSWORD);
    world.serve_again();
    (server, world)
}

/// Loads the page and sends its form as a browser would.
fn fill_in(world: &World, path: &str, fields: &str) -> Answer {
    let console = world.serve().console.clone().unwrap();
    let page = send("GET", &format!("{console}{path}"), &[], None).unwrap();
    let cookie = page
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let text = String::from_utf8(page.body).unwrap();
    let (_, rest) = text.split_once("name=\"form\" value=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    let headers = [
        ("origin", URL),
        ("cookie", cookie.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let body = format!("form={token}&{fields}");
    let url = format!("{console}{path}");
    send("POST", &url, &headers, Some(body.as_bytes())).unwrap()
}

/// The path of the mail's link, which no log may hold.
fn keep_link(world: &World, mail: &str, page: &str) -> String {
    let (_, rest) = mail.split_once(&format!("{URL}/{page}/")).unwrap();
    let token = rest.split_whitespace().next().unwrap();
    world.recorder.keep_secret("link of a mail", token);
    format!("/{page}/{token}")
}

#[test]
fn a_forgotten_password_is_set_by_the_link_in_a_mail() {
    let (server, mut world) = world_with_mail();
    for name in ["ann", "unknown"] {
        let fields = format!("email={name}%40example.org&password=correct+horse");
        assert_eq!(fill_in(&world, "/sign-up", &fields).status, 303);
    }
    // Who signs up is mailed a link; the server refuses the other address for good.
    let welcome = server.wait_for(1).remove(0);
    assert!(
        welcome.text.contains("Open this link to confirm it"),
        "{welcome:?}"
    );
    keep_link(&world, &welcome.text, "verify");
    // A server that is busy is asked again.
    server.be_busy_once();
    assert_eq!(
        fill_in(&world, "/reset", "email=ann%40example.org").status,
        200
    );
    let mail = server.wait_for(2).remove(1);
    assert_eq!(
        (mail.from.as_str(), mail.to.as_str()),
        (USER, "ann@example.org")
    );
    for header in [
        "From: Upscale <console@upscale-tests.org>\n",
        "To: ann@example.org\n",
        "Subject: Reset your password for the Upscale console\n",
        "Content-Type: text/plain; charset=utf-8\n",
        "Date: ",
        "Message-ID: <",
    ] {
        assert!(mail.text.contains(header), "no {header:?} in {}", mail.text);
    }
    let path = keep_link(&world, &mail.text, "reset");
    let set = fill_in(&world, &path, "password=a+new+battery");
    let reported = server.wait_for(3).remove(2);
    assert!(
        reported.text.contains("Your password was changed"),
        "{reported:?}"
    );
    assert_eq!((set.status, set.header("location")), (303, "/sign-in"));
    let fields = "email=ann%40example.org&password=a+new+battery";
    let signed_in = fill_in(&world, "/sign-in", fields);
    assert_eq!((signed_in.status, signed_in.header("location")), (303, "/"));

    // Told to stop at once, it hands over what it promised first. Refused for good: said in the log, without the
    // server's words, which quote the address.
    for name in ["nobody", "unknown"] {
        let asked = fill_in(&world, "/reset", &format!("email={name}%40example.org"));
        assert_eq!(asked.status, 200);
    }
    world.finish();
    assert_eq!(server.refused(), 2);
    let logs = world.logs();
    assert!(logs.contains("the server answered 550"), "{logs}");
    for private in ["lives elsewhere", "unknown@example.org", "ann@example.org"] {
        assert!(!logs.contains(private), "{private} in {logs}");
    }
    assert_eq!(server.wait_for(3).len(), 3);
}

#[test]
fn half_a_configuration_or_one_in_clear_does_not_start_and_says_no_password() {
    let folder = TempDir::new().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("password"));
    fs::write(&file, PASSWORD).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let from = ["--mail-from", "console@example.com"];
    let console = ["--console-listen", "127.0.0.1:0", "--console-url", URL];
    let both = [&from[..], &console[..]].concat();
    let server = "smtps://u:secret-word@mail.example.com";
    for (url, flags, sentence) in [
        ("", &from[..], "needs a mail server"),
        (server, &[][..], "--mail-from"),
        (server, &from[..], "--console-url"),
        (
            server,
            &[&both[..], &["--smtp-password-file", &file]].concat(),
            "no password",
        ),
        (
            server,
            &[&console[..], &["--mail-from", "nobody"]].concat(),
            "--mail-from must be",
        ),
        (
            "smtp://u:secret-word@mail.example.com",
            &both,
            "only over TLS",
        ),
        (
            "smtp://mail.example.com?tls=opportunistic",
            &both,
            "only over TLS",
        ),
        ("https://u:secret-word@mail.example.com", &both, "smtps://"),
        ("secret-word", &both, "smtps://"),
    ] {
        let mut command = upscale();
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--results-listen",
                "127.0.0.1:0",
            ])
            .arg("--data")
            .arg(folder.path().join("data"))
            .args(flags)
            .stderr(fs::File::create(&log).unwrap());
        if !url.is_empty() {
            command.env("UPSCALE_SMTP_URL", url);
        }
        let status = command
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(1), "{url} {flags:?}");
        let reported = tail(&log);
        assert!(reported.contains(sentence), "{url} {flags:?}: {reported}");
        assert!(
            !reported.contains("secret-word") && !reported.contains(PASSWORD),
            "{reported}"
        );
    }
}
