//! Reads the bodies of requests: up to a size, until a deadline, and no slower than a rate where the sender is unknown.
//! A body that comes at once needs no permit; one that makes us wait takes one of its class.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};
use upscale_core::InvalidRequest;

use crate::{
    connection::Connection,
    permits::{Full, Owner, Pool},
};

/// A body that is complete within this was sent with its head.
const AT_ONCE: Duration = Duration::from_millis(20);
/// Who finds no permit is told so after this: a crowd that comes back at once would turn as fast as we refuse it, and
/// holding a connection costs less than another head.
const REFUSED_AFTER: Duration = Duration::from_secs(1);
/// Bytes a second that a caller without a key keeps up after the first second: 16 KiB, the largest form, within the
/// default deadline of 5 s.
const UNKNOWN_BYTES_PER_SECOND: u32 = 4 * 1_024;

/// Whose body it is and what it may take.
pub(crate) struct Allowance<'a> {
    pub(crate) bytes_max: usize,
    pub(crate) deadline: Duration,
    /// Where the body waits when it does not come at once.
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) owner: Owner,
    /// Whether the caller has said who they are: then there is no rate to keep, and others go first when connections
    /// are short.
    pub(crate) is_known: bool,
    /// May be closed while it makes us wait; none where no front brought the request.
    pub(crate) connection: Option<Arc<Connection>>,
}

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoBody {
    TooLarge,
    /// It came too slowly, or too many others came while we waited.
    TooSlow,
    /// Broken off or badly framed.
    Broken,
    NoPermit(Full),
}

/// The whole body.
pub(crate) async fn read(body: Body, allowance: Allowance<'_>) -> Result<Bytes, NoBody> {
    if body.size_hint().lower() > allowance.bytes_max as u64 {
        return Err(NoBody::TooLarge);
    }
    let mut reading = Reading::new(body, &allowance);
    if let Ok(done) = timeout(AT_ONCE.min(allowance.deadline), reading.read_to_end()).await {
        return done;
    }
    let connection = allowance.connection.as_ref();
    let _waiting = connection.map(|one| one.begin_waiting(allowance.is_known));
    let permit = match allowance.pool.take_or_displace(allowance.owner) {
        Ok(permit) => permit,
        Err(full) => {
            tokio::time::sleep(REFUSED_AFTER.min(allowance.deadline)).await;
            return Err(NoBody::NoPermit(full));
        }
    };
    tokio::select! {
        done = reading.read_to_end() => done,
        () = permit.displaced() => Err(NoBody::TooSlow),
    }
}

struct Reading {
    body: Body,
    read: Vec<u8>,
    bytes_max: usize,
    started: Instant,
    deadline: Instant,
    has_rate: bool,
}

impl Reading {
    fn new(body: Body, allowance: &Allowance<'_>) -> Self {
        let started = Instant::now();
        Self {
            body,
            read: Vec::new(),
            bytes_max: allowance.bytes_max,
            started,
            deadline: started + allowance.deadline,
            has_rate: !allowance.is_known,
        }
    }

    /// Keeps what it has when it is dropped and called again.
    async fn read_to_end(&mut self) -> Result<Bytes, NoBody> {
        loop {
            let frame = timeout_at(self.next_due(), self.body.frame()).await;
            match frame.map_err(|_| NoBody::TooSlow)? {
                None => return Ok(std::mem::take(&mut self.read).into()),
                Some(Err(_)) => return Err(NoBody::Broken),
                Some(Ok(frame)) => self.add(frame.data_ref())?,
            }
        }
    }

    fn add(&mut self, data: Option<&Bytes>) -> Result<(), NoBody> {
        let data = data.map_or(&[][..], |data| &data[..]);
        if data.len() > self.bytes_max - self.read.len() {
            return Err(NoBody::TooLarge);
        }
        self.read.extend_from_slice(data);
        Ok(())
    }

    /// When the next byte has to be there: what has come buys time, and never beyond the deadline.
    fn next_due(&self) -> Instant {
        if !self.has_rate {
            return self.deadline;
        }
        let bytes = u32::try_from(self.read.len()).unwrap_or(u32::MAX);
        let bought = Duration::from_secs(bytes.into()) / UNKNOWN_BYTES_PER_SECOND;
        self.deadline
            .min(self.started + Duration::from_secs(1) + bought)
    }
}

/// The connection that brought a request; none where no front did, as in unit tests.
pub(crate) fn connection_of(parts: &Parts) -> Option<Arc<Connection>> {
    parts.extensions.get::<Arc<Connection>>().cloned()
}

