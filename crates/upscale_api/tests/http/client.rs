//! A plain HTTP/1.1 client for tests. Every answer it sees is checked for what all answers must have.

use std::net::SocketAddr;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method, Request, header},
};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use upscale_core::RequestId;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        let value = self.header(name);
        value
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
            .parse()
            .unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// `error.code`, or the empty string.
    pub(crate) fn code(&self) -> String {
        serde_json::from_slice::<Value>(&self.body)
            .ok()
            .and_then(|body| Some(body["error"]["code"].as_str()?.to_owned()))
            .unwrap_or_default()
    }

    /// Asserts status and code at once, showing the whole answer when they differ.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{self:?}"
        );
    }
}

/// One request on a connection of its own.
pub(crate) async fn send(to: SocketAddr, request: Request<Bytes>) -> Answer {
    let stream = TcpStream::connect(to).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let method = request.method().clone();
    let response = sender.send_request(request.map(Full::new)).await.unwrap();
    let (parts, body) = response.into_parts();
    let answer = Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    drop(sender);
    let _ = connection.await.unwrap();
    check_every_answer(&method, &answer);
    answer
}

/// The rules that hold for each answer, whatever was asked.
fn check_every_answer(method: &Method, answer: &Answer) {
    let id = answer.header("x-request-id").unwrap_or_default();
    assert!(RequestId::parse(id).is_some(), "no request id: {answer:?}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let cors = answer
        .headers
        .keys()
        .any(|name| name.as_str().starts_with("access-control-"));
    assert!(!cors, "no CORS: {answer:?}");
    if method == Method::HEAD {
        assert!(answer.body.is_empty(), "{answer:?}");
    } else if answer.status >= 400 {
        check_error(id, answer);
    }
    if matches!(answer.status, 429 | 503) {
        assert!(answer.number("retry-after") >= 1, "{answer:?}");
    }
    if answer.status == 401 {
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

fn check_error(id: &str, answer: &Answer) {
    assert_eq!(
        answer.header(header::CONTENT_TYPE.as_str()),
        Some("application/json")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.json();
    let error = body["error"].as_object().unwrap();
    let names: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["code", "message", "request_id", "type"],
        "{answer:?}"
    );
    assert_eq!(body.as_object().unwrap().len(), 1);
    assert_eq!(error["request_id"], id);
    assert!(
        error
            .values()
            .all(|value| value.as_str().is_some_and(|text| !text.is_empty()))
    );
}
