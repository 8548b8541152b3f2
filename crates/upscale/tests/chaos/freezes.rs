//! SIGSTOP, longer than a lease: another process takes the work over, and the one that wakes finds that it is no longer
//! its own.

use std::{cell::Cell, thread, time::Duration};

use rustix::process::Signal;

use super::load::rounds_and_dice;
use crate::harness::{
    World,
    client::order,
    figure::{print_figure, tries_and_bound},
    image_host::Behaviour,
    pictures::Picture,
    serve::{signal, upscale, wait_for},
};

const LEASE: &str = "4";
const FROZEN_FOR: Duration = Duration::from_secs(7);
const ROUNDS: u64 = 3;
const TASKS_A_ROUND: u64 = 6;

#[test]
fn a_process_that_slept_through_its_lease_in_a_download_changes_nothing_when_it_wakes() {
    let mut world = World::start_with(&["--workers", "1", "--lease", LEASE, "--share-data"]);
    let customer = world.customer("2");
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let id = customer
        .create("frozen-key", &order(&url, 2))
        .expect(202, "")
        .id();
    wait_for("the download", || world.host.hits("/held.png") > 0);
    let sleeper = world.take_serve();
    assert!(signal(sleeper.pid(), Signal::STOP));
    world.serve_again();
    world.host.open_gate();
    let ended = customer.wait(&id);
    assert_eq!(ended.json()["status"], "succeeded");
    let before = customer.fetch("GET", &ended.result_url(), &[]);

    assert!(signal(sleeper.pid(), Signal::CONT));
    assert_eq!(sleeper.stop().code(), Some(0));
    let after = customer.fetch("GET", &customer.read(&id).result_url(), &[]);
    assert_eq!(
        (after.status, after.header("etag")),
        (200, before.header("etag"))
    );
    assert_eq!(world.operator.money(&customer.account), (1_300, 0, 700));
}

#[test]
fn a_process_frozen_at_any_moment_finishes_nothing_that_was_taken_from_it() {
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_FREEZE_ROUNDS", ROUNDS);
    let flags = ["--workers", "1", "--lease", LEASE, "--share-data"];
    let mut world = World::start_with(&flags);
    let sleeper = world.serve_beside(upscale(), &[]);
    let customer = world.customer("100");
    let url = world.picture("/small.png", 48, 36);
    for round in 0..rounds {
        let ids: Vec<String> = (0..TASKS_A_ROUND)
            .map(|number| {
                let key = format!("frozen-key-{round}-{number}");
                customer.create(&key, &order(&url, 2)).expect(202, "").id()
            })
            .collect();
        thread::sleep(Duration::from_millis(dice.between(0, 800)));
        assert!(signal(sleeper.pid(), Signal::STOP));
        // If it sleeps inside a write, the others wait for it: one file has one writer.
        thread::sleep(FROZEN_FOR);
        assert!(signal(sleeper.pid(), Signal::CONT));
        for id in ids {
            assert_eq!(customer.wait(&id).json()["status"], "succeeded");
        }
    }
    assert_eq!(sleeper.stop().code(), Some(0));
    let tasks = (rounds * TASKS_A_ROUND) as i64;
    assert_eq!(
        world.operator.money(&customer.account),
        (100_000 - 700 * tasks, 0, 700 * tasks)
    );
    print_figure(
        "a worker frozen beyond its lease wakes",
        "0 stale finishes accepted",
        "0",
        &tries_and_bound(tasks as usize, "tasks"),
    );
}

#[test]
fn a_child_that_is_frozen_ends_with_its_task_at_the_latest_by_the_deadline() {
    let world = World::start_with(&["--workers", "1", "--deadline", "10"]);
    let customer = world.customer("1");
    // The largest order of 4x: seconds of work, so that the child is met at it.
    let url = world.picture("/large.png", 860, 860);
    let id = customer
        .create("frozen-child", &order(&url, 4))
        .expect(202, "")
        .id();
    let met = Cell::new(None);
    wait_for("the child", || {
        met.set(world.serve().children().first().copied());
        met.get().is_some()
    });
    let child = met.get().unwrap();
    assert!(signal(child, Signal::STOP));
    let ended = customer.wait(&id).json();
    assert_ne!(ended["status"], "processing");
    wait_for("the child's end", || {
        !world.serve().children().contains(&child)
    });
}
