//! One line a request, its counts, and its span where it is about a task, made of an allow list: ids, method, matched
//! route, status, time, code. Paths, queries, headers and bodies are never logged, so that no secret can be; of a
//! caller's own trace the two ids alone are kept.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderMap, Method},
    response::Response,
};
use metrics::{counter, histogram};
use upscale_core::{
    Fact, KeyId, RequestId, Span, SpanId, SpanKind, TaskId, TraceId, TraceParent, record_span,
};

use crate::{error::ApiError, refusal_log::RefusalLog, request_context::RequestContext};

/// The kind of refused pages, whose errors have no code.
const PAGE: &str = "page";

/// What the log says of a page that could not be shown; beside the answer, never in it.
#[derive(Debug, Clone)]
pub(crate) struct PageTrouble {
    pub(crate) detail: String,
    /// Our fault, not a moment's.
    pub(crate) is_broken: bool,
}

/// Marks a request of a console, whose pages are counted as one route of this name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagesOf(pub(crate) &'static str);

/// The line of one request, written once: with its answer, or when the client goes away before it.
pub(crate) struct Line {
    context: Arc<RequestContext>,
    refusals: Arc<RefusalLog>,
    method: &'static str,
    route: Option<MatchedPath>,
    pages_of: Option<&'static str>,
    started: Instant,
    caller_trace: Option<TraceParent>,
    is_written: bool,
}

impl Line {
    /// Starts the clock.
    pub(crate) fn begin(
        context: &Arc<RequestContext>,
        refusals: &Arc<RefusalLog>,
        request: &Request,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            refusals: Arc::clone(refusals),
            method: known_method(request.method()),
            route: request.extensions().get::<MatchedPath>().cloned(),
            pages_of: request.extensions().get::<PagesOf>().map(|pages| pages.0),
            started: Instant::now(),
            caller_trace: caller_trace(request.headers()),
            is_written: false,
        }
    }

    /// The answer is ready to be sent; errors of ours also say what broke.
    pub(crate) fn write(mut self, response: &Response) {
        let error = response.extensions().get::<ApiError>();
        let status = Some(response.status().as_u16());
        self.count(status, error);
        let code = error.map(ApiError::code);
        if response.status().as_u16() < 400 || self.refusals.may_write(code.unwrap_or(PAGE)) {
            self.log_trouble(error, response.extensions().get::<PageTrouble>());
            self.log(status, code);
        }
        self.trace(status, code);
        self.is_written = true;
    }

    fn log_trouble(&self, error: Option<&ApiError>, page: Option<&PageTrouble>) {
        let request_id = self.context.request_id.as_str();
        let (detail, is_broken) = match (error, page) {
            (Some(ApiError::Internal { detail }), _) => (detail, true),
            (Some(ApiError::Unavailable { detail, .. }), _) => (detail, false),
            (Some(ApiError::OutcomeUnknown { detail }), _) => (detail, false),
            (_, Some(page)) => (&page.detail, page.is_broken),
            _ => return,
        };
        match is_broken {
            true => tracing::error!(request_id, detail, "something broke"),
            false => tracing::warn!(request_id, detail, "not available"),
        }
    }

    fn count(&self, status: Option<u16>, error: Option<&ApiError>) {
        let route = self.pages_of.unwrap_or_else(|| self.route());
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let labels = [
            ("route", route.to_owned()),
            ("method", self.method.to_owned()),
            ("status", status),
        ];
        counter!("upscale_requests_total", &labels).increment(1);
        histogram!("upscale_request_seconds", "route" => route.to_owned())
            .record(self.started.elapsed().saturating_sub(self.held()));
        if let Some(limit) = error.and_then(ApiError::limit) {
            counter!("upscale_limits_hit_total", "limit" => limit).increment(1);
        }
    }

    /// Time that the caller asked to be held, which is no time of ours.
    fn held(&self) -> Duration {
        self.context.held.get().copied().unwrap_or_default()
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }

    /// A span for requests that are about a task: the others belong to no trace, and lines and counts are theirs.
    fn trace(&self, status: Option<u16>, error_code: Option<&str>) {
        if let Some(task) = self.context.task_id.get() {
            record_span(|| self.span(task, status, error_code));
        }
    }

    fn span(&self, task: &TaskId, status: Option<u16>, error_code: Option<&str>) -> Span {
        let (method, route) = (self.method, self.route());
        let word = |text: &str| Fact::Word(text.to_owned());
        let name = format!("{method} {route}");
        let mut span = Span::ending_now(task, name, SpanKind::Request, self.started.elapsed())
            .with("upscale.request", word(self.context.request_id.as_str()))
            .with("http.request.method", word(method))
            .with("http.route", word(route));
        if let Some(status) = status {
            span = span.with("http.response.status_code", Fact::Number(status.into()));
        }
        if let Some((account, _)) = self.context.caller.get() {
            span = span.with("upscale.account", word(account.as_str()));
        }
        if self.context.made_the_task.get().is_some() {
            (span.id, span.parent) = (SpanId::root_of(TraceId::of(task)), None);
        }
        if let Some(code) = error_code {
            span = span.with("upscale.code", word(code));
        }
        // What a caller did wrong is no failure of ours.
        let is_ours = status.is_none_or(|status| status >= 500);
        span.failure = error_code.filter(|_| is_ours).map(str::to_owned);
        span.link = self.caller_trace;
        span
    }

    fn log(&self, status: Option<u16>, error_code: Option<&str>) {
        let caller = self.context.caller.get();
        tracing::info!(
            request_id = self.context.request_id.as_str(),
            method = self.method,
            route = self.route(),
            status,
            micros = self.started.elapsed().as_micros() as u64,
            held_micros = self.context.held.get().map(|held| held.as_micros() as u64),
            account_id = caller.map(|(account, _)| account.as_str()),
            key_id = caller.and_then(|(_, key)| key.as_ref()).map(KeyId::as_str),
            task_id = self.context.task_id.get().map(|task| task.as_str()),
            trace_id = self
                .context
                .task_id
                .get()
                .map(|task| TraceId::of(task).hex()),
            error_code,
            "request"
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.is_written {
            self.count(None, None);
            if self.refusals.may_write("client_went_away") {
                self.log(None, Some("client_went_away"));
            }
            self.trace(None, Some("client_went_away"));
        }
    }
}

