//! `upscale-lab shapes`: what pictures of as many pixels, but of other shapes, take of processor and memory on the whole
//! way from bytes to bytes. Each is done on one thread in a process of its own; the square of its scale is the unit.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use png::{BitDepth, ColorType, Compression, Encoder};
use serde::{Deserialize, Serialize};
use serde_json::json;
use upscale_core::{Parameters, Scale, limits::source_pixels_max};
use upscale_image::raster::Rgb8;
use upscale_pipeline::{ALLOCATOR, PictureOptions, processor, status_bytes, upscale_image};

use crate::{
    args::{ShapeArgs, ShapesArgs},
    print,
};

/// Longer sides in shorter ones; the last is cut to one pixel's width at any cap.
const RATIOS: [u64; 9] = [1, 4, 16, 64, 1_000, 30_000, 100_000, 375_000, 1_500_000];
/// A picture may cost so many times what the square does …
const COST_MAX: f64 = 3.0;
/// … and hold so much.
const MEMORY_BYTES_MAX: u64 = 350 << 20;

/// What one picture took, as the child says it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) width: usize,
    pub(crate) height: usize,
    scale: usize,
    /// Processor seconds from bytes to bytes, in the one thread there is, and of the stages.
    pub(crate) seconds: f64,
    decode: f64,
    network: f64,
    check: f64,
    encode: f64,
    pub(crate) memory_bytes: u64,
    result_bytes: usize,
    /// Of the samples and a byte for each row.
    raw_bytes: usize,
}

/// Measures all shapes and prints their costs beside the square's.
pub(crate) fn shapes(args: &ShapesArgs) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut costs = Vec::new();
    for scale in Scale::ALL {
        let cap = source_pixels_max(Parameters::at(scale));
        let pixels = args.pixels.map_or(cap, |pixels| pixels.min(cap));
        for (width, height) in sizes(pixels, args.ratio) {
            let file = folder.path().join("source.png");
            let source = match args.noise {
                true => noise(width, height)?,
                false => waves(width, height).to_png()?,
            };
            fs::write(&file, source)?;
            costs.push(in_a_process_of_its_own(&file, scale)?);
        }
    }
    match args.json {
        true => print::json(&json!({ "shapes": costs, "cost_max": COST_MAX })),
        false => show(&costs),
    }
}

/// Every shape lying and standing, the square once; none twice.
fn sizes(pixels: u64, only: Option<u64>) -> Vec<(usize, usize)> {
    let mut sizes = Vec::new();
    let ratios = only.map_or(RATIOS.to_vec(), |ratio| vec![1, ratio]);
    for ratio in ratios {
        let short = (pixels as f64 / ratio as f64).sqrt().round().max(1.0) as u64;
        let (short, long) = (short as usize, (pixels / short) as usize);
        for size in [(long, short), (short, long)] {
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
    }
    sizes
}

/// Waves along both sides: the same kind of picture in every shape.
pub(crate) fn waves(width: usize, height: usize) -> Rgb8 {
    Rgb8::paint(width, height, |x, y| {
        let wave = |at: usize, length: f64| 50.0 * (at as f64 / length).sin();
        let level = 128.0 + wave(x, 9.0) + wave(y, 11.0);
        [0.0, 12.0, -12.0].map(|tint| (level + tint) as u8)
    })
}

/// Sixteen bits of noise in colours and alpha.
fn noise(width: usize, height: usize) -> anyhow::Result<Vec<u8>> {
    let mut state = 1_u32;
    let samples = (0..width * height * 8).map(|_| {
        // xorshift32, George Marsaglia.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    });
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Sixteen);
    encoder.set_compression(Compression::NoCompression);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&samples.collect::<Vec<_>>())?;
    writer.finish()?;
    Ok(file)
}

pub(crate) fn in_a_process_of_its_own(file: &Path, scale: Scale) -> anyhow::Result<Cost> {
    let program = env::current_exe()?;
    let scale = scale.factor().to_string();
    let mut command = Command::new(program);
    let ended = command
        .env(ALLOCATOR.0, ALLOCATOR.1)
        .args(["shape", "--scale", &scale])
        .arg(file)
        .output()?;
    let complaint = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{}: {complaint}", ended.status);
    serde_json::from_slice(&ended.stdout).context("what the child said")
}

/// One picture in this process; says what it took, as JSON.
pub(crate) fn shape(args: &ShapeArgs) -> anyhow::Result<()> {
    let parameters = Parameters::at(args.scale);
    let options = PictureOptions::shipped(parameters, 1, processor)?;
    let source = fs::read(&args.file)?;
    let before = processor();
    let upscaled = upscale_image(source, &options, &mut |_| ())?;
    let (spent, facts) = (upscaled.spent, upscaled.facts);
    let pixel_bytes = usize::from(facts.channels) * usize::from(facts.depth / 8);
    let status = fs::read_to_string("/proc/self/status")?;
    print::json(&Cost {
        width: upscaled.source_size.0 as usize,
        height: upscaled.source_size.1 as usize,
        scale: args.scale.factor(),
        seconds: (processor() - before).as_secs_f64(),
        decode: spent.decode.as_secs_f64(),
        network: spent.network.as_secs_f64(),
        check: spent.check.as_secs_f64(),
        encode: spent.encode.as_secs_f64(),
        memory_bytes: status_bytes(&status, "VmHWM:").unwrap_or(0),
        result_bytes: upscaled.png.len(),
        raw_bytes: (facts.width as usize * pixel_bytes + 1) * facts.height as usize,
    })
}

fn show(costs: &[Cost]) -> anyhow::Result<()> {
    let names = [
        "PICTURE",
        "SCALE",
        "OF SQUARE",
        "SECONDS",
        "DECODE",
        "NETWORK",
        "CHECK",
        "ENCODE",
        "MEMORY",
        "BYTES",
        "OF RAW",
    ];
    let seconds = |seconds: f64| format!("{seconds:.2}");
    let rows = costs.iter().map(|cost| {
        vec![
            format!("{} x {}", cost.width, cost.height),
            format!("{}x", cost.scale),
            format!("{:.2}", of_square(costs, cost)),
            seconds(cost.seconds),
            seconds(cost.decode),
            seconds(cost.network),
            seconds(cost.check),
            seconds(cost.encode),
            format!("{} MiB", cost.memory_bytes >> 20),
            format!("{:.1} MB", cost.result_bytes as f64 / 1e6),
            format!(
                "{:.1} %",
                100.0 * cost.result_bytes as f64 / cost.raw_bytes as f64
            ),
        ]
    });
    print::table(&names, &rows.collect::<Vec<_>>())?;
    let most = costs.iter().map(|cost| of_square(costs, cost));
    let memory = costs.iter().map(|cost| cost.memory_bytes).max();
    print::line(&format!(
        "processor seconds, one thread; at most {:.2} times the square ({COST_MAX} allowed) and {} MiB ({} allowed)",
        most.fold(0.0, f64::max),
        memory.unwrap_or(0) >> 20,
        MEMORY_BYTES_MAX >> 20,
    ))
}

/// A picture's cost a pixel as a multiple of the first one's of its scale, which is the square.
fn of_square(costs: &[Cost], cost: &Cost) -> f64 {
    let per_pixel = |cost: &Cost| cost.seconds / (cost.width * cost.height) as f64;
    let square = costs.iter().find(|other| other.scale == cost.scale);
    per_pixel(cost) / square.map_or(f64::NAN, per_pixel)
}
