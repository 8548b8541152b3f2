//! A rolling upgrade under load: two API processes and two workers on PostgreSQL and a bucket, each replaced by a new one as
//! an orchestrator does it. Each new one brings a migration with it, as the old ones go on. Nothing is lost, and no customer
//! gets a request refused or unanswered for it.

use std::{
    fs::File,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    figures::{Deeds, print_figures},
    fleet::{DATABASE, Fleet},
    load::{buyers, rounds_and_dice, under_load},
};
use crate::{
    harness::{
        World,
        client::send,
        figure::{print_figure, tries_and_bound},
        serve::{signal, wait_for},
    },
    history::{History, Outcome, Span},
};

/// Upgrades in a row; `UPSCALE_ROLLING_ROUNDS` asks for another number.
const ROUNDS: u64 = 2;
/// The time that the packages give a process to end in: TimeoutStopSec, terminationGracePeriodSeconds, stop_grace_period.
const GRACE: Duration = Duration::from_secs(45);
/// Of each customer, so that the queue stays short whatever a machine is worth: with the contract's twenty, attempts of 5 to
/// 14 s on two cores under fourfold load had creates refused because they would pass their deadline, as they should be.
const ACTIVE_TASKS: usize = 4;
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
    fleet.world.rules.active_tasks_max = ACTIVE_TASKS;
    for buyer in &buyers {
        limit_active_tasks(&fleet.world, &buyer.customer.account);
    }
    let deeds = under_load(buyers, || upgrade(&mut fleet, rounds));
    fleet.stop();
    fleet.world.finish();
    let unanswered = unanswered(&fleet.world.recorder.history());
    let replaced = (rounds * 4) as usize;
    assert_eq!(unanswered, [], "requests without an answer, or put off");
    print_figure(
        "requests refused or unanswered in a rolling upgrade under load",
        "0",
        &unanswered.len().to_string(),
        &tries_and_bound(replaced, "processes replaced"),
    );
    print_figures(
        &fleet.world,
        &deeds,
        "a rolling upgrade of a fleet under load (PostgreSQL, S3)",
        ("a process asked to stop has ended", "≤ 45 s"),
    );
}

/// A migration may wait half an hour for a table. An orchestrator that thinks better of it need not.
#[test]
fn a_process_that_waits_for_the_database_ends_at_the_first_signal() {
    let Some(mut fleet) = Fleet::prepare(&[]) else {
        return;
    };
    let (mut command, log) = fleet.world.command();
    command.arg("api").stderr(File::create(log).unwrap());
    let locks = |granted: &str| {
        let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = ";
        fleet.count(&format!("{sql}{granted}"))
    };
    thread::scope(|scope| {
        // The store's `MIGRATION_LOCK`.
        let another = "SELECT pg_advisory_lock(x'75707363616c65'::bigint), pg_sleep(600)";
        scope.spawn(|| drop(fleet.postgres.try_sql(DATABASE, another)));
        wait_for("another process migrates", || locks("true") == 1);
        let mut waiting = command.spawn().unwrap();
        wait_for("this one waits", || locks("false") == 1);
        signal(waiting.id(), Signal::TERM);
        assert_eq!(waiting.wait().unwrap().code(), Some(0));
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'";
        fleet.postgres.sql(DATABASE, end);
    });
    // The next one makes the tables.
    fleet.start_api();
    fleet.stop();
}

fn limit_active_tasks(world: &World, account: &str) {
    let limit = ACTIVE_TASKS.to_string();
    let limits = ["account", "limits", account, "--active-tasks", &limit];
    let action = ["--reason", "a short queue", "--operator", "chaos"];
    world.operator.run(&[&limits[..], &action].concat());
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
fn unanswered(history: &History) -> Vec<(Span, Outcome)> {
    let creates = history
        .creates
        .iter()
        .map(|create| (create.span, &create.outcome));
    let reads = history.reads.iter().map(|read| (read.span, &read.outcome));
    let is_put_off = |outcome: &Outcome| match outcome {
        Outcome::Lost => true,
        Outcome::Refused { status, .. } => matches!(status, 500 | 502 | 503 | 504),
        Outcome::Task(_) => false,
    };
    let put_off = creates
        .chain(reads)
        .filter(|(_, outcome)| is_put_off(outcome));
    put_off
        .map(|(span, outcome)| (span, outcome.clone()))
        .collect()
}
