//! One image from bytes to bytes: decode, upscale alpha and colour, check, encode. The child of the service and
//! `upscale file` run this same function; who may read which file or pipe is theirs to say.

mod levels;
mod work;

use std::{sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use upscale_core::{Condition, Look, Parameters, Pixels, limits::source_pixels_max};
use upscale_engine::{
    Device, Engine, EngineOptions, EnhancedFaces, FaceEnhancer, KernelSet, ModelError, Network,
    Precision, Restorer, UpscaleError,
};
use upscale_image::{
    AlphaPlane, Format, ImageError, OutputFacts, PngWriter, Source, WriteError, balance, decode,
    store_if_smaller, thumbnail,
};

use self::{levels::by_levels, work::Work};
use crate::{
    DeviceUse, Spent, cache_share_bytes,
    kernels::{self, KernelsError},
};

/// What to do with an image.
#[derive(Debug, Clone, Copy)]
pub struct PictureOptions<'a> {
    /// What is asked for.
    pub parameters: Parameters,
    /// Which of our networks make it.
    pub look: Look,
    /// Threads for this image, ≥ 1.
    pub threads: usize,
    /// Which kernels to use; none: the fastest that the CPU can run.
    pub kernels: Option<KernelSet>,
    /// What [`EngineOptions::cache_share_bytes`] says.
    pub cache_share_bytes: Option<usize>,
    /// Largest source, inclusive, in pixels.
    pub pixels_max: u64,
    /// What runs in place of the network that ships for this scale.
    pub network: Option<&'a Arc<Network>>,
    /// What restores the picture, at its own size, before it is enlarged. To what comes after, it is a clean one then;
    /// the result is checked and balanced against the source as it came.
    pub restoring: Option<&'a Arc<Network>>,
    /// What runs the networks in the place of the CPU, where a picture is worth handing over; none: nothing does.
    pub device: Option<&'a Arc<dyn Device>>,
    /// Whether the networks run on all eight orientations of the picture, for the mean.
    pub ensemble: bool,
    /// What the stages are timed by: [`wall`] or [`processor`].
    pub clock: Clock,
    /// Whether a thumbnail is made as well.
    pub with_thumbnail: bool,
}

impl PictureOptions<'_> {
    /// The networks that ship and the largest source of the contract, on the kernels that the environment names.
    ///
    /// # Errors
    /// When the environment names kernels that are none, or that this CPU cannot run.
    pub fn shipped(
        parameters: Parameters,
        threads: usize,
        clock: Clock,
    ) -> Result<Self, KernelsError> {
        Ok(Self {
            parameters,
            look: Look::default(),
            threads,
            kernels: kernels::from_environment()?,
            cache_share_bytes: cache_share_bytes(),
            pixels_max: source_pixels_max(parameters),
            network: None,
            restoring: None,
            device: None,
            ensemble: false,
            clock,
            with_thumbnail: false,
        })
    }
}

/// How much time has passed since some moment.
pub type Clock = fn() -> Duration;

/// As the customer's clock goes.
pub fn wall() -> Duration {
    read(ClockId::Monotonic)
}

/// Of a processor, in this thread: what other programs do meanwhile does not count.
pub fn processor() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// A finished result.
pub struct Upscaled {
    /// The PNG file.
    pub png: Vec<u8>,
    /// Size, depth and checksum of the PNG.
    pub facts: OutputFacts,
    /// What the source was.
    pub source_format: Format,
    /// Columns and rows of the source, upright.
    pub source_size: (u32, u32),
    /// The fallback level whose result passed the output check.
    pub level: FallbackLevel,
    /// Whether a device had to do with it.
    pub device: DeviceUse,
    /// Whether [`PictureOptions::network`] made it.
    pub by_brought_model: bool,
    /// Faces that were made clearer.
    pub faces: usize,
    /// What the attempt took.
    pub spent: Spent,
    /// A small PNG of the picture, where [`PictureOptions::with_thumbnail`] asks for it.
    pub thumbnail: Option<Vec<u8>>,
}

