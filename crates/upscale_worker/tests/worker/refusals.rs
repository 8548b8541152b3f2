//! Everything a source can do wrong, and whether trying again could help. No message may tell what the
//! source said or where it is.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, net::TcpListener};
use upscale_core::AttemptFailure::{self, Permanent, Transient};
use upscale_worker::{AttemptError, FetchBudgets};

use crate::{
    certificates::Certificate,
    source::{NAME, Source, Step, answer},
};

const SECRET: &[u8] = b"internal page 9f1c";
const SHORT: Duration = Duration::from_millis(300);

fn defaults() -> FetchBudgets {
    FetchBudgets::default()
}

/// Asserts how the download fails, and that the customer learns nothing of the inside.
async fn assert_fails(
    source: &Source,
    steps: Vec<Step>,
    budgets: FetchBudgets,
    failure: AttemptFailure,
    says: &str,
) {
    let url = source.set("/a.png", steps);
    let error = source.download(&url, budgets).await.unwrap_err();
    assert_eq!(error.failure, failure, "{error}");
    assert_discreet(source, &error, says);
}

fn assert_discreet(source: &Source, error: &AttemptError, says: &str) {
    assert!(error.message.contains(says), "{error}: {says:?} is missing");
    let port = source.address.port().to_string();
    for secret in ["127.0.0.1", &port, "9f1c", "internal page"] {
        assert!(!error.message.contains(secret), "{error}");
    }
}

fn send(bytes: &[u8]) -> Vec<Step> {
    vec![Step::Send(bytes.to_vec())]
}

#[tokio::test]
async fn only_200_is_a_source() {
    let source = Source::start().await;
    for (status, failure) in [
        (201, Permanent),
        (203, Permanent),
        (204, Permanent),
        (206, Permanent),
        (300, Permanent),
        (304, Permanent),
        (305, Permanent),
        (400, Permanent),
        (401, Permanent),
        (403, Permanent),
        (404, Permanent),
        (410, Permanent),
        (451, Permanent),
        (429, Transient),
        (500, Transient),
        (502, Transient),
        (503, Transient),
        (504, Transient),
    ] {
        let steps = send(&answer(&format!("{status} {NAME}"), "", SECRET));
        let says = format!("returned {status}.");
        assert_fails(&source, steps, defaults(), failure, &says).await;
    }
}

#[tokio::test]
async fn lengths_over_the_limit_fail_before_the_body() {
    let source = Source::start().await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 20971521\r\n\r\n".to_vec();
    let steps = vec![Step::Send(head), Step::Hang];
    assert_fails(&source, steps, defaults(), Permanent, "20971521 bytes").await;
}

#[tokio::test]
async fn bodies_without_end_are_cut_at_the_limit() {
    let source = Source::start().await;
    let chunk = [b"10000\r\n".as_slice(), &[0; 65_536], b"\r\n"].concat();
    let chunked = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        Step::Flood(chunk),
    ];
    assert_fails(&source, chunked, defaults(), Permanent, "at most 20971520").await;
    let endless = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        Step::Flood(vec![0; 65_536]),
    ];
    assert_fails(&source, endless, defaults(), Permanent, "at most 20971520").await;
}

#[tokio::test]
async fn lengths_that_lie_are_noticed() {
    let source = Source::start().await;
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ninternal page";
    assert_fails(
        &source,
        send(short),
        defaults(),
        Transient,
        "after 13 bytes",
    )
    .await;
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde";
    assert_fails(&source, send(two), defaults(), Permanent, "not valid HTTP").await;
    let word = b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabcde";
    assert_fails(&source, send(word), defaults(), Permanent, "not valid HTTP").await;
    let empty = answer("200 OK", "", b"");
    assert_fails(&source, send(&empty), defaults(), Permanent, "0 bytes").await;
}

#[tokio::test]
async fn an_end_that_tls_does_not_confirm_is_a_cut() {
    let source = Source::start().await;
    let head = b"HTTP/1.1 200 OK\r\n\r\ninternal page".to_vec();
    let steps = vec![Step::Send(head), Step::Cut];
    assert_fails(&source, steps, defaults(), Transient, "broke off").await;
}

