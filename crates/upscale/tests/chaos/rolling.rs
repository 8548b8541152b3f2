//! A rolling upgrade under load: two API processes and two workers on PostgreSQL and a bucket, each replaced by a new one as
//! an orchestrator does it. Each new one brings a migration with it, as the old ones go on. Nothing is lost, and no customer
//! gets a request refused or unanswered for it.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    figures::{Deeds, print_figures},
    fleet::Fleet,
    load::{buyers, rounds_and_dice, under_load},
};
use crate::{
    harness::{
        client::send,
        figure::{print_figure, tries_and_bound},
        serve::{signal, wait_for},
    },
    history::{History, Outcome},
};

/// Upgrades in a row; `UPSCALE_ROLLING_ROUNDS` asks for another number.
const ROUNDS: u64 = 2;
/// The time that the packages give a process to end in: TimeoutStopSec, terminationGracePeriodSeconds, stop_grace_period.
const GRACE: Duration = Duration::from_secs(45);
/// A balancer has noticed by then: this test is one, on a machine where six others run. 3 s were once too few.
const DRAIN_DELAY: [&str; 2] = ["--drain-delay", "8"];

#[test]
fn a_rolling_upgrade_loses_no_task_and_refuses_no_customer() {
    let Some(mut fleet) = Fleet::prepare(&DRAIN_DELAY) else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_ROLLING_ROUNDS", ROUNDS);
    for _ in 0..2 {
        fleet.start_api();
        fleet.start_worker(1, &[]);
    }
    until_ready(&fleet.apis[1].api);
    let buyers = buyers(&fleet.world, &mut dice);
    let deeds = under_load(buyers, || upgrade(&mut fleet, rounds));
    fleet.stop();
    fleet.world.finish();
    let unanswered = unanswered(&fleet.world.recorder.history());
    let replaced = (rounds * 4) as usize;
    assert_eq!(unanswered, 0, "requests without an answer, or put off");
    print_figure(
        "requests refused or unanswered in a rolling upgrade under load",
        "0",
        &unanswered.to_string(),
        &tries_and_bound(replaced, "processes replaced"),
    );
    print_figures(
        &fleet.world,
        &deeds,
        "a rolling upgrade of a fleet under load (PostgreSQL, S3)",
        ("a process asked to stop has ended", "≤ 45 s"),
    );
}

/// The new one first, then the old one is told to go and customers are sent elsewhere, in this order: what comes to it in
/// between is still answered.
fn upgrade(fleet: &mut Fleet, rounds: u64) -> Deeds {
    let mut deeds = Deeds::of(rounds);
    for migration in 0..rounds * 2 {
        thread::sleep(Duration::from_millis(1_500));
        fleet.world.direct_customers_to(&fleet.apis[0].api);
        let old = fleet.apis.remove(0);
        fleet.start_api_unannounced();
        let new = fleet.apis.last().unwrap().api.clone();
        until_ready(&new);
        fleet.add_columns(&format!("of_tomorrow_{migration}"));
        thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        signal(old.pid(), Signal::TERM);
        wait_for("the old one says that it goes", || !is_ready(&old.api));
        thread::sleep(Duration::from_millis(500));
        fleet.world.direct_customers_to(&new);
        assert_eq!(old.ended().code(), Some(0));
        ended_in_time(begun, &mut deeds);
        deeds.did("API process replaced");

        let old = fleet.workers.remove(0);
        fleet.start_worker(1, &[]);
        let begun = Instant::now();
        assert_eq!(old.stop().code(), Some(0));
        ended_in_time(begun, &mut deeds);
        deeds.did("worker replaced");
    }
    deeds
}

fn ended_in_time(begun: Instant, deeds: &mut Deeds) {
    let took = begun.elapsed();
    assert!(took < GRACE, "{took:?} to end: it would have been killed");
    deeds.recovered_after(took);
}

fn is_ready(api: &str) -> bool {
    let answer = send("GET", &format!("{api}/readyz"), &[], None);
    answer.is_some_and(|answer| answer.status == 200)
}

fn until_ready(api: &str) {
    wait_for("readiness", || is_ready(api));
}

/// Requests that got no answer, or one that put them off.
fn unanswered(history: &History) -> usize {
    let outcomes = history.creates.iter().map(|create| &create.outcome);
    let outcomes = outcomes.chain(history.reads.iter().map(|read| &read.outcome));
    let is_put_off = |outcome: &&Outcome| match outcome {
        Outcome::Lost => true,
        Outcome::Refused { status, .. } => matches!(status, 500 | 502 | 503 | 504),
        Outcome::Task(_) => false,
    };
    outcomes.filter(is_put_off).count()
}
