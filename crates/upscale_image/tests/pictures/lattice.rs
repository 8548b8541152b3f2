//! How often the lattice of JPEG blocks is found where there is one, and where there is none: pictures of four kinds,
//! all made here, as they are and after JPEG. `cargo test -p upscale_image --test pictures lattice:: -- --nocapture` prints it.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may fail loudly and says what it found"
)]

use std::sync::OnceLock;

use crate::files::jpegs::Jpeg;
use crate::files::pngs;
use jpeg_encoder::{ColorType, SamplingFactor};
use upscale_core::{Compression, Subsampling};
use upscale_image::{decode, raster::Rgb8};

const WIDTH: usize = 328;
const HEIGHT: usize = 248;
/// Of each kind.
const PICTURES: u32 = 60;

/// A value between 0 and 1 for each place of a plane and each seed.
fn speck(x: i32, y: i32, seed: u32) -> f32 {
    let mixed = (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77);
    let mixed = (mixed ^ seed.wrapping_mul(0xc2b2_ae3d)).wrapping_mul(0x27d4_eb2f);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x1656_67b1);
    ((mixed ^ (mixed >> 13)) & 0xffff) as f32 / 65_535.0
}

/// Smooth noise with one value every `period` pixels.
fn clouds(x: f32, y: f32, period: f32, seed: u32) -> f32 {
    let (u, v) = (x / period, y / period);
    let (i, j) = (u.floor(), v.floor());
    let ease = |t: f32| t * t * (3.0 - 2.0 * t);
    let (s, t) = (ease(u - i), ease(v - j));
    let at = |di: i32, dj: i32| speck(i as i32 + di, j as i32 + dj, seed);
    let top = at(0, 0) * (1.0 - s) + at(1, 0) * s;
    let bottom = at(0, 1) * (1.0 - s) + at(1, 1) * s;
    top * (1.0 - t) + bottom * t
}

/// Clouds of every size, a horizon and discs: what a photograph is to a compressor.
fn landscape(x: f32, y: f32, seed: u32) -> [f32; 3] {
    // Periods, and their powers of 0.8.
    let octaves: [(f32, f32); 6] = [
        (97.0, 38.85),
        (41.0, 19.51),
        (19.0, 10.54),
        (9.3, 5.95),
        (4.1, 3.09),
        (2.3, 1.95),
    ];
    let sum = octaves
        .iter()
        .zip(seed * 7..)
        .map(|(&(period, power), seed)| (clouds(x, y, period, seed) - 0.5) * power / 36.0);
    let mut light = 0.5 + sum.sum::<f32>();
    let horizon = 80.0 + 90.0 * speck(1, 1, seed);
    if y > horizon + 6.0 * (x * 0.03).sin() {
        light *= 0.7;
    }
    for disc in 0..5 {
        let at = |n: i32| speck(disc, n, seed + 1000);
        let [dx, dy] = [x - 330.0 * at(1), y - 250.0 * at(2)];
        if dx * dx + dy * dy < (8.0 + 40.0 * at(3)).powi(2) {
            light = 0.5 * light + 0.5 * at(4);
        }
    }
    [light * 1.05, light, light * (0.7 + 0.4 * speck(3, 3, seed))]
}

/// Grain on slow colours.
fn grain(x: f32, y: f32, seed: u32) -> [f32; 3] {
    let strength = 0.02 + 0.15 * speck(9, 9, seed);
    [0, 1, 2].map(|c| {
        let slow = clouds(x, y, 130.0, seed + 50 + c);
        0.2 + 0.6 * slow + strength * (speck(x as i32, y as i32, seed + c) - 0.5)
    })
}

