//! What one listener's connections may take, of time and of room.

use std::time::Duration;

use ipnet::IpNet;

/// Bounds of one listener's connections; the defaults are what the service runs with.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// A request's head has arrived this long after its first byte, the first one after connecting.
    pub header_timeout: Duration,
    /// A connection may rest this long between requests.
    pub idle_timeout: Duration,
    /// A client that takes no byte of its answer for this long is gone.
    pub stall_timeout: Duration,
    /// An answer is read to its end within this.
    pub answer_timeout: Duration,
    /// Header fields of one request.
    pub headers_max: usize,
    /// Bytes of one request's head.
    pub header_bytes_max: usize,
    /// Open connections; beyond, the one that waited longest for its client gives way. With
    /// 1,024, two thousand dribblers turned over 2,700 connections a second, and honest clients'
    /// first packets were lost in the system's full queue and sent again a second later.
    pub connections_max: usize,
    /// Open connections of one address (IPv6: /64), which may hold an eighth of what is free and at most this; none where
    /// addresses are not told apart.
    pub address_connections_max: Option<usize>,
    /// Proxies, which bring everyone's connections and are not held to an address's share.
    pub trusted_proxies: Vec<IpNet>,
    /// A connection this young gives way to no one but its own address; a newcomer waits as long for a permit before it is
    /// refused.
    pub newcomer_time: Duration,
    /// Requests under way at shutdown have this long to end.
    pub drain_timeout: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(20),
            answer_timeout: Duration::from_secs(600),
            headers_max: 64,
            header_bytes_max: 32 * 1024,
            connections_max: 4_096,
            address_connections_max: Some(512),
            trusted_proxies: Vec::new(),
            newcomer_time: Duration::from_millis(250),
            drain_timeout: Duration::from_secs(25),
        }
    }
}

impl ServeLimits {
    /// How often overdue connections are looked for: limits are kept to a quarter.
    pub(crate) fn look_every(&self) -> Duration {
        (self.header_timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}
