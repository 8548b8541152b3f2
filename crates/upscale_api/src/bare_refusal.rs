//! What hyper cannot parse it answers by itself, with a bare 400 or 431 that no layer sees, and it offers no place to change
//! that (`role.rs`, `on_error`, of hyper 1.12). So its bytes are exchanged on their way to the socket for an answer with
//! the contract's body and a request id that the log knows.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::AsyncWrite;
use upscale_core::{InvalidRequest, RequestId};

use crate::{access_log, error::ApiError, refusal_log::RefusalLog, serve_limits::ServeLimits};

/// Hyper's bare answer has some 90 bytes.
const BARE_BYTES_MAX: usize = 256;

/// Stands between hyper and one socket.
pub(crate) struct Exchange {
    head_bytes_max: usize,
    headers_max: usize,
    log: Arc<RefusalLog>,
    /// What is written in place of hyper's bytes, and how much of it is.
    instead: Option<(Vec<u8>, usize)>,
}

impl Exchange {
    pub(crate) fn new(limits: &ServeLimits, log: Arc<RefusalLog>) -> Self {
        Self {
            head_bytes_max: limits.header_bytes_max,
            headers_max: limits.headers_max,
            log,
            instead: None,
        }
    }

    /// Whether these bytes are to be exchanged, or the exchange is under way.
    pub(crate) fn is_needed(&self, bytes: &[u8]) -> bool {
        self.instead.is_some() || is_bare(bytes)
    }

    /// Writes the bytes or what stands for them; as written count the bytes that were handed in.
    pub(crate) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.instead.is_none() && is_bare(bytes) {
            self.instead = self.answer(bytes).map(|answer| (answer, 0));
        }
        let Some((answer, written)) = &mut self.instead else {
            return Pin::new(stream).poll_write(cx, bytes);
        };
        while *written < answer.len() {
            match Pin::new(&mut *stream).poll_write(cx, &answer[*written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => *written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.instead = None;
        Poll::Ready(Ok(bytes.len()))
    }

    /// None without randomness: then hyper's own words go.
    fn answer(&self, bare: &[u8]) -> Option<Vec<u8>> {
        let error = match bare.starts_with(b"HTTP/1.1 431") {
            true => ApiError::HeadTooLarge {
                bytes_max: self.head_bytes_max,
                headers_max: self.headers_max,
            },
            false => {
                let text = "The request line or a header is not valid HTTP/1.1.";
                ApiError::Invalid(InvalidRequest::Request(text.to_owned()))
            }
        };
        let id = RequestId::random().ok()?;
        access_log::write_unparsed(&self.log, &id, &error);
        let status = error.row().0;
        let body = serde_json::to_string(&error.body(id.as_str())).ok()?;
        let date = String::from_utf8_lossy(bare);
        let date = date.lines().find(|line| line.starts_with("date: "));
        let date = date.map(|line| format!("{line}\r\n")).unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\ncontent-length: {}\r\n\
             x-request-id: {}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n{date}\r\n{body}",
            body.len(),
            id.as_str()
        );
        Some(answer.into_bytes())
    }
}

/// Every answer of ours carries a request id, so one without a body and without an id is hyper's.
fn is_bare(bytes: &[u8]) -> bool {
    let is_refusal = [&b"HTTP/1.1 400 "[..], b"HTTP/1.1 431 "]
        .iter()
        .any(|start| bytes.starts_with(start));
    is_refusal
        && bytes.len() <= BARE_BYTES_MAX
        && bytes.ends_with(b"\r\n\r\n")
        && !bytes.windows(13).any(|window| window == b"x-request-id:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_without_a_request_id_is_exchanged() {
        for (bytes, expected) in [
            (
                &b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"[..],
                true,
            ),
            (b"HTTP/1.1 431 Too Large\r\ndate: x\r\n\r\n", true),
            (
                b"HTTP/1.1 400 Bad Request\r\nx-request-id: req_1\r\n\r\n",
                false,
            ),
            (b"HTTP/1.1 404 Not Found\r\n\r\n", false),
            (b"HTTP/1.1 400 Bad Request\r\n", false),
            (b"\x89PNG\r\n\r\n", false),
            (b"", false),
        ] {
            assert_eq!(
                is_bare(bytes),
                expected,
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    #[tokio::test]
    async fn what_is_said_instead_is_written_whole_through_a_narrow_pipe() {
        let limits = ServeLimits::default();
        let mut exchange = Exchange::new(&limits, Arc::new(RefusalLog::new(1)));
        let (mut near, mut far) = tokio::io::duplex(16);
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\ndate: today\r\n\r\n";
        let writing = tokio::spawn(async move {
            std::future::poll_fn(|cx| exchange.poll_write(&mut near, cx, bare)).await
        });
        let mut read = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut read)
            .await
            .unwrap();
        assert_eq!(writing.await.unwrap().unwrap(), bare.len());
        let text = String::from_utf8(read).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"),
            "{head}"
        );
        assert!(head.contains("\r\ndate: today"), "{head}");
        assert!(
            head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())),
            "{head}"
        );
        assert!(body.contains("32768 bytes or 64 fields"), "{body}");
    }
}
