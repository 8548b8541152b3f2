//! From which address a request came, as far as it can be believed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use ipnet::{IpNet, Ipv4Net};

use crate::api_state::ApiState;

/// Bits before the IPv4 address in a mapped one, `::ffff:0:0/96` (RFC 4291 section 2.5.5.2).
const MAPPED_BITS: u8 = 96;

/// The other end of the connection; `serve` puts it on every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The user of this machine at the other end of a Unix socket, as the kernel names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerUser(pub(crate) u32);

/// Reads one proxy: an address or a range such as `10.0.0.0/8`. Mapped IPv4 (`::ffff:10.0.0.0/104`) is IPv4, as addresses
/// of connections are.
///
/// # Errors
/// A sentence, when it is neither.
pub fn parse_trusted_proxy(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let net = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text
            .parse::<IpNet>()
            .map_err(|_| format!("{text} is neither an address nor a range such as 10.0.0.0/8"))?,
    };
    Ok(without_mapping(net).trunc())
}

fn without_mapping(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let inside = v6.prefix_len().checked_sub(MAPPED_BITS);
    let mapped = v6.addr().to_ipv4_mapped().zip(inside);
    let v4 = mapped.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    v4.map_or(net, IpNet::V4)
}

/// The network whose connections are counted together; none for a trusted proxy, which brings everyone's.
pub(crate) fn connecting_network(peer: SocketAddr, trusted_proxies: &[IpNet]) -> Option<IpAddr> {
    let address = peer.ip().to_canonical();
    (!is_trusted(&address, trusted_proxies)).then(|| by_network(address))
}

fn is_trusted(address: &IpAddr, trusted_proxies: &[IpNet]) -> bool {
    trusted_proxies.iter().any(|net| net.contains(address))
}

/// The client's address, for handlers whose permits are counted by it.
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<ApiState> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &ApiState,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self(client_address(parts, &state.limits.trusted_proxies)))
    }
}

/// The client's address: the peer's, or, when the peer is a trusted proxy, the last address in
/// `X-Forwarded-For` that is not one itself. IPv6 counts by /64: one customer holds a whole one.
pub(crate) fn client_address(parts: &Parts, trusted_proxies: &[IpNet]) -> IpAddr {
    let peer = parts
        .extensions
        .get::<PeerAddress>()
        .map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0.ip());
    let peer = peer.to_canonical();
    if !is_trusted(&peer, trusted_proxies) {
        return by_network(peer);
    }
    let forwarded = forwarded_addresses(&parts.headers);
    let client = forwarded
        .into_iter()
        .rev()
        .find(|address| !is_trusted(address, trusted_proxies));
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
        client_address(&parts, &[parse_trusted_proxy(PROXY).unwrap()]).to_string()
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
    #[test]
    fn a_proxy_is_an_address_or_a_range_and_mapped_ipv4_is_ipv4() {
        for (text, inside, outside) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("10.1.2.3/8", "10.255.0.1", "11.0.0.1"),
            ("0.0.0.0/0", "192.0.2.1", "2001:db8::1"),
            ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.0/104", "10.7.7.7", "11.0.0.1"),
            ("2001:db8::/32", "2001:db8:7::1", "2001:db9::1"),
            (" 2001:db8::1 ", "2001:db8::1", "2001:db8::2"),
        ] {
            let nets = [parse_trusted_proxy(text).unwrap()];
            let trusts = |address: &str| {
                let address: IpAddr = address.parse().unwrap();
                connecting_network(SocketAddr::new(address, 1), &nets).is_none()
            };
            assert!(trusts(inside), "{text} {inside}");
            assert!(!trusts(outside), "{text} {outside}");
        }
        // A listener on [::] sees IPv4 mapped.
        let nets = [parse_trusted_proxy("10.0.0.0/8").unwrap()];
        let mapped = SocketAddr::new("::ffff:10.9.9.9".parse().unwrap(), 1);
        assert_eq!(connecting_network(mapped, &nets), None);
        for wrong in [
            "",
            "10.0.0.1/33",
            "proxy.example.org",
            "10.0.0.0/8/8",
            "10.0.0.1:80",
        ] {
            let error = parse_trusted_proxy(wrong).unwrap_err();
            assert!(error.contains("10.0.0.0/8"), "{error}");
        }
    }

    #[test]
    fn connections_count_by_ipv4_address_and_by_half_of_an_ipv6_one() {
        for (peer, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            let peer = SocketAddr::new(peer.parse().unwrap(), 1);
            let network = connecting_network(peer, &[]).unwrap();
            assert_eq!(network.to_string(), expected);
        }
    }
}