/// The same of a whole request.
pub(crate) fn connection_of_request(request: &Request) -> Option<Arc<Connection>> {
    request.extensions().get::<Arc<Connection>>().cloned()
}

/// No body is decompressed here: one that is packed is refused by name, or it would be called no JSON and no form.
pub(crate) fn check_not_encoded(headers: &HeaderMap) -> Result<(), InvalidRequest> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_plain = |value: &[u8]| value.eq_ignore_ascii_case(b"identity");
    if codings.all(|value| is_plain(value.as_bytes())) {
        return Ok(());
    }
    Err(InvalidRequest::ContentEncoding)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};

    use super::*;
    use crate::permits::{PermitLimits, Permits};

    /// `count` pieces of `size` bytes, one every `every`, and no end if `is_open`.
    fn dribble(count: usize, size: usize, every: Duration, is_open: bool) -> Body {
        let pieces = stream::iter(0..count).then(move |_| async move {
            tokio::time::sleep(every).await;
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; size]))
        });
        match is_open {
            true => Body::from_stream(pieces.chain(stream::pending())),
            false => Body::from_stream(pieces),
        }
    }

    fn allowance(permits: &Permits, deadline: Duration, is_unknown: bool) -> Allowance<'_> {
        Allowance {
            bytes_max: 16 * 1_024,
            deadline,
            pool: &permits.unknown_bodies,
            owner: Owner::Operator,
            is_known: !is_unknown,
            connection: None,
        }
    }

    #[test]
    fn a_body_of_an_unknown_caller_keeps_up_a_rate_and_one_of_a_customer_a_deadline() {
        let permits = Permits::new(&PermitLimits::default());
        let due = |bytes: usize, is_unknown: bool| {
            let allowance = allowance(&permits, Duration::from_secs(5), is_unknown);
            let mut reading = Reading::new(Body::empty(), &allowance);
            reading.add(Some(&vec![b'x'; bytes].into())).unwrap();
            reading
                .next_due()
                .duration_since(reading.started)
                .as_millis()
        };
        for (bytes, of_an_unknown_caller) in [
            (0, 1_000),
            (1, 1_000),
            (4_096, 2_000),
            (12 * 1_024, 4_000),
            (16 * 1_024, 5_000),
        ] {
            assert_eq!(due(bytes, true), of_an_unknown_caller, "{bytes}");
            assert_eq!(due(bytes, false), 5_000, "{bytes}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_too_slow_or_broken_is_none() {
        let permits = Permits::new(&PermitLimits::default());
        let soon = Duration::from_millis(100);
        for is_unknown in [true, false] {
            let read_one = |body| read(body, allowance(&permits, soon, is_unknown));
            let endless = dribble(0, 1, soon, true);
            assert_eq!(read_one(endless).await, Err(NoBody::TooSlow));
            let large = dribble(5, 4_096, Duration::ZERO, false);
            assert_eq!(read_one(large).await, Err(NoBody::TooLarge));
            let announced = Body::from(vec![0; 16 * 1_024 + 1]);
            assert_eq!(read_one(announced).await, Err(NoBody::TooLarge));
            let pieces = [Ok(Bytes::from("x")), Err(std::io::Error::other("gone"))];
            let broken = Body::from_stream(stream::iter(pieces));
            assert_eq!(read_one(broken).await, Err(NoBody::Broken));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_there_needs_no_permit_and_one_that_is_not_takes_one() {
        let limits = PermitLimits {
            unknown_bodies: 1,
            ..PermitLimits::default()
        };
        let permits = Permits::new(&limits);
        let taken = permits.unknown_bodies.take(Owner::Stripe).ok();
        let wait_max = Duration::from_secs(60);
        let read_one = |body| read(body, allowance(&permits, wait_max, false));
        assert_eq!(read_one(Body::from("whole")).await, Ok("whole".into()));
        let late = || dribble(1, 1, 10 * AT_ONCE, false);
        let refused = read_one(late()).await;
        assert!(matches!(refused, Err(NoBody::NoPermit(_))), "{refused:?}");
        drop(taken);
        assert_eq!(read_one(late()).await, Ok("x".into()));
    }

    #[test]
    fn a_packed_body_is_refused_by_name() {
        for (codings, is_plain) in [
            (&[][..], true),
            (&["identity"], true),
            (&["Identity", "identity"], true),
            (&["gzip"], false),
            (&["identity", "br"], false),
            (&["gzip, identity"], false),
            (&[""], false),
        ] {
            let mut headers = HeaderMap::new();
            for coding in codings {
                headers.append(header::CONTENT_ENCODING, coding.parse().unwrap());
            }
            assert_eq!(check_not_encoded(&headers).is_ok(), is_plain, "{codings:?}");
        }
    }
}
