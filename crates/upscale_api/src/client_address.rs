//! From which address a request came, as far as it can be believed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, request::Parts};

/// The other end of the connection; `serve` puts it on every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The user of this machine at the other end of a Unix socket, as the kernel names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerUser(pub(crate) u32);

/// The client's address: the peer's, or, when the peer is a trusted proxy, the last address in
/// `X-Forwarded-For` that is not one itself. IPv6 counts by /64: one customer holds a whole one.
pub(crate) fn client_address(parts: &Parts, trusted_proxies: &[IpAddr]) -> IpAddr {
    let peer = parts
        .extensions
        .get::<PeerAddress>()
        .map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0.ip());
    let peer = peer.to_canonical();
    if !trusted_proxies.contains(&peer) {
        return by_network(peer);
    }
    let forwarded = forwarded_addresses(&parts.headers);
    let client = forwarded
        .into_iter()
        .rev()
        .find(|address| !trusted_proxies.contains(address));
    by_network(client.unwrap_or(peer))
}

/// What stands after a malformed entry only: whatever stands before it was not written by our proxy.
fn forwarded_addresses(headers: &HeaderMap) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for value in headers.get_all("x-forwarded-for") {
        for entry in value.to_str().unwrap_or("?").split(',') {
            match entry.trim().parse::<IpAddr>() {
                Ok(address) => addresses.push(address.to_canonical()),
                Err(_) => addresses.clear(),
            }
        }
    }
    addresses
}

fn by_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn seen_from(peer: &str, forwarded: &[&str]) -> String {
        let mut request = axum::http::Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let peer = SocketAddr::new(peer.parse().unwrap(), 1);
        parts.extensions.insert(PeerAddress(peer));
        client_address(&parts, &[PROXY.parse().unwrap()]).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_about_the_address() {
        for (peer, forwarded, expected) in [
            ("192.0.2.7", &["198.51.100.1"][..], "192.0.2.7"),
            (PROXY, &["198.51.100.1"], "198.51.100.1"),
            (PROXY, &["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            (
                PROXY,
                &["203.0.113.9", "198.51.100.1, 10.0.0.1"],
                "198.51.100.1",
            ),
            (PROXY, &["198.51.100.1, nonsense"], PROXY),
            (PROXY, &[], PROXY),
            ("::ffff:192.0.2.7", &[], "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::"),
        ] {
            assert_eq!(seen_from(peer, forwarded), expected, "{peer} {forwarded:?}");
        }
    }
}
