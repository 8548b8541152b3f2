//! The corpus of addresses and names, read from `tests/guard_cases.tsv`: pure parsing, redirects, and a
//! resolver's answers. The same table is run in a network namespace by `tests/worker/black_box.rs`.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use proptest::prelude::*;
use upscale_core::{AttemptFailure, SourceUrl, limits::SOURCE_URL_BYTES_MAX};
use url::Url;

use super::{guard::Guard, lookup::Lookups, redirected, resolve::Routes};

const TABLE: &str = include_str!("../../tests/guard_cases.tsv");

fn routes() -> Routes {
    Routes {
        mapped: HashMap::new(),
        guard: Guard {
            denied: vec!["52.1.0.0/16".parse().unwrap()],
            nat64_prefixes: vec!["2a00:64::/96".parse().unwrap()],
        },
        lookups: Lookups::default(),
        budget: Duration::from_secs(3),
    }
}

/// The cases of one level: input and whether it is refused. `{repeat:x:n}` stands for `x` n times.
fn cases(level: &str) -> Vec<(String, bool)> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let of_level = fields.filter(|fields| fields[0] == level);
    let case = |fields: Vec<&str>| (expanded(fields[1]), refused(fields[2]));
    of_level.map(case).collect()
}

fn refused(word: &str) -> bool {
    match word {
        "refuse" => true,
        "accept" => false,
        other => panic!("{other:?} is neither refuse nor accept"),
    }
}

fn expanded(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{repeat:") else {
        return text.replace("{space}", " ").replace("{tab}", "\t");
    };
    let (what, rest) = rest.split_once(':').unwrap();
    let (count, after) = rest.split_once('}').unwrap();
    before.to_owned() + &what.repeat(count.parse().unwrap()) + after
}

fn assert_all(level: &str, at_least: usize, is_refused: impl Fn(&str) -> bool) {
    let cases = cases(level);
    assert!(cases.len() >= at_least, "{level}: {} cases", cases.len());
    let wrong: Vec<&String> = cases
        .iter()
        .filter(|(input, refused)| is_refused(input) != *refused)
        .map(|(input, _)| input)
        .collect();
    assert!(wrong.is_empty(), "{level}: wrongly judged: {wrong:#?}");
}

#[test]
fn the_table_has_at_least_150_cases() {
    let all: usize = ["parse", "redirect", "resolve"]
        .map(|level| cases(level).len())
        .iter()
        .sum();
    assert!(all >= 150, "{all} cases");
}

#[test]
fn urls_are_judged_before_anything_is_looked_up() {
    assert_all("parse", 90, |input| SourceUrl::parse(input).is_err());
}

#[test]
fn redirects_pass_the_same_rules_but_the_suffix() {
    let from = Url::parse("https://images.upscale-tests.org/a/b.png?q=1").unwrap();
    assert_all("redirect", 30, |input| match redirected(&from, input) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.failure, AttemptFailure::Permanent, "{input}");
            true
        }
    });
}

#[test]
fn one_forbidden_answer_refuses_the_name() {
    let own = ["198.35.26.96".parse().unwrap()];
    assert_all("resolve", 60, |answers| {
        let answers: Vec<IpAddr> = answers
            .split(',')
            .filter(|answer| !answer.is_empty())
            .map(|answer| answer.parse().unwrap())
            .collect();
        routes()
            .judge("a.upscale-tests.org", answers, &own)
            .is_err()
    });
}

#[test]
fn sixteen_answers_are_looked_at_and_seventeen_are_too_many() {
    let answers = |count: u8| {
        (0..count)
            .map(|last| IpAddr::from([8, 8, 4, last]))
            .collect()
    };
    assert_eq!(routes().judge("a.org", answers(16), &[]).unwrap().len(), 16);
    let error = routes().judge("a.org", answers(17), &[]).unwrap_err();
    assert!(error.message.contains("17 addresses"), "{error}");
}

