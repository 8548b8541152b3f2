//! Pairs that lie. Every one is refused by the rule it breaks, and none takes memory that it does not have bytes for.

use super::writer::{Form, Store, Writer};
use super::{COMPACT, RRDB, join_ncnn, span};
use crate::model::Model;
use crate::shapes::{Random, Shape};

fn refusal(text: &str, numbers: &[u8]) -> String {
    let read = Model::read(&join_ncnn(text.as_bytes(), numbers));
    read.map(|_| ()).unwrap_err().to_string()
}

#[track_caller]
fn assert_refused(text: &str, numbers: &[u8], reason: &str) {
    let message = refusal(text, numbers);
    assert!(
        message.contains(reason),
        "{message:?} does not say {reason:?}"
    );
}

fn honest() -> (String, Vec<u8>) {
    Writer::write(&COMPACT.network(2, 1), Form::Converted, Store::F32)
}

/// A graph of one convolution with these parameters, and a layer behind it.
fn one(parameters: &str, behind: &str) -> String {
    format!(
        "7767517\n3 3\nInput i 0 1 data\nConvolution c 1 1 data c {parameters}\n{behind} 1 1 c out\n"
    )
}

#[test]
fn texts_that_are_none_are_refused() {
    let (text, numbers) = honest();
    for (from, to, reason) in [
        ("7767517", "7767518", "does not begin with 7767517"),
        ("7767517\n", "7767517\nmany ", "not two numbers"),
        ("nb1 0 1  b1 ", "nb1 0 1", "ends too early"),
        ("b1 \n", "b1 b2\n", "which is none"),
    ] {
        assert!(text.contains(from), "{from:?}");
        assert_refused(&text.replacen(from, to, 1), &numbers, reason);
    }
    let counts = text.lines().nth(1).unwrap();
    for (counts_instead, reason) in [
        ("8193 9", "8193 layers and 9 blobs, at most 8192 and 32768"),
        ("9 99999", "9 layers and 99999 blobs"),
        ("3 99", "more layers than the 3"),
        ("99 99", "announces 99 layers and has"),
        ("11 2", "more blobs than the 2"),
    ] {
        assert_refused(&text.replacen(counts, counts_instead, 1), &numbers, reason);
    }
    assert_refused(&"a".repeat((4 << 20) + 1), &[], "at most 4194304");
    let long = "n".repeat(300);
    assert_refused(
        &text.replacen("nb1", &long, 1),
        &numbers,
        "300 bytes, at most 256",
    );
    assert_refused("7767517\n1 1\nInput i 0 99 a", &[], "99 blobs, at most 64");
    assert_refused(
        "7767517\n1 1\nReLU i 1 1 a b",
        &[],
        "reads a, which no layer",
    );
    let twice = "7767517\n2 2\nInput i 0 1 a\nInput j 0 1 a";
    assert_refused(twice, &[], "two layers write the blob a");
}

#[test]
fn layers_that_are_not_ours_are_refused_by_type_and_name() {
    for (kind, message) in [
        (
            "Deconvolution",
            "Deconvolution x is of a type that is not supported",
        ),
        ("InnerProduct", "InnerProduct x"),
        ("Sigmoid", "Sigmoid x stands where it is not supported"),
    ] {
        let (text, numbers) = (
            one("0=3 1=3 4=1 6=81", &format!("{kind} x")),
            [0; 4 + 81 * 4],
        );
        assert_refused(&text, &numbers, message);
    }
    for (parameters, message) in [
        ("0=3 1=5 4=2 6=225", "parameter 1 of Convolution c is 5"),
        (
            "0=3 1=3 4=0 6=81",
            "parameter 4 of Convolution c is 0, 1 is needed",
        ),
        ("0=3 1=3 3=2 4=1 6=81", "parameter 3 of Convolution c is 2"),
        ("0=3 1=3 4=1 6=80", "parameter 6 of Convolution c is 80"),
        ("0=0 1=3 4=1 6=81", "is 0, from 1 to 256"),
        ("0=300 1=3 4=1 6=8100", "is 300, from 1 to 256"),
        ("0=3 1=3 4=1 6=81 9=5", "parameter 9 of Convolution c is 5"),
        ("0=3 1=3 4=1 6=81 8=2", "parameter 8 of Convolution c is 2"),
        ("0=3 1=3 4=1 6=81 7=3", "has the parameter 7"),
        ("0=3 1=3 4=1 6=81 -23310=2,1.0", "which is none"),
        ("0=3 1=3 4=1 6=1e99", "no whole number"),
        ("0=3 1=nan", "which is none"),
        ("0=3 0=3", "which is none"),
    ] {
        assert_refused(&one(parameters, "ReLU x"), &[0; 400], message);
    }
    let bicubic = one("0=12 1=3 4=1 6=324", "Interp x");
    let bicubic = bicubic.replace("c out", "c out 0=3 1=0.5 2=0.5");
    assert_refused(
        &bicubic,
        &[0; 1300],
        "Interp x resizes bicubic by 0.5 and 0.5",
    );
    let thrice = one("0=27 1=3 4=1 6=729", "PixelShuffle x").replace("c out", "c out 0=3");
    let message = "this is a network of convolutions at 3x; supported are 1x, 2x and 4x";
    assert_refused(&thrice, &[0; 4 + 729 * 4], message);
}

