//! The GPU's process killed and frozen at any moment while pictures are on it: the CPU does them within the attempt, and the
//! process comes back. The GPU is Mesa's lavapipe, so that a picture is seconds on it, long enough to be met there.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::load::rounds_and_dice;
use crate::harness::{
    World,
    client::{Client, order, send},
    figure::{print_figure, tries_and_bound},
    serve::{has_gpu, signal, wait_for},
};

/// Rounds of the short form; `UPSCALE_GPU_ROUNDS` asks for another number.
const ROUNDS: u64 = 4;
/// One round in so many the process is frozen: no one but a clock finds that out.
const FREEZE_EVERY: u64 = 4;

#[test]
fn a_gpu_process_that_dies_or_hangs_at_any_moment_loses_no_task_and_doubles_none() {
    if !has_gpu() {
        return;
    }
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_GPU_ROUNDS", ROUNDS);
    let flags = ["--metrics-listen", "127.0.0.1:0", "--workers", "2"];
    let mut world = World::start_with(&[&flags[..], &["--device", "gpu:0"]].concat());
    let customer = world.customer("200");
    let url = world.picture("/worthy.png", 80, 70);
    let mut fallbacks = Vec::new();
    for round in 0..rounds {
        wait_for("the GPU's process", || device(&world, "up") == 1.0);
        // One that it makes: the next process begins at once after one that was of use, and later after others.
        let key = format!("gpu-key-{round}-first");
        customer.upscale(&key, &order(&url, 2));
        let ids = [0, 1].map(|number| create(&customer, &url, round, number));
        thread::sleep(Duration::from_millis(dice.between(0, 4_000)));
        let deed = match round % FREEZE_EVERY == FREEZE_EVERY - 1 {
            true => Signal::STOP,
            false => Signal::KILL,
        };
        let before = device(&world, "pictures_total{path=\"fallback\"}");
        let hit = world.serve().gpu().is_some_and(|pid| signal(pid, deed));
        let begun = Instant::now();
        for id in ids {
            assert_eq!(customer.wait(&id).json()["status"], "succeeded");
        }
        let after = device(&world, "pictures_total{path=\"fallback\"}");
        if hit && after > before {
            fallbacks.push((deed, begun.elapsed()));
        }
        if deed == Signal::STOP {
            // Two pictures in a row fail on it at the latest now; then its parent ends it.
            let ids = [2, 3].map(|number| create(&customer, &url, round, number));
            for id in ids {
                assert_eq!(customer.wait(&id).json()["status"], "succeeded");
            }
        }
    }
    let by_gpu = device(&world, "pictures_total{path=\"device\"}");
    let by_cpu = device(&world, "pictures_total{path=\"fallback\"}");
    println!("{by_gpu} pictures by the GPU, {by_cpu} by the CPU after it");
    world.finish();
    let accepted = world.recorder.accepted().len();
    print_figure(
        "kill -9 and SIGSTOP of the GPU's process at a random moment with pictures on it",
        "nothing lost, nothing charged twice",
        "0 lost, 0 doubled",
        &tries_and_bound(accepted, "tasks"),
    );
    for (deed, what) in [(Signal::KILL, "dies"), (Signal::STOP, "hangs")] {
        let mut took: Vec<Duration> = fallbacks
            .iter()
            .filter(|(done, _)| *done == deed)
            .map(|(_, took)| *took)
            .collect();
        took.sort_unstable();
        if let Some(longest) = took.last() {
            print_figure(
                &format!("until both pictures are there by the CPU, once the GPU's process {what}"),
                "an attempt, 120 s",
                &format!("median {:.1?}, longest {longest:.1?}", took[took.len() / 2]),
                &format!("{} rounds", took.len()),
            );
        }
    }
}

fn create(customer: &Client, url: &str, round: u64, number: u64) -> String {
    let key = format!("gpu-key-{round}-{number}");
    customer.create(&key, &order(url, 2)).expect(202, "").id()
}

/// A sample of `upscale_device_…`.
fn device(world: &World, name: &str) -> f64 {
    let url = format!("{}/metrics", world.serve().metrics.as_ref().unwrap());
    let text = String::from_utf8(send("GET", &url, &[], None).unwrap().body).unwrap();
    let start = format!("upscale_device_{name} ");
    let sample = text.lines().find_map(|line| line.strip_prefix(&start));
    sample.map_or(0.0, |value| value.parse().unwrap())
}
