//! `kill -9` of a random process at a random moment under load, again and again, always on the same data: two
//! services that share it, and the children that do their images.

use std::{
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use rustix::process::Signal;

use super::{
    dice::Dice,
    figures::{Deeds, print_figures},
    load::{buyers, rounds_and_dice, under_load},
};
use crate::harness::{
    World,
    figure::{print_figure, tries_and_bound},
    serve::{Serve, signal, upscale},
};

/// Rounds of the short form; `UPSCALE_CHAOS_ROUNDS` asks for another number.
const ROUNDS: u64 = 20;
#[test]
fn whatever_is_killed_whenever_no_task_is_lost_and_none_is_charged_twice() {
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_CHAOS_ROUNDS", ROUNDS);
    let mut world = World::start_with(&["--workers", "1", "--lease", "5", "--share-data"]);
    let second = world.serve_beside(upscale(), &[]);
    let buyers = buyers(&world, &mut dice);
    let (deeds, second) = under_load(buyers, || {
        kill_in_rounds(&mut world, second, rounds, &mut dice)
    });
    assert_eq!(second.stop().code(), Some(0));
    world.finish();
    let failed = failures(&world);
    let interrupted = failed.iter().filter(|why| !why.contains("404")).count();
    assert_eq!(
        interrupted, 0,
        "no picture is blamed for a kill: {failed:?}"
    );
    print_figure(
        "innocent pictures that failed for kills of their process",
        "0",
        &interrupted.to_string(),
        &tries_and_bound(rounds as usize, "kills"),
    );
    print_figures(
        &world,
        &deeds,
        "kill -9 of a random process at a random moment under load (SQLite, files)",
        ("restart to ready after kill -9, embedded", "≤ 1 s"),
    );
}

/// What was said of each task that failed.
fn failures(world: &World) -> Vec<String> {
    let database = Connection::open(world.data().join("upscale.db")).unwrap();
    let sql = "SELECT failure_message FROM task WHERE state = 'failed'";
    let mut rows = database.prepare(sql).unwrap();
    let messages = rows.query_map([], |row| row.get(0)).unwrap();
    messages.map(Result::unwrap).collect()
}

fn kill_in_rounds(
    world: &mut World,
    mut second: Serve,
    rounds: u64,
    dice: &mut Dice,
) -> (Deeds, Serve) {
    let mut deeds = Deeds::of(rounds);
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(dice.between(200, 2_500)));
        match dice.below(4) {
            0 => {
                let mut children = world.serve().children();
                children.extend(second.children());
                // None may be at work, or it ends by itself just now; then this round kills no one.
                let killed = !children.is_empty() && signal(*dice.choose(&children), Signal::KILL);
                if killed {
                    deeds.did("kill of a child");
                }
            }
            1 => {
                second.kill();
                second = world.serve_beside(upscale(), &[]);
                deeds.did("kill of a second service");
            }
            _ => {
                world.take_serve().kill();
                let begun = Instant::now();
                world.serve_again();
                deeds.recovered_after(begun.elapsed());
                deeds.did("kill of the service");
            }
        }
    }
    (deeds, second)
}
