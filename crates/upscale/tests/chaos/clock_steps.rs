//! A clock that is set while the service runs, forwards and back by up to a day, under load: nothing waits for a moment
//! that has moved away, and nothing is counted twice. And one that is days or months ahead when the service starts:
//! nothing is deleted, and no key is charged again. The clock is libfaketime's; the service cannot tell.

use std::{env, fs, path::PathBuf, thread, time::Duration};

use tempfile::TempDir;
use upscale_core::Clock;

use super::{
    figures::{Deeds, print_figures},
    load::{buyers, rounds_and_dice, under_load},
};
use crate::harness::{World, client::order, serve::wait_for};

/// Rounds of the short form; `UPSCALE_CLOCK_ROUNDS` asks for another number.
const ROUNDS: u64 = 6;
/// Seconds that the clock is ahead of the world's. Results are kept for 48 h, so none is removed meanwhile.
const AHEAD: [i64; 7] = [0, 61, 300, 3_600, 86_400, -61, -3_600];

/// Long enough for a sweep after the start; the sweep comes with the first look at the clock.
const AHEAD_FOR: Duration = Duration::from_secs(4);

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

/// A clock in the hands of the test, for every process of a world.
struct SetClock {
    file: PathBuf,
    library: PathBuf,
}

impl SetClock {
    fn in_folder(folder: &TempDir) -> Option<Self> {
        let clock = Self {
            library: find_library()?,
            file: folder.path().join("clock"),
        };
        clock.set(0);
        Some(clock)
    }

    /// So many seconds ahead of the world's.
    fn set(&self, ahead: i64) {
        // Renamed into place: a reader must not find half a number.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{ahead:+}")).unwrap();
        fs::rename(&new, &self.file).unwrap();
    }

    fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let variables = [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        variables
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }
}

#[test]
fn a_clock_that_is_set_forwards_and_back_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let Some(clock) = SetClock::in_folder(&folder) else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_CLOCK_ROUNDS", ROUNDS);
    let flags = ["--workers", "1", "--lease", "5", "--deadline", "60"];
    let mut world = World::prepare_in(folder, &flags, clock.variables());
    world.serve_again();
    clock.set(86_400);
    assert!(is_tomorrow(&world), "the service does not see the clock");
    clock.set(0);
    let buyers = buyers(&world, &mut dice);
    let deeds = under_load(buyers, || {
        let mut deeds = Deeds::of(rounds);
        for _ in 0..rounds {
            thread::sleep(Duration::from_millis(dice.between(500, 2_500)));
            clock.set(*dice.choose(&AHEAD));
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

#[test]
fn a_clock_that_is_far_ahead_at_the_start_deletes_nothing_and_charges_no_key_again() {
    let folder = TempDir::new().unwrap();
    let Some(clock) = SetClock::in_folder(&folder) else {
        return;
    };
    let mut world = World::prepare_in(folder, &["--workers", "1"], clock.variables());
    world.serve_again();
    let customer = world.customer("3");
    let order = order(&world.picture("/tiny.png", 16, 12), 2);
    let id = customer.upscale("the-only-key", &order).id();
    for days in [3, 100, 300] {
        let steps = count_steps(&world);
        world.take_serve().kill();
        clock.set(days * 86_400);
        world.serve_again();
        wait_for("a look at the clock", || count_steps(&world) > steps);
        thread::sleep(AHEAD_FOR);
        let again = customer.create("the-only-key", &order).expect(202, "");
        assert_eq!(again.id(), id, "{days} days ahead");
        assert_eq!(again.header("idempotent-replayed"), "true");
        world.take_serve().kill();
        clock.set(0);
        world.serve_again();
        let read = customer.read(&id).expect(200, "");
        let status = customer.fetch("GET", &read.result_url(), &[]).status;
        assert_eq!(status, 200, "{days} days ahead");
    }
    assert_eq!(world.operator.money(&customer.account), (2_300, 0, 700));
    world.finish();
}

/// How often the log says that the clock stepped.
fn count_steps(world: &World) -> usize {
    world.logs().matches("the clock stepped").count()
}

/// Whether the service believes in a day later, by when it says that its window ends.
fn is_tomorrow(world: &World) -> bool {
    let customer = world.customer("1");
    let url = world.picture("/tiny.png", 16, 12);
    let answer = customer.create("seen-tomorrow", &order(&url, 2));
    let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
    reset - Clock::System.now().unix_seconds() > 86_000
}
