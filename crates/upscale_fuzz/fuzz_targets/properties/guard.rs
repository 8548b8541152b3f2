//! Whatever URL a customer sends, whatever it redirects to and whatever its name resolves to: what is accepted never
//! leads to a forbidden address. The fuzz target `guard` and a bounded run in the worker's tests hold the guard to it.
//! The ranges are written down here a second time, as plain comparisons.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use upscale_core::SourceUrl;
use upscale_worker::{Guard, Ipv6Net, redirected};

/// Address bytes taken from the end of the input for each answer of the resolver.
const ANSWER_BYTES: usize = 17;

/// The first line is the URL, the second a redirect, the rest what the name resolves to.
pub(crate) fn check(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |&byte| byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (url, location) = (text(), text());
    check_answers(parts.next().unwrap_or_default());
    let Ok(source) = SourceUrl::parse(&url) else {
        return;
    };
    assert_eq!(source.as_str(), url);
    check_target(source.url().as_str());
    if let Ok(next) = redirected(source.url(), &location) {
        check_target(next.as_str());
    }
}

/// What is left to resolve is `https`, port 443, without user info, at a name that no resolver takes for an address.
fn check_target(url: &str) {
    let Some(rest) = url.strip_prefix("https://") else {
        panic!("accepted: {url}");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.strip_suffix(":443").unwrap_or(authority);
    let is_name = host
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte));
    assert!(is_name && host.contains('.'), "accepted: {url}");
    // inet_aton(3) takes one to four decimal, octal or hexadecimal numbers of any length for an address.
    let last = host.rsplit('.').next().unwrap_or_default();
    let (digits, radix) = match last.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (last, 10),
    };
    let is_number = digits.chars().all(|character| character.is_digit(radix));
    assert!(!is_number, "accepted: {url}");
    for inside in [
        "localhost",
        "local",
        "internal",
        "home.arpa",
        "lan",
        "corp",
        "home",
    ] {
        assert!(
            host != inside && !host.ends_with(&format!(".{inside}")),
            "accepted: {url}"
        );
    }
}

fn check_answers(bytes: &[u8]) {
    let answers: Vec<IpAddr> = bytes.chunks_exact(ANSWER_BYTES).map(address).collect();
    let prefix = "2a00:64::/96".parse::<Ipv6Net>();
    let guard = Guard {
        nat64_prefixes: prefix.into_iter().collect(),
        ..Guard::default()
    };
    if guard.check(&answers, &[]).is_ok() {
        for answer in answers {
            assert!(!is_forbidden(answer), "accepted: {answer}");
        }
    }
}

fn address(bytes: &[u8]) -> IpAddr {
    let number = bytes[1..]
        .iter()
        .fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
    match bytes[0] % 2 {
        0 => IpAddr::V4(Ipv4Addr::from(number as u32)),
        _ => IpAddr::V6(Ipv6Addr::from(number)),
    }
}

fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_forbidden_v4(u32::from(v4)),
        IpAddr::V6(v6) => {
            let number = u128::from(v6);
            // 2a00:64::/96 translates to IPv4.
            if number >> 32 == 0x2a00_0064_u128 << 64 {
                return is_forbidden_v4(number as u32);
            }
            let first = number >> 96;
            !(0x2000_0000..0x4000_0000).contains(&first)
                || (0x2001_0000..0x2001_0200).contains(&first)
                || first == 0x2001_0db8
                || first >> 16 == 0x2002
                || (0x3fff_0000..0x3fff_1000).contains(&first)
        }
    }
}

fn is_forbidden_v4(address: u32) -> bool {
    let [a, b, c, _] = address.to_be_bytes();
    matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}