/// Panels, rules and strokes, everything on whole pixels and much of it on multiples of 4 or 8, as designers do.
fn panels(x: f32, y: f32, seed: u32) -> [f32; 3] {
    let grid = [4, 5, 8, 12][(speck(2, 7, seed) * 3.99) as usize];
    let (column, row) = (x as i32 / grid, y as i32 / grid);
    let (panel, line) = (column / 9, row / 5);
    let tone = |n: u32| 0.75 + 0.25 * speck(panel, line, seed + n);
    let mut colour = [tone(1), tone(2), tone(3)];
    if row % 5 == 4 || column % 9 == 8 {
        colour = [0.93, 0.94, 0.95];
    } else if row % 5 == 2 && column % 9 > 0 {
        let stroke = speck(x as i32 / 2, y as i32 / 3, seed + 9) > 0.55;
        colour = if stroke { [0.15, 0.15, 0.2] } else { colour };
    }
    colour
}

/// Discs and bars with gradients inside.
fn charts(x: f32, y: f32, seed: u32) -> [f32; 3] {
    let mut colour = [0.97, 0.97, 0.98];
    for shape in 0..7 {
        let at = |n: i32| speck(shape, n, seed + 500);
        let (cx, cy, size) = (330.0 * at(1), 250.0 * at(2), 12.0 + 50.0 * at(3));
        let round = (x - cx).powi(2) + (y - cy).powi(2) < size * size;
        let square = (x - cx).abs().max((y - cy).abs() * 1.7) < size;
        if (shape % 2 == 0 && round) || (shape % 2 == 1 && square) {
            let slope = ((x - cx) * at(4) + (y - cy) * at(5)) / size;
            colour = [5, 6, 7].map(|n| (at(n) + 0.15 * slope).clamp(0.0, 1.0));
        }
    }
    colour
}

type Painter = fn(f32, f32, u32) -> [f32; 3];

/// Every pixel the mean of four samples, but for panels, whose edges are sharp.
fn paint(painter: Painter, seed: u32, sharp: bool) -> Vec<u8> {
    let offsets: &[f32] = if sharp { &[0.5] } else { &[0.25, 0.75] };
    let mut bytes = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for (y, x) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
        let mut sum = [0.0; 3];
        for (dy, dx) in offsets
            .iter()
            .flat_map(|dy| offsets.iter().map(move |dx| (dy, dx)))
        {
            let sample = painter(x as f32 + dx, y as f32 + dy, seed);
            sum.iter_mut()
                .zip(sample)
                .for_each(|(sum, value)| *sum += value);
        }
        let count = (offsets.len() * offsets.len()) as f32;
        bytes.extend(sum.map(|sum| (sum / count * 255.0 + 0.5) as u8));
    }
    bytes
}

/// All of every kind, painted once.
fn pictures() -> &'static [Vec<u8>] {
    static PAINTED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    PAINTED.get_or_init(painted)
}

fn painted() -> Vec<Vec<u8>> {
    let kinds: [(Painter, bool); 4] = [
        (landscape, false),
        (grain, false),
        (panels, true),
        (charts, false),
    ];
    let all = kinds.iter().flat_map(|&(painter, sharp)| {
        (0..PICTURES).map(move |seed| paint(painter, seed * 131 + 1, sharp))
    });
    all.collect()
}

fn jpeg(samples: &[u8], quality: u8) -> Vec<u8> {
    let kind = Jpeg {
        quality,
        sampling: SamplingFactor::F_2_2,
        ..Jpeg::default()
    };
    kind.encode(WIDTH, HEIGHT, samples)
}

fn after_jpeg(samples: &[u8], quality: u8) -> Vec<u8> {
    let source = decode(&jpeg(samples, quality), 1_000_000).expect("decodes");
    Rgb8::of_source(&source).samples().to_vec()
}

/// The picture less `dx` columns on the left and `dy` rows at the top, its right and bottom edge repeated.
fn shifted(samples: &[u8], dx: usize, dy: usize) -> Vec<u8> {
    let mut moved = Vec::with_capacity(samples.len());
    for (y, x) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
        let (y, x) = ((y + dy).min(HEIGHT - 1), (x + dx).min(WIDTH - 1));
        moved.extend_from_slice(&samples[(y * WIDTH + x) * 3..][..3]);
    }
    moved
}