#[test]
fn nat64_addresses_are_judged_by_what_they_translate_to() {
    for (prefix, inside, outside) in [
        ("2a00:64::/96", "2a00:64::a9fe:a9fe", "2a00:64::808:808"),
        (
            "2a00:64::/64",
            "2a00:64:0:0:0a:0:100::",
            "2a00:64:0:0:8:808:800::",
        ),
        ("2a00:64::/56", "2a00:64:0:7f:00:1::", "2a00:64:0:8:8:808::"),
        (
            "2a00:64::/48",
            "2a00:64:0:c0a8:0:100::",
            "2a00:64:0:808:8:800::",
        ),
        ("2a00:64::/40", "2a00:64:0a:0:1::", "2a00:64:8:808:8::"),
        ("2a00:64::/32", "2a00:64:ac10:1::", "2a00:64:808:808::"),
    ] {
        let guard = Guard {
            denied: Vec::new(),
            nat64_prefixes: vec![prefix.parse().unwrap()],
        };
        let is_refused = |address: &str| guard.check(&[address.parse().unwrap()], &[]).is_err();
        assert!(is_refused(inside), "{prefix}: {inside}");
        assert!(!is_refused(outside), "{prefix}: {outside}");
    }
}

/// The standard library's own idea of what is special, as far as it is stable: none of it may pass.
fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some()
        }
    }
}

/// Addresses near the edges of every range, where masks go wrong, and anywhere.
fn any_address() -> impl Strategy<Value = IpAddr> {
    let first = prop::sample::select(vec![
        0_u8, 10, 11, 100, 126, 127, 128, 169, 172, 192, 198, 203, 223, 224, 240, 255, 8,
    ]);
    let v4 = (first, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| IpAddr::from([a, b, c, d]));
    let start = prop::sample::select(vec![
        0_u16, 0x64, 0x2000, 0x2001, 0x2002, 0x3ffe, 0x3fff, 0x4000, 0xfc00, 0xfe80, 0xff02,
    ]);
    let v6 = (start, any::<[u16; 7]>())
        .prop_map(|(a, [b, c, d, e, f, g, h])| IpAddr::from([a, b, c, d, e, f, g, h]));
    let mapped = any::<[u8; 4]>()
        .prop_map(|bytes| IpAddr::V6(std::net::Ipv4Addr::from(bytes).to_ipv6_mapped()));
    prop_oneof![v4, v6, mapped, any::<IpAddr>()]
}

proptest! {
    #[test]
    fn nothing_special_is_ever_accepted(address in any_address()) {
        if Guard::default().check(&[address], &[]).is_ok() {
            prop_assert!(!is_special(address), "{address}");
        }
    }

    #[test]
    fn an_answer_is_refused_in_whatever_place_it_stands(
        addresses in prop::collection::vec(any_address(), 1..8),
    ) {
        let guard = Guard::default();
        let each = addresses.iter().all(|&address| guard.check(&[address], &[]).is_ok());
        prop_assert_eq!(guard.check(&addresses, &[]).is_ok(), each);
    }

    /// What is accepted is https, on port 443, at a name and not an address, however it was spelled.
    #[test]
    fn whatever_a_redirect_says_it_leads_to_https_at_a_name(
        location in r"(https?:)?/{0,3}[a-z0-9.@:\[\]%#?/\\-]{0,40}",
    ) {
        let from = Url::parse("https://images.upscale-tests.org/a/b.png").unwrap();
        if let Ok(to) = redirected(&from, &location) {
            prop_assert_eq!(to.scheme(), "https");
            prop_assert_eq!(to.port_or_known_default(), Some(443));
            prop_assert!(to.as_str().len() <= SOURCE_URL_BYTES_MAX);
            prop_assert!(to.username().is_empty() && to.password().is_none());
            prop_assert!(matches!(to.host(), Some(url::Host::Domain(name)) if name.contains('.')));
        }
    }
}
