//! A fleet on PostgreSQL and a bucket, two API processes and two workers, through everything that can go wrong around
//! them, under load, judged as a whole.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{
    cutter::Cutter,
    dice::Dice,
    figures::{Deeds, print_figures},
    load::{buyers, rounds_and_dice, under_load},
    processes::Worker,
};
use crate::harness::{
    World,
    bucket::{Bucket, FAULTS, Fault},
    postgres_server::{PostgresServer, start_or_say},
    serve::{Serve, signal},
};

const LEASE: &str = "5";
const FROZEN_FOR: Duration = Duration::from_secs(8);
const DATABASE: &str = "fleet";

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

struct Fleet {
    apis: Vec<Serve>,
    workers: Vec<Worker>,
    world: World,
    bucket: Bucket,
    cutter: Cutter,
    postgres: PostgresServer,
}

#[test]
fn whatever_happens_to_a_fleet_no_task_is_lost_and_none_is_charged_twice() {
    let Some(postgres) = start_or_say() else {
        return;
    };
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_FLEET_ROUNDS", DEEDS.len() as u64);
    let mut fleet = Fleet::start(postgres);
    let buyers = buyers(&fleet.world, &mut dice);
    let deeds = under_load(buyers, || fleet.suffer(rounds, &mut dice));
    fleet.stop();
    fleet.world.finish();
    print_figures(&fleet.world, &deeds);
    let (requests, faulty) = fleet.bucket.requests();
    println!("requests to the storage {requests}, of which {faulty} failed on demand");
}

impl Fleet {
    fn start(postgres: PostgresServer) -> Self {
        let folder = TempDir::new().unwrap();
        let bucket = Bucket::start(folder.path());
        postgres.create_database(DATABASE, None);
        let cutter = Cutter::start(postgres.port());
        let mut variables = bucket.place();
        let database = format!("postgres://upscale@127.0.0.1:{}/{DATABASE}", cutter.port);
        variables.push(("UPSCALE_DATABASE".to_owned(), database));
        let mut fleet = Self {
            apis: Vec::new(),
            workers: Vec::new(),
            world: World::prepare_in(folder, &["--workers", "1", "--lease", LEASE], variables),
            bucket,
            cutter,
            postgres,
        };
        fleet.start_all();
        fleet
    }

    fn start_all(&mut self) {
        while self.apis.len() < 2 {
            self.start_api();
        }
        while self.workers.len() < 2 {
            self.start_worker();
        }
    }

    fn start_api(&mut self) {
        let (mut command, log) = self.world.command();
        command.args(["api", "--lease", LEASE]);
        let api = Serve::start_front(command, &log);
        self.world.direct_customers_to(&api.api);
        self.apis.push(api);
    }

    fn start_worker(&mut self) {
        let (mut command, log) = self.world.command();
        command.args(["worker", "--workers", "1", "--lease", LEASE]);
        command.args(self.world.host.flags());
        self.workers.push(Worker::start(command, &log));
    }

    /// Every deed once before any comes again.
    fn suffer(&mut self, rounds: u64, dice: &mut Dice) -> Deeds {
        let mut deeds = Deeds::of(rounds);
        let mut left = Vec::new();
        for _ in 0..rounds {
            if left.is_empty() {
                left = DEEDS.to_vec();
            }
            let deed = left.swap_remove(dice.below(left.len() as u64) as usize);
            thread::sleep(Duration::from_millis(dice.between(200, 1_500)));
            self.suffer_one(deed, dice, &mut deeds);
            // Customers come by either door.
            let api = dice.choose(&self.apis);
            self.world.direct_customers_to(&api.api);
        }
        deeds
    }

    fn suffer_one(&mut self, deed: Deed, dice: &mut Dice, deeds: &mut Deeds) {
        match deed {
            Deed::KillApi => {
                let index = dice.below(self.apis.len() as u64) as usize;
                self.apis.swap_remove(index).kill();
                let begun = Instant::now();
                self.start_api();
                deeds.recovered_after(begun.elapsed());
                deeds.did("kill of an API process");
            }
            Deed::KillWorker => {
                let index = dice.below(self.workers.len() as u64) as usize;
                self.workers.swap_remove(index).kill();
                self.start_worker();
                deeds.did("kill of a worker");
            }
            Deed::KillChild => {
                let children: Vec<u32> = self.workers.iter().flat_map(Worker::children).collect();
                // None may be at work; then this round kills nobody.
                if !children.is_empty() && signal(*dice.choose(&children), Signal::KILL) {
                    deeds.did("kill of a child");
                }
            }
            Deed::StopPostgres => {
                self.postgres.stop_immediately().unwrap();
                thread::sleep(Duration::from_millis(dice.between(0, 1_000)));
                self.postgres.start_again().unwrap();
                deeds.did("immediate stop of PostgreSQL");
            }
            Deed::FreezeWorker => {
                let frozen = dice.choose(&self.workers).pid();
                assert!(signal(frozen, Signal::STOP));
                thread::sleep(FROZEN_FOR);
                assert!(signal(frozen, Signal::CONT));
                deeds.did("worker frozen beyond its lease");
            }
            Deed::CutConnections => {
                self.cutter.cut_all();
                deeds.did("all database connections cut");
            }
            Deed::CutCommits => self.cut_commits(deeds),
            Deed::StorageFaults => {
                let faults: Vec<Fault> = (0..6).map(|_| *dice.choose(&FAULTS)).collect();
                self.bucket.fail_next_puts(&faults);
                deeds.did("six writes to the storage fail");
            }
            Deed::StorageOutage => {
                self.bucket.fail_all(Some(*dice.choose(&FAULTS)));
                thread::sleep(Duration::from_millis(dice.between(500, 3_000)));
                self.bucket.fail_all(None);
                deeds.did("outage of the storage");
            }
            Deed::KillEverything => {
                self.apis.drain(..).for_each(Serve::kill);
                self.workers.drain(..).for_each(Worker::kill);
                self.postgres.stop_immediately().unwrap();
                self.postgres.start_again().unwrap();
                self.start_all();
                deeds.did("restart of everything");
            }
        }
    }

    fn cut_commits(&self, deeds: &mut Deeds) {
        const COMMITS: u64 = 4;
        let before = self.cutter.commits_cut();
        self.cutter.cut_commits(COMMITS);
        let begun = Instant::now();
        while self.cutter.commits_cut() < before + COMMITS {
            // Customers, heartbeats and chores commit all the time.
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody commits");
            thread::sleep(Duration::from_millis(20));
        }
        (0..COMMITS).for_each(|_| deeds.did("connection cut within a commit"));
    }

    /// In order: what is under way is finished or given back.
    fn stop(&mut self) {
        for worker in self.workers.drain(..) {
            assert_eq!(worker.stop().code(), Some(0));
        }
        for api in self.apis.drain(..) {
            assert_eq!(api.stop().code(), Some(0));
        }
    }
}
