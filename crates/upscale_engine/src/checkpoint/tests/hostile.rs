//! Files that lie. Every one is refused by the rule it breaks, and none takes memory that it does not have bytes for.

use super::writer::{Opcodes, Saved, archive, legacy, legacy_around, zip, zip_around};
use super::{RRDB, rrdb_names, saved, span};
use crate::architecture::Architecture;
use crate::model::Model;
use crate::shapes::{Random, Shape};

fn refusal(file: &[u8]) -> String {
    Model::read(file).map(|_| ()).unwrap_err().to_string()
}

#[track_caller]
pub(super) fn assert_refused(file: &[u8], reason: &str) {
    let reported = refusal(file);
    assert!(
        reported.contains(reason),
        "{reported:?} does not say {reason:?}"
    );
}

fn honest() -> Vec<Saved> {
    saved(&RRDB.network(4, 3), &rrdb_names(Architecture::EsrganNew, 2))
}

/// A pickle of these opcodes in both of the newer containers.
fn assert_pickle_refused(opcodes: &mut Opcodes, reason: &str) {
    let pickle = opcodes.end();
    assert_refused(&zip_around(&pickle, &[]), reason);
    assert_refused(&legacy_around(&pickle, &[]), reason);
}

#[test]
fn names_that_weights_do_not_need_are_refused_by_name_and_never_called() {
    for (module, name) in [
        ("os", "system"),
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch.storage", "_load_from_bytes"),
        ("numpy.core.multiarray", "scalar"),
        ("collections", "defaultdict"),
    ] {
        let mut opcodes = Opcodes::begin();
        opcodes.name(module, name).raw(b"(").text("echo").raw(b"tR");
        assert_pickle_refused(&mut opcodes, &format!("{module}.{name}"));
        // The same name as protocol 4 writes it.
        let mut opcodes = Opcodes::begin();
        opcodes.text(module).text(name).raw(&[0x93]);
        assert_pickle_refused(&mut opcodes, &format!("{module}.{name}"));
    }
}

#[test]
fn opcodes_that_weights_do_not_need_are_refused() {
    // INST, OBJ, NEWOBJ, EXT1, PERSID, LONG4, BYTEARRAY8, DUP, and one that does not exist.
    for opcode in [b'i', b'o', 0x81, 0x82, b'P', 0x8b, 0x96, b'2', 0xff] {
        let reported = format!("opcode {opcode:#04x}");
        assert_pickle_refused(Opcodes::begin().raw(b"}}").raw(&[opcode]), &reported);
    }
}

#[test]
fn a_stack_machine_that_is_led_astray_is_refused() {
    let cases: [(&[u8], &str); 9] = [
        (b"0", "opcode"),
        (b"t", "not begun"),
        (b"s", "more than it has put"),
        (b"}(s", "more than it has put"),
        (b"K\x01K\x02K\x03s", "fills a number"),
        (b"](K\x01u", "fills a list"),
        (b"h\x09", "no value 9"),
        (b"N)R", "no function"),
        (b"K\x01}b", "state of a number"),
    ];
    for (opcodes, reason) in cases {
        assert_pickle_refused(Opcodes::begin().raw(opcodes), reason);
    }
    // A dictionary that holds itself is only a dictionary without weights.
    let mut itself = Opcodes::begin();
    itself.raw(b"}q\x00").text("params").raw(b"h\x00s");
    assert_pickle_refused(&mut itself, "no tensors");
}

#[test]
fn a_pickle_has_so_many_steps_and_no_more() {
    let mut bomb = Opcodes::begin();
    bomb.raw(&vec![b']'; super::super::pickle::STEPS_MAX]);
    assert_pickle_refused(&mut bomb, "steps");
    let mut large = Opcodes::begin();
    large.raw(&vec![b'N'; (4 << 20) + 1]);
    assert_refused(&zip_around(&large.end(), &[]), "data.pkl has");
}

/// Opcodes of a file whose only tensor is changed by `change`.
fn one_tensor(change: impl Fn(&mut Saved), count: usize) -> Vec<u8> {
    let mut tensor = Saved::new("conv_first.weight".to_owned(), vec![2, 2], &[1.0; 4]);
    change(&mut tensor);
    let pickle = Opcodes::begin().dict(&[tensor], 0, false).end();
    let stored = Saved::new(String::new(), vec![count], &vec![1.0; count]);
    zip_around(&pickle, &[stored])
}

