//! Connections that hold a place without using it, and shutdown. Small limits are set and the connection
//! must end by itself; how soon is not measured.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use upscale_api::{ApiLimits, PermitLimits, ServeLimits, api_router};
use upscale_core::TaskId;

use crate::{
    harness::{App, Server, Settings, image_body, with_app, with_app_set},
    malformed::exchange,
};

fn serving(change: impl FnOnce(&mut ServeLimits)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings.serve);
    settings
}

/// Reads one whole answer with a Content-Length and leaves the connection open.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let mut chunk = [0; 4_096];
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed early: {text}");
        answer.extend_from_slice(&chunk[..count]);
    }
}

#[tokio::test]
async fn a_head_that_dribbles_is_cut_off() {
    let settings = serving(|serve| serve.header_timeout = Duration::from_millis(200));
    with_app_set(settings, async |app: &App| {
        let mut stream = TcpStream::connect(app.api).await.unwrap();
        let head = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ";
        stream.write_all(head).await.unwrap();
        // Bytes keep coming, a thousand times more slowly than they could; none of them renews the time.
        let mut written = 0;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            written += 1;
            assert!(written < 1_000, "a slow head is never cut off");
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let settings = serving(|serve| serve.header_timeout = Duration::from_millis(200));
    with_app_set(settings, async |app: &App| {
        assert_eq!(exchange(app.api, b"").await, "");
        assert_eq!(exchange(app.files, b"").await, "");
    })
    .await;
}

#[tokio::test]
async fn a_connection_serves_request_after_request_and_rests_longer_than_a_head_may_take() {
    let settings = serving(|serve| {
        serve.header_timeout = Duration::from_millis(100);
        serve.idle_timeout = Duration::from_secs(600);
    });
    with_app_set(settings, async |app: &App| {
        let mut stream = TcpStream::connect(app.api).await.unwrap();
        for _ in 0..4 {
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
                .await
                .unwrap();
            assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 200"));
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_rests_too_long_is_closed() {
    let settings = serving(|serve| serve.idle_timeout = Duration::from_millis(200));
    with_app_set(settings, async |app: &App| {
        let answer = exchange(app.api, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_400_and_ends_the_connection() {
    let api = ApiLimits {
        body_timeout: Duration::from_millis(200),
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let head = format!(
            "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{",
            app.key
        );
        let answer = exchange(app.api, head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
        assert!(answer.contains("\r\nx-ratelimit-remaining: 59"), "{answer}");
        assert!(answer.contains(r#""code":"invalid_request""#), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_504_and_still_shows_the_window() {
    let api = ApiLimits {
        request_timeout: Duration::from_millis(500),
        body_timeout: Duration::from_secs(600),
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let head = format!(
            "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{",
            app.key
        );
        let mut stream = TcpStream::connect(app.api).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        assert!(answer.contains("\r\nretry-after: 1"), "{answer}");
        assert!(answer.contains("\r\nx-ratelimit-remaining: 59"), "{answer}");
        assert!(answer.contains(r#""code":"upstream_timeout""#), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_newcomer_takes_the_place_of_the_one_that_has_been_silent_longest() {
    let settings = serving(|serve| {
        serve.connections_max = 8;
        serve.newcomer_time = Duration::from_millis(20);
        serve.header_timeout = Duration::from_secs(600);
    });
    with_app_set(settings, async |app: &App| {
        let mut silent = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(app.api).await.unwrap();
            stream.write_all(b"GET /healthz HT").await.unwrap();
            silent.push(stream);
            let honest = app.request_without_key("GET", "/healthz").send().await;
            assert_eq!(honest.status, 200);
        }
        let mut rest = Vec::new();
        let oldest = &mut silent[0];
        let closed = oldest.read_to_end(&mut rest).await;
        assert!(closed.is_err() || rest.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off() {
    let settings = serving(|serve| {
        serve.stall_timeout = Duration::from_millis(200);
        serve.header_timeout = Duration::from_millis(400);
    });
    with_app_set(settings, async |app: &App| {
        let id = app.created("stalled-reader").await;
        // Far beyond what the sockets' buffers hold.
        app.succeed_next(&vec![7; 64 << 20]).await;
        let task = app.read(&id).await.json();
        let url = task["result"]["url"].as_str().unwrap().to_owned();
        let path = url
            .strip_prefix(&format!("http://{}", app.files))
            .unwrap()
            .to_owned();
        let mut stream = TcpStream::connect(app.files).await.unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        // We read nothing; writing fails once the server has closed.
        let mut written = 0;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            written += 1;
            assert!(written < 1_000, "a stalled reader is never cut off");
        }
    })
    .await;
}

#[tokio::test]
async fn shutdown_closes_the_idle_lets_the_busy_finish_and_accepts_no_one() {
    with_app(async |app: &App| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::start(listener, api_router(app.state.clone()), &ServeLimits::default());
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        read_answer(&mut idle).await;
        let mut busy = TcpStream::connect(address).await.unwrap();
        let body = image_body("");
        let head = format!(
            "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nIdempotency-Key: finished-while-draining\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            app.key,
            body.len()
        );
        busy.write_all(head.as_bytes()).await.unwrap();
        wait_until_counted(app).await;

        let stopping = tokio::spawn(server.stop());
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "the idle one is closed without a word");
        busy.write_all(body.as_bytes()).await.unwrap();
        assert!(read_answer(&mut busy).await.starts_with("HTTP/1.1 202"));
        stopping.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    })
    .await;
}

/// The busy request has reached its handler when the window has counted one more than the probes.
async fn wait_until_counted(app: &App) {
    for probes in 1.. {
        let probe = app.create("probe-of-window", "{").send().await;
        let counted = 60 - probe.number("x-ratelimit-remaining");
        if counted > probes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(probes < 55, "the busy request is never counted");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_keeps_no_place_from_requests_that_are_there() {
    let permits = PermitLimits {
        public: 1,
        keyed: 1,
        ..PermitLimits::default()
    };
    let mut settings = with_permits(permits);
    // The bodies would keep what they have for longer than this test lasts.
    settings.api.body_timeout = Duration::from_secs(600);
    settings.api.request_timeout = Duration::from_secs(600);
    with_app_set(settings, async |app: &App| {
        let head = format!(
            "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 9\r\n\r\n",
            app.key
        );
        let mut slow = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(app.api).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
        // While one of them is counted it has the one place, and not after.
        let mut tries = 0..1_000;
        while app.created_with_status("beside-slow-bodies").await == 503 {
            assert!(tries.next().is_some(), "slow bodies keep the place");
        }
        while app.read(&TaskId::random().unwrap()).await.status != 404 {
            assert!(tries.next().is_some(), "slow bodies keep the place");
        }
        for path in ["/healthz", "/readyz"] {
            let probe = app.request_without_key("GET", path).send().await;
            assert_eq!(probe.status, 200);
        }
    })
    .await;
}

#[tokio::test]
async fn more_downloads_than_may_be_sent_are_503_and_to_be_retried_and_probes_are_not() {
    let permits = PermitLimits {
        downloads: 1,
        ..PermitLimits::default()
    };
    with_app_set(with_permits(permits), async |app: &App| {
        let id = app.created("held-download").await;
        // Far beyond what the sockets' buffers hold.
        app.succeed_next(&vec![7; 64 << 20]).await;
        let url = app.read(&id).await.json()["result"]["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = url.strip_prefix(&format!("http://{}", app.files)).unwrap();
        let held = begin_download(app.files, path).await;
        let refused = app.download("GET", &url).send().await;
        refused.expect(503, "service_unavailable");
        assert_eq!(refused.header("retry-after"), Some("1"));
        // A link that is none of ours asks for no place, and a probe neither.
        let unsigned = app.download("GET", &format!("{url}0")).send().await;
        unsigned.expect(404, "not_found");
        let probe = app.download("GET", "/healthz").send().await;
        assert_eq!(probe.status, 200);
        drop(held);
        while app.download("HEAD", &url).send().await.status != 200 {}
    })
    .await;
}

#[tokio::test]
async fn downloads_from_the_apis_own_listener_hold_permits_of_their_own_and_no_one_elses() {
    let permits = PermitLimits {
        downloads: 1,
        public: 1,
        keyed: 2,
        ..PermitLimits::default()
    };
    with_app_set(with_permits(permits), async |app: &App| {
        let id = app.created("held-on-the-api").await;
        app.succeed_next(&vec![7; 64 << 20]).await;
        let url = app.read(&id).await.json()["result"]["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = url.strip_prefix(&format!("http://{}", app.files)).unwrap();
        app.keep_secret(path.split_once('?').unwrap().1);
        let _held = begin_download(app.api, path).await;
        for listener in [app.api, app.files] {
            let refused = app
                .request_without_key("GET", path)
                .to(listener)
                .send()
                .await;
            refused.expect(503, "service_unavailable");
        }
        assert_eq!(app.created_with_status("beside-a-download").await, 202);
        assert_eq!(app.read(&id).await.status, 200);
        for path in ["/openapi.json", "/readyz"] {
            let answer = app.request_without_key("GET", path).send().await;
            assert_eq!(answer.status, 200, "{path}");
        }
    })
    .await;
}

/// A download of which the first bytes were read and no more.
async fn begin_download(listener: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(listener).await.unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut first = [0; 4_096];
    assert!(stream.read(&mut first).await.unwrap() > 0);
    stream
}

fn with_permits(permits: PermitLimits) -> Settings {
    Settings::limited(ApiLimits {
        permits,
        ..ApiLimits::default()
    })
}