/// Share of the files whose compression is called unknown.
fn share_unknown(what: &str, files: impl Iterator<Item = Vec<u8>>) -> f64 {
    let (mut all, mut unknown) = (0, 0);
    for file in files {
        let source = decode(&file, 1_000_000).expect("decodes");
        all += 1;
        unknown += u32::from(source.condition.compression == Compression::Unknown);
    }
    println!("{what}: {unknown} of {all} unknown");
    f64::from(unknown) / f64::from(all)
}

fn as_png(samples: &[u8]) -> Vec<u8> {
    pngs::rgb(WIDTH, HEIGHT, samples)
}

/// A sixth of them, of every kind: compressing takes its time.
fn some(pictures: &[Vec<u8>]) -> impl Iterator<Item = &Vec<u8>> {
    pictures.iter().step_by(6)
}

#[test]
fn clean_pngs_are_believed_and_those_that_were_jpegs_are_not() {
    let pictures = pictures();
    let clean = share_unknown("clean PNG", pictures.iter().map(|p| as_png(p)));
    assert!(clean < 0.01, "{clean}");
    for (quality, least) in [(30, 0.9), (50, 0.85), (75, 0.75), (90, 0.5)] {
        let files = some(pictures).map(|p| as_png(&after_jpeg(p, quality)));
        let found = share_unknown(&format!("PNG of a JPEG of quality {quality}"), files);
        assert!(found > least, "{quality}: {found}");
    }
    let files = some(pictures).map(|p| as_png(&shifted(&after_jpeg(p, 50), 3, 6)));
    let found = share_unknown("the same, 50, cut to begin within a block", files);
    assert!(found > 0.85, "{found}");
}

#[test]
fn fine_jpegs_are_believed_unless_they_were_coarse_before() {
    let pictures = pictures();
    for quality in [95, 98] {
        let files = some(pictures).map(|p| jpeg(p, quality));
        let honest = share_unknown(&format!("JPEG of quality {quality}"), files);
        assert!(honest < 0.15, "{quality}: {honest}");
        for (dx, dy) in [(0, 0), (3, 6)] {
            let what =
                format!("JPEG of quality {quality} that was one of 50, moved by ({dx}, {dy})");
            let before = some(pictures).map(|p| shifted(&after_jpeg(p, 50), dx, dy));
            let lying = share_unknown(&what, before.map(|p| jpeg(&p, quality)));
            assert!(lying > 0.4, "{quality} {dx} {dy}: {lying}");
        }
    }
}

/// What a coarse JPEG says of itself is believed, and the networks hear it.
#[test]
fn a_coarse_jpeg_is_taken_at_its_word() {
    let picture = paint(landscape, 1, false);
    let kind = Jpeg {
        quality: 50,
        sampling: SamplingFactor::F_2_1,
        ..Jpeg::default()
    };
    let source = decode(&kind.encode(WIDTH, HEIGHT, &picture), 1_000_000).expect("decodes");
    let Compression::Quantised {
        luma_mean,
        chroma_mean,
        subsampling,
    } = source.condition.compression
    else {
        panic!("{:?}", source.condition);
    };
    // The tables of T.81, annex K, whose means are 57.6 and 86.0.
    assert!((luma_mean - 57.625).abs() < 0.01 && (chroma_mean - 86.016).abs() < 0.01);
    assert_eq!(subsampling, Subsampling::Half);
}

/// There is no chroma in a gray file; the networks hear luma's table twice.
#[test]
fn a_gray_jpeg_has_one_table_for_both() {
    let picture = paint(landscape, 1, false);
    let gray: Vec<u8> = picture.chunks_exact(3).map(|rgb| rgb[1]).collect();
    let kind = Jpeg {
        quality: 30,
        color: ColorType::Luma,
        ..Jpeg::default()
    };
    let source = decode(&kind.encode(WIDTH, HEIGHT, &gray), 1_000_000).expect("decodes");
    let [known, luma, chroma, subsampled, ..] = source.condition.inputs();
    assert!(known > 0.0 && luma > 0.8, "{:?}", source.condition);
    assert_eq!((luma, subsampled), (chroma, 0.0));
}
