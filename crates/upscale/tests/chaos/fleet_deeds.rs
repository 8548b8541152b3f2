//! A fleet on PostgreSQL and a bucket, two API processes and two workers, through everything that can go wrong around
//! them, under load, judged as a whole.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    cutter::Cutter,
    dice::Dice,
    figures::{Deeds, print_figures},
    fleet::Fleet,
    load::{buyers, rounds_and_dice, under_load},
    processes::Worker,
};
use crate::harness::{
    bucket::{FAULTS, Fault},
    serve::{Serve, signal},
};

const LEASE: &str = "5";
const FROZEN_FOR: Duration = Duration::from_secs(8);

/// What is done to the fleet; the short form does each once, `UPSCALE_FLEET_ROUNDS` asks for another number.
#[derive(Debug, Clone, Copy)]
enum Deed {
    KillApi,
    KillWorker,
    KillChild,
    StopPostgres,
    FreezeWorker,
    CutConnections,
    CutCommits,
    StorageFaults,
    StorageOutage,
    KillEverything,
}

const DEEDS: [Deed; 10] = [
    Deed::KillApi,
    Deed::KillWorker,
    Deed::KillChild,
    Deed::StopPostgres,
    Deed::FreezeWorker,
    Deed::CutConnections,
    Deed::CutCommits,
    Deed::StorageFaults,
    Deed::StorageOutage,
    Deed::KillEverything,
];

#[test]
fn whatever_happens_to_a_fleet_no_task_is_lost_and_none_is_charged_twice() {
    let Some(mut fleet) = Fleet::prepare(&["--lease", LEASE]) else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_FLEET_ROUNDS", DEEDS.len() as u64);
    start_all(&mut fleet);
    let buyers = buyers(&fleet.world, &mut dice);
    let deeds = under_load(buyers, || suffer(&mut fleet, rounds, &mut dice));
    fleet.stop();
    fleet.world.finish();
    print_figures(
        &fleet.world,
        &deeds,
        "kills, freezes, cuts and outages of a fleet under load (PostgreSQL, S3)",
        ("API process ready after kill -9", "≤ 10 s"),
    );
    let (requests, faulty) = fleet.bucket.requests();
    println!("requests to the storage {requests}, of which {faulty} failed on demand");
}

/// Two of each.
fn start_all(fleet: &mut Fleet) {
    while fleet.apis.len() < 2 {
        fleet.start_api();
    }
    while fleet.workers.len() < 2 {
        fleet.start_worker(1, &[]);
    }
}

/// Every deed once before any comes again.
fn suffer(fleet: &mut Fleet, rounds: u64, dice: &mut Dice) -> Deeds {
    let mut deeds = Deeds::of(rounds);
    let mut left = Vec::new();
    for _ in 0..rounds {
        if left.is_empty() {
            left = DEEDS.to_vec();
        }
        let deed = left.swap_remove(dice.below(left.len() as u64) as usize);
        thread::sleep(Duration::from_millis(dice.between(200, 1_500)));
        suffer_one(fleet, deed, dice, &mut deeds);
        // Customers come to either API process.
        let api = dice.choose(&fleet.apis);
        fleet.world.direct_customers_to(&api.api);
    }
    deeds
}

fn suffer_one(fleet: &mut Fleet, deed: Deed, dice: &mut Dice, deeds: &mut Deeds) {
    match deed {
        Deed::KillApi => {
            let index = dice.below(fleet.apis.len() as u64) as usize;
            fleet.apis.swap_remove(index).kill();
            let begun = Instant::now();
            fleet.start_api();
            deeds.recovered_after(begun.elapsed());
            deeds.did("kill of an API process");
        }
        Deed::KillWorker => {
            let index = dice.below(fleet.workers.len() as u64) as usize;
            fleet.workers.swap_remove(index).kill();
            fleet.start_worker(1, &[]);
            deeds.did("kill of a worker");
        }
        Deed::KillChild => {
            let children: Vec<u32> = fleet.workers.iter().flat_map(Worker::children).collect();
            // None may be at work; then this round kills no one.
            if !children.is_empty() && signal(*dice.choose(&children), Signal::KILL) {
                deeds.did("kill of a child");
            }
        }
        Deed::StopPostgres => {
            fleet.postgres.stop_immediately().unwrap();
            thread::sleep(Duration::from_millis(dice.between(0, 1_000)));
            fleet.postgres.start_again().unwrap();
            deeds.did("immediate stop of PostgreSQL");
        }
        Deed::FreezeWorker => {
            let frozen = dice.choose(&fleet.workers).pid();
            assert!(signal(frozen, Signal::STOP));
            thread::sleep(FROZEN_FOR);
            assert!(signal(frozen, Signal::CONT));
            deeds.did("worker frozen beyond its lease");
        }
        Deed::CutConnections => {
            fleet.cutter.cut_all();
            deeds.did("all database connections cut");
        }
        Deed::CutCommits => cut_commits(&fleet.cutter, deeds),
        Deed::StorageFaults => {
            let faults: Vec<Fault> = (0..6).map(|_| *dice.choose(&FAULTS)).collect();
            fleet.bucket.fail_next_puts(&faults);
            deeds.did("six writes to the storage fail");
        }
        Deed::StorageOutage => {
            fleet.bucket.fail_all(Some(*dice.choose(&FAULTS)));
            thread::sleep(Duration::from_millis(dice.between(500, 3_000)));
            fleet.bucket.fail_all(None);
            deeds.did("outage of the storage");
        }
        Deed::KillEverything => {
            fleet.apis.drain(..).for_each(Serve::kill);
            fleet.workers.drain(..).for_each(Worker::kill);
            fleet.postgres.stop_immediately().unwrap();
            fleet.postgres.start_again().unwrap();
            start_all(fleet);
            deeds.did("restart of everything");
        }
    }
}

fn cut_commits(cutter: &Cutter, deeds: &mut Deeds) {
    const COMMITS: u64 = 4;
    let before = cutter.commits_cut();
    cutter.cut_commits(COMMITS);
    let begun = Instant::now();
    while cutter.commits_cut() < before + COMMITS {
        // Customers, heartbeats and maintenance commit all the time.
        assert!(begun.elapsed() < Duration::from_secs(60), "no one commits");
        thread::sleep(Duration::from_millis(20));
    }
    (0..COMMITS).for_each(|_| deeds.did("connection cut within a commit"));
}
