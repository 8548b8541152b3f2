//! One request and its answer on a fresh connection: what is asked, which answers count, and how the body
//! is counted while it arrives.

use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{
    HeaderMap, Request, Response, StatusCode, Version,
    body::{Body, Incoming},
    client::conn::http1,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HOST, LOCATION, RETRY_AFTER,
        TRANSFER_ENCODING, USER_AGENT,
    },
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};
use tokio_rustls::client::TlsStream;
use upscale_core::{Clock, limits::SOURCE_BYTES_MAX};
use url::Url;

use super::{FetchBudgets, Progress, Room, progress::Standing};
use crate::AttemptError;

const WHO_WE_ARE: &str = concat!(
    "upscale/",
    env!("CARGO_PKG_VERSION"),
    " (image source fetch)"
);
/// Room for a body before its bytes arrive, whatever length it claims.
const FIRST_CAPACITY: u64 = 256 * 1024;

/// What a source answers when it does not fail.
#[derive(Debug)]
pub(super) enum Answer {
    /// 200 and the whole body.
    Source(Bytes),
    /// A redirect, unjudged.
    Elsewhere(String),
}

/// Asks for `target` and reads the answer to its end.
pub(super) async fn exchange(
    stream: TlsStream<TcpStream>,
    target: &Url,
    budgets: &FetchBudgets,
    room: &mut Room,
    progress: &Progress,
) -> Result<Answer, AttemptError> {
    // Dropped with this future, and the connection with it.
    let mut connection = JoinSet::new();
    let headed = timeout(
        budgets.headers,
        ask(stream, target, budgets, &mut connection),
    )
    .await;
    let response = headed.map_err(|_| {
        AttemptError::transient(format!(
            "The image host did not respond within {:?}.",
            budgets.headers
        ))
    })??;
    match response.status() {
        StatusCode::OK => {
            let source = read_source(response, budgets, room, progress).await;
            source.map(Answer::Source)
        }
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => location(response.headers()).map(Answer::Elsewhere),
        status => Err(refusal(status, response.headers())),
    }
}

async fn ask(
    stream: TlsStream<TcpStream>,
    target: &Url,
    budgets: &FetchBudgets,
    connection: &mut JoinSet<hyper::Result<()>>,
) -> Result<Response<Incoming>, AttemptError> {
    let mut builder = http1::Builder::new();
    builder
        .max_header_size(budgets.header_bytes_max)
        // One byte of room above the head, so that a head of exactly the limit can be parsed.
        .max_buf_size(budgets.header_bytes_max.max(8 * 1024) + 1);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, driven) = handshake.map_err(|error| http_failure(&error, budgets))?;
    connection.spawn(driven);
    sender
        .send_request(request(target)?)
        .await
        .map_err(|error| http_failure(&error, budgets))
}

/// No cookie, no referer, nothing of the customer's but the path and query they gave.
fn request(target: &Url) -> Result<Request<Empty<Bytes>>, AttemptError> {
    let path_and_query = match target.query() {
        Some(query) => format!("{}?{query}", target.path()),
        None => target.path().to_owned(),
    };
    let built = Request::get(path_and_query)
        .version(Version::HTTP_11)
        .header(HOST, target.host_str().unwrap_or_default())
        .header(USER_AGENT, WHO_WE_ARE)
        // Naming formats would invite image hosts to send another, smaller picture than the one named.
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .body(Empty::new());
    built.map_err(|error| {
        AttemptError::permanent("The image URL cannot be requested.").with_detail(error)
    })
}

fn location(headers: &HeaderMap) -> Result<String, AttemptError> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    location
        .map(str::to_owned)
        .ok_or_else(|| AttemptError::permanent("The image URL redirects without a valid location."))
}

fn refusal(status: StatusCode, headers: &HeaderMap) -> AttemptError {
    let message = format!("The image URL returned {}.", status.as_u16());
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        AttemptError::transient(message).not_before(retry_after(headers))
    } else {
        AttemptError::permanent(message)
    }
}

