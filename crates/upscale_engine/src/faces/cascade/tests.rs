//! The cascade beside `rustface`, box by box, on pictures made by code. Real faces and the awkward collection:
//! `upscale_pipeline`'s `real_faces`.

use rustface::ImageData;

use super::*;

fn cascade() -> Cascade {
    Cascade::read(DETECTOR_MODEL).unwrap()
}

fn of_rustface(picture: &Plane) -> Vec<Window> {
    let model = rustface::read_model(DETECTOR_MODEL).unwrap();
    let mut detector = rustface::create_detector_with_model(model);
    detector.set_score_thresh(f64::MIN_POSITIVE);
    detector.set_slide_window_step(STEP as u32, STEP as u32);
    detector.set_pyramid_scale_factor(PYRAMID);
    let luma: Vec<u8> = (0..picture.height())
        .flat_map(|y| picture.row(y).iter().copied())
        .collect();
    let (width, height) = (picture.width() as u32, picture.height() as u32);
    let found = detector.detect(&ImageData::new(&luma, width, height));
    let window = |info: &rustface::FaceInfo| Window {
        left: info.bbox().x(),
        top: info.bbox().y(),
        side: info.bbox().width() as i32,
        score: info.score(),
    };
    found.iter().map(window).collect()
}

/// An oval with eyes, brows, a nose and a mouth: much of it passes the first look, some the last.
fn drawn_face(width: usize, height: usize, seed: usize) -> Plane {
    let (middle, centre) = (width as f32 / 2.0, height as f32 / 2.0);
    let size = width.min(height) as f32 / 2.4;
    let paint = |x: usize, y: usize| {
        let (u, v) = ((x as f32 - middle) / size, (y as f32 - centre) / size);
        let near =
            |a: f32, b: f32, w: f32, h: f32| ((u - a) / w).powi(2) + ((v - b) / h).powi(2) < 1.0;
        let noise = ((x * 7_919 + y * 104_729 + seed * 31) % 23) as f32;
        let tone = if near(-0.35, -0.2, 0.16, 0.07) || near(0.35, -0.2, 0.16, 0.07) {
            40.0
        } else if near(-0.35, -0.4, 0.22, 0.05) || near(0.35, -0.4, 0.22, 0.05) {
            60.0
        } else if near(0.0, 0.5, 0.3, 0.08) || near(0.0, 0.2, 0.1, 0.06) {
            90.0
        } else if near(0.0, 0.0, 0.8, 1.0) {
            190.0
        } else {
            100.0
        };
        (tone + noise) as u8
    };
    let luma = (0..width * height).map(|i| paint(i % width, i / width));
    Plane::new(width, luma.collect()).unwrap()
}

#[test]
fn it_finds_box_by_box_what_rustface_finds() {
    let (cascade, mut boxes) = (cascade(), 0);
    let sizes = [
        (40, 40),
        (61, 83),
        (90, 70),
        (120, 120),
        (200, 131),
        (47, 300),
    ];
    for (number, (width, height)) in sizes.into_iter().enumerate() {
        for seed in 0..3 {
            let picture = drawn_face(width, height, number * 3 + seed);
            let found = cascade.windows(&picture);
            assert_eq!(found, of_rustface(&picture), "{width} x {height}, {seed}");
            boxes += found.len();
        }
    }
    assert!(boxes >= sizes.len(), "{boxes} boxes: too few to compare");
}

#[test]
fn no_picture_breaks_it() {
    let cascade = cascade();
    for (width, height) in [
        (1, 1),
        (39, 400),
        (40, 40),
        (41, 40),
        (2_000, 40),
        (64, 999),
    ] {
        // Flat, stripes as strong as they can be, white noise.
        let paints: [fn(usize) -> u8; 3] = [
            |_| 255,
            |i| if i % 4 < 2 { 0 } else { 255 },
            |i| (i.wrapping_mul(2_654_435_761) >> 13) as u8,
        ];
        for paint in paints {
            let luma = (0..width * height).map(paint).collect();
            let found = cascade.windows(&Plane::new(width, luma).unwrap());
            assert!(found.iter().all(|window| window.score.is_finite()));
        }
    }
}

#[test]
fn a_model_that_is_cut_off_or_another_one_is_refused() {
    let model = DETECTOR_MODEL;
    for length in [0, 3, 4, 40, 5_000, model.len() / 2, model.len() - 1] {
        assert_eq!(
            Cascade::read(&model[..length]).unwrap_err(),
            "the file is cut off"
        );
    }
    let mut longer = model.to_vec();
    longer.push(0);
    assert_eq!(Cascade::read(&longer).unwrap_err(), "1 bytes after its end");
    // The number of levels, of views, of places, of patterns, the first place.
    for at in [0, 4, 16, 20, 24] {
        let mut wrong = model.to_vec();
        wrong[at..at + 4].copy_from_slice(&(-1_i32).to_le_bytes());
        assert!(Cascade::read(&wrong).is_err(), "{at}");
    }
}
