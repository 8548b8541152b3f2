//! Reads what an answer left unread of its request's body, up to a bound: closing a connection with bytes
//! still coming makes the client's system throw our answer away (RFC 9112 section 9.6).

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// Beyond this the client is cut off: it sends 64 times what we read.
const BYTES_MAX: usize = 1024 * 1024;
const TIME_MAX: Duration = Duration::from_secs(1);

/// A request's body, in two hands: the handler's and ours.
#[derive(Clone)]
pub(crate) struct UnreadBody(Arc<Mutex<Body>>);

impl UnreadBody {
    /// The request with its body shared. None when nothing should be read later: the client waits for
    /// our `100 Continue`, which reading would send.
    pub(crate) fn share(request: Request) -> (Request, Option<Self>) {
        if request.headers().contains_key(header::EXPECT) {
            return (request, None);
        }
        let (parts, body) = request.into_parts();
        let shared = Self(Arc::new(Mutex::new(body)));
        let request = Request::from_parts(parts, Body::new(shared.clone()));
        (request, Some(shared))
    }

    /// Reads the rest, unless the answer says that the connection ends anyway.
    pub(crate) async fn discard(mut self, answer: &HeaderMap) {
        if self.is_end_stream() || answer.contains_key(header::CONNECTION) {
            return;
        }
        let read_on = async {
            let mut read_bytes = 0;
            while let Some(Ok(frame)) = self.frame().await {
                read_bytes += frame.data_ref().map_or(0, Bytes::len);
                if read_bytes > BYTES_MAX {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(TIME_MAX, read_on).await;
    }

    fn body(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for UnreadBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.body()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}
