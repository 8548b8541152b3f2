//! Deaths that are proven by a lock file: what the dead had claimed is taken up at once, and a live or frozen process
//! loses nothing.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::fleet::Fleet;
use crate::harness::{
    World,
    client::{Client, order},
    figure::print_figure,
    image_host::Behaviour,
    pictures::Picture,
    serve::{Serve, signal, upscale, wait_for},
};

const TASKS: usize = 4;
/// More than the two interruptions that failed a task once.
const KILLS: usize = 4;
/// A hang, not a promise.
const NEVER: Duration = Duration::from_secs(300);
/// Looks at the lock files come twice a second.
const SEVERAL_LOOKS: Duration = Duration::from_secs(3);

/// Orders a picture whose source waits for the gate.
fn order_held(world: &World, customer: &Client, path: &str) -> String {
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so(path, Behaviour::Held(bytes), (8, 8));
    let key = format!("key-of{}", path.replace('/', "-"));
    customer.create(&key, &order(&url, 2)).expect(202, "").id()
}

/// How long until each path has been asked for so often.
fn until_asked(world: &World, paths: &[String], times: usize) -> Vec<Duration> {
    let begun = Instant::now();
    let mut waits: Vec<&String> = paths.iter().collect();
    let mut took = Vec::new();
    while !waits.is_empty() {
        waits.retain(|path| {
            let is_waiting = world.host.hits(path) < times;
            took.extend((!is_waiting).then(|| begun.elapsed()));
            is_waiting
        });
        assert!(begun.elapsed() < NEVER, "{waits:?} are not taken up");
        thread::sleep(Duration::from_millis(10));
    }
    took
}

#[test]
fn what_a_killed_service_had_in_hand_is_taken_up_by_the_next_at_once_and_never_blamed() {
    // With the real lease: 60 s.
    let mut world = World::start_with(&["--workers", "4"]);
    let customers = [world.customer("10"), world.customer("10")];
    let paths: Vec<String> = (0..TASKS).map(|task| format!("/held-{task}.png")).collect();
    let mut ids = Vec::new();
    for (task, path) in paths.iter().enumerate() {
        let customer = &customers[task % 2];
        ids.push((customer, order_held(&world, customer, path)));
    }
    until_asked(&world, &paths, 1);
    let mut first = Vec::new();
    for kill in 1..=KILLS {
        world.take_serve().kill();
        let died = Instant::now();
        world.serve_again();
        let restarted = died.elapsed();
        let took = until_asked(&world, &paths, kill + 1);
        if kill == 1 {
            first = took.iter().map(|took| restarted + *took).collect();
        }
    }
    world.host.open_gate();
    for (customer, id) in &ids {
        assert_eq!(customer.wait(id).json()["status"], "succeeded");
    }
    world.finish();
    print_figure(
        "kill -9 of a lone service → its tasks run in the next one, lease 60 s",
        "≤ 2 s",
        &format!("longest {:.2} s", first[TASKS - 1].as_secs_f64()),
        &format!("{TASKS} tasks, with the start of the service; {KILLS} kills of each, 0 failed"),
    );
}

#[test]
fn neither_a_live_nor_a_frozen_process_loses_what_it_claimed_to_its_neighbour() {
    // With a lease longer than the test.
    let mut world = World::start_with(&["--workers", "1", "--share-data"]);
    let customer = world.customer("10");
    let held = order_held(&world, &customer, "/held.png");
    wait_for("the download", || world.host.hits("/held.png") > 0);
    let neighbour: Serve = world.serve_beside(upscale(), &[]);
    thread::sleep(SEVERAL_LOOKS);
    let owner = world.take_serve();
    assert!(signal(owner.pid(), Signal::STOP));
    thread::sleep(SEVERAL_LOOKS);
    // The neighbour is at work meanwhile.
    world.direct_customers_to(&neighbour.api);
    let url = world.picture("/small.png", 8, 8);
    customer.upscale("of-the-neighbour", &order(&url, 2));
    assert_eq!(world.host.hits("/held.png"), 1);
    assert!(signal(owner.pid(), Signal::CONT));
    world.host.open_gate();
    assert_eq!(customer.wait(&held).json()["status"], "succeeded");
    assert_eq!(world.host.hits("/held.png"), 1, "by whom it was begun");
    assert_eq!(owner.stop().code(), Some(0));
    assert_eq!(neighbour.stop().code(), Some(0));
    assert!(!world.logs().contains("a worker of this machine died"));
}

#[test]
fn on_a_fleet_a_dead_worker_is_noticed_by_its_neighbours_of_the_same_machine() {
    let Some(mut fleet) = Fleet::prepare(&[]) else {
        return;
    };
    fleet.start_api();
    let machine = fleet.world.path("machine");
    let machine = machine.to_str().unwrap();
    let never_done = ["--child-fault", "hang", "--threads", "1", "--data", machine];
    fleet.start_worker(1, &never_done);
    let customer = fleet.world.customer("1");
    let url = fleet.world.picture("/of-the-dead.png", 12, 9);
    let created = customer.create("key-of-the-dead", &order(&url, 2));
    let id = created.expect(202, "").id();
    let doomed = fleet.workers.pop().unwrap();
    wait_for("its child", || doomed.children().len() == 1);
    fleet.start_worker(1, &["--data", machine]);
    doomed.kill();
    let died = Instant::now();
    wait_for("the next attempt", || {
        fleet.world.host.hits("/of-the-dead.png") > 1
    });
    let took = died.elapsed();
    assert_eq!(customer.wait(&id).json()["status"], "succeeded");
    fleet.stop();
    fleet.world.finish();
    print_figure(
        "kill -9 of a worker on PostgreSQL → its neighbour has its task, lease 60 s",
        "≤ 2 s",
        &format!("{:.2} s", took.as_secs_f64()),
        "once; workers of one machine with one --data",
    );
}
