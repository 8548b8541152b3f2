//! A browser made of a cookie jar: follows no redirect, fills in the form token of the page it saw last.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    body::Bytes,
    http::{HeaderMap, Request},
};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use upscale_api::{
    ApiLimits, ApiState, ConsoleOptions, ConsoleState, ServeLimits, Stripe, console_router,
    parse_trusted_proxy,
};

use crate::harness::{App, Server, Settings, with_app_set};

/// The console of one test's application.
pub(crate) struct Console<'a> {
    pub(crate) app: &'a App,
    pub(super) address: SocketAddr,
}

/// What a page answered.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// One browser.
pub(crate) struct Browser<'a> {
    console: &'a Console<'a>,
    pub(super) cookies: BTreeMap<String, String>,
    pub(super) form_token: String,
    from: String,
}

/// Runs a test on a console that believes `X-Forwarded-For`, so that each browser has an address of its own.
pub(crate) async fn with_console(test: impl AsyncFnOnce(&Console<'_>)) {
    with_console_at(None, test).await;
}

/// The same, reached under this address.
pub(super) async fn with_console_at(url: Option<&str>, test: impl AsyncFnOnce(&Console<'_>)) {
    let options = ConsoleOptions {
        url: url.map(str::to_owned),
        ..ConsoleOptions::default()
    };
    with_console_set(options, None, test).await;
}

/// The same, with a Stripe behind it.
pub(super) async fn with_console_set(
    options: ConsoleOptions,
    stripe: Option<Stripe>,
    test: impl AsyncFnOnce(&Console<'_>),
) {
    let settings = Settings {
        api: ApiLimits {
            trusted_proxies: vec![parse_trusted_proxy("127.0.0.1").unwrap()],
            ..ApiLimits::default()
        },
        stripe,
        ..Settings::default()
    };
    with_app_set(settings, async |app: &App| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state: ApiState = app.state.clone();
        let router = console_router(ConsoleState::new(state, options));
        let server = Server::start(listener, router, &ServeLimits::default());
        test(&Console { app, address }).await;
        server.stop().await;
    })
    .await;
}

impl Console<'_> {
    /// A browser without cookies, at this address.
    pub(super) fn browser(&self, from: &str) -> Browser<'_> {
        Browser {
            console: self,
            cookies: BTreeMap::new(),
            form_token: String::new(),
            from: from.to_owned(),
        }
    }

    /// A browser of someone who has just signed up.
    pub(crate) async fn signed_up(&self, name: &str) -> Browser<'_> {
        let mut browser = self.browser("192.0.2.1");
        browser.get("/sign-up").await;
        let email = format!("{name}@example.org");
        let fields = [("email", email.as_str()), ("password", "correct horse")];
        let page = browser.post("/sign-up", &fields).await;
        assert_eq!(
            (page.status, page.header("location")),
            (303, "/"),
            "{page:?}"
        );
        browser
    }

    /// The account of this user, with a purchase of these credits.
    pub(crate) async fn pay(&self, name: &str, credits: &str) -> upscale_core::AccountId {
        let email = upscale_core::Email::parse(&format!("{name}@example.org")).unwrap();
        let user = self.app.store.users().find(&email).await.unwrap().unwrap();
        let credits = upscale_core::Credits::parse(credits).unwrap();
        let reference = format!("payment of {name}");
        self.app
            .store
            .accounts()
            .credit(&user.account_id, credits, &reference)
            .await
            .unwrap();
        user.account_id
    }

    fn host(&self) -> String {
        self.address.to_string()
    }
}

impl Browser<'_> {
    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send("GET", path, &[], Bytes::new()).await
    }

    /// As a page of ours sends its form.
    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let origin = format!("http://{}", self.console.host());
        self.post_from(&origin, path, fields).await
    }

    /// The same from a page of this origin.
    pub(super) async fn post_from(
        &mut self,
        origin: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Page {
        let token = self.form_token.clone();
        let body = encoded(fields, &[("form", &token)]);
        let headers = [
            ("origin", origin.to_owned()),
            (
                "content-type",
                "application/x-www-form-urlencoded".to_owned(),
            ),
        ];
        self.send("POST", path, &headers, body.into()).await
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Page {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.console.host())
            .header("x-forwarded-for", &self.from)
            .header("cookie", cookies.join("; "));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let stream = TcpStream::connect(self.console.address).await.unwrap();
        let page = exchange(stream, request.body(Full::new(body)).unwrap()).await;
        self.remember(&page);
        check_every_page(&page);
        page
    }

    fn remember(&mut self, page: &Page) {
        for cookie in page.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            let (name, value) = cookie.split_once('=').unwrap();
            let value = value.split(';').next().unwrap();
            self.console.app.keep_secret(value);
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        if let Some(token) = page.between("name=\"form\" value=\"", "\"") {
            self.form_token = token;
        }
    }
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The first text between these two.
    pub(crate) fn between(&self, before: &str, after: &str) -> Option<String> {
        let (_, rest) = self.text.split_once(before)?;
        Some(rest.split_once(after)?.0.to_owned())
    }

    #[track_caller]
    pub(crate) fn has(&self, text: &str) {
        assert!(
            self.text.contains(text),
            "no {text:?} in {}: {}",
            self.status,
            self.text
        );
    }

    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) {
        assert!(
            !self.text.contains(text),
            "{text:?} in {}: {}",
            self.status,
            self.text
        );
    }
}

/// As a browser encodes them, and those of the page that were not set.
pub(crate) fn encoded(fields: &[(&str, &str)], of_page: &[(&str, &str)]) -> String {
    let is_new = |(name, _): &&(&str, &str)| !fields.iter().any(|(known, _)| known == name);
    let all = fields.iter().chain(of_page.iter().filter(is_new));
    let encode = |(name, value): &(&str, &str)| {
        let value: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("{name}={value}")
    };
    all.map(encode).collect::<Vec<_>>().join("&")
}

/// One request and its answer over a connection of its own.
pub(crate) async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Page
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    drop(sender);
    let _ = connection.await.unwrap();
    Page {
        status: parts.status.as_u16(),
        headers: parts.headers,
        // Pictures are answers, too.
        text: String::from_utf8_lossy(&body).into_owned(),
    }
}

/// Nothing may frame a page, guess its type, or run and load what is not ours; nothing inline may stand in it.
pub(crate) fn check_every_page(page: &Page) {
    let policy = page.header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(rule), "{rule} in {policy:?}: {page:?}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "same-origin");
    assert!(page.header("x-request-id").starts_with("req_"));
    if page.header("content-type").starts_with("text/html") {
        assert_eq!(page.header("cache-control"), "no-store");
        for inline in [" style=", " onclick=", " onload=", "javascript:", "<style"] {
            assert!(!page.text.contains(inline), "{inline} in {}", page.text);
        }
    }
}
