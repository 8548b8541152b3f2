//! One image from bytes to bytes: decode, upscale alpha and colour, check, encode. The child of the service and
//! `upscale file` run this same function; who may read which file or pipe is theirs to say.

mod work;

use std::{sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use upscale_core::{Condition, Look, Parameters, Pixels, limits::source_pixels_max};
use upscale_engine::{
    Engine, EngineOptions, EnhancedFaces, FaceEnhancer, KernelSet, ModelError, Network, Precision,
    Restorer, UpscaleError,
};
use upscale_image::{
    AlphaPlane, Format, ImageError, OutputFacts, PngWriter, Source, WriteError, balance, decode,
    store_if_smaller, thumbnail,
};

use self::work::Work;
use crate::{
    Spent,
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
    /// Largest source, inclusive, in pixels.
    pub pixels_max: u64,
    /// What runs in place of the network that ships for this scale.
    pub network: Option<&'a Arc<Network>>,
    /// What restores the picture, at its own size, before it is enlarged. To what comes after, it is a clean one then;
    /// the result is checked and balanced against the source as it came.
    pub restoring: Option<&'a Arc<Network>>,
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
            pixels_max: source_pixels_max(parameters),
            network: None,
            restoring: None,
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
    /// This program is at fault: weights, kernels, rows.
    #[error("the engine failed: {0}")]
    Engine(String),
}

impl From<ModelError> for PipelineError {
    fn from(error: ModelError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// Upscales the image in `bytes`. `progress` hears the finished share, from 0 to 1, now and then.
///
/// # Errors
/// [`PipelineError`]; nothing of a refused result leaves this function.
pub fn upscale_image(
    bytes: &[u8],
    options: &PictureOptions<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<Upscaled, PipelineError> {
    let started = (options.clock)();
    let source = decode(bytes, options.pixels_max)?;
    // Before the networks take their memory.
    let small = if options.with_thumbnail {
        thumbnail(&source)
    } else {
        None
    };
    let decode = (options.clock)() - started;
    let mut upscaled = match attempt(&source, options, FallbackLevel::Fast, progress) {
        // A model that someone brought has not been miscalculated: it is like that, and much slower the second time.
        Err(PipelineError::Output(failure))
            if options.network.is_none() && options.restoring.is_none() =>
        {
            tracing::warn!(%failure, "the output check refused a result; the plain kernels try again");
            attempt(&source, options, FallbackLevel::Reference, progress)
        }
        ended => ended,
    }?;
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
    let mut png = Vec::new();
    let factor = options.parameters.scale.factor();
    let writer = PngWriter::new(&mut png, source, factor, alpha).map_err(PipelineError::Output)?;
    let mut writer = writer.timed_by(options.clock);
    if let Some(faces) = &faces {
        writer = writer.overlaid_by(|first_row, rows| faces.lay_over(first_row, rows));
    }
    #[cfg(debug_assertions)]
    let mut spoilt = Vec::new();
    work.run(color, condition, &mut |rows| {
        #[cfg(debug_assertions)]
        let rows = crate::fault::spoil(rows, level, &mut spoilt);
        writer.push_rows(rows)
    })?;
    let (network, handing_on) = (work.network, work.handing_on);
    let facts = writer.finish().map_err(PipelineError::Output)?;
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

fn engine_options(options: &PictureOptions<'_>, level: FallbackLevel) -> EngineOptions {
    EngineOptions {
        look: options.look,
        threads: options.threads,
        kernels: match level {
            FallbackLevel::Fast => options.kernels,
            FallbackLevel::Reference => Some(KernelSet::Portable),
        },
        // The header was held against the cap; this is the same number once more.
        pixels_max: usize::try_from(options.pixels_max).unwrap_or(usize::MAX),
        // Not from the defaults: they count the cores, and the child's sandbox opens no file to do so.
        precision: match level {
            FallbackLevel::Fast => Precision::Fast,
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
    if !options.parameters.face_enhance || !source.condition.suits_face_networks() {
        return Ok(None);
    }
    let Some(enhancer) = FaceEnhancer::shipped(engine.clone())? else {
        return Ok(None);
    };
    let faces = enhancer
        .enhance(&source.color, options.parameters.scale, source.condition)
        .map_err(|error| engine_failed(&error))?;
    let keep_colours =
        |area: &Pixels, made: &mut Vec<f32>| balance(area, options.parameters.scale.factor(), made);
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
    PipelineError::Engine(error.to_string())
}

#[cfg(test)]
mod real_faces;

#[cfg(test)]
mod tests {
    use super::*;
    use upscale_core::Scale;
    use upscale_image::raster::Rgb8;

    fn options(scale: Scale) -> PictureOptions<'static> {
        PictureOptions {
            network: None,
            restoring: None,
            kernels: None,
            parameters: Parameters {
                face_enhance: true,
                ..Parameters::at(scale)
            },
            look: Look::Faithful,
            threads: 2,
            pixels_max: 24 * 18,
            ensemble: false,
            clock: wall,
            with_thumbnail: true,
        }
    }

    fn picture() -> Rgb8 {
        Rgb8::paint(24, 18, |x, y| [(x * 10) as u8, (y * 14) as u8, 90])
    }

    /// A ramp of alpha over a ramp of gray, 16 bits a sample.
    fn gray_alpha_16() -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 24, 18);
        encoder.set_color(png::ColorType::GrayscaleAlpha);
        encoder.set_depth(png::BitDepth::Sixteen);
        let mut samples = Vec::new();
        for at in 0..24u16 * 18 {
            samples.extend_from_slice(&(at * 150).to_be_bytes());
            samples.extend_from_slice(&((at % 24) * 2_800).to_be_bytes());
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&samples).unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn a_picture_becomes_its_larger_self_at_both_scales_and_progress_ends_at_one() {
        let bytes = picture().to_png().unwrap();
        for scale in Scale::ALL {
            let mut reported = Vec::new();
            let mut progress = |share| reported.push(share);
            let upscaled = upscale_image(&bytes, &options(scale), &mut progress).unwrap();
            let result = decode(&upscaled.png, 1_000_000).unwrap();
            let factor = scale.factor();
            assert_eq!(
                (result.color.width(), result.color.height()),
                (24 * factor, 18 * factor)
            );
            assert_eq!(upscaled.source_size, (24, 18));
            assert_eq!(upscaled.level, FallbackLevel::Fast);
            let small = decode(&upscaled.thumbnail.unwrap(), 24 * 18).unwrap();
            assert_eq!((small.color.width(), small.color.height()), (24, 18));
            assert!(
                reported.is_sorted() && reported.last() == Some(&1.0),
                "{reported:?}"
            );
        }
    }

    #[test]
    fn all_orientations_give_another_result_of_the_same_kind_and_report_progress() {
        let file = gray_alpha_16();
        let mut reported = Vec::new();
        let eightfold = PictureOptions {
            ensemble: true,
            ..options(Scale::X2)
        };
        let one = upscale_image(&file, &options(Scale::X2), &mut |_| ()).unwrap();
        let mean = upscale_image(&file, &eightfold, &mut |share| reported.push(share)).unwrap();
        assert_eq!((mean.facts.channels, mean.facts.depth), (2, 16));
        assert!(
            reported.is_sorted() && reported.last() == Some(&1.0),
            "{reported:?}"
        );
        let computed = reported.iter().filter(|share| **share < 0.5).count();
        assert!(
            computed > 4,
            "the orientations report their progress: {reported:?}"
        );
        let [one, mean] = [one, mean].map(|made| decode(&made.png, 10_000).unwrap().color);
        let pairs = one.samples().iter().zip(mean.samples());
        let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(furthest > 1e-4 && furthest < 0.2, "{furthest}");
    }

    #[test]
    fn gray_stays_gray_alpha_stays_alpha_and_sixteen_bits_stay() {
        let upscaled = upscale_image(&gray_alpha_16(), &options(Scale::X2), &mut |_| ()).unwrap();
        assert_eq!((upscaled.facts.channels, upscaled.facts.depth), (2, 16));
        let result = decode(&upscaled.png, 1_000_000).unwrap();
        let alpha = result.alpha.unwrap();
        assert!(alpha.row(10)[2] < alpha.row(10)[45], "the ramp goes on");
    }

    /// Deflate makes a fifth more of it than it was: the largest results would be over the limit.
    #[test]
    fn noise_makes_no_file_larger_than_its_samples() {
        let mut state = 1_u32;
        let noise = (0..24 * 18 * 8).map(|_| {
            // xorshift32, George Marsaglia.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 24) as u8
        });
        let file = rgba_16(24, 18, &noise.collect::<Vec<_>>());
        for scale in Scale::ALL {
            let made = upscale_image(&file, &options(scale), &mut |_| ()).unwrap();
            let (width, height) = (made.facts.width as usize, made.facts.height as usize);
            let raw = (width * 8 + 1) * height;
            let (most, bytes) = (raw + raw / 1_000 + 200, made.png.len());
            assert!((raw..most).contains(&bytes), "{bytes} bytes of {raw}");
            let result = decode(&made.png, 100_000).unwrap();
            assert_eq!(
                (result.color.width(), result.color.height()),
                (width, height)
            );
            assert!(result.alpha.is_some());
            assert_eq!((made.facts.channels, made.facts.depth), (4, 16));
        }
    }

    fn rgba_16(width: u32, height: u32, samples: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Sixteen);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(samples).unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn the_fallback_makes_the_same_picture() {
        let source = decode(&picture().to_png().unwrap(), 1_000).unwrap();
        let made = |level| {
            let upscaled = attempt(&source, &options(Scale::X2), level, &mut |_| ()).unwrap();
            assert_eq!(upscaled.level, level);
            Rgb8::of_source(&decode(&upscaled.png, 1_000_000).unwrap())
        };
        let (fast, plain) = (made(FallbackLevel::Fast), made(FallbackLevel::Reference));
        let pairs = fast.samples().iter().zip(plain.samples());
        let furthest = pairs.map(|(a, b)| a.abs_diff(*b)).max();
        assert!(furthest <= Some(1), "{furthest:?} levels apart");
    }

    /// A coarse JPEG, and a PNG of the same pixels that no one can know to have been one: too small to be doubted.
    #[test]
    fn the_networks_get_what_the_file_says_as_condition_input() {
        let noisy = Rgb8::paint(24, 18, |x, y| {
            [0, 1, 2].map(|c| (x * 37 + y * y * 71 + c * 50) as u8)
        });
        let mut jpeg = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 30);
        encoder
            .encode(noisy.samples(), 24, 18, jpeg_encoder::ColorType::Rgb)
            .unwrap();
        let png = Rgb8::of_source(&decode(&jpeg, 1_000).unwrap())
            .to_png()
            .unwrap();
        let [known, unknown] = [jpeg, png].map(|file| {
            let upscaled = upscale_image(&file, &options(Scale::X2), &mut |_| ()).unwrap();
            Rgb8::of_source(&decode(&upscaled.png, 10_000).unwrap())
        });
        let pairs = known.samples().iter().zip(unknown.samples());
        let furthest = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        let engine = Engine::shipped(EngineOptions::default()).unwrap();
        let listens = engine.network(Scale::X2).is_conditioned();
        assert_eq!(furthest > 3, listens, "{furthest} levels apart");
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_the_customers_words() {
        let large = Rgb8::paint(25, 18, |_, _| [0; 3]).to_png().unwrap();
        let refused = upscale_image(&large, &options(Scale::X2), &mut |_| ()).err();
        let stated = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(stated.contains("25 x 18"), "{stated}");
        let broken = upscale_image(b"GIF89a", &options(Scale::X2), &mut |_| ()).err();
        assert!(matches!(broken, Some(PipelineError::Image(_))));
    }
}
