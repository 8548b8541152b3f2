//! A bounded run of what the fuzz targets `frame` and `guard` do without end: sound inputs, damaged by a fixed sequence
//! of mutations, held to the same properties. Inputs that once broke one stand here as tests of their own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "../../upscale_fuzz/fuzz_targets/properties/frame.rs"]
mod frame;
#[path = "../../upscale_fuzz/fuzz_targets/properties/guard.rs"]
mod guard;

use std::net::IpAddr;

use upscale_pipeline::{Answer, DeviceUse, Facts, Format, Spent, write_answer, write_progress};

const CASES_PER_SEED: usize = 400;

/// Sebastiano Vigna's xorshift64*: the same sequence everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }
}

/// One to four changes: a byte set, inserted, removed, doubled, or the end cut off.
fn mutated(random: &mut Random, seed: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let (at, new) = (
            random.below(bytes.len()),
            alphabet[random.below(alphabet.len())],
        );
        match random.below(6) {
            0 | 1 if !bytes.is_empty() => bytes[at] = new,
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 if !bytes.is_empty() => bytes.extend_from_within(at..),
            4 => bytes.truncate(at),
            _ => bytes.insert(at, new),
        }
    }
    bytes
}

fn check_all(seeds: &[Vec<u8>], alphabet: &[u8], check: fn(&[u8])) {
    let mut random = Random(7);
    for seed in seeds {
        check(seed);
        for _ in 0..CASES_PER_SEED {
            check(&mutated(&mut random, seed, alphabet));
        }
    }
}

#[test]
fn damaged_frames_are_an_answer_within_its_limits_or_an_error() {
    let facts = Facts {
        source_width: 3,
        source_height: 5,
        width: 6,
        height: 10,
        source_format: Format::Png,
        by_brought_model: false,
        by_reference: false,
        device: DeviceUse::None,
        focus_permille: [0, 1_000],
        spent: Spent::default(),
        memory_bytes: 0,
    };
    let png = vec![7; 100];
    let answers = [
        Answer::Done {
            facts,
            png,
            thumbnail: vec![8; 50],
        },
        Answer::Refused("The image is a circle".to_owned()),
        Answer::Broke("a kernel\nbroke".to_owned()),
        Answer::Unfaithful("é".repeat(600)),
    ];
    let mut seeds = vec![b"UPS\x02".repeat(12)];
    for answer in &answers {
        let mut bytes = Vec::new();
        write_progress(&mut bytes, 500).unwrap();
        write_answer(&mut bytes, answer).unwrap();
        seeds.push(bytes);
    }
    let alphabet: Vec<u8> = (0..=255).collect();
    check_all(&seeds, &alphabet, frame::check);
}

#[test]
fn damaged_urls_redirects_and_answers_lead_to_no_forbidden_address() {
    let of_level = |level: &'static str| {
        let table = include_str!("guard_cases.tsv").lines();
        let fields = table.map(|line| line.split('\t').collect::<Vec<_>>());
        fields
            .filter(move |fields| fields[0] == level)
            .map(|fields| fields[1])
    };
    let good = "https://images.upscale-tests.org/a.png";
    let urls = of_level("parse").map(|url| format!("{url}\n{good}\n").into_bytes());
    let redirects = of_level("redirect").map(|to| format!("{good}\n{to}\n").into_bytes());
    let answers = of_level("resolve").map(|answers| {
        let addresses = answers.split(',').filter_map(|answer| answer.parse().ok());
        [b"\n\n".to_vec(), addresses.flat_map(answer_bytes).collect()].concat()
    });
    let seeds: Vec<Vec<u8>> = urls.chain(redirects).chain(answers).collect();
    assert!(seeds.len() > 200, "{} seeds", seeds.len());
    let alphabet = b"https://0123456789abcdefx.:@%[]#?\\-_\n\x00\x0a\x7f\xa9\xfe\xc0\xff";
    check_all(&seeds, alphabet, guard::check);
}

/// As the property reads them: the kind, then sixteen bytes.
fn answer_bytes(address: IpAddr) -> Vec<u8> {
    let (kind, number) = match address {
        IpAddr::V4(v4) => (0, u128::from(u32::from(v4))),
        IpAddr::V6(v6) => (1, u128::from(v6)),
    };
    [vec![kind], number.to_be_bytes().to_vec()].concat()
}