#[tokio::test]
async fn bad_chunks_break_the_download_off() {
    let source = Source::start().await;
    for chunks in [
        "zz\r\nabc\r\n",
        "3\r\nabcde\r\n0\r\n\r\n",
        "3\r\nabc\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let steps = send(bytes.as_bytes());
        assert_fails(&source, steps, defaults(), Transient, "broke off after").await;
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused_unread() {
    let (source, says) = (Source::start().await, "compresses the transfer");
    for line in [
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: identity, br\r\n",
        "Content-Encoding: identity\r\nContent-Encoding: zstd\r\n",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 100\r\n\r\n");
        let steps = vec![Step::Send(head.into_bytes()), Step::Hang];
        assert_fails(&source, steps, defaults(), Permanent, says).await;
    }
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_vec();
    let steps = vec![Step::Send(head), Step::Hang];
    assert_fails(&source, steps, defaults(), Permanent, says).await;
    let plain = answer("200 OK", "Content-Encoding: Identity\r\n", b"x");
    let url = source.set("/a.png", send(&plain));
    assert_eq!(source.download(&url, defaults()).await.unwrap(), b"x");
}

#[tokio::test]
async fn redirects_end_after_three() {
    let source = Source::start().await;
    let hop = |to: &str| send(&answer("302 X", &format!("Location: {to}\r\n"), SECRET));
    for (from, to) in [("/2", "/3"), ("/3", "/4"), ("/4", "/5")] {
        source.set(&format!("{from}/.png"), hop(&format!("{to}/.png")));
    }
    source.set("/5/.png", send(&answer("200 OK", "", b"x")));
    let more_than = "more than 3 times";
    assert_fails(&source, hop("/2/.png"), defaults(), Permanent, more_than).await;
    assert_fails(&source, hop("/a.png"), defaults(), Permanent, more_than).await;
}

#[tokio::test]
async fn redirects_to_forbidden_places_are_not_followed() {
    let source = Source::start().await;
    for to in [
        format!("http://{NAME}/a.png"),
        format!("https://127.0.0.1:{}/a.png", source.address.port()),
        "//169.254.169.254/latest/meta-data/".to_owned(),
        "https://localhost/".to_owned(),
        "https://metadata.google.internal/".to_owned(),
        "file:///etc/passwd".to_owned(),
        format!("https://user@{NAME}/"),
        format!("https://{NAME}:8443/"),
    ] {
        let steps = send(&answer("302 X", &format!("Location: {to}\r\n"), SECRET));
        let says = "redirects to a URL that is not allowed";
        assert_fails(&source, steps, defaults(), Permanent, says).await;
    }
    let nowhere = send(&answer("302 X", "", SECRET));
    let says = "without a valid location";
    assert_fails(&source, nowhere, defaults(), Permanent, says).await;
}

#[tokio::test]
async fn heads_are_bounded_in_bytes_and_lines() {
    let source = Source::start().await;
    let too_long = format!("X-Long: {}\r\n", "x".repeat(33 * 1024));
    let too_many = "X: 1\r\n".repeat(101);
    let says = "more than 32768 bytes";
    for lines in [too_long, too_many] {
        let steps = send(&answer("200 OK", &lines, b"x"));
        assert_fails(&source, steps, defaults(), Permanent, says).await;
    }
    let endless = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\nX: ".to_vec()),
        Step::Flood(vec![b'x'; 8_192]),
    ];
    assert_fails(&source, endless, defaults(), Permanent, says).await;
    let allowed = format!("X-Long: {}\r\n", "x".repeat(30 * 1024));
    let url = source.set("/a.png", send(&answer("200 OK", &allowed, b"x")));
    assert_eq!(source.download(&url, defaults()).await.unwrap(), b"x");
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let source = Source::start().await;
    for bytes in [
        b"SSH-2.0-OpenSSH_9.7\r\n".as_slice(),
        b"+OK internal page\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken line\r\n\r\n",
    ] {
        let says = "not valid HTTP";
        assert_fails(&source, send(bytes), defaults(), Permanent, says).await;
    }
    let silent = vec![];
    let says = "before it responded";
    assert_fails(&source, silent, defaults(), Transient, says).await;
}

#[tokio::test]
async fn slow_heads_run_out_of_time() {
    let source = Source::start().await;
    let budgets = FetchBudgets {
        headers: SHORT,
        ..defaults()
    };
    let says = "did not respond within 300ms";
    assert_fails(&source, vec![Step::Hang], budgets, Transient, says).await;
    let dripping = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\nX: ".to_vec()),
        Step::Drip(b'x', Duration::from_millis(10)),
    ];
    assert_fails(&source, dripping, budgets, Transient, says).await;
    // Interim answers without end are no answer.
    let interim = vec![Step::Flood(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())];
    assert_fails(&source, interim, budgets, Transient, says).await;
}

