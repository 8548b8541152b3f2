//! What is downloaded, and how it is asked for.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use upscale_core::{AccountId, AttemptFailure, SourceUrl, limits::SOURCE_BYTES_MAX};
use upscale_worker::{ConnectTo, FetchBudgets, FetchOptions, FetchSetupError, Fetcher};

use crate::source::{NAME, Source, Step, answer};

fn defaults() -> FetchBudgets {
    FetchBudgets::default()
}

#[tokio::test]
async fn a_source_arrives_byte_for_byte() {
    let source = Source::start().await;
    let body: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let url = source.set("/a.png", vec![Step::Send(answer("200 OK", "", &body))]);
    assert_eq!(source.download(&url, defaults()).await, Ok(body));
}

#[tokio::test]
async fn bodies_come_by_length_in_chunks_or_until_the_end() {
    let source = Source::start().await;
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n";
    let until_end = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde";
    let old = b"HTTP/1.0 200 OK\r\n\r\nabcde";
    for (path, bytes) in [
        ("/chunked.png", chunked.as_slice()),
        ("/until-end.png", until_end),
        ("/old.png", old),
    ] {
        let url = source.set(path, vec![Step::Send(bytes.to_vec())]);
        let body = source.download(&url, defaults()).await;
        assert_eq!(body.unwrap(), b"abcde", "{path}");
    }
}

#[tokio::test]
async fn twenty_mebibytes_are_allowed_and_not_a_byte_more() {
    let source = Source::start().await;
    let most = vec![1; SOURCE_BYTES_MAX as usize];
    let url = source.set("/most.png", vec![Step::Send(answer("200 OK", "", &most))]);
    let body = source.download(&url, defaults()).await.unwrap();
    assert_eq!(body.len() as u64, SOURCE_BYTES_MAX);

    let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    let steps = vec![Step::Send(head), Step::Send(most), Step::Send(vec![1])];
    let url = source.set("/more.png", steps);
    let error = source.download(&url, defaults()).await.unwrap_err();
    assert!(error.message.contains("20971521 bytes or more"), "{error}");
}

#[tokio::test]
async fn a_request_says_what_it_must_and_nothing_else() {
    let source = Source::start().await;
    let path = "/a%20b.png?token=1&x=%2F";
    let url = source.set(path, vec![Step::Send(answer("200 OK", "", b"x"))]);
    source.download(&url, defaults()).await.unwrap();
    let request = source.requests().remove(0).to_ascii_lowercase();
    let mut lines: Vec<&str> = request.trim_end().split("\r\n").collect();
    assert_eq!(
        lines.remove(0),
        format!("get {path} http/1.1").to_ascii_lowercase()
    );
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept-encoding: identity",
            "accept: */*",
            &format!("host: {NAME}"),
            concat!(
                "user-agent: upscale/",
                env!("CARGO_PKG_VERSION"),
                " (image source fetch)"
            ),
        ]
    );
}

#[tokio::test]
async fn three_redirects_of_every_kind_are_followed_without_referer_or_cookie() {
    let source = Source::start().await;
    for status in [301, 302, 303, 307, 308] {
        let hop = |to: &str| {
            let lines = format!("Location: {to}\r\nSet-Cookie: a=b\r\n");
            vec![Step::Send(answer(&format!("{status} X"), &lines, b"moved"))]
        };
        let url = source.set("/start.png?secret=1", hop("second"));
        source.answer("/second", hop(&format!("//{NAME}/third?x")));
        source.answer("/third?x", hop(&format!("https://{NAME}:443/end")));
        source.answer("/end", vec![Step::Send(answer("200 OK", "", b"here"))]);
        let body = source.download(&url, defaults()).await;
        assert_eq!(body.unwrap(), b"here", "{status}");
    }
    let requests = source.requests().concat().to_ascii_lowercase();
    assert_eq!(source.requests().len(), 20);
    assert!(!requests.contains("referer") && !requests.contains("cookie"));
}

#[tokio::test]
async fn a_redirect_that_keeps_the_connection_busy_is_left_at_its_head() {
    let source = Source::start().await;
    let head = b"HTTP/1.1 302 X\r\nLocation: /end\r\nContent-Length: 1000000\r\n\r\n".to_vec();
    let url = source.set("/a.png", vec![Step::Send(head), Step::Hang]);
    source.answer("/end", vec![Step::Send(answer("200 OK", "", b"here"))]);
    assert_eq!(source.download(&url, defaults()).await.unwrap(), b"here");
}

/// Starts so many downloads of one account and waits until so many of them are under way; how they ended, by whether
/// they were busy.
async fn begun_at_once(
    fetcher: &Arc<Fetcher>,
    source: &Source,
    url: &SourceUrl,
    [started, expected]: [usize; 2],
) -> [usize; 2] {
    let account = AccountId::random().unwrap();
    // Ten good ones: it may have all that an account may have.
    let good = source.set("/good.png", vec![Step::Send(answer("200 OK", "", b"x"))]);
    for _ in 0..10 {
        fetcher.download(account, &good).await.unwrap();
    }
    let mut downloads = JoinSet::new();
    for _ in 0..started {
        let (fetcher, url) = (Arc::clone(fetcher), url.clone());
        downloads.spawn(async move { fetcher.download(account, &url).await });
    }
    source.wait_until_open(expected).await;
    // Anyone who else could get through has the time to.
    tokio::time::sleep(Duration::from_millis(200)).await;
    source.open_gate();
    let mut ended = [0, 0];
    for done in downloads.join_all().await {
        match done {
            Ok(source) => {
                assert_eq!(source.bytes().as_ref(), b"x");
                ended[0] += 1;
            }
            Err(error) => {
                assert_eq!(error.failure, AttemptFailure::Busy, "{error}");
                ended[1] += 1;
            }
        }
    }
    assert_eq!(source.open_max(), expected);
    ended
}

