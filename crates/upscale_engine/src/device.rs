//! What computes pictures beside this CPU, such as a GPU, and how far it is trusted: where the CPU can afford it, it
//! computes a piece of the picture as well, and a device that made it otherwise has failed. The caller lets the CPU do
//! the picture then.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use upscale_core::{Condition, Pixels, Rows};

use crate::engine::Running;
use crate::error::UpscaleError;
use crate::executor::{Executor, Precision};
use crate::network::{Activation, Network};
use crate::run::{Cancelled, Sink};

/// Multiply-accumulates that a core does in about a tenth of a second: so many may be spent on checking what a device made, and a
/// picture of fewer is not worth handing over.
pub const MACS_OF_A_MOMENT: usize = 8_000_000_000;
/// Side of the piece that is compared, in source pixels.
const PIECE_SIDE: usize = 16;
/// Where a piece cannot be afforded, for a pixel of a deep network sees hundreds of others, one picture in so many is tried
/// with a small part of it as a picture of its own.
const TRIAL_EVERY: u64 = 8;
/// Half an 8-bit level, which half precision may differ by, and a little for the CPU's own rounding.
const TOLERANCE: f32 = 0.5 / 255.0 + 1e-4;

/// Something that runs networks in the place of this CPU.
pub trait Device: Debug + Send + Sync {
    /// Upscales one picture and hands its rows to `sink`, top to bottom, until `cancelled` says true: within half an 8-bit
    /// level of what the CPU makes.
    ///
    /// # Errors
    /// [`DeviceError`], after which the rows that were handed on are worth nothing.
    fn upscale(
        &self,
        work: &DeviceWork<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), DeviceError>;
}

/// One picture for a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceWork<'a> {
    /// The network; its condition is not folded in yet.
    pub network: &'a Arc<Network>,
    /// What is known of the picture.
    pub condition: Condition,
    /// Gray or RGB.
    pub source: &'a Pixels,
}

/// Why a device did not do a picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The sink, or the caller's `cancelled`, said stop.
    #[error("the upscale was cancelled")]
    Cancelled,
    /// It is not for this picture, or not now; it may be for the next one. Why, in words, for logs.
    #[error("{0}")]
    Refused(String),
    /// It broke. In words, for logs.
    #[error("{0}")]
    Failed(String),
}

impl From<DeviceError> for UpscaleError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Cancelled => Self::Cancelled,
            DeviceError::Refused(reason) => Self::Device {
                reason,
                is_broken: false,
            },
            DeviceError::Failed(reason) => Self::Device {
                reason,
                is_broken: true,
            },
        }
    }
}

impl Network {
    /// A number that tells networks apart, of all their numbers and shapes: two processes of one program name a network
    /// so. It keeps no one from making another network of the same number.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = crc32fast::Hasher::new();
        let mut add = |values: &[f32]| {
            // A few thousand at a time: a byte copy of the whole may take 64 MB.
            for piece in values.chunks(4_096) {
                let bytes: Vec<u8> = piece.iter().flat_map(|value| value.to_le_bytes()).collect();
                hash.update(&bytes);
            }
        };
        add(&self.mean);
        add(&[
            self.scale as f32,
            self.unshuffle as f32,
            self.layers.len() as f32,
        ]);
        for layer in &self.layers {
            add(&[
                layer.output as f32,
                layer.inputs.len() as f32,
                f32::from(layer.is_interleaved),
                layer.side as f32,
            ]);
            add(&layer.weights);
            add(&layer.bias);
            if let Activation::Prelu(slopes) = &layer.activation {
                add(slopes);
            }
        }
        for (weights, bias) in self
            .conditioning
            .iter()
            .flat_map(|c| [&c.hidden, &c.output])
        {
            add(weights);
            add(bias);
        }
        u64::from(hash.finalize()) << 32 | self.parameters() as u64 & 0xffff_ffff
    }
}

fn macs(network: &Network, pixels: usize) -> usize {
    pixels.saturating_mul(network.macs_per_pixel())
}

/// Upscales `source` on the device that the options name, and checks what it can.
pub(crate) fn upscale(
    device: &dyn Device,
    running: &Running<'_>,
    source: &Pixels,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let network = &running.loaded.network;
    let seed = seed(source);
    let piece = Piece::choose(network, source, seed);
    let expected = match &piece {
        Some(piece) => Some(piece.expected(running, source, cancelled)?),
        None if seed.is_multiple_of(TRIAL_EVERY) => {
            try_out(device, running, source, seed, cancelled)?;
            None
        }
        None => None,
    };
    let mut differs = None;
    let mut checking = |rows: Rows<'_>| {
        if let (Some(piece), Some(expected)) = (&piece, &expected) {
            differs = piece.difference(&rows, expected, network.scale, source.channels());
        }
        match differs {
            Some(_) => ControlFlow::Break(()),
            None => sink(rows),
        }
    };
    let ended = device.upscale(&running.device_work(source), &mut checking, cancelled);
    match differs {
        Some(by) => Err(lies(by)),
        None => Ok(ended?),
    }
}

fn lies(by: f32) -> UpscaleError {
    let reason =
        format!("what it makes differs from the CPU's by {by}, at most {TOLERANCE} may be");
    UpscaleError::Device {
        reason,
        is_broken: true,
    }
}

