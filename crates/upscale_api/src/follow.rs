//! The outermost layer: gives each request its id, follows what is learnt about it, and finishes each
//! answer: error body, `X-Request-Id`, rate headers, one log line. Nothing leaves without passing here.

use std::sync::Arc;

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, Version, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use upscale_core::{InvalidRequest, RequestId};

use crate::{
    access_log::Line, error::ApiError, rate_headers, refusal_log::RefusalLog,
    request_body::connection_of_request, request_context::RequestContext, unread_body::UnreadBody,
};

/// Wraps every route and fallback of both listeners.
pub(crate) async fn follow(
    State(refusals): State<Arc<RefusalLog>>,
    mut request: Request,
    next: Next,
) -> Response {
    // Without randomness no id, no task and no key can be made: there is nothing to serve with.
    let Ok(request_id) = RequestId::random() else {
        let wait = [(header::RETRY_AFTER, "1")];
        return (StatusCode::SERVICE_UNAVAILABLE, wait).into_response();
    };
    let context = Arc::new(RequestContext::of(request_id));
    request.extensions_mut().insert(Arc::clone(&context));
    let line = Line::begin(&context, &refusals, &request);
    let is_head = request.method() == Method::HEAD;
    let response = answer(&context, request, next).await;
    line.write(&response);
    if is_head {
        return without_body(response);
    }
    response
}

async fn answer(context: &RequestContext, request: Request, next: Next) -> Response {
    // Hyper drops a Content-Length beside a Transfer-Encoding unseen; a proxy in front may have believed
    // it. Whatever follows on this connection could be a smuggled request, so nothing may follow.
    let must_close = request.headers().contains_key(header::TRANSFER_ENCODING);
    let connection = connection_of_request(&request);
    let (request, unread) = UnreadBody::share(request);
    let answer = match check_host(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let mut response = finish(context, answer);
    if must_close {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    if let Some(unread) = unread {
        let _waiting = connection.as_ref().map(|one| one.begin_waiting(false));
        unread.discard(response.headers()).await;
    }
    response
}

/// RFC 9112 section 3.2: an HTTP/1.1 request without exactly one Host is answered with 400.
fn check_host(request: &Request) -> Result<(), ApiError> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        let message = "The Host header must be sent exactly once.".to_owned();
        return Err(InvalidRequest::Request(message).into());
    }
    Ok(())
}

fn finish(context: &RequestContext, mut response: Response) -> Response {
    let id = context.request_id.as_str();
    if let Some(error) = response.extensions().get::<ApiError>() {
        let body = serde_json::to_vec(&error.body(id)).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        *response.body_mut() = Body::from(body);
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::try_from(id) {
        headers.insert("x-request-id", value);
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Some(window) = context.window.get() {
        rate_headers::write(window, headers);
    }
    response
}

/// The answer to HEAD: all headers of the GET, its length included (RFC 9110 section 9.3.2). The router would
/// do so, but before errors are rendered here.
fn without_body(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if let Some(length) = length.filter(|_| response.status() != StatusCode::NOT_MODIFIED) {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}