fn gated(source: &Source) -> SourceUrl {
    let steps = vec![Step::Gate, Step::Send(answer("200 OK", "", b"x"))];
    source.set("/a.png", steps)
}

#[tokio::test]
async fn one_account_has_eight_downloads_at_a_time_and_the_ninth_is_given_back() {
    let source = Source::start().await;
    let budgets = FetchBudgets {
        per_destination: 100,
        ..defaults()
    };
    let fetcher = Arc::new(Fetcher::new(&source.options(budgets)).unwrap());
    let url = gated(&source);
    let ended = begun_at_once(&fetcher, &source, &url, [11, 8]).await;
    assert_eq!(ended, [8, 3]);
}

#[tokio::test]
async fn one_account_has_four_downloads_from_an_address_and_the_fifth_waits() {
    let source = Source::start().await;
    let fetcher = Arc::new(Fetcher::new(&source.options(defaults())).unwrap());
    let url = gated(&source);
    let ended = begun_at_once(&fetcher, &source, &url, [7, 4]).await;
    assert_eq!(ended, [7, 0]);
}

#[tokio::test]
async fn who_waits_for_an_address_too_long_is_given_back_unharmed() {
    let source = Source::start().await;
    let budgets = FetchBudgets {
        per_destination: 1,
        wait: Duration::from_millis(200),
        ..defaults()
    };
    let fetcher = Arc::new(Fetcher::new(&source.options(budgets)).unwrap());
    let (url, account) = (gated(&source), AccountId::random().unwrap());
    let first = {
        let (fetcher, url) = (Arc::clone(&fetcher), url.clone());
        tokio::spawn(async move { fetcher.download(account, &url).await })
    };
    source.wait_until_open(1).await;
    let error = fetcher.download(account, &url).await.unwrap_err();
    assert_eq!(error.failure, AttemptFailure::Busy, "{error}");
    source.open_gate();
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn waiting_for_an_address_is_charged_to_the_download() {
    let source = Source::start().await;
    let budgets = FetchBudgets {
        total: Duration::from_millis(500),
        per_destination: 1,
        ..defaults()
    };
    let fetcher = Arc::new(Fetcher::new(&source.options(budgets)).unwrap());
    let (url, account) = (gated(&source), AccountId::random().unwrap());
    let mut downloads = JoinSet::new();
    for _ in 0..2 {
        let (fetcher, url) = (Arc::clone(&fetcher), url.clone());
        downloads.spawn(async move { fetcher.download(account, &url).await });
    }
    for ended in downloads.join_all().await {
        let error = ended.unwrap_err();
        assert!(error.message.contains("within 500ms"), "{error}");
    }
}

#[tokio::test]
async fn fifty_accounts_whose_sources_hang_leave_one_more_its_download() {
    let source = Source::start().await;
    let fetcher = Arc::new(Fetcher::new(&source.options(defaults())).unwrap());
    let hanging = source.set("/slow.png", vec![Step::Hang]);
    let mut downloads = JoinSet::new();
    for _ in 0..50 {
        let account = AccountId::random().unwrap();
        for _ in 0..8 {
            let (fetcher, url) = (Arc::clone(&fetcher), hanging.clone());
            downloads.spawn(async move { fetcher.download(account, &url).await.map(drop) });
        }
    }
    // Two each: nothing is known of them.
    source.wait_until_open(100).await;
    let good = source.set("/good.png", vec![Step::Send(answer("200 OK", "", b"x"))]);
    let honest = AccountId::random().unwrap();
    let arrived = fetcher.download(honest, &good).await.unwrap();
    assert_eq!(arrived.bytes().as_ref(), b"x");
    downloads.shutdown().await;
}

#[test]
fn mappings_are_names_on_port_443_and_addresses() {
    let good: ConnectTo = "Images.Example.ORG:443=127.0.0.1:8443".parse().unwrap();
    assert_eq!(good.name, "images.example.org");
    assert_eq!(good.address.port(), 8443);
    let v6: ConnectTo = "a.example.org:443=[::1]:443".parse().unwrap();
    assert!(v6.address.is_ipv6());
    for text in [
        "",
        "a.example.org=127.0.0.1:1",
        "a.example.org:80=127.0.0.1:1",
        "a.example.org:443=127.0.0.1",
        "a.example.org:443=localhost:443",
        "localhost:443=127.0.0.1:1",
        "127.0.0.1:443=127.0.0.1:1",
        "a.example.org/x:443=127.0.0.1:1",
        "user@a.example.org:443=127.0.0.1:1",
    ] {
        let error = text.parse::<ConnectTo>().unwrap_err();
        assert_eq!(error, FetchSetupError::ConnectTo(text.to_owned()));
    }
}

#[test]
fn roots_and_prefixes_that_cannot_be_used_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.pem");
    for content in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        std::fs::write(&file, content).unwrap();
        let options = FetchOptions {
            ca_files: vec![file.clone()],
            ..FetchOptions::default()
        };
        let error = Fetcher::new(&options).unwrap_err();
        assert!(matches!(error, FetchSetupError::CaFile { .. }), "{error}");
    }
    let options = FetchOptions {
        nat64_prefixes: vec!["64:ff9b::/95".parse().unwrap()],
        ..FetchOptions::default()
    };
    assert!(Fetcher::new(&options).is_err());
}
