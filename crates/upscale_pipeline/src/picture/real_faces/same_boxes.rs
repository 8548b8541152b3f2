//! Our face detector finds what `rustface` finds, box by box and score by score: on all portraits, on large faces and on the
//! awkward collection.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustface::{FaceInfo, ImageData, Model};
use upscale_engine::{Cascade, DETECTOR_MODEL, Plane, Window};
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize},
};

/// One file in so many is compared, unless `UPSCALE_EVERY_PICTURE` is set: a second instead of half a minute.
const EVERY: usize = 8;
/// Larger pictures are looked at in a smaller size, for the time it takes.
const PIXELS_MAX: usize = 200_000;

/// All files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Width and luma; none where the file is no picture that we take.
fn luma(path: &Path) -> Option<(usize, Vec<u8>)> {
    let picture = Rgb8::of_source(&decode(&std::fs::read(path).unwrap(), 20_000_000).ok()?);
    let pixels = picture.width() * picture.height();
    let share = (PIXELS_MAX as f64 / pixels as f64).sqrt().min(1.0);
    let size = |length: usize| ((length as f64 * share) as usize).max(1);
    let (width, height) = (size(picture.width()), size(picture.height()));
    let picture = resize(&picture, width, height, Kernel::Bicubic);
    let gray = |x, y| {
        let [red, green, blue] = picture.pixel(x, y).map(u32::from);
        ((299 * red + 587 * green + 114 * blue + 500) / 1_000) as u8
    };
    let pixels = (0..width * height).map(|at| gray(at % width, at / width));
    Some((width, pixels.collect()))
}

fn of_rustface(model: &Model, width: usize, luma: &[u8]) -> Vec<Window> {
    let height = luma.len() / width;
    // Below its window's size it steps outside of the picture.
    if width.min(height) < 40 {
        return Vec::new();
    }
    let mut detector = rustface::create_detector_with_model(model.clone());
    detector.set_score_thresh(f64::MIN_POSITIVE);
    detector.set_slide_window_step(2, 2);
    let found = detector.detect(&ImageData::new(luma, width as u32, height as u32));
    let window = |info: &FaceInfo| Window {
        left: info.bbox().x(),
        top: info.bbox().y(),
        side: info.bbox().width() as i32,
        score: info.score(),
    };
    found.iter().map(window).collect()
}

#[test]
fn boxes_and_scores_are_those_of_rustface_on_real_pictures() {
    let Some(data) = std::env::var_os("UPSCALE_TEST_DATA").map(PathBuf::from) else {
        println!("left out: real pictures, for UPSCALE_TEST_DATA is not set");
        return;
    };
    let model = rustface::read_model(DETECTOR_MODEL).unwrap();
    let cascade = Cascade::read(DETECTOR_MODEL).unwrap();
    let (mut pictures, mut boxes) = (0, 0);
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    let every = std::env::var_os("UPSCALE_EVERY_PICTURE").map_or(EVERY, |_| 1);
    let paths = ["faces", "awkward"].map(|name| files(&data.join(name)));
    for path in paths.concat().into_iter().step_by(every) {
        let Some((width, luma)) = luma(&path) else {
            continue;
        };
        let begun = Instant::now();
        let expected = of_rustface(&model, width, &luma);
        theirs += begun.elapsed();
        let plane = Plane::new(width, luma).unwrap();
        let begun = Instant::now();
        let found = cascade.windows(&plane);
        ours += begun.elapsed();
        assert_eq!(found, expected, "{}", path.display());
        pictures += 1;
        boxes += found.len();
    }
    println!(
        "{boxes} boxes in {pictures} pictures, all equal; rustface takes {:.2} times as long",
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
    let enough = pictures > 600 / every && boxes > pictures / 2;
    assert!(enough, "{boxes} in {pictures}");
}
