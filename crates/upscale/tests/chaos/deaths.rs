//! Workers that die: how long until their tasks run elsewhere; and until every task is over when none is left. The
//! short form has a short lease and a short deadline; `UPSCALE_DEATH_ROUNDS=N` takes the real ones, N times.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

use upscale_core::limits::{DEADLINE_SECONDS, LEASE_SECONDS};

use super::{
    dice::Dice,
    fleet::Fleet,
    load::{is_long, rounds_and_dice},
    processes::Worker,
};
use crate::harness::{
    client::{Client, order},
    figure::print_figure,
    serve::wait_for,
};

const VARIABLE: &str = "UPSCALE_DEATH_ROUNDS";
/// Workers that die, and the images that each has in hand then.
const DOOMED: usize = 4;
const SLOTS: usize = 5;
/// Their children never finish, and take no slot but their own.
const NEVER_DONE: [&str; 4] = ["--child-fault", "hang", "--threads", "1"];

/// A fleet with one API process, with the real lease or the short form's, and with this deadline.
fn prepare(deadline: i64) -> Option<(Fleet, i64)> {
    let lease = if is_long(VARIABLE) { LEASE_SECONDS } else { 6 };
    let (lease_text, deadline_text) = (lease.to_string(), deadline.to_string());
    let flags = ["--lease", &lease_text, "--deadline", &deadline_text];
    let mut fleet = Fleet::prepare(&flags)?;
    fleet.start_api();
    Some((fleet, lease))
}

/// A task whose source no one else orders, so that its downloads are its attempts.
fn order_one(fleet: &Fleet, customer: &Client, path: &str) -> String {
    let url = fleet.world.picture(path, 12, 9);
    let created = customer.create(
        &format!("key-of{}", path.replace('/', "-")),
        &order(&url, 2),
    );
    created.expect(202, "").id()
}

/// As many deaths as there are tasks: each was claimed at another moment and last heard of at another.
fn die_and_move(fleet: &mut Fleet, lease: i64, round: u64, dice: &mut Dice) -> Vec<Duration> {
    let mut in_hand: Vec<(Worker, Vec<String>)> = Vec::new();
    for doomed in 0..DOOMED {
        fleet.start_worker(SLOTS, &NEVER_DONE);
        let customer = fleet.world.customer("100");
        // The others have their hands full, so these are all his.
        let paths = (0..SLOTS).map(|slot| format!("/death-{round}-{doomed}-{slot}.png"));
        let paths: Vec<String> = paths.collect();
        for path in &paths {
            order_one(fleet, &customer, path);
            thread::sleep(Duration::from_millis(dice.below(lease as u64 * 100)));
        }
        let worker = fleet.workers.pop().unwrap();
        wait_for("every child at work", || worker.children().len() == SLOTS);
        in_hand.push((worker, paths));
    }
    fleet.start_worker(DOOMED * SLOTS, &[]);
    let mut died: HashMap<String, Instant> = HashMap::new();
    for (worker, paths) in in_hand {
        thread::sleep(Duration::from_millis(dice.below(lease as u64 * 80)));
        worker.kill();
        let now = Instant::now();
        died.extend(paths.into_iter().map(|path| (path, now)));
    }
    until_elsewhere(fleet, died)
}

/// Until each is downloaded again.
fn until_elsewhere(fleet: &Fleet, mut died: HashMap<String, Instant>) -> Vec<Duration> {
    let begun = Instant::now();
    let mut took = Vec::new();
    while !died.is_empty() {
        died.retain(|path, at| {
            let is_waiting = fleet.world.host.hits(path) < 2;
            took.extend((!is_waiting).then(|| at.elapsed()));
            is_waiting
        });
        let waited = begun.elapsed();
        assert!(
            waited < Duration::from_secs(300),
            "{} never moved",
            died.len()
        );
        thread::sleep(Duration::from_millis(10));
    }
    took
}

#[test]
fn what_a_dead_worker_had_in_hand_runs_elsewhere_after_its_lease() {
    let Some((mut fleet, lease)) = prepare(DEADLINE_SECONDS) else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice(VARIABLE, 1);
    let mut took = Vec::new();
    for round in 0..rounds {
        took.extend(die_and_move(&mut fleet, lease, round, &mut dice));
        // The survivor has done everything; the next round's doomed must not share with him.
        let open = || fleet.count("SELECT count(*) FROM job");
        wait_for("everything done", || open() == 0);
        fleet.workers.drain(..).for_each(|worker| {
            assert_eq!(worker.stop().code(), Some(0));
        });
    }
    let succeeded = fleet.count("SELECT count(*) FROM task WHERE state = 'succeeded'");
    assert_eq!(succeeded as usize, took.len(), "each was moved and done");
    fleet.stop();
    fleet.world.finish();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize].as_secs_f64();
    print_figure(
        &format!("worker death → its task runs elsewhere, lease {lease} s"),
        &format!("p95 ≤ {} s", lease + 5),
        &format!(
            "median {:.1} s, p95 {:.1} s, longest {:.1} s",
            at(0.5),
            at(0.95),
            at(1.0)
        ),
        &format!(
            "{} tasks of {} dead workers",
            took.len(),
            rounds as usize * DOOMED
        ),
    );
}

#[test]
fn with_every_worker_dead_all_tasks_end_and_are_refunded() {
    let deadline = if is_long(VARIABLE) {
        DEADLINE_SECONDS
    } else {
        24
    };
    let Some((mut fleet, lease)) = prepare(deadline) else {
        return;
    };
    fleet.start_worker(SLOTS, &NEVER_DONE);
    let customers = [fleet.world.customer("20"), fleet.world.customer("20")];
    // Twice as many as he has hands: one half dies with him, the other was never begun.
    let ordered: Vec<(usize, String, Instant)> = (0..2 * SLOTS)
        .map(|n| {
            let id = order_one(&fleet, &customers[n % 2], &format!("/orphan-{n}.png"));
            (n % 2, id, Instant::now())
        })
        .collect();
    let worker = fleet.workers.pop().unwrap();
    wait_for("every child at work", || worker.children().len() == SLOTS);
    worker.kill();
    let mut took: Vec<Duration> = Vec::new();
    for (customer, id, accepted) in &ordered {
        let ended = customers[*customer].wait(id).json();
        took.push(accepted.elapsed());
        assert_eq!(ended["status"], "failed", "{ended}");
    }
    for customer in &customers {
        let money = fleet.world.operator.money(&customer.account);
        assert_eq!(money, (20_000, 0, 0), "all of it is back");
    }
    fleet.stop();
    fleet.world.finish();
    let longest = took.iter().max().unwrap().as_secs_f64();
    print_figure(
        &format!("accepted → failed and refunded, every worker dead, deadline {deadline} s"),
        &format!("≤ {} s for all", deadline + lease),
        &format!("longest {longest:.1} s"),
        &format!("{} tasks", took.len()),
    );
}