#[test]
fn tensors_outside_their_storage_are_refused() {
    let outside = "outside its storage";
    assert_refused(&one_tensor(|t| t.shape = vec![2, 3], 4), outside);
    assert_refused(
        &one_tensor(|t| t.shape = vec![1 << 28, 1 << 28], 4),
        outside,
    );
    assert_refused(&one_tensor(|_| (), 3), "of 4 numbers has 3");
    assert_refused(&one_tensor(|t| t.shape = vec![1; 9], 4), "no shape");
    // As many numbers as the storage has, but spread too far.
    let spread = |t: &mut Saved| {
        t.shape = vec![4, 1, 1, 1];
        t.channels_last = true;
    };
    assert!(!refusal(&one_tensor(spread, 4)).contains(outside));
    let far = |t: &mut Saved| {
        t.shape = vec![1, 2, 2, 1];
        t.values = vec![1.0; 3];
        t.channels_last = true;
    };
    assert_refused(&one_tensor(far, 4), outside);
}

#[test]
fn values_that_no_weight_has_are_refused() {
    for value in [f32::NAN, f32::INFINITY, -2e6] {
        let mut tensors = honest();
        tensors[4].values[3] = value;
        assert_refused(&zip(&tensors, &[]), "within 1e6");
        assert_refused(&legacy(&tensors, &[]), "within 1e6");
    }
    let mut tensors = honest();
    tensors[0].kind = "Long";
    tensors[0].values.truncate(1);
    assert!(!refusal(&zip(&tensors, &[])).is_empty());
}

#[test]
fn archives_that_lie_are_refused() {
    let bytes = |name: &str| (format!("a/{name}"), b"\x80\x02}.".to_vec());
    assert_refused(&archive(&[bytes("other")]), "without data.pkl");
    assert_refused(
        &archive(&[bytes("data.pkl"), bytes("data.pkl")]),
        "two entries",
    );
    let big = ("a/byteorder".to_owned(), b"big".to_vec());
    assert_refused(&archive(&[bytes("data.pkl"), big]), "little-endian");
    let many: Vec<_> = (0..20_000).map(|i| bytes(&i.to_string())).collect();
    assert_refused(&archive(&many), "20000 entries, at most 16384");
    let mut packed = archive(&[bytes("data.pkl")]);
    let central = packed.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    packed[central + 10] = 8;
    assert_refused(&packed, "compressed");
    // Two entries of the same bytes: what a file of few bytes would be blown up with.
    let mut twice = archive(&[bytes("data.pkl"), bytes("data.pkm")]);
    let central = twice.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    twice[central + 42..central + 46].copy_from_slice(&[0; 4]);
    assert_refused(&twice, "overlap");
}

/// One bit of a weight, and one of the pickle, as a bad disk or a broken download changes them.
#[test]
fn damaged_entries_are_refused_unless_the_file_carries_no_sums() {
    let whole = zip(&honest(), &[]);
    let sum = |file: &[u8], entry: usize| {
        let central = file.windows(4).enumerate();
        let mut places = central.filter(|(_, window)| window == b"PK\x01\x02");
        places.nth(entry).unwrap().0 + 16
    };
    let weight = honest()[0].values[5].to_le_bytes();
    let first = whole.windows(4).position(|bytes| bytes == weight).unwrap();
    let name = whole.windows(7).position(|bytes| bytes == b"collect");
    for (at, entry, reported) in [
        (first + 2, 2, "\"archive/data/0\" is damaged"),
        (name.unwrap(), 0, "\"archive/data.pkl\" is damaged"),
    ] {
        let mut file = whole.clone();
        file[at] ^= 1;
        assert_refused(&file, reported);
        let at = sum(&file, entry);
        file[at..at + 4].fill(0);
        let reported = Model::read(&file).map(|_| ()).err().map(|e| e.to_string());
        // A changed name in the pickle is still no name that weights need.
        assert_eq!(reported.is_none(), entry == 2, "{reported:?}");
    }
}

#[test]
fn lying_counts_are_refused_before_anything_is_allocated() {
    let mut lying = legacy(&honest()[..1], &[]);
    let at = lying.len() - honest()[0].values.len() * 4 - 8;
    for count in [u64::MAX, 1 << 62, 1 << 40] {
        lying[at..at + 8].copy_from_slice(&count.to_le_bytes());
        let reported = refusal(&lying);
        assert!(
            ["no count", "storage of", "announced"]
                .iter()
                .any(|w| reported.contains(w)),
            "{reported}"
        );
    }
    let text = Opcodes::begin().raw(b"X\xff\xff\xff\xff").end();
    assert_refused(&zip_around(&text, &[]), "4294967295 bytes are announced");
    assert_refused(&vec![0; (256 << 20) + 1], "bytes, at most");
}

