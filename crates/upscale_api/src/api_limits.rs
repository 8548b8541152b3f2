//! What one request to the API may take, and how often one caller may come.

use std::time::Duration;

use ipnet::IpNet;

use crate::permits::PermitLimits;

/// What one request may take and how often one caller may come; the defaults are the contract's.
#[derive(Debug, Clone)]
pub struct ApiLimits {
    /// A request is answered after this long, with 504 when the store was not done.
    pub request_timeout: Duration,
    /// A body has arrived after this long or the request ends with 400.
    pub body_timeout: Duration,
    /// Requests answered and bodies awaited at a time, by class of caller; beyond, 503.
    pub permits: PermitLimits,
    /// Failing authentications a minute from one address before 429 replaces 401. A valid key is
    /// never refused for what others at its address do: many customers may share a proxy.
    pub failing_auth_per_minute: u32,
    /// Reads a second of one account before 429; ten times as many at once. 20 active tasks polled every
    /// 3 seconds are 7 a second.
    pub reads_per_second: u32,
    /// Proxies whose `X-Forwarded-For` is believed when the client's address is wanted; none by default.
    pub trusted_proxies: Vec<IpNet>,
    /// Lines a second that the log gets of refusals of one kind; a count of the others follows.
    pub refusal_lines_per_second: u32,
}

/// Failing authentications a minute from one address, unless configured otherwise.
pub const FAILING_AUTH_PER_MINUTE: u32 = 300;
/// Reads a second of one account, unless configured otherwise.
pub const READS_PER_SECOND: u32 = 100;
/// Lines a second that the log gets of refusals of one kind.
pub(crate) const REFUSAL_LINES_PER_SECOND: u32 = 20;

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(5),
            permits: PermitLimits::default(),
            failing_auth_per_minute: FAILING_AUTH_PER_MINUTE,
            reads_per_second: READS_PER_SECOND,
            trusted_proxies: Vec::new(),
            refusal_lines_per_second: REFUSAL_LINES_PER_SECOND,
        }
    }
}