/// The line of what was no request: hyper has refused it, and no layer saw it.
pub(crate) fn write_unparsed(refusals: &Arc<RefusalLog>, id: &RequestId, error: &ApiError) {
    let status = error.row().0.as_u16();
    let labels = [
        ("route", "unmatched".to_owned()),
        ("method", "other".to_owned()),
        ("status", status.to_string()),
    ];
    counter!("upscale_requests_total", &labels).increment(1);
    if refusals.may_write("unparsed") {
        let (request_id, error_code) = (id.as_str(), error.code());
        tracing::info!(request_id, status, error_code, "a head that cannot be read");
    }
}

/// The caller's own trace, if it says so exactly once and well.
fn caller_trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all("traceparent").iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    TraceParent::parse(value.to_str().ok()?)
}

/// A client may invent a method and put anything into it; the log knows the standard ones alone.
fn known_method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "TRACE" => "TRACE",
        "CONNECT" => "CONNECT",
        _ => "other",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        io,
        sync::{LazyLock, Mutex},
    };

    use axum::{body::Body, response::IntoResponse};
    use tracing::{Dispatch, Subscriber};

    use super::*;

    /// What a test's log holds.
    #[derive(Clone, Default)]
    pub(crate) struct Written(pub(crate) Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// tracing remembers for each call whether anyone listens. While there is one subscriber it asks only the thread that
    /// makes the call first: a test beside ours, which listens to nothing, silenced the call for the whole process. With a
    /// second subscriber it asks both.
    static SECOND_SUBSCRIBER: LazyLock<Dispatch> =
        LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish()));

    /// A subscriber for one thread that writes JSON lines to `written`.
    pub(crate) fn subscriber(written: &Written) -> impl Subscriber {
        LazyLock::force(&SECOND_SUBSCRIBER);
        let writer = written.clone();
        let lines = tracing_subscriber::fmt().json();
        lines.with_writer(move || writer.clone()).finish()
    }

    /// What the line of a request to this path says after `end`.
    fn logged(end: impl FnOnce(Line)) -> String {
        let written = Written::default();
        let request = Request::builder().method("BREW").uri("/a/path?of=secrets");
        let request = request.body(Body::empty()).unwrap();
        let context = Arc::new(RequestContext::of(RequestId::random().unwrap()));
        let refusals = Arc::new(RefusalLog::new(1));
        tracing::subscriber::with_default(subscriber(&written), || {
            end(Line::begin(&context, &refusals, &request));
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_client_that_goes_away_before_its_answer_still_leaves_a_line() {
        let log = logged(drop);
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(r#""error_code":"client_went_away""#), "{log}");
    }

    #[test]
    fn neither_path_nor_query_nor_an_invented_method_is_logged() {
        let log = logged(|line| line.write(&Response::new(Body::empty())));
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(r#""route":"unmatched""#) && log.contains(r#""method":"other""#));
        assert!(!log.contains("BREW") && !log.contains("secrets") && !log.contains("/a/path"));
    }

    #[test]
    fn of_many_refusals_a_few_have_lines_and_every_success_has_one() {
        let refused = |line: Line| {
            let (context, refusals) = (Arc::clone(&line.context), Arc::clone(&line.refusals));
            let request = Request::new(Body::empty());
            line.write(&ApiError::InvalidApiKey.into_response());
            for _ in 0..100 {
                let more = Line::begin(&context, &refusals, &request);
                more.write(&ApiError::InvalidApiKey.into_response());
            }
            for _ in 0..5 {
                Line::begin(&context, &refusals, &request).write(&Response::new(Body::empty()));
            }
        };
        let log = logged(refused);
        assert_eq!(log.lines().count(), 1 + 5, "{log}");
    }
}
