//! A fleet of 1,000 slots through a day of a million tasks, and through ten minutes of three times what it can do,
//! by the decisions of `upscale_core` itself: admission, places in the queue, retries, leases, the pace.
//!
//! `cargo run --release -p upscale_core --example simulate -- [--seed N] [--plot FILE.svg]`
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a command whose output is its purpose; it fails by panicking"
)]

mod dice;
mod figures;
mod fleet;
mod idle;
mod plot;
mod queue;
mod table;
mod tally;
mod tenants;
mod world;

#[cfg(test)]
mod promises;

use fleet::FLEET;
use queue::Policy;
use tenants::Demand;
use world::{Scenario, run};

const SEED: u64 = 7;
const DAY_SECONDS: i64 = 86_400;
const RUSH_SECONDS: i64 = 600;
/// Customers together want 1.05 million tasks a day, the largest more than the limit of a day lets them have.
const DAY: Demand = Demand {
    tenants: 20_000,
    largest: 4_000.0,
    a_day: 1_050_000.0,
    peakedness: 2.6,
};

/// A day as it comes, with machines dying and stalling, and a rack of 25 at the busiest hour.
fn day(seed: u64, policy: Policy) -> Scenario {
    Scenario {
        seed,
        plan: FLEET,
        demand: DAY,
        policy,
        seconds: DAY_SECONDS,
        faults: true,
        rack_dies_at: Some(15 * 3_600),
    }
}

/// Ten minutes of three times what the slots can do, on a fleet that has not measured its pace yet.
fn rush(seed: u64, policy: Policy) -> Scenario {
    Scenario {
        seconds: RUSH_SECONDS,
        demand: Demand {
            tenants: 150_000,
            largest: 6_000.0,
            a_day: 3.0 * FLEET.slots() / FLEET.mean_job_seconds() * DAY_SECONDS as f64,
            peakedness: 0.0,
        },
        faults: false,
        rack_dies_at: None,
        ..day(seed, policy)
    }
}

/// The same, and at the fifth minute a tenth of the machines dies.
fn rush_with_deaths(seed: u64) -> Scenario {
    Scenario {
        faults: true,
        rack_dies_at: Some(300),
        ..rush(seed, Policy::Ours)
    }
}

fn main() {
    let mut seed = SEED;
    let mut plot_file = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().expect("--seed N or --plot FILE");
        match argument.as_str() {
            "--seed" => seed = value.parse().expect("--seed takes a number"),
            "--plot" => plot_file = Some(value),
            other => panic!("no such flag: {other}"),
        }
    }
    let scenarios = [
        ("a day", day(seed, Policy::Ours)),
        ("a day, FIFO", day(seed, Policy::FirstComeFirstServed)),
        ("rush", rush(seed, Policy::Ours)),
        ("rush, deaths", rush_with_deaths(seed)),
        ("rush, FIFO", rush(seed, Policy::FirstComeFirstServed)),
        ("rush, accept all", rush(seed, Policy::AcceptEverything)),
    ];
    println!("seed {seed}");
    let runs: Vec<_> = scenarios
        .into_iter()
        .map(|(name, scenario)| (name, scenario, run(scenario)))
        .collect();
    table::print(&runs);
    if let Some(file) = plot_file {
        let [day, .., rush, _, _, _] = &runs[..] else {
            panic!("six runs");
        };
        std::fs::write(&file, plot::svg(day, rush)).unwrap();
        println!("plot: {file}");
    }
}