/// Of the picture, so that a picture is checked at the same place whenever it comes.
fn seed(source: &Pixels) -> u64 {
    let mut hash = crc32fast::Hasher::new();
    for row in [0, source.height() / 2, source.height() - 1] {
        for sample in source.row(row) {
            hash.update(&sample.to_le_bytes());
        }
    }
    hash.finalize().into()
}

/// A part of a picture, in source pixels.
#[derive(Debug, Clone, Copy)]
struct Part {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl Part {
    /// Of at most that side, somewhere that the seed says.
    fn choose(source: &Pixels, side: usize, seed: u64) -> Self {
        let (width, height) = (source.width().min(side), source.height().min(side));
        let (columns, rows) = (source.width() - width + 1, source.height() - height + 1);
        Self {
            x: (seed / 8 % columns as u64) as usize,
            y: (seed / 8 / columns as u64 % rows as u64) as usize,
            width,
            height,
        }
    }

    fn of(&self, source: &Pixels) -> Pixels {
        let channels = source.channels();
        let columns = self.x * channels..(self.x + self.width) * channels;
        let rows = (self.y..self.y + self.height).flat_map(|y| &source.row(y)[columns.clone()]);
        Pixels::new(self.width, self.height, channels, rows.copied().collect())
            .unwrap_or_else(|_| unreachable!("as many samples as the part has"))
    }
}

/// What is compared, and what is computed for that.
#[derive(Debug)]
struct Piece {
    part: Part,
    window: Part,
}

impl Piece {
    /// None where so much would have to be computed for it that the CPU could as well do the picture.
    fn choose(network: &Network, source: &Pixels, seed: u64) -> Option<Self> {
        let part = Part::choose(source, PIECE_SIDE, seed);
        // Whole squares, that map 0 is the same.
        let side = network.unshuffle;
        let reach = network.reach().next_multiple_of(side) + side;
        let (x, y) = (
            part.x.saturating_sub(reach) / side * side,
            part.y.saturating_sub(reach) / side * side,
        );
        let window = Part {
            x,
            y,
            width: (part.x + part.width + reach).min(source.width()) - x,
            height: (part.y + part.height + reach).min(source.height()) - y,
        };
        let is_cheap = macs(network, window.width * window.height) <= MACS_OF_A_MOMENT;
        is_cheap.then_some(Self { part, window })
    }

    /// The samples that the piece has by the CPU, row after row.
    fn expected(
        &self,
        running: &Running<'_>,
        source: &Pixels,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<f32>, UpscaleError> {
        let window = self.window.of(source);
        let made = on_cpu(running, &window, cancelled)?;
        let scale = running.loaded.network.scale;
        let made = Pixels::new(
            window.width() * scale,
            window.height() * scale,
            window.channels(),
            made,
        )
        .unwrap_or_else(|_| unreachable!("the sink was given all rows"));
        let inside = Part {
            x: (self.part.x - self.window.x) * scale,
            y: (self.part.y - self.window.y) * scale,
            width: self.part.width * scale,
            height: self.part.height * scale,
        };
        Ok(inside.of(&made).samples().to_vec())
    }

    /// The largest difference of those of the piece's rows that are there, if it is too large.
    fn difference(
        &self,
        rows: &Rows<'_>,
        expected: &[f32],
        scale: usize,
        channels: usize,
    ) -> Option<f32> {
        let width = self.part.width * scale * channels;
        let first = self.part.x * scale * channels;
        let pairs = (self.part.y * scale..).zip(expected.chunks_exact(width));
        let there = rows.first_row..rows.first_row + rows.row_count;
        let differences = pairs
            .filter(|(y, _)| there.contains(y))
            .map(|(y, expected)| {
                let start = (y - rows.first_row) * rows.row_samples + first;
                largest_difference(&rows.samples[start..start + width], expected)
            });
        too_large(differences.fold(0.0, f32::max))
    }
}

/// NaN is as far as can be.
fn largest_difference(made: &[f32], expected: &[f32]) -> f32 {
    let differences = made.iter().zip(expected).map(|(a, b)| match (a - b).abs() {
        far if far.is_nan() => f32::INFINITY,
        far => far,
    });
    differences.fold(0.0, f32::max)
}

fn too_large(difference: f32) -> Option<f32> {
    (difference > TOLERANCE).then_some(difference)
}

fn on_cpu(
    running: &Running<'_>,
    source: &Pixels,
    cancelled: Cancelled<'_>,
) -> Result<Vec<f32>, UpscaleError> {
    let folded = running.loaded.network.under(running.condition);
    let executor = Executor::new(folded, running.kernels, Precision::Exact);
    let mut samples = Vec::new();
    let mut keep = |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    executor.upscale(source, running.options.threads.max(1), &mut keep, cancelled)?;
    Ok(samples)
}

/// Both make a small part of the picture as a picture of its own.
fn try_out(
    device: &dyn Device,
    running: &Running<'_>,
    source: &Pixels,
    seed: u64,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let affordable = MACS_OF_A_MOMENT / running.loaded.network.macs_per_pixel().max(1);
    let part = Part::choose(source, affordable.isqrt().max(1), seed).of(source);
    let expected = on_cpu(running, &part, cancelled)?;
    let mut made = Vec::new();
    let mut keep = |rows: Rows<'_>| {
        made.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    device.upscale(&running.device_work(&part), &mut keep, cancelled)?;
    let difference = match made.len() == expected.len() {
        true => largest_difference(&made, &expected),
        false => f32::INFINITY,
    };
    too_large(difference).map_or(Ok(()), |by| Err(lies(by)))
}