/// The fallback levels of the output check: what a result came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackLevel {
    /// A device beside the CPU.
    Device,
    /// The kernels that fit this CPU best.
    Fast,
    /// Plain loops, because the check refused what the fast kernels made. The double-precision definition
    /// itself would take minutes for a large picture, longer than a task has.
    Reference,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The file is at fault; the same bytes will fail again. The text is for the customer.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// What the networks made is not the source, at both levels; the text is for logs.
    #[error("the result failed the output check: {0}")]
    Output(WriteError),
    /// The device did not do it; the text is for logs.
    #[error("the device: {reason}")]
    Device {
        /// What failed.
        reason: String,
        /// Whether it is broken; else it is only not for this picture.
        is_broken: bool,
    },
    /// This program is at fault: weights, kernels, rows.
    #[error("the engine failed: {0}")]
    Engine(String),
}

impl From<ModelError> for PipelineError {
    fn from(error: ModelError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// Upscales the image in `bytes`, which it lets go once they are decoded. `progress` hears the finished share, from 0 to 1,
/// now and then.
///
/// # Errors
/// [`PipelineError`]; nothing of a refused result leaves this function.
pub fn upscale_image(
    bytes: impl AsRef<[u8]>,
    options: &PictureOptions<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<Upscaled, PipelineError> {
    let started = (options.clock)();
    let source = decode(bytes.as_ref(), options.pixels_max)?;
    drop(bytes);
    // Before the networks take their memory.
    let small = if options.with_thumbnail {
        thumbnail(&source)
    } else {
        None
    };
    let decode = (options.clock)() - started;
    let mut upscaled = by_levels(&source, options, progress)?;
    upscaled.spent.decode = decode;
    upscaled.thumbnail = small;
    Ok(upscaled)
}

fn attempt(
    source: &Source,
    options: &PictureOptions<'_>,
    level: FallbackLevel,
    progress: &mut dyn FnMut(f64),
) -> Result<Upscaled, PipelineError> {
    let engine = engine_options(options, level);
    let started = (options.clock)();
    let faces = enhance_faces(source, options, &engine)?;
    let face_time = (options.clock)() - started;
    let shipped = Engine::shipped(engine.clone())?;
    let brought = options
        .network
        .map(|network| Engine::shipped_but(Arc::clone(network), engine.clone()));
    let brought = brought.transpose()?;
    // Alpha is no picture: whatever a brought model was trained for, it was not that.
    let mut work = Work::new(&shipped, source, options, progress);
    let alpha = upscale_alpha(source, &mut work)?;
    work.engine = brought.as_ref().unwrap_or(&shipped);
    let restored = restore(source, options, engine, &mut work)?;
    let (color, condition) = match &restored {
        Some(restored) => (restored, Condition::CLEAN),
        None => (&source.color, source.condition),
    };
    let factor = options.parameters.scale.factor();
    let writer = PngWriter::new(source, factor, alpha).map_err(PipelineError::Output)?;
    let mut writer = writer.timed_by(options.clock);
    if is_finished(options, condition) {
        let softness = condition.estimate.map_or(0.0, |read| read.softness);
        writer = writer.with_look(options.look, softness);
    }
    if let Some(faces) = &faces {
        writer = writer.overlaid_by(|first, part| faces.lay_over(first, part));
    }
    #[cfg(debug_assertions)]
    let mut spoilt = Vec::new();
    work.run(color, condition, &mut |rows| {
        #[cfg(debug_assertions)]
        let rows = crate::fault::spoil(rows, level, &mut spoilt);
        writer.push_rows(rows)
    })?;
    let (network, handing_on) = (work.network, work.handing_on);
    let (facts, png) = writer.finish().map_err(PipelineError::Output)?;
    let started = (options.clock)();
    let png = store_if_smaller(png, source, factor).map_err(PipelineError::Output)?;
    let stored = (options.clock)() - started;
    let encode = facts.encode_time;
    let factor = factor as u32;
    Ok(Upscaled {
        png,
        source_size: (facts.width / factor, facts.height / factor),
        facts,
        source_format: source.header.format,
        level,
        device: DeviceUse::None,
        by_brought_model: options.network.is_some(),
        faces: faces.map_or(0, |faces| faces.found().len()),
        spent: Spent {
            decode: Duration::ZERO,
            network: network + face_time,
            check: handing_on.saturating_sub(encode),
            encode: encode + stored,
        },
        thumbnail: None,
    })
}

/// What our restoring networks draw is finished as the look wants it; what a model that was brought draws is left as it is.
fn is_finished(options: &PictureOptions<'_>, condition: Condition) -> bool {
    options.network.is_none() && condition.is_restored_in(options.look)
}

fn engine_options(options: &PictureOptions<'_>, level: FallbackLevel) -> EngineOptions {
    EngineOptions {
        look: options.look,
        threads: options.threads,
        kernels: match level {
            FallbackLevel::Device | FallbackLevel::Fast => options.kernels,
            FallbackLevel::Reference => Some(KernelSet::Portable),
        },
        cache_share_bytes: options.cache_share_bytes,
        device: match level {
            FallbackLevel::Device => options.device.cloned(),
            _ => None,
        },
        // The header was held against the cap; this is the same number once more.
        pixels_max: usize::try_from(options.pixels_max).unwrap_or(usize::MAX),
        // Not from the defaults: they count the cores, and the child's sandbox opens no file to do so.
        precision: match level {
            FallbackLevel::Device | FallbackLevel::Fast => Precision::Fast,
            FallbackLevel::Reference => Precision::Exact,
        },
    }
}

/// The faces, made before the picture: they are laid over its rows while those stream by. Each keeps its colours by
/// itself, for the balance of the whole would carry what a face changed to pixels round it.
fn enhance_faces(
    source: &Source,
    options: &PictureOptions<'_>,
    engine: &EngineOptions,
) -> Result<Option<EnhancedFaces>, PipelineError> {
    if !options.parameters.face_enhance {
        return Ok(None);
    }
    // Most faces are small, and their networks no one's but the child's.
    let on_cpu = EngineOptions {
        device: None,
        ..engine.clone()
    };
    let Some(enhancer) = FaceEnhancer::shipped(on_cpu)? else {
        return Ok(None);
    };
    let faces = enhancer
        .enhance(&source.color, options.parameters.scale, source.condition)
        .map_err(|error| engine_failed(&error))?;
    let keep_colours =
        |area: &Pixels, made: &mut [f32]| balance(area, options.parameters.scale.factor(), made);
    Ok(Some(faces.corrected(&source.color, keep_colours)))
}

/// The colours at their own size, by the network that restores; alpha is not its business.
fn restore(
    source: &Source,
    options: &PictureOptions<'_>,
    engine: EngineOptions,
    work: &mut Work<'_>,
) -> Result<Option<Pixels>, PipelineError> {
    let Some(network) = options.restoring else {
        return Ok(None);
    };
    let restorer = Restorer::of(Arc::clone(network), engine)?;
    work.restore(&restorer, &source.color).map(Some)
}

/// Alpha goes first: the encoder writes colour and alpha of a row together.
fn upscale_alpha(
    source: &Source,
    work: &mut Work<'_>,
) -> Result<Option<AlphaPlane>, PipelineError> {
    let (Some(alpha), Some(mut plane)) =
        (&source.alpha, AlphaPlane::new(source, work.scale.factor()))
    else {
        return Ok(None);
    };
    work.run(alpha, Condition::CLEAN, &mut |rows| plane.push_rows(rows))?;
    Ok(Some(plane))
}

fn engine_failed(error: &UpscaleError) -> PipelineError {
    match error {
        UpscaleError::Device { reason, is_broken } => PipelineError::Device {
            reason: reason.clone(),
            is_broken: *is_broken,
        },
        other => PipelineError::Engine(other.to_string()),
    }
}

#[cfg(test)]
mod real_faces;

#[cfg(test)]
mod tests;
