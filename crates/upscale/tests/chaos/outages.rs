//! The database or the storage gone for a while, under load: 503 and no task lost, and once it is back all goes on by
//! itself, soon. The short form takes seconds; `UPSCALE_OUTAGE_SECONDS=60` is the real one.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    cutter::Outage,
    figures::{Deeds, print_figures},
    fleet::Fleet,
    load::{buyers, rounds_and_dice, under_load},
};
use crate::harness::{
    bucket::Fault,
    client::{Client, order, send},
    figure::print_figure,
    image_host::Behaviour,
    pictures::Picture,
};

const VARIABLE: &str = "UPSCALE_OUTAGE_SECONDS";
const SECONDS: u64 = 5;
const RECOVERS_WITHIN: Duration = Duration::from_secs(180);
const SUCCEEDED: &str = "SELECT count(*) FROM task WHERE state = 'succeeded'";

/// Tries until it is so; how long that took.
fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        let waited = begun.elapsed();
        assert!(waited < RECOVERS_WITHIN, "{what}: not within {waited:?}");
        thread::sleep(Duration::from_millis(100));
    }
    begun.elapsed()
}

fn start_fleet() -> Option<Fleet> {
    let mut fleet = Fleet::prepare(&[])?;
    for _ in 0..2 {
        fleet.start_api();
        fleet.start_worker(1, &[]);
    }
    Some(fleet)
}

fn is_accepted(customer: &Client, key: &str, url: &str) -> bool {
    let answer = customer.try_create(key, &order(url, 2));
    answer.is_some_and(|answer| answer.status == 202)
}

fn is_ready(api: &str) -> bool {
    let answer = send("GET", &format!("{api}/readyz"), &[], None);
    answer.is_some_and(|answer| answer.status == 200)
}

#[test]
fn a_database_that_is_gone_for_a_while_loses_nothing_and_is_found_again() {
    let Some(mut fleet) = start_fleet() else {
        return;
    };
    let (seconds, mut dice) = rounds_and_dice(VARIABLE, SECONDS);
    let buyers = buyers(&fleet.world, &mut dice);
    let url = fleet.world.picture("/after.png", 16, 12);
    let probe = fleet.world.customer("100");
    let outages = [Outage::HangsUp, Outage::Silent];
    let (deeds, took) = under_load(buyers, || {
        let (mut deeds, mut took) = (Deeds::of(outages.len() as u64), Vec::new());
        for (n, outage) in outages.into_iter().enumerate() {
            thread::sleep(Duration::from_secs(3));
            fleet.cutter.set_down(Some(outage));
            let begun = Instant::now();
            let key = format!("asked-again-after-outage-{n}");
            let refused = probe.create(&key, &order(&url, 2));
            assert_eq!(refused.status, 503, "{outage:?}: {refused:?}");
            thread::sleep(Duration::from_secs(seconds).saturating_sub(begun.elapsed()));
            let done_before = fleet.count(SUCCEEDED);
            fleet.cutter.set_down(None);
            let back = Instant::now();
            until("a create", || is_accepted(&probe, &key, &url));
            let accepted = back.elapsed();
            for api in &fleet.apis {
                until("ready", || is_ready(&api.api));
            }
            let ready = back.elapsed();
            until("a task done", || fleet.count(SUCCEEDED) > done_before);
            took.push((outage, accepted, ready, back.elapsed()));
            deeds.recovered_after(back.elapsed());
            deeds.did("database cut off for a while");
        }
        (deeds, took)
    });
    fleet.stop();
    fleet.world.finish();
    for (outage, accepted, ready, done) in took {
        print_figure(
            &format!(
                "database cut off for {seconds} s ({outage:?}) → creates / all ready / a task done"
            ),
            "503 meanwhile, recovery ≤ 10 s",
            &format!(
                "503; {:.1} / {:.1} / {:.1} s",
                accepted.as_secs_f64(),
                ready.as_secs_f64(),
                done.as_secs_f64()
            ),
            "once",
        );
    }
    let what = format!("database cut off for {seconds} s under load, twice");
    print_figures(
        &fleet.world,
        &deeds,
        &what,
        ("database back → a task done", "≤ 10 s"),
    );
}