/// RFC 9110, section 10.2.3: seconds, or the moment by this machine's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    let now = u64::try_from(Clock::System.now().micros()).ok()?;
    let moment = moment.duration_since(UNIX_EPOCH).ok()?;
    Some(moment.saturating_sub(Duration::from_micros(now)))
}

fn http_failure(error: &hyper::Error, budgets: &FetchBudgets) -> AttemptError {
    let failure = if error.is_parse_too_large() {
        AttemptError::permanent(format!(
            "The response of the image host has more than {} bytes or 100 lines of headers.",
            budgets.header_bytes_max
        ))
    } else if error.is_parse() {
        AttemptError::permanent("The response of the image host is not valid HTTP.")
    } else {
        AttemptError::transient("The image host closed the connection before it responded.")
    };
    failure.with_detail(error)
}

async fn read_source(
    response: Response<Incoming>,
    budgets: &FetchBudgets,
    room: &mut Room,
    progress: &Progress,
) -> Result<Bytes, AttemptError> {
    check_encodings(response.headers())?;
    let claimed = claimed_length(response.headers());
    check_size(claimed.unwrap_or(0))?;
    progress.is_at(Standing::Receiving(0, claimed));
    let mut body = response.into_body();
    let capacity = claimed.unwrap_or(FIRST_CAPACITY).min(FIRST_CAPACITY);
    let mut source = Vec::with_capacity(capacity as usize);
    let started = Instant::now();
    while let Some(piece) = next_piece(&mut body, budgets, source.len()).await? {
        check_size(source.len() as u64 + piece.len() as u64)?;
        room.reach(source.len() + piece.len())?;
        source.extend_from_slice(&piece);
        progress.is_at(Standing::Receiving(source.len() as u64, claimed));
        check_pace(source.len() as u64, started.elapsed(), &body, budgets)?;
    }
    if source.is_empty() {
        return Err(AttemptError::permanent("The image file is empty: 0 bytes."));
    }
    Ok(source.into())
}

/// None at the end; trailers are passed over.
async fn next_piece(
    body: &mut Incoming,
    budgets: &FetchBudgets,
    received: usize,
) -> Result<Option<Bytes>, AttemptError> {
    let frame = timeout(budgets.idle, body.frame()).await.map_err(|_| {
        AttemptError::transient(format!(
            "The image host sent nothing for {:?} after {received} bytes.",
            budgets.idle
        ))
    })?;
    match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => Err(AttemptError::transient(format!(
            "The download of the image broke off after {received} bytes."
        ))
        .with_detail(error)),
    }
}

fn check_encodings(headers: &HeaderMap) -> Result<(), AttemptError> {
    let is_other = |value: &[u8], allowed: &str| {
        !value
            .split(|&byte| byte == b',')
            .all(|word| word.trim_ascii().eq_ignore_ascii_case(allowed.as_bytes()))
    };
    let encoded = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|value| is_other(value.as_bytes(), "identity"));
    let transferred = headers
        .get_all(TRANSFER_ENCODING)
        .iter()
        .any(|value| is_other(value.as_bytes(), "chunked"));
    if encoded || transferred {
        return Err(AttemptError::permanent(
            "The image host compresses the transfer although that was declined.",
        ));
    }
    Ok(())
}

/// Hyper refuses several or malformed lengths before this.
fn claimed_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn check_size(bytes: u64) -> Result<(), AttemptError> {
    if bytes <= SOURCE_BYTES_MAX {
        return Ok(());
    }
    Err(AttemptError::permanent(format!(
        "The image file is too large: {bytes} bytes or more, at most {SOURCE_BYTES_MAX}."
    )))
}

fn check_pace(
    received: u64,
    elapsed: Duration,
    body: &Incoming,
    budgets: &FetchBudgets,
) -> Result<(), AttemptError> {
    let needed = elapsed.as_secs_f64() * budgets.bytes_per_second_min as f64;
    if elapsed <= budgets.rate_grace || received as f64 >= needed || body.is_end_stream() {
        return Ok(());
    }
    Err(AttemptError::transient(format!(
        "The image host is too slow: {received} bytes in {:.1} s, at least {} bytes a second are needed.",
        elapsed.as_secs_f64(),
        budgets.bytes_per_second_min
    )))
}
