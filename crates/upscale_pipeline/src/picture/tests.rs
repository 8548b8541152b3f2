//! A picture through the whole pipeline: sizes, colours, depths, progress, refusals.

use super::*;
use upscale_core::{Estimate, Scale};
use upscale_image::raster::Rgb8;

fn options(scale: Scale) -> PictureOptions<'static> {
    PictureOptions {
        network: None,
        restoring: None,
        device: None,
        kernels: None,
        cache_share_bytes: None,
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
    let upscaled = upscale_image(gray_alpha_16(), &options(Scale::X2), &mut |_| ()).unwrap();
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
fn what_a_look_restores_is_finished_and_nothing_else() {
    let noisy = Condition {
        estimate: Some(Estimate {
            noise: 10.0,
            ..Estimate::NONE
        }),
        ..Condition::CLEAN
    };
    let lossy = Condition {
        estimate: Some(Estimate::NONE),
        ..Condition::UNKNOWN
    };
    let finished = |look: Look, condition: Condition| {
        let options = PictureOptions {
            look,
            ..options(Scale::X4)
        };
        is_finished(&options, condition)
    };
    assert!(noisy.is_to_restore());
    assert_eq!(Look::ALL.map(|look| finished(look, noisy)), [true; 3]);
    let clean = Look::ALL.map(|look| finished(look, Condition::CLEAN));
    assert_eq!(clean, [false; 3]);
    let lossy = Look::ALL.map(|look| finished(look, lossy));
    assert_eq!(lossy, [false, true, true]);
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
