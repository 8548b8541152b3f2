//! Whether a model runs here as it should: the fast kernels against the definition of its network on a small picture,
//! the result against its source, and the time that a large picture will take.

use std::{ops::ControlFlow, sync::Arc, time::Instant};

use anyhow::{Context, bail};
use safetensors::{SafeTensors, tensor::Dtype};
use serde::Serialize;
use upscale_core::{Condition, Look, Parameters, Pixels, Rows, Scale, limits};
use upscale_engine::{Engine, EngineOptions, KernelSet, Network, Precision, Restorer};

use crate::work::CHILD_WALL_CLOCK;

/// Largest difference between the fast kernels and the definition, in output values of 0..1.
const KERNEL_ERROR_MAX: f32 = 1e-4;
/// Largest difference from a golden pair: another program rounds in another order.
const GOLDEN_ERROR_MAX: f32 = 1e-4;
/// Sides of the small picture: odd, so that no square of pixels fills it, and cheap in double precision.
const SMALL: (usize, usize) = (13, 9);
/// Side of the picture that is timed.
const TIMED: usize = 96;
/// Width of the largest source in its heights: wider ones need more memory for their rows, and few are.
const WIDE: f64 = 3.0;
/// A golden pair is a small picture.
pub(super) const GOLDEN_BYTES_MAX: u64 = 64 << 20;

/// Figures of one verification, as `--json` prints them.
#[derive(Debug, Serialize)]
pub(crate) struct Verified {
    /// Kernel set that ran.
    pub(crate) kernels: &'static str,
    /// Largest difference between it and the definition.
    pub(crate) kernel_error: f32,
    /// Largest difference from the golden pair, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) golden_error: Option<f32>,
    /// How alike the shrunk result and the source are, PSNR of all samples in dB, at most 99.
    pub(crate) consistency_db: f64,
    /// Seconds for a megapixel of source on all threads, from a small picture.
    pub(crate) seconds_per_megapixel: f64,
    /// The largest source that the contract allows at this scale; before either scale, for what restores.
    pub(crate) megapixels_largest: f64,
    /// Seconds for it.
    pub(crate) seconds_largest: f64,
    /// Bytes that its maps take meanwhile, for a source three times as wide as high.
    pub(crate) map_bytes_largest: usize,
    /// Seconds that the service gives an image.
    pub(crate) deadline_seconds: f64,
    /// Whether the largest source is done by then, with as many threads.
    pub(crate) is_within_deadline: bool,
}

/// Verifies a network.
///
/// # Errors
/// When it differs by more than it may.
pub(crate) fn verify(
    network: &Arc<Network>,
    kernels: Option<KernelSet>,
    threads: usize,
    golden: Option<&[u8]>,
) -> anyhow::Result<Verified> {
    let ready = |kernels, precision| Ready::new(network, (kernels, precision), threads);
    let fast = ready(kernels, Precision::Exact)?;
    let small = picture(SMALL.0, SMALL.1);
    let given = fast.run(&small)?;
    let definition = ready(Some(KernelSet::Reference), Precision::Exact)?;
    let kernel_error = worst(&given, &definition.run(&small)?);
    if kernel_error > KERNEL_ERROR_MAX {
        bail!(
            "the kernels {} differ from the network's definition by {kernel_error:.1e}",
            fast.kernels()
        );
    }
    let golden_error = golden.map(|file| against_golden(&fast, file)).transpose()?;
    if let Some(error) = golden_error.filter(|&error| error > GOLDEN_ERROR_MAX) {
        bail!(
            "the output differs from the golden pair by {error:.1e}, at most {GOLDEN_ERROR_MAX:.0e}"
        );
    }
    let large = picture(TIMED, TIMED);
    // As a task's picture is made; the first run finds out whether integers suit the network.
    let timed = ready(kernels, Precision::Fast)?;
    timed.run(&large)?;
    let started = Instant::now();
    timed.run(&large)?;
    let megapixels = (TIMED * TIMED) as f64 / 1e6;
    let seconds_per_megapixel = started.elapsed().as_secs_f64() / megapixels;
    let pixels = fast.source_pixels_max();
    let seconds_largest = seconds_per_megapixel * pixels / 1e6;
    let height = (pixels / WIDE).sqrt();
    let (width, height) = ((height * WIDE) as usize, height as usize);
    let deadline = CHILD_WALL_CLOCK.as_secs_f64();
    Ok(Verified {
        kernels: fast.kernels(),
        kernel_error,
        golden_error,
        consistency_db: consistency(&small, &given, network.scale()),
        seconds_per_megapixel,
        megapixels_largest: pixels / 1e6,
        seconds_largest,
        map_bytes_largest: fast.memory_bytes(width, height),
        deadline_seconds: deadline,
        is_within_deadline: seconds_largest <= deadline,
    })
}

/// A network that is ready to run.
enum Ready {
    Enlarging(Box<Engine>, Scale),
    Restoring(Box<Restorer>),
}