#[test]
fn a_storage_that_is_gone_for_a_while_loses_nothing_and_is_found_again() {
    let Some(mut fleet) = start_fleet() else {
        return;
    };
    let (seconds, mut dice) = rounds_and_dice(VARIABLE, SECONDS);
    let buyers = buyers(&fleet.world, &mut dice);
    let faults = [Fault::Refuses, Fault::HangsUp, Fault::Hangs];
    let (deeds, took) = under_load(buyers, || {
        let (mut deeds, mut took) = (Deeds::of(faults.len() as u64), Vec::new());
        for fault in faults {
            thread::sleep(Duration::from_secs(3));
            fleet.bucket.fail_all(Some(fault));
            thread::sleep(Duration::from_secs(seconds));
            let done_before = fleet.count(SUCCEEDED);
            fleet.bucket.fail_all(None);
            let done = until("a task done", || fleet.count(SUCCEEDED) > done_before);
            took.push((fault, done));
            deeds.recovered_after(done);
            deeds.did("storage gone for a while");
        }
        (deeds, took)
    });
    fleet.stop();
    fleet.world.finish();
    for (fault, done) in took {
        print_figure(
            &format!("storage gone for {seconds} s ({fault:?}) → a task done"),
            "recovery ≤ 10 s",
            &format!("{:.1} s", done.as_secs_f64()),
            "once",
        );
    }
    let what = format!("storage gone for {seconds} s under load, three times");
    print_figures(
        &fleet.world,
        &deeds,
        &what,
        ("storage back → a task done", "≤ 10 s"),
    );
}

/// Tasks ordered while something is away.
const ORDERED: usize = 4;

/// Orders good pictures while `away` says that something is, and has them all once it is back.
fn order_during(fleet: &mut Fleet, name: &str, seconds: u64, away: impl Fn(&mut Fleet, bool)) {
    let customer = fleet.world.customer("10");
    let bytes = Picture::render(16, 12, 3).png();
    let url = |task: usize| {
        let path = format!("/{name}-{task}.png");
        let good = Behaviour::File(bytes.clone());
        fleet.world.serve_so(&path, good, (16, 12))
    };
    let urls: Vec<String> = (0..ORDERED).map(url).collect();
    // What is known to be down takes no tasks, so that the last outage must be known to be over.
    for api in &fleet.apis {
        until("ready", || is_ready(&api.api));
    }
    away(fleet, true);
    let begun = Instant::now();
    let mut ids = Vec::new();
    for (task, url) in urls.iter().enumerate() {
        let key = format!("during-{name}-{task}");
        // What is refused while it is away is asked again after it, as a client does.
        if let Some(answer) = customer.try_create(&key, &order(url, 2)) {
            ids.extend((answer.status == 202).then(|| answer.id()));
        }
    }
    thread::sleep(Duration::from_secs(seconds).saturating_sub(begun.elapsed()));
    away(fleet, false);
    for id in ids {
        let ended = customer.wait(&id).json();
        assert_eq!(ended["status"], "succeeded", "{name}: {ended}");
    }
}

#[test]
fn an_outage_fails_no_task_whose_deadline_allows_it() {
    let Some(mut fleet) = start_fleet() else {
        return;
    };
    let (seconds, _) = rounds_and_dice(VARIABLE, SECONDS);
    for fault in [Fault::Refuses, Fault::HangsUp, Fault::Hangs] {
        let name = format!("storage-{fault:?}");
        order_during(&mut fleet, &name, seconds, |fleet, is_away| {
            fleet.bucket.fail_all(is_away.then_some(fault));
        });
    }
    order_during(&mut fleet, "source", seconds, |fleet, is_away| {
        fleet.world.host.set_away(is_away);
    });
    for outage in [Outage::HangsUp, Outage::Silent] {
        let name = format!("database-{outage:?}");
        order_during(&mut fleet, &name, seconds, |fleet, is_away| {
            fleet.cutter.set_down(is_away.then_some(outage));
        });
    }
    let done = fleet.count(SUCCEEDED);
    let failed = fleet.count("SELECT count(*) FROM task WHERE state = 'failed'");
    fleet.stop();
    fleet.world.finish();
    assert_eq!(failed, 0);
    assert!(done >= 4 * ORDERED as u64, "{done} tasks were accepted");
    print_figure(
        &format!("tasks accepted while storage, source or database were away for {seconds} s"),
        "0 failed",
        &format!("{failed} failed, {done} succeeded"),
        "six outages",
    );
}