#[tokio::test]
async fn bodies_that_stop_or_crawl_are_given_up() {
    let source = Source::start().await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc".to_vec();
    let idle = FetchBudgets {
        idle: SHORT,
        ..defaults()
    };
    let stops = vec![Step::Send(head.clone()), Step::Hang];
    let says = "sent nothing for 300ms after 3 bytes";
    assert_fails(&source, stops, idle, Transient, says).await;

    let crawls = vec![
        Step::Send(head),
        Step::Drip(b'x', Duration::from_millis(20)),
    ];
    let pace = FetchBudgets {
        rate_grace: SHORT,
        ..defaults()
    };
    assert_fails(&source, crawls.clone(), pace, Transient, "too slow").await;
    let total = FetchBudgets {
        total: Duration::from_millis(1_500),
        ..defaults()
    };
    let says = "not downloaded within 1.5s";
    assert_fails(&source, crawls, total, Transient, says).await;
}

#[tokio::test]
async fn certificates_must_be_in_time_for_this_name_and_of_a_trusted_root() {
    for (certificate, says) in [
        (Certificate::Expired, "expired"),
        (Certificate::NotYetValid, "not valid yet"),
        (Certificate::OtherName, "another host name"),
        (Certificate::Untrusted, "issuer is not trusted"),
    ] {
        let source = Source::showing(certificate).await;
        let steps = send(&answer("200 OK", "", SECRET));
        assert_fails(&source, steps, defaults(), Permanent, says).await;
        assert_eq!(source.requests().len(), 0, "{certificate:?}");
    }
}

#[derive(Clone, Copy)]
enum Peer {
    Closes,
    SpeaksPlainly,
    Keeps,
}

/// A peer that speaks no TLS.
async fn plain(peer: Peer) -> Source {
    let mut source = Source::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    source.address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            match peer {
                Peer::Closes => {}
                Peer::SpeaksPlainly => {
                    let _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\n\r\ninternal page")
                        .await;
                    kept.push(stream);
                }
                Peer::Keeps => kept.push(stream),
            }
        }
    });
    source
}

#[tokio::test]
async fn peers_without_tls_are_refused_or_given_up() {
    let says = "closed the connection during the TLS handshake";
    let closes = plain(Peer::Closes).await;
    assert_fails(&closes, vec![], defaults(), Transient, says).await;
    let speaks = plain(Peer::SpeaksPlainly).await;
    assert_fails(
        &speaks,
        vec![],
        defaults(),
        Permanent,
        "TLS of the image host is not valid",
    )
    .await;
    let keeps = plain(Peer::Keeps).await;
    let budgets = FetchBudgets {
        tls: SHORT,
        ..defaults()
    };
    let says = "handshake within 300ms";
    assert_fails(&keeps, vec![], budgets, Transient, says).await;
}

#[tokio::test]
async fn no_one_at_the_address_is_transient() {
    let mut source = Source::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    source.address = listener.local_addr().unwrap();
    drop(listener);
    let says = "did not accept a connection";
    assert_fails(&source, vec![], defaults(), Transient, says).await;
}
