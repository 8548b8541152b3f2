//! `kill -9` of a random process at a random moment under load, again and again, always on the same data: two
//! services that share it, and the children that do their images.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use upscale_core::random_bytes;

use super::{
    dice::Dice,
    figures::{Deeds, print_figures},
    load::{SOURCES, buyers, number_from},
};
use crate::harness::{
    World,
    serve::{Serve, signal, upscale},
};

/// Rounds of the short form; `UPSCALE_CHAOS_ROUNDS` asks for another number.
const ROUNDS: u64 = 20;
#[test]
fn whatever_is_killed_whenever_no_task_is_lost_and_none_is_charged_twice() {
    let rounds = number_from("UPSCALE_CHAOS_ROUNDS").unwrap_or(ROUNDS);
    let seed = number_from("UPSCALE_CHAOS_SEED")
        .unwrap_or_else(|| u64::from_le_bytes(random_bytes().unwrap()));
    println!("UPSCALE_CHAOS_SEED={seed} UPSCALE_CHAOS_ROUNDS={rounds}");
    let mut dice = Dice::new(seed);
    let mut world = World::start_with(&["--workers", "1", "--lease", "5"]);
    let second = world.serve_beside(upscale(), &[]);
    let buyers = buyers(&world, &mut dice);
    let over = AtomicBool::new(false);
    let (deeds, second) = thread::scope(|scope| {
        for buyer in buyers {
            scope.spawn(|| buyer.buy(&over));
        }
        let ended = kill_in_rounds(&mut world, second, rounds, &mut dice);
        over.store(true, Ordering::Relaxed);
        ended
    });
    assert_eq!(second.stop().code(), Some(0));
    world.finish();
    let downloads = SOURCES.iter().map(|path| world.host.hits(path)).sum();
    print_figures(&world.recorder.history(), &deeds, downloads);
}

fn kill_in_rounds(
    world: &mut World,
    mut second: Serve,
    rounds: u64,
    dice: &mut Dice,
) -> (Deeds, Serve) {
    let mut deeds = Deeds {
        rounds,
        ..Deeds::default()
    };
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(dice.between(200, 2_500)));
        match dice.below(4) {
            0 => {
                let mut children = world.serve().children();
                children.extend(second.children());
                // None may be at work, or it ends by itself just now; then this round kills nobody.
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
