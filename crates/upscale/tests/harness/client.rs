//! A customer: speaks HTTP to the service, and writes down everything it sees. Whatever must hold for every answer of
//! the API is checked on every answer.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use axum::{body::Body, http::Request};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use upscale_core::RequestId;

use super::recorder::{Recorder, seen};

/// One request is given up on after this long, one task after ten times as long: bounds against hanging.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// No result is larger.
const BODY_BYTES_MAX: usize = 256 << 20;

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One account's key, in a customer's hands.
#[derive(Clone)]
pub struct Client {
    pub account: String,
    pub key: String,
    /// Changes when the service is started anew on another port.
    base: Arc<Mutex<String>>,
    recorder: Arc<Recorder>,
}

/// The body of a create with everything said.
pub fn order(image_url: &str, scale: u32) -> Value {
    json!({ "image_url": image_url, "scale": scale })
}

impl Answer {
    pub fn find_header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.find_header(name)
            .unwrap_or_else(|| panic!("{name} is missing: {:?}", self.headers))
    }

    /// `null` where the body is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// `error.code` of an error, nothing of a task: a failed one has a code of its own.
    pub fn code(&self) -> String {
        if self.status < 400 {
            return String::new();
        }
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn id(&self) -> String {
        self.json()["id"]
            .as_str()
            .unwrap_or_else(|| panic!("no task: {self:?}"))
            .to_owned()
    }

    pub fn result_url(&self) -> String {
        let body = self.json();
        body["result"]["url"]
            .as_str()
            .unwrap_or_else(|| panic!("no result: {body}"))
            .to_owned()
    }

    /// Fails with the whole answer unless it is this one.
    #[track_caller]
    pub fn expect(self, status: u16, code: &str) -> Self {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{text}"
        );
        self
    }
}

/// Sends any request anywhere, on a new connection: what an earlier one did to a connection plays no part. None when no
/// whole answer came back.
pub fn send(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Option<Answer> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_vec()));
    let request = request.body(body).unwrap();
    // A thread of its own: some tests stand in a runtime, where another cannot be waited for.
    thread::scope(|scope| scope.spawn(|| run(request)).join().unwrap())
}

fn run(request: Request<Body>) -> Option<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answered = async { tokio::time::timeout(WAIT_MAX, ask(request)).await };
    runtime.block_on(answered).ok()?
}

