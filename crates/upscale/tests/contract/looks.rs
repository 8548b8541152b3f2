//! The look of results: chosen for the service or for a command, said in headers, and no part of an order.

use std::fs;

use crate::harness::{
    World,
    client::{Client, order},
    pictures::Picture,
    serve::upscale,
};

/// Waves under grain of some ten levels: a picture that the restoring networks take.
fn grainy() -> Picture {
    let mut picture = Picture::render(96, 72, 3);
    // Numerical Recipes' constants; the same grain on every run.
    let mut state = 7_u32;
    for sample in &mut picture.rgb {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = i16::try_from(state >> 27).unwrap() - 16;
        *sample = (i16::from(*sample) + grain).clamp(0, 255) as u8;
    }
    picture
}

/// The result's bytes, after both of its headers named this look.
fn result_in(look: &str, customer: &Client, key: &str, url: &str) -> Vec<u8> {
    let done = customer.upscale(key, &order(url, 2));
    assert_eq!(done.header("x-result-look"), look);
    let file = customer.fetch("GET", &done.result_url(), &[]);
    assert_eq!((file.status, file.header("x-result-look")), (200, look));
    file.body
}

#[test]
fn every_look_makes_another_picture_of_the_same_source_and_says_which_it_is() {
    let mut found = Vec::new();
    for look in ["faithful", "natural", "crisp"] {
        let mut world = World::start_with(&["--look", look]);
        let source = grainy();
        let url = world.serve_bytes("/grainy.png", source.png(), (96, 72));
        let customer = world.customer("10");
        let made = result_in(look, &customer, "look-of-the-service-0001", &url);
        world.finish();

        // The command makes the very same file.
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in.png"), source.png()).unwrap();
        let output = upscale()
            .args(["file", "in.png", "out.png", "--look", look])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read(folder.path().join("out.png")).unwrap(), made);
        found.push(Picture::from_png(&made).unwrap());
    }
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        let differs = found[one].mean_difference(&found[other]);
        assert!(
            (0.02..6.0).contains(&differs),
            "{one} and {other}: {differs}"
        );
    }
    // Natural lies between the two others.
    assert!(found[0].mean_difference(&found[1]) < found[0].mean_difference(&found[2]));
}

#[test]
fn a_look_that_there_is_not_is_refused_in_words() {
    let output = upscale()
        .args(["file", "in.png", "out.png", "--look", "vivid"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        words.contains("expected faithful, natural or crisp"),
        "{words}"
    );
}
