//! The output check judges faults, not restoration. Photographs of every size from 16 to 400 pixels are damaged in every
//! way that the networks are judged by; restorers played by arithmetic bring them back, and none may be refused. The same
//! results with a fault in them must be. `UPSCALE_TEST_DATA` says where the photographs are; sixteen are taken, and with
//! `UPSCALE_CHECK_PICTURES=1000` a thousand.

#![allow(
    clippy::print_stdout,
    reason = "a test says what it found and left out"
)]

use std::collections::BTreeMap;

use crate::bed::{
    Dice, Trial, camera_pairs,
    damage::{self, Damage},
    drawn,
    faults::{Fault, TILE},
    photographs,
    restorers::Restorer,
};
use upscale_core::Pixels;
use upscale_image::check_result;

/// Pictures that are drawn, with the data or without.
const DRAWN: usize = 8;
/// Photographs, unless the environment says otherwise.
const PHOTOGRAPHS: usize = 16;

fn trials() -> impl Iterator<Item = (usize, Trial)> {
    let asked = std::env::var("UPSCALE_CHECK_PICTURES").ok();
    let count = asked
        .and_then(|count| count.parse().ok())
        .unwrap_or(PHOTOGRAPHS);
    let pictures = photographs(count).chain(drawn(DRAWN)).enumerate();
    pictures.map(|(number, (name, picture))| (number, Trial::new(number, &name, &picture)))
}

/// How many of how many.
#[derive(Default)]
struct Rate {
    hits: usize,
    all: usize,
}

#[derive(Default)]
struct Rates(BTreeMap<String, Rate>);

impl Rates {
    fn add(&mut self, what: String, is_hit: bool) {
        let rate = self.0.entry(what).or_default();
        rate.all += 1;
        rate.hits += usize::from(is_hit);
    }

    fn print(&self, verb: &str) {
        for (what, Rate { hits, all }) in &self.0 {
            println!("{what}: {hits} of {all} {verb}");
        }
    }
}

#[test]
fn what_restores_a_picture_is_never_refused() {
    let (mut rates, mut refused) = (Rates::default(), Vec::new());
    for (number, trial) in trials() {
        for (step, damage) in damage::ALL.iter().enumerate() {
            let source = damage.source(&trial, number as u64);
            let other = Restorer::ALL[1 + (number + step) % 3];
            for restorer in [Restorer::Ideal, other] {
                let result = restorer.restore(&trial, &source);
                let verdict = check_result(&source, trial.scale, result.samples());
                rates.add(format!("{restorer:?}, {}", damage.name()), verdict.is_err());
                if let Err(failure) = verdict {
                    refused.push(format!(
                        "{restorer:?} {} {}: {failure}",
                        damage.name(),
                        trial.name
                    ));
                }
            }
        }
    }
    rates.print("refused");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn what_a_longer_lens_shows_is_no_fault() {
    let (pairs, mut refused) = (camera_pairs(), Vec::new());
    for (name, source, truth) in &pairs {
        if let Err(failure) = check_result(source, 4, truth.samples()) {
            refused.push(format!("{name}: {failure}"));
        }
    }
    println!("{} of {} camera pairs refused", refused.len(), pairs.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// A fault; over means of how many source pixels squared it is measured; and from how much on it shows.
///
/// What it changes is measured as the source could show it: blurred as the source was, root mean square where anything
/// changed, `[0, 1]`. Noise of the source hides as much again, and so does what its compression changed. Smaller faults are counted and may pass; noise and
/// drift are only counted here, for the amounts injected lie below what shows: `output_check.rs` holds larger ones.
const FAULTS: [(Fault, usize, f32); 11] = [
    (Fault::NotANumber, 1, 0.0),
    (Fault::FlatField, 1, 0.0),
    (Fault::FlatTile, 4, 0.12),
    (Fault::MissingTile, 4, 0.12),
    (Fault::PastedTile, 4, 0.12),
    (Fault::ShiftedTile, 1, 0.06),
    (Fault::ShiftedPicture, 1, 0.06),
    (Fault::SwappedChannels, 4, 0.03),
    (Fault::Inverted, 1, 0.1),
    (Fault::Drift, 4, f32::INFINITY),
    (Fault::Noise, 1, f32::INFINITY),
];

#[test]
fn every_fault_that_shows_is_caught() {
    let (mut rates, mut missed) = (Rates::default(), Vec::new());
    for (number, trial) in trials() {
        let damage = &damage::ALL[number % damage::ALL.len()];
        let source = damage.source(&trial, number as u64);
        let restorer = [Restorer::Ideal, Restorer::Enlarging][number / 2 % 2];
        let sound = restorer.restore(&trial, &source);
        let uncompressed = Damage {
            jpeg: None,
            ..*damage
        };
        let compression = distance(&source, &uncompressed.source(&trial, number as u64), 1);
        let tile_fits = trial.small.width().min(trial.small.height()) >= 2 * TILE;
        for (fault, cell, least) in FAULTS {
            let mut dice = Dice::new(number as u64);
            let broken = fault.inject(&sound, trial.scale, &mut dice);
            let is_caught = check_result(&source, trial.scale, broken.samples()).is_err();
            rates.add(format!("{fault:?}"), is_caught);
            let change = change(&sound, &broken, damage, (cell, trial.scale));
            let shows = least == 0.0 || change > least + damage.noise / 255.0 + compression;
            if shows && (tile_fits || !fault.is_of_a_tile()) {
                rates.add(format!("{fault:?} that shows"), is_caught);
                if !is_caught {
                    let how = format!("{fault:?} {restorer:?} {}", damage.name());
                    missed.push(format!("{how} {}: {change:.4}", trial.name));
                }
            }
        }
    }
    rates.print("caught");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// What the fault changed, as [`FAULTS`] says.
fn change(sound: &Pixels, broken: &Pixels, damage: &Damage, (cell, scale): (usize, usize)) -> f32 {
    let clamped = |picture| damage::changed(picture, |sample: f32| sample.clamp(0.0, 1.0));
    let [sound, broken] = [sound, broken]
        .map(clamped)
        .map(|picture| match damage.blur {
            0.0 => picture,
            sigma => damage::blurred(&picture, sigma * scale as f32),
        });
    distance(&sound, &broken, cell * scale)
}

/// Root mean square difference of cells of `side` result pixels, over those that differ at all.
fn distance(sound: &Pixels, broken: &Pixels, side: usize) -> f32 {
    let (mut squares, mut changed) = (0.0, 0);
    for top in (0..sound.height()).step_by(side) {
        for left in (0..sound.width()).step_by(side) {
            let mut sums = [0.0_f32; 3];
            let (bottom, right) = (
                (top + side).min(sound.height()),
                (left + side).min(sound.width()),
            );
            for y in top..bottom {
                let (sound, broken) = (
                    &sound.row(y)[left * 3..right * 3],
                    &broken.row(y)[left * 3..right * 3],
                );
                for (at, (a, b)) in sound.iter().zip(broken).enumerate() {
                    sums[at % 3] += b - a;
                }
            }
            let pixels = ((bottom - top) * (right - left)) as f32;
            if sums.iter().any(|sum| *sum != 0.0) {
                changed += 1;
                squares += sums.iter().map(|sum| (sum / pixels).powi(2)).sum::<f32>() / 3.0;
            }
        }
    }
    (squares / changed.max(1) as f32).sqrt()
}
