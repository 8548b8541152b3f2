//! How long to wait before the next try.

use std::time::Duration;

use crate::{Error, ErrorKind};

/// First wait, before jitter.
const BASE: Duration = Duration::from_millis(500);
/// Longest wait without a `Retry-After`.
const CAP: Duration = Duration::from_secs(10);

/// The wait after the given failed try (0 is the first): what the service asks for, else exponential with full jitter
/// (Brooker, "Exponential Backoff and Jitter", 2015), so that clients that failed together do not come back together.
pub(crate) fn wait_after(tries: u32, retry_after: Option<Duration>) -> Result<Duration, Error> {
    let jitter = random_share()?;
    if let Some(asked) = retry_after {
        // Up to a second more, for all who were refused in one window are told the same moment.
        return Ok(asked + Duration::from_secs(1).mul_f64(jitter));
    }
    let ceiling = BASE.saturating_mul(1 << tries.min(10)).min(CAP);
    Ok(ceiling.mul_f64(jitter))
}

/// Uniform in [0, 1).
fn random_share() -> Result<f64, Error> {
    let bits = getrandom::u32().map_err(|error| ErrorKind::Setup(error.to_string()))?;
    Ok(f64::from(bits) / 4_294_967_296.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn waits_grow_to_a_cap_and_differ() {
        for tries in 0..64 {
            let ceiling = (0.5 * f64::from(tries.min(6)).exp2()).min(10.0);
            let waits: Vec<f64> = (0..50)
                .map(|_| wait_after(tries, None).unwrap().as_secs_f64())
                .collect();
            assert!(waits.iter().all(|&wait| wait <= ceiling), "{tries}");
            assert!(waits.iter().any(|&wait| wait > ceiling / 2.0), "{tries}");
        }
    }

    #[test]
    fn what_the_service_asks_for_is_never_shortened() {
        let asked = Duration::from_secs(46);
        let waited = wait_after(3, Some(asked)).unwrap();
        assert!(waited >= asked && waited < asked + Duration::from_secs(1));
    }
}
