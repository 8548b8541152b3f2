//! An operator's browser: a cookie jar on a socket or on loopback, which fills in what the page it saw last holds.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use axum::{body::Bytes, http::Request};
use http_body_util::Full;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use upscale_api::{AdminOptions, AdminSignIn, AdminState, AdminToken, ServeLimits, admin_router};
use upscale_store::OperatorAction;

use crate::{
    console::browser::{Page, check_every_page, encoded, exchange},
    harness::{App, Server, with_app},
};

pub(super) const TOKEN: &str = "canary-of-the-operators-token-0123456789abcdef";
pub(super) const CONSOLE_URL: &str = "https://console.example.org";
/// What a page holds for its form, beside what is typed.
const OF_PAGE: [&str; 3] = ["form", "nonce", "secret"];

/// Both ways to sign in to the console of one test's application.
pub(crate) struct Admin<'a> {
    pub(super) app: &'a App,
    pub(super) address: SocketAddr,
    socket: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Socket,
    Token,
}

/// One browser, or one script.
pub(crate) struct Browser<'a> {
    admin: &'a Admin<'a>,
    by: By,
    pub(super) host: String,
    pub(super) cookies: BTreeMap<String, String>,
    /// Of the last page: `form`, `nonce` and `secret`.
    pub(super) held: BTreeMap<&'static str, String>,
    /// Sent with each request.
    pub(super) headers: Vec<(&'static str, String)>,
}

/// Runs a test on the operators' console.
pub(super) async fn with_admin(test: impl AsyncFnOnce(&Admin<'_>)) {
    with_app(async |app: &App| with_admin_of(app, test).await).await;
}

/// The same on an application that is there.
pub(crate) async fn with_admin_of(app: &App, test: impl AsyncFnOnce(&Admin<'_>)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let socket = app.path("admin.sock");
    let router = |sign_in| {
        let options = AdminOptions {
            sign_in,
            console_url: Some(format!("{CONSOLE_URL}/")),
        };
        admin_router(AdminState::new(app.state.clone(), options))
    };
    app.keep_secret(TOKEN);
    let token = AdminSignIn::Token(AdminToken::new(TOKEN).unwrap());
    let limits = ServeLimits::default();
    let servers = [
        Server::start(listener, router(token), &limits),
        Server::start(
            UnixListener::bind(&socket).unwrap(),
            router(AdminSignIn::FilePermissions),
            &limits,
        ),
    ];
    test(&Admin {
        app,
        address,
        socket,
    })
    .await;
    for server in servers {
        server.stop().await;
    }
}

impl Admin<'_> {
    /// The hundred newest lines of the audit trail, newest first.
    pub(super) async fn actions(&self) -> Vec<OperatorAction> {
        let operator = self.app.store.operator();
        operator.list_actions(None, i64::MAX, 100).await.unwrap()
    }

    /// Without cookies.
    pub(super) fn browser(&self, by: By) -> Browser<'_> {
        Browser {
            admin: self,
            by,
            host: match by {
                By::Socket => "localhost".to_owned(),
                By::Token => self.address.to_string(),
            },
            cookies: BTreeMap::new(),
            held: BTreeMap::new(),
            headers: Vec::new(),
        }
    }

    /// Of an operator who has come in.
    pub(crate) async fn signed_in(&self, by: By) -> Browser<'_> {
        let mut browser = self.browser(by);
        browser.get("/sign-in").await;
        let fields = [("name", "Ann"), ("token", TOKEN)];
        let page = browser.post("/sign-in", &fields).await;
        assert_eq!(
            (page.status, page.header("location")),
            (303, "/"),
            "{page:?}"
        );
        browser
    }
}

impl Browser<'_> {
    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send("GET", path, &[], Bytes::new()).await
    }

    /// As a page of ours sends its form.
    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let origin = format!("http://{}", self.host);
        self.post_from(&origin, path, fields).await
    }

    /// The same from a page of this origin.
    pub(super) async fn post_from(
        &mut self,
        origin: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Page {
        let held: Vec<(&str, &str)> = self
            .held
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let body = encoded(fields, &held);
        self.send("POST", path, &[("origin", origin)], body.into())
            .await
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Page {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host);
        if !self.cookies.is_empty() {
            let pairs = self.cookies.iter();
            let pairs: Vec<String> = pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            request = request.header("cookie", pairs.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).unwrap();
        let page = match self.by {
            By::Socket => {
                exchange(
                    UnixStream::connect(&self.admin.socket).await.unwrap(),
                    request,
                )
                .await
            }
            By::Token => {
                exchange(
                    TcpStream::connect(self.admin.address).await.unwrap(),
                    request,
                )
                .await
            }
        };
        check_every_page(&page);
        self.remember(&page);
        page
    }

    fn remember(&mut self, page: &Page) {
        for cookie in page.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
            let (name, value) = cookie.split_once('=').unwrap();
            let value = value.split(';').next().unwrap();
            self.admin.app.keep_secret(value);
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        for name in OF_PAGE {
            if let Some(value) = page.between(&format!("name=\"{name}\" value=\""), "\"") {
                self.held.insert(name, value);
            }
        }
    }
}
