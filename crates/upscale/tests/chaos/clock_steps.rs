//! A clock that is set while the service runs, forwards and back by up to a day, under load: nothing waits for a moment
//! that has moved away, and nothing is counted twice. The clock is libfaketime's; the service cannot tell.

use std::{env, fs, path::PathBuf, thread, time::Duration};

use tempfile::TempDir;
use upscale_core::Clock;

use super::{
    figures::{Deeds, print_figures},
    load::{buyers, rounds_and_dice, under_load},
};
use crate::harness::{World, client::order};

/// Rounds of the short form; `UPSCALE_CLOCK_ROUNDS` asks for another number.
const ROUNDS: u64 = 6;
/// Seconds that the clock is ahead of the world's. Results are kept for 48 h, so none is removed meanwhile.
const AHEAD: [i64; 7] = [0, 61, 300, 3_600, 86_400, -61, -3_600];

/// Where Debian puts it; none, said aloud, where it is not installed, which is an error where CI asks.
fn find_library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let library = |folder: fs::DirEntry| folder.path().join("faketime/libfaketime.so.1");
    let found = folders.map(library).find(|library| library.is_file());
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "libfaketime is not installed");
        eprintln!("left out: a clock that steps, for libfaketime is not installed");
    }
    found
}

#[test]
fn a_clock_that_is_set_forwards_and_back_loses_nothing() {
    let Some(library) = find_library() else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_CLOCK_ROUNDS", ROUNDS);
    let folder = TempDir::new().unwrap();
    let clock = folder.path().join("clock");
    let set_clock = |ahead: i64| {
        // Renamed into place: a reader must not find half a number.
        let new = clock.with_extension("new");
        fs::write(&new, format!("{ahead:+}")).unwrap();
        fs::rename(&new, &clock).unwrap();
    };
    set_clock(0);
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let variables = [
        ("LD_PRELOAD", text(&library)),
        ("FAKETIME_TIMESTAMP_FILE", text(&clock)),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let flags = ["--workers", "1", "--lease", "5", "--deadline", "60"];
    let mut world = World::prepare_in(folder, &flags, variables.to_vec());
    world.serve_again();
    set_clock(86_400);
    assert!(is_tomorrow(&world), "the service does not see the clock");
    set_clock(0);
    let buyers = buyers(&world, &mut dice);
    let deeds = under_load(buyers, || {
        let mut deeds = Deeds::of(rounds);
        for _ in 0..rounds {
            thread::sleep(Duration::from_millis(dice.between(500, 2_500)));
            set_clock(*dice.choose(&AHEAD));
            deeds.did("clock set");
        }
        deeds
    });
    world.finish();
    print_figures(
        &world,
        &deeds,
        "clock set between a day ahead and an hour back, under load",
        ("", ""),
    );
}

/// Whether the service believes in a day later, by when it says that its window ends.
fn is_tomorrow(world: &World) -> bool {
    let customer = world.customer("1");
    let url = world.picture("/tiny.png", 16, 12);
    let answer = customer.create("seen-tomorrow", &order(&url, 2));
    let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
    reset - Clock::System.now().unix_seconds() > 86_000
}
