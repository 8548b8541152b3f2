//! `kill -9` of a random process at a random moment under load, again and again, always on the same data: two
//! services that share it, and the children that do their images.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use upscale_core::random_bytes;

use super::{
    dice::Dice,
    figures::{Kills, print_figures},
    load::Buyer,
};
use crate::harness::{
    World,
    client::Client,
    image_host::Behaviour,
    serve::{Serve, signal, upscale},
};

/// Rounds of the short form; `UPSCALE_CHAOS_ROUNDS` asks for another number.
const ROUNDS: u64 = 20;
/// Customers; each may send 60 creates a minute.
const BUYERS: usize = 6;
const SOURCES: [&str; 5] = [
    "/tiny.png",
    "/tiny.jpg",
    "/tiny.webp",
    "/larger.png",
    "/gone.png",
];

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number: {text}")),
    )
}

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
    let (kills, second) = thread::scope(|scope| {
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
    print_figures(&world.recorder.history(), &kills, downloads);
}

fn buyers(world: &World, dice: &mut Dice) -> Vec<Buyer> {
    let [tiny_png, tiny_jpg, tiny_webp, larger, gone] = SOURCES;
    let sources = vec![
        world.picture(tiny_png, 16, 12),
        world.picture(tiny_jpg, 20, 9),
        world.picture(tiny_webp, 7, 15),
        // Long enough under way for a kill to meet it there.
        world.picture(larger, 240, 180),
        world.host.set(gone, Behaviour::Status(404)),
    ];
    let customers: Vec<Client> = (0..BUYERS).map(|_| world.customer("2000")).collect();
    let with_neighbours = customers.iter().zip(customers.iter().cycle().skip(1));
    let buyer = |(customer, stranger): (&Client, &Client)| {
        Buyer::new(
            customer.clone(),
            stranger.clone(),
            sources.clone(),
            dice.split(),
        )
    };
    with_neighbours.map(buyer).collect()
}

fn kill_in_rounds(
    world: &mut World,
    mut second: Serve,
    rounds: u64,
    dice: &mut Dice,
) -> (Kills, Serve) {
    let mut kills = Kills {
        rounds,
        ..Kills::default()
    };
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(dice.between(200, 2_500)));
        match dice.below(4) {
            0 => {
                let mut children = world.serve().children();
                children.extend(second.children());
                // None may be at work, or it ends by itself just now; then this round kills nobody.
                let killed = !children.is_empty() && signal(*dice.choose(&children), Signal::KILL);
                kills.child += u64::from(killed);
            }
            1 => {
                second.kill();
                second = world.serve_beside(upscale(), &[]);
                kills.second += 1;
            }
            _ => {
                world.take_serve().kill();
                let begun = Instant::now();
                world.serve_again();
                kills.slowest_restart = kills.slowest_restart.max(begun.elapsed());
                kills.serve += 1;
            }
        }
    }
    (kills, second)
}