/// The request as it was given: no client library tidies the path or adds headers, but for `Host`.
async fn ask(mut request: Request<Body>) -> Option<Answer> {
    let uri = request.uri();
    assert_eq!(uri.scheme_str(), Some("http"), "{uri}");
    let authority = uri.authority().unwrap().clone();
    let path = uri.path_and_query().unwrap().clone();
    let host = authority.as_str().parse().unwrap();
    request.headers_mut().entry("host").or_insert(host);
    *request.uri_mut() = path.into();
    let address = (authority.host(), authority.port_u16().unwrap_or(80));
    let stream = TcpStream::connect(address).await.ok()?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.ok()?;
    tokio::spawn(connection);
    let (parts, body) = sender.send_request(request).await.ok()?.into_parts();
    let headers = parts.headers.iter().map(|(name, value)| {
        (
            name.as_str().to_owned(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    });
    let body = axum::body::to_bytes(Body::new(body), BODY_BYTES_MAX).await;
    Some(Answer {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: body.ok()?.to_vec(),
    })
}

impl Client {
    pub fn new(
        account: &str,
        key: &str,
        base: Arc<Mutex<String>>,
        recorder: Arc<Recorder>,
    ) -> Self {
        recorder.keep_secret("API key", key);
        let (account, key) = (account.to_owned(), key.to_owned());
        Self {
            account,
            key,
            base,
            recorder,
        }
    }

    /// The same account with another of its keys.
    pub fn with_key(&self, key: &str) -> Self {
        Self::new(
            &self.account,
            key,
            Arc::clone(&self.base),
            Arc::clone(&self.recorder),
        )
    }

    /// The same customer at another service of the same data.
    pub fn at(&self, api: &str) -> Self {
        let base = Arc::new(Mutex::new(api.to_owned()));
        Self::new(&self.account, &self.key, base, Arc::clone(&self.recorder))
    }

    /// Any request to the API with any headers, the key not among them; not written down.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Option<Answer> {
        let url = format!("{}{path}", self.base.lock().unwrap());
        let answer = send(method, &url, headers, body)?;
        check_answer(method, &answer);
        Some(answer)
    }

    #[track_caller]
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        let answer = self.try_send(method, path, headers, body);
        answer.unwrap_or_else(|| panic!("{method} {path} got no answer"))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    /// A well-formed create.
    #[track_caller]
    pub fn create(&self, key: &str, order: &Value) -> Answer {
        self.try_create(key, order)
            .unwrap_or_else(|| panic!("create {key} got no answer"))
    }

    pub fn try_create(&self, key: &str, order: &Value) -> Option<Answer> {
        self.recorder.keep_secret("Idempotency-Key", key);
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        self.try_create_raw(&headers, order.to_string().as_bytes())
    }

    /// A create with these headers (and the API key) and exactly these bytes.
    #[track_caller]
    pub fn create_raw(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_create_raw(headers, body)
            .expect("create got no answer")
    }

    fn try_create_raw(&self, headers: &[(&str, &str)], body: &[u8]) -> Option<Answer> {
        let bearer = self.bearer();
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let started = self.recorder.now();
        let answer = self.try_send("POST", "/api/v1/upscales", &all, Some(body));
        let key = headers.iter().find(|(name, _)| *name == "idempotency-key");
        let key = key.map_or("", |(_, value)| *value);
        self.recorder
            .record_create(started, &self.account, key, body, answer.as_ref());
        answer
    }

    #[track_caller]
    pub fn read(&self, id: &str) -> Answer {
        self.try_read(id)
            .unwrap_or_else(|| panic!("reading {id} got no answer"))
    }

    pub fn try_read(&self, id: &str) -> Option<Answer> {
        let started = self.recorder.now();
        let path = format!("/api/v1/upscales/{id}");
        let answer = self.try_send("GET", &path, &[("authorization", &self.bearer())], None);
        self.recorder
            .record_read(started, &self.account, id, answer.as_ref());
        answer
    }

    /// Polls until the task is terminal and its refund, if any, has arrived.
    #[track_caller]
    pub fn wait(&self, id: &str) -> Answer {
        let begun = Instant::now();
        loop {
            let answer = self.read(id);
            let over = answer.status == 200 && {
                let state = seen(&answer.json()).state;
                state.is_terminal() && state.may_become(state) && !is_pending(&answer)
            };
            if over {
                return answer;
            }
            assert!(
                begun.elapsed() < WAIT_MAX * 10,
                "still not over: {answer:?}"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Creates, waits, and expects the result.
    #[track_caller]
    pub fn upscale(&self, key: &str, order: &Value) -> Answer {
        let created = self.create(key, order).expect(202, "");
        let ended = self.wait(&created.id());
        assert_eq!(ended.json()["status"], "succeeded", "{}", ended.json());
        ended
    }

    /// Creates, waits, and expects a failure; its message.
    #[track_caller]
    pub fn fail(&self, key: &str, order: &Value) -> String {
        let created = self.create(key, order).expect(202, "");
        let ended = self.wait(&created.id()).json();
        assert_eq!(ended["error"]["code"], "image_processing_failed", "{ended}");
        ended["error"]["message"].as_str().unwrap().to_owned()
    }

    /// A request to a result URL: no key, any headers.
    #[track_caller]
    pub fn fetch(&self, method: &str, url: &str, headers: &[(&str, &str)]) -> Answer {
        send(method, url, headers, None).expect("the result host gave no answer")
    }
}

fn is_pending(answer: &Answer) -> bool {
    answer.json()["usage"]["refund_status"] == "pending"
}

/// Every answer of the API names its request; every error has the four fields, the type of its status and
/// the same request id.
#[track_caller]
fn check_answer(method: &str, answer: &Answer) {
    let request_id = answer.header("x-request-id");
    assert!(
        RequestId::parse(request_id).is_some(),
        "{request_id} is no request id of ours"
    );
    assert_eq!(
        answer.find_header("access-control-allow-origin"),
        None,
        "keys never live in browsers"
    );
    if answer.status < 400 || method == "HEAD" {
        return;
    }
    let body = answer.json();
    let error = body["error"]
        .as_object()
        .unwrap_or_else(|| panic!("no error body: {answer:?}"));
    let mut fields: Vec<_> = error.keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["code", "message", "request_id", "type"]);
    assert_eq!(error["request_id"], request_id);
    assert_eq!(error["type"], error_type(answer.status), "{body}");
    assert!(!error["message"].as_str().unwrap().is_empty(), "{body}");
    if answer.status == 429 {
        assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
    }
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    }
}