impl Ready {
    fn new(
        network: &Arc<Network>,
        (kernels, precision): (Option<KernelSet>, Precision),
        threads: usize,
    ) -> anyhow::Result<Self> {
        let options = EngineOptions {
            threads,
            kernels,
            // As the limits are: a machine that no one knows.
            cache_share_bytes: None,
            pixels_max: usize::MAX,
            precision,
            // Not from the defaults: they count the cores, and the sandbox opens no file to do so.
            look: Look::default(),
            device: None,
        };
        let network = Arc::clone(network);
        Ok(match Scale::from_factor(network.scale() as i64) {
            Some(scale) => Self::Enlarging(Engine::shipped_but(network, options)?.into(), scale),
            None => Self::Restoring(Restorer::of(network, options)?.into()),
        })
    }

    fn run(&self, source: &Pixels) -> anyhow::Result<Vec<f32>> {
        let (engine, scale) = match self {
            Self::Enlarging(engine, scale) => (engine, *scale),
            Self::Restoring(one) => {
                return Ok(one.restore(source, &mut |_| ())?.samples().to_vec());
            }
        };
        let mut samples = Vec::new();
        let mut sink = |rows: Rows<'_>| {
            samples.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        };
        engine.upscale(source, scale, Condition::UNKNOWN, &mut sink)?;
        Ok(samples)
    }

    fn kernels(&self) -> &'static str {
        match self {
            Self::Enlarging(engine, _) => engine.kernels(),
            Self::Restoring(one) => one.kernels(),
        }
    }

    fn memory_bytes(&self, width: usize, height: usize) -> usize {
        match self {
            Self::Enlarging(engine, scale) => engine.memory_bytes(*scale, width, height),
            Self::Restoring(one) => one.memory_bytes(width, height),
        }
    }

    /// What restores comes before either scale.
    fn source_pixels_max(&self) -> f64 {
        let scale = match self {
            Self::Enlarging(_, scale) => *scale,
            Self::Restoring(_) => Scale::X2,
        };
        limits::source_pixels_max(Parameters::at(scale)) as f64
    }
}

/// Slopes, a wave and an edge, by formula.
fn picture(width: usize, height: usize) -> Pixels {
    let samples = (0..width * height * 3).map(|i| {
        let (x, y, c) = (i / 3 % width, i / 3 / width, i % 3);
        let slope = (x + 2 * y + 7 * c) as f32 / (width + 2 * height + 14) as f32;
        let wave = (x as f32 * 0.7 + c as f32).sin() * (y as f32 * 0.4).cos();
        let edge = if x * 2 > width { 0.2 } else { 0.0 };
        (0.3 + 0.3 * slope + 0.1 * wave + edge).clamp(0.0, 1.0)
    });
    Pixels::new(width, height, 3, samples.collect())
        .unwrap_or_else(|_| unreachable!("as many samples as the picture has"))
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::INFINITY;
    }
    // A difference that is no number is the worst of all; `max` would drop it.
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |worst, one| {
            if one.is_nan() {
                f32::INFINITY
            } else {
                worst.max(one)
            }
        })
}

/// PSNR between the source and the means of the squares that its pixels became.
fn consistency(source: &Pixels, output: &[f32], factor: usize) -> f64 {
    let (width, row) = (source.width(), source.width() * factor * 3);
    let mut sum = 0.0;
    for (i, &expected) in source.samples().iter().enumerate() {
        let (x, y, c) = (i / 3 % width, i / 3 / width, i % 3);
        let square = (0..factor * factor).map(|at| {
            let (dx, dy) = (at % factor, at / factor);
            f64::from(output[(y * factor + dy) * row + (x * factor + dx) * 3 + c])
        });
        let mean = square.sum::<f64>() / (factor * factor) as f64;
        sum += (mean - f64::from(expected)).powi(2);
    }
    let mean = sum / source.samples().len() as f64;
    (-10.0 * mean.log10()).min(99.0)
}

/// The largest difference from what the model's own program made of the same picture.
fn against_golden(ready: &Ready, file: &[u8]) -> anyhow::Result<f32> {
    let file = SafeTensors::deserialize(file).context("the golden pair")?;
    let (width, height, input) = samples(&file, "input")?;
    let (_, _, expected) = samples(&file, "output")?;
    let source = Pixels::new(width, height, 3, input).context("the golden pair's input")?;
    Ok(worst(&ready.run(&source)?, &expected))
}

/// A tensor `[1, 3, height, width]` of F32 as interleaved samples, with its width and height.
fn samples(file: &SafeTensors<'_>, name: &str) -> anyhow::Result<(usize, usize, Vec<f32>)> {
    let tensor = file
        .tensor(name)
        .with_context(|| format!("the golden pair has no {name:?}"))?;
    let (&[1, 3, height, width], Dtype::F32) = (tensor.shape(), tensor.dtype()) else {
        bail!("the golden pair's {name} is not [1, 3, height, width] of F32");
    };
    let numbers = tensor.data().chunks_exact(4);
    let planes: Vec<f32> = numbers
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let area = width * height;
    let interleaved = (0..area * 3).map(|i| planes[i % 3 * area + i / 3]);
    Ok((width, height, interleaved.collect()))
}
