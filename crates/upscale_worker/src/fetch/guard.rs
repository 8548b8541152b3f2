//! Which addresses may be connected to at all: the public internet, minus what the operator and this host
//! keep to themselves. Pure: names, resolving and connecting are elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 ranges that are not the public internet (IANA special-purpose registry, RFC 6890 and successors).
const V4_DENIED: [([u8; 4], u8); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Azure's platform address: it answers inside every virtual machine and is nowhere on the public internet.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];
/// All of global unicast IPv6; whatever lies outside (loopback, mapped, link-local, ULA, NAT64, multicast)
/// is refused by not being in it.
const V6_ALLOWED: ([u16; 2], u8) = ([0x2000, 0], 3);
/// Parts of it that lead elsewhere: protocol assignments with Teredo, documentation, 6to4, documentation.
const V6_DENIED: [([u16; 2], u8); 4] = [
    ([0x2001, 0x0000], 23),
    ([0x2001, 0x0db8], 32),
    ([0x2002, 0x0000], 16),
    ([0x3fff, 0x0000], 20),
];

/// The rules of one worker.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The operator's own ranges, refused as well.
    pub denied: Vec<IpNet>,
    /// Prefixes behind which this network's NAT64 translates: the IPv4 address inside is judged instead.
    pub nat64_prefixes: Vec<Ipv6Net>,
}

/// An address that may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forbidden(pub IpAddr);

impl Guard {
    /// All of a name's addresses or none: one forbidden address refuses the name, in whatever place it
    /// stands. `own` are the addresses of this host.
    ///
    /// # Errors
    /// [`Forbidden`] with the first such address.
    pub fn check(&self, addresses: &[IpAddr], own: &[IpAddr]) -> Result<(), Forbidden> {
        let forbidden = addresses
            .iter()
            .find(|address| own.contains(address) || !self.is_public(**address));
        forbidden.map_or(Ok(()), |&address| Err(Forbidden(address)))
    }

    fn is_public(&self, address: IpAddr) -> bool {
        if self.denied.iter().any(|net| net.contains(&address)) {
            return false;
        }
        match address {
            IpAddr::V4(v4) => is_public_v4(v4),
            IpAddr::V6(v6) => match self.translated(v6) {
                Some(v4) => self.is_public(IpAddr::V4(v4)),
                None => is_public_v6(v6),
            },
        }
    }

    fn translated(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let prefix = self
            .nat64_prefixes
            .iter()
            .find(|prefix| prefix.contains(&address))?;
        Some(embedded_v4(address, prefix.prefix_len()))
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !V4_DENIED
        .iter()
        .any(|&(start, length)| net_v4(start, length).contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    net_v6(V6_ALLOWED).contains(&address)
        && !V6_DENIED.iter().any(|&net| net_v6(net).contains(&address))
}

fn net_v4(start: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(start.into(), length)
}

fn net_v6((start, length): ([u16; 2], u8)) -> Ipv6Net {
    Ipv6Net::new_assert([start[0], start[1], 0, 0, 0, 0, 0, 0].into(), length)
}

/// RFC 6052, section 2.2: the four bytes follow the prefix and jump over byte 8, which is reserved.
fn embedded_v4(address: Ipv6Addr, prefix_length: u8) -> Ipv4Addr {
    let bytes = address.octets();
    let first = usize::from(prefix_length / 8);
    let mut places = (first..bytes.len()).filter(|&place| place != 8);
    let mut next = || places.next().map_or(0, |place| bytes[place]);
    Ipv4Addr::new(next(), next(), next(), next())
}
