//! `upscale-lab stages`: what the largest legal images take, stage by stage, on one thread, and the PNG encoder's share
//! beside its limit; how large its files are beside a deflate of level 6. A drawn photograph, and the same with grain.

use anyhow::Context;
use serde_json::json;
use upscale_core::{Parameters, Scale, limits::source_pixels_max};
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize},
};

use upscale_pipeline::{Clock, PictureOptions, Upscaled, processor, upscale_image, wall};

use crate::{args::StagesArgs, drawn, print};

/// The share of an image's time that encoding ought to stay below.
const ENCODE_SHARE_MAX: f64 = 0.05;
/// Grain is within this many levels of 8 bits.
const GRAIN: i32 = 16;

/// One picture at one scale.
struct Measured {
    name: &'static str,
    scale: Scale,
    /// By processor time, and by the clock on the wall.
    processor: Times,
    wall: Times,
    pixels: u64,
    bytes: usize,
    bytes_of_level_6: usize,
}

/// Seconds of one run.
#[derive(Clone, Copy)]
struct Times {
    decode: f64,
    network: f64,
    check: f64,
    encode: f64,
    all: f64,
}

impl Times {
    fn encode_share(&self) -> f64 {
        self.encode / self.all
    }
}

/// Measures and prints.
pub(crate) fn stages(args: &StagesArgs) -> anyhow::Result<()> {
    let mut measured = Vec::new();
    for scale in Scale::ALL {
        let photograph = largest(&drawn::harbour(), scale);
        let grainy = with_grain(&photograph);
        for (name, picture) in [("photograph", photograph), ("grain", grainy)] {
            measured.push(measure(name, &picture, scale, args.runs)?);
        }
    }
    show(args, &measured)
}

/// `picture` at the largest size of its shape that the contract takes at this scale.
fn largest(picture: &Rgb8, scale: Scale) -> Rgb8 {
    let pixels = source_pixels_max(Parameters::at(scale)) as f64;
    let shape = picture.width() as f64 / picture.height() as f64;
    let height = (pixels / shape).sqrt();
    let (width, height) = ((height * shape) as usize, height as usize);
    resize(picture, width, height, Kernel::Bicubic)
}

/// A fixed sequence of noise (xorshift32, George Marsaglia) over every sample.
fn with_grain(picture: &Rgb8) -> Rgb8 {
    let mut state = 1_u32;
    Rgb8::paint(picture.width(), picture.height(), |x, y| {
        picture.pixel(x, y).map(|sample| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let noise = (state >> 8) as i32 % (2 * GRAIN + 1) - GRAIN;
            (i32::from(sample) + noise).clamp(0, 255) as u8
        })
    })
}

fn measure(
    name: &'static str,
    picture: &Rgb8,
    scale: Scale,
    runs: u32,
) -> anyhow::Result<Measured> {
    let source = picture.to_png()?;
    let (processor, upscaled) = least(&source, scale, processor, runs)?;
    let (wall, _) = least(&source, scale, wall, runs)?;
    let pixels = u64::from(upscaled.facts.width) * u64::from(upscaled.facts.height);
    let result = Rgb8::of_source(&decode(&upscaled.png, pixels)?);
    Ok(Measured {
        name,
        scale,
        processor,
        wall,
        pixels,
        bytes: upscaled.png.len(),
        bytes_of_level_6: result.to_png()?.len(),
    })
}

/// The run of least time, on one thread: what other programs do can only add.
fn least(
    source: &[u8],
    scale: Scale,
    clock: Clock,
    runs: u32,
) -> anyhow::Result<(Times, Upscaled)> {
    let parameters = Parameters::at(scale);
    let options = PictureOptions::shipped(parameters, 1, clock)?;
    let mut best: Option<(Times, Upscaled)> = None;
    for _ in 0..runs {
        let started = clock();
        let upscaled = upscale_image(source, &options, &mut |_| ())?;
        let all = (clock() - started).as_secs_f64();
        let spent = upscaled.spent;
        let times = Times {
            decode: spent.decode.as_secs_f64(),
            network: spent.network.as_secs_f64(),
            check: spent.check.as_secs_f64(),
            encode: spent.encode.as_secs_f64(),
            all,
        };
        if best.as_ref().is_none_or(|(least, _)| all < least.all) {
            best = Some((times, upscaled));
        }
    }
    best.context("nothing was run")
}

fn show(args: &StagesArgs, measured: &[Measured]) -> anyhow::Result<()> {
    if args.json {
        return print_json(measured);
    }
    let names = [
        "PICTURE",
        "SCALE",
        "RESULT",
        "DECODE",
        "NETWORK",
        "CHECK",
        "ENCODE",
        "SHARE",
        "OF WALL",
        "BYTES",
        "TO LEVEL 6",
    ];
    let seconds = |seconds: f64| format!("{seconds:.3} s");
    let rows = measured.iter().map(|one| {
        let Times {
            decode,
            network,
            check,
            encode,
            ..
        } = one.processor;
        vec![
            one.name.to_owned(),
            format!("{}x", one.scale.factor()),
            format!("{:.1} MP", one.pixels as f64 / 1e6),
            seconds(decode),
            seconds(network),
            seconds(check),
            seconds(encode),
            format!("{:.1} %", 100.0 * one.processor.encode_share()),
            format!("{:.1} %", 100.0 * one.wall.encode_share()),
            format!("{:.1} MB", one.bytes as f64 / 1e6),
            format!(
                "{:+.1} %",
                100.0 * (one.bytes as f64 / one.bytes_of_level_6 as f64 - 1.0)
            ),
        ]
    });
    print::table(&names, &rows.collect::<Vec<_>>())?;
    let largest = measured.iter().map(|one| one.processor.encode_share());
    let largest = largest.fold(0.0, f64::max);
    print::line(&format!(
        "processor seconds, one thread; encoding takes {:.1} % at most, {:.0} % are its limit",
        100.0 * largest,
        100.0 * ENCODE_SHARE_MAX
    ))
}

fn print_json(measured: &[Measured]) -> anyhow::Result<()> {
    let times = |times: &Times| {
        json!({
            "decode_seconds": times.decode,
            "network_seconds": times.network,
            "check_seconds": times.check,
            "encode_seconds": times.encode,
            "seconds": times.all,
            "encode_share": times.encode_share(),
        })
    };
    let pictures = measured.iter().map(|one| {
        json!({
            "picture": one.name,
            "scale": one.scale.factor(),
            "result_pixels": one.pixels,
            "processor": times(&one.processor),
            "wall": times(&one.wall),
            "bytes": one.bytes,
            "bytes_of_level_6": one.bytes_of_level_6,
        })
    });
    print::json(&json!({
        "pictures": pictures.collect::<Vec<_>>(),
        "encode_share_max": ENCODE_SHARE_MAX,
    }))
}
