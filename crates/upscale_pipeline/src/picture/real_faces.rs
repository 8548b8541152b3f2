//! Real faces through the whole pipeline. The portraits belong to others and are not in the repository;
//! `UPSCALE_TEST_DATA` says where they are.

use std::path::PathBuf;

use upscale_core::{Parameters, Scale};
use upscale_engine::{Face, FaceEnhancer, find_faces};
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize, soften},
};

use super::{PictureOptions, upscale_image, wall};

mod same_boxes;

/// Portraits of 225 x 275 pixels, a person each; none where the data is not given.
fn portraits(count: usize) -> Vec<Rgb8> {
    let Some(data) = std::env::var_os("UPSCALE_TEST_DATA") else {
        println!("left out: {count} real faces, for UPSCALE_TEST_DATA is not set");
        return Vec::new();
    };
    let folder = PathBuf::from(data).join("faces/portraits");
    let entries = std::fs::read_dir(&folder).expect("UPSCALE_TEST_DATA has faces/portraits");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let step = paths.len() / count;
    let chosen = paths.iter().step_by(step).take(count);
    chosen
        .map(|path| Rgb8::of_source(&decode(&std::fs::read(path).unwrap(), 1_000_000).unwrap()))
        .collect()
}

/// `picture` amid a slow wave that is no face.
fn on_a_wall(picture: &Rgb8, width: usize, height: usize) -> Rgb8 {
    let (left, top) = (
        (width - picture.width()) / 2,
        (height - picture.height()) / 2,
    );
    Rgb8::paint(width, height, |x, y| {
        let inside = x.checked_sub(left).zip(y.checked_sub(top));
        match inside.filter(|&(x, y)| x < picture.width() && y < picture.height()) {
            Some((x, y)) => picture.pixel(x, y),
            None => [120, 130, ((x + y) / 4 % 128) as u8 + 60],
        }
    })
}

fn found(picture: &Rgb8) -> Vec<Face> {
    let source = decode(&picture.to_png().unwrap(), 1_000_000).unwrap();
    find_faces(&source.color, source.condition).unwrap()
}

#[test]
fn faces_are_found_at_every_size_that_is_worth_it() {
    let people = portraits(30);
    // Divisor, height of a face in pixels, least share found.
    for (divisor, height, least) in [(1, 165, 0.97), (2, 82, 0.97), (4, 41, 0.9)] {
        let small = |person: &Rgb8| {
            let (width, height) = (person.width() / divisor, person.height() / divisor);
            on_a_wall(&resize(person, width, height, Kernel::Bicubic), 300, 320)
        };
        let hits = people.iter().filter(|one| found(&small(one)).len() == 1);
        let (hits, all) = (hits.count(), people.len());
        println!("faces {height} pixels high: {hits} of {all} found");
        assert!(hits as f64 >= least * all as f64, "{hits} of {all}");
    }
}

/// The picture with the same noise of `level` levels every time: sums of four even draws, near enough to a Gaussian.
fn noisy(picture: &Rgb8, level: f64) -> Rgb8 {
    let mut state = 1_u64;
    let mut even = || {
        // Knuth's constants of MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let mut drawn = || (0..4).map(|_| even()).sum::<f64>() * 3.0_f64.sqrt();
    Rgb8::paint(picture.width(), picture.height(), |x, y| {
        let pixel = picture.pixel(x, y);
        pixel.map(|value| (f64::from(value) + level * drawn()).round() as u8)
    })
}

#[test]
fn noisy_faces_are_found() {
    let people = portraits(30);
    for (level, least) in [(5.0, 0.95), (12.0, 0.95), (20.0, 0.9)] {
        let spoilt = |person: &Rgb8| {
            let small = resize(person, 112, 137, Kernel::Bicubic);
            noisy(&on_a_wall(&small, 300, 320), level)
        };
        let hits = people.iter().filter(|one| found(&spoilt(one)).len() == 1);
        let (hits, all) = (hits.count(), people.len());
        println!("faces under noise of {level} levels: {hits} of {all} found");
        assert!(hits as f64 >= least * all as f64, "{hits} of {all}");
    }
}

#[test]
fn soft_faces_are_found() {
    let people = portraits(30);
    let spoilt = |person: &Rgb8| {
        let small = resize(person, 56, 68, Kernel::Bicubic);
        soften(&on_a_wall(&small, 300, 320), 1.4)
    };
    let hits = people.iter().filter(|one| found(&spoilt(one)).len() == 1);
    let (hits, all) = (hits.count(), people.len());
    println!("soft faces 41 pixels high: {hits} of {all} found");
    assert!(hits as f64 >= 0.9 * all as f64, "{hits} of {all}");
}

#[test]
fn faces_that_the_edge_cuts_off_are_looked_at_within_the_picture() {
    let people = portraits(12);
    let mut found_in_all = 0;
    for (number, person) in people.iter().enumerate() {
        let (width, height) = (60 + 17 * number, 75 + 19 * number);
        let small = resize(person, width, height, Kernel::Bicubic);
        for (left, top) in [
            (0, 0),
            (width / 4, 0),
            (0, height / 4),
            (width / 3, height / 3),
        ] {
            for (right, bottom) in [
                (width, height),
                (3 * width / 4, height),
                (width, 4 * height / 5),
            ] {
                let cut = Rgb8::paint(right - left, bottom - top, |x, y| {
                    small.pixel(x + left, y + top)
                });
                found_in_all += found(&cut).len();
            }
        }
    }
    println!(
        "faces cut off: {found_in_all} found in {} pictures",
        12 * people.len()
    );
    assert!(found_in_all >= 3 * people.len(), "{found_in_all}");
}

#[test]
fn a_face_becomes_another_picture_and_its_surroundings_stay() {
    for person in portraits(1) {
        let small = resize(&person, 112, 137, Kernel::Bicubic);
        let picture = on_a_wall(&small, 260, 240);
        let [face] = found(&picture)[..] else {
            panic!("one face is there");
        };
        let bytes = picture.to_png().unwrap();
        for scale in Scale::ALL {
            let made = |face_enhance| {
                let parameters = Parameters {
                    face_enhance,
                    ..Parameters::at(scale)
                };
                let order = PictureOptions::shipped(parameters, 2, wall).unwrap();
                let upscaled = upscale_image(&bytes, &order, &mut |_| ()).unwrap();
                let png = decode(&upscaled.png, 4_000_000).unwrap();
                (Rgb8::of_source(&png), upscaled.faces)
            };
            let ((plain, none), (faces, some)) = (made(false), made(true));
            let shipped = FaceEnhancer::shipped(Default::default()).unwrap().is_some();
            assert_eq!((none, some), (0, usize::from(shipped)));
            let inside = changed(&plain, &faces, &face, scale.factor());
            assert!(!shipped || inside > 1_000, "{inside} pixels changed");
        }
    }
}

/// How many pixels differ; all of them lie in the face's box made half as large again.
fn changed(one: &Rgb8, other: &Rgb8, face: &Face, factor: usize) -> usize {
    let mut count = 0;
    for y in 0..one.height() {
        for x in 0..one.width() {
            if one.pixel(x, y) != other.pixel(x, y) {
                let far = |at: usize, start: f32| {
                    let middle = start + face.side / 2.0;
                    ((at as f32 + 0.5) / factor as f32 - middle).abs() > 0.75 * face.side
                };
                assert!(!far(x, face.left) && !far(y, face.top), "{x}, {y} changed");
                count += 1;
            }
        }
    }
    count
}