#[test]
fn other_networks_are_refused_by_name_with_what_is_supported() {
    let named = |name: &str| {
        let tensor = Saved::new(name.to_owned(), vec![3, 3, 3, 3], &[0.0; 81]);
        zip(&[tensor], &[])
    };
    for (name, network) in [
        ("layers.0.residual_group.blocks.0.norm1.weight", "SwinIR"),
        ("layers.0.residual_group.overlap_attn.qkv.weight", "HAT"),
        ("model.1.sub.0.RDB1.conv1x1.weight", "ESRGAN+"),
        ("stylegan_decoder.style_mlp.1.weight", "GFPGAN"),
        ("conv_after_body.weight", "a network like EDSR"),
        ("body.0.conv1.weight", "a network like SRResNet"),
        ("body.0.residual_group.0.rcab.0.weight", "RCAN"),
        (
            "unet1.conv2.seblock.conv1.weight",
            "Real-CUGAN, which is not supported (each of its four",
        ),
        (
            "feats.1.channel_mixer.0.weight",
            "RealPLKSR, which is not supported (each block's group norm",
        ),
        (
            "feats.1.layer_norm.weight",
            "RealPLKSR with layer norm, which is not supported (its kernels",
        ),
        (
            "feats.1.channe_mixer.0.weight",
            "PLKSR, which is not supported; ",
        ),
        (
            "to_feat.weight",
            "unknown network of 1 tensors (to_feat.weight",
        ),
    ] {
        assert_refused(&named(name), network);
        assert_refused(&named(name), "supported are ESRGAN");
    }
    assert_refused(&zip(&[], &[]), "no tensors");
}

#[test]
fn nearly_a_known_network_is_none() {
    let mut more = honest();
    more.push(Saved::new(
        "conv_attention.weight".to_owned(),
        vec![1],
        &[0.0],
    ));
    assert_refused(&zip(&more, &[]), "no tensor \"conv_attention.weight\"");
    let mut fewer = honest();
    let gone = fewer.remove(7);
    assert_refused(&zip(&fewer, &[]), &format!("{} is missing", gone.name));
    let mut odd = honest();
    odd[0].shape = vec![3, 6, 3, 3];
    assert_refused(
        &zip(&odd, &[]),
        "reads 6 channels; supported are 3 (RGB), 12 and 48",
    );
}

#[test]
fn other_scales_are_refused_by_name_and_number() {
    for scale in [3, 8] {
        let message = format!("this is SPAN at {scale}x; supported are 1x, 2x and 4x");
        assert_refused(&zip(&span(scale), &[]), &message);
    }
    let mut one_up = honest();
    one_up.retain(|tensor| !tensor.name.starts_with("conv_up2"));
    assert_eq!(Model::read(&zip(&one_up, &[])).unwrap().network.scale(), 2);
    one_up.retain(|tensor| !tensor.name.starts_with("conv_up1"));
    assert_eq!(Model::read(&zip(&one_up, &[])).unwrap().network.scale(), 1);
}

/// Eight times is three enlargements of two.
#[test]
fn an_esrgan_of_8x_is_refused_by_its_number() {
    let mut tensors = honest();
    for part in ["weight", "bias"] {
        let of = |tensor: &&Saved| tensor.name == format!("conv_up2.{part}");
        let mut third = tensors.iter().find(of).unwrap().clone();
        third.name = format!("conv_up3.{part}");
        tensors.push(third);
    }
    assert_refused(&zip(&tensors, &[]), "at 8x; supported are 1x, 2x and 4x");
}

/// One kernel of the training branches short, and it is neither form.
#[test]
fn a_span_of_both_forms_is_refused() {
    let mut tensors = span(2);
    tensors.retain(|tensor| tensor.name != "block_3.c2_r.sk.weight");
    assert_refused(&zip(&tensors, &[]), "no tensor \"block_3.c2_r.");
}

/// The short form of the fuzz target `model`: honest files with some bytes changed, cut or doubled.
#[test]
fn mutated_files_are_read_or_refused_and_nothing_else() {
    let shape = Shape::Rrdb {
        channels: 2,
        growth: 1,
        blocks: 1,
    };
    let tensors = saved(
        &shape.network(4, 1),
        &rrdb_names(Architecture::EsrganOld, 1),
    );
    let residual = |architecture| super::residual::tensors(architecture, 2, (1, 4));
    let files = [
        zip(&tensors, &["params"]),
        legacy(&tensors, &[]),
        super::safetensors(&tensors),
        zip(&residual(Architecture::EdsrFirst), &[]),
        legacy(&residual(Architecture::SrResNet), &[]),
        zip(&super::span_plus::tensors(1, ("upsampler.0", 12)), &[]),
        zip(&super::dis::tensors(true, &[("upsampler", 4)]), &[]),
    ];
    let mut random = Random(11);
    let mut refused = 0;
    for round in 0..4_000 {
        let mut file = files[round % files.len()].clone();
        for _ in 0..=random.next() % 4 {
            let at = random.next() as usize % file.len();
            match random.next() % 4 {
                0 => file[at] ^= 1 << (random.next() % 8),
                1 => file[at] = random.next() as u8,
                2 => file.truncate(at.max(1)),
                _ => {
                    let end = (at + random.next() as usize % 64).min(file.len());
                    let part = file[at..end].to_vec();
                    file.splice(at..at, part);
                }
            }
        }
        refused += usize::from(Model::read(&file).is_err());
    }
    assert!(refused > 1_000, "only {refused} of 4000 were refused");
}