#[test]
fn numbers_that_are_not_there_are_refused_with_their_count() {
    let (text, numbers) = honest();
    let cut = &numbers[..numbers.len() - 4];
    assert_refused(&text, cut, "bytes of the .bin, ");
    let mut more = numbers.clone();
    more.push(0);
    assert_refused(&text, &more, "1 bytes of the .bin belong to no layer");
    for (tag, message) in [
        (0x000D_4B38_u32, "8-bit integers"),
        (0x0101_0101, "the tag 0x01010101"),
    ] {
        let mut other = numbers.clone();
        other[..4].copy_from_slice(&tag.to_le_bytes());
        assert_refused(&text, &other, message);
    }
    for value in [f32::NAN, f32::INFINITY, -2e6] {
        let mut wrong = numbers.clone();
        wrong[8..12].copy_from_slice(&value.to_le_bytes());
        assert_refused(&text, &wrong, "within 1e6");
    }
    // As many numbers as a network may have, and no bytes for them.
    let huge = one("0=256 1=3 4=1 6=4718592", "ReLU x");
    assert_refused(
        &huge,
        &[0; 4],
        "needs 18874368 bytes of the .bin, 0 are left",
    );
}

#[test]
fn graphs_that_lead_nowhere_are_refused() {
    let numbers = [0; 4 + 81 * 4];
    let two = "7767517\n3 4\nInput i 0 1 data\nSplit s 1 2 data a b\nConvolution c 1 1 a o 0=3 1=3 4=1 6=81";
    assert_refused(two, &numbers, "2 results that no layer reads");
    assert_refused("7767517\n1 1\nInput i 0 1 data", &[], "no picture");
    let gray = one("0=3 1=3 4=1 6=27", "ReLU x");
    assert_refused(&gray, &[0; 112], "reads 1 channels and is given 3");
    // Joined to itself again and again: 64 maps become 4,096, and so on.
    let mut text = String::from("Input i 0 1 data\nConvolution c 1 1 data c0 0=3 1=3 4=1 6=81\n");
    for step in 0..5 {
        let reads = format!("c{step} ").repeat(64);
        text += &format!("Concat j{step} 64 1 {reads}c{}\n", step + 1);
    }
    let text = format!("7767517\n7 7\n{text}");
    assert_refused(&text, &numbers, "joins more than 32 maps");
}

/// A sum without a convolution is a layer of ours with numbers of its own, which no byte of the file pays for.
#[test]
fn numbers_that_the_file_does_not_have_count_all_the_same() {
    let mut text =
        String::from("Input i 0 1 data\nConvolution c 1 1 data c0 0=256 1=3 4=1 6=6912\n");
    for step in 0..2_000 {
        text += &format!("Eltwise j{step} 2 1 c{step} c{step} c{} 0=1\n", step + 1);
    }
    let text = format!("7767517\n2002 2002\n{text}");
    assert_refused(&text, &[0; 4 + 6912 * 4], "more than 67108864 parameters");
}

/// The short form of the fuzz target `ncnn`: honest pairs with some bytes changed, cut or doubled.
#[test]
fn mutated_pairs_are_read_or_refused_and_nothing_else() {
    let small = Shape::Rrdb {
        channels: 2,
        growth: 1,
        blocks: 1,
    };
    let networks = [
        small.network(4, 1),
        COMPACT.network(2, 1),
        span(2),
        RRDB.network(2, 1),
    ];
    let forms = [Form::Converted, Form::Optimized];
    let pairs: Vec<_> = networks
        .iter()
        .flat_map(|network| forms.map(|form| Writer::write(network, form, Store::F16)))
        .map(|(text, numbers)| (text.into_bytes(), numbers))
        .collect();
    let mut random = Random(17);
    let mut refused = 0;
    for round in 0..4_000 {
        let (mut text, mut numbers) = pairs[round % pairs.len()].clone();
        for _ in 0..=random.next() % 3 {
            let file = if random.next().is_multiple_of(4) {
                &mut numbers
            } else {
                &mut text
            };
            let at = random.next() as usize % file.len();
            match random.next() % 5 {
                0 => file[at] ^= 1 << (random.next() % 7),
                1 => file[at] = b"0123456789 \n=-,."[random.next() as usize % 16],
                2 => file.truncate(at.max(1)),
                3 => {
                    file.remove(at);
                }
                _ => {
                    let end = (at + random.next() as usize % 64).min(file.len());
                    let part = file[at..end].to_vec();
                    file.splice(at..at, part);
                }
            }
        }
        refused += usize::from(Model::read(&join_ncnn(&text, &numbers)).is_err());
    }
    assert!(refused > 2_000, "only {refused} of 4000 were refused");
}
