//! What every change of core's decisions must keep, on a small fleet in seconds.

use crate::{
    day,
    figures::{Figures, figures, percentile},
    queue::{Policy, Standing},
    rush, rush_with_deaths,
    tenants::Demand,
    world::{Scenario, World, run},
};

/// A 25th of the fleet, with as much less to do.
fn small(scenario: Scenario) -> Scenario {
    let mut plan = scenario.plan;
    plan.machines = 10;
    Scenario {
        plan,
        demand: Demand {
            tenants: scenario.demand.tenants / 25,
            a_day: scenario.demand.a_day / 25.0,
            ..scenario.demand
        },
        ..scenario
    }
}

fn ran(scenario: Scenario) -> (World, Figures) {
    let world = run(scenario);
    let figures = figures(&world, &scenario);
    assert_eq!(figures.lost, 0, "every accepted task is over");
    (world, figures)
}

#[test]
fn in_a_rush_of_three_times_capacity_what_is_accepted_is_done_in_time() {
    for seed in 1..=5 {
        let scenario = small(rush(seed, Policy::Ours));
        let (world, one) = ran(scenario);
        assert_eq!(one.missed, 0, "seed {seed}");
        assert!(world.tally.put_off > 0, "seed {seed}: someone was put off");
        // Nearly all that ten minutes of so many slots can do was done.
        let possible = 600.0 * scenario.plan.slots() / scenario.plan.mean_job_seconds();
        assert!(
            one.succeeded as f64 > possible,
            "seed {seed}: {} of {possible}",
            one.succeeded
        );
    }
}

#[test]
fn when_machines_die_meanwhile_only_tasks_that_were_on_them_can_be_late() {
    for seed in 1..=5 {
        let (world, one) = ran(small(rush_with_deaths(seed)));
        assert!(world.tally.deaths > 0, "seed {seed}: machines died");
        let late = world.queue.jobs.iter();
        let late = late.filter(|job| job.standing == Standing::Missed);
        for job in late {
            let has_cause = job.interruptions + job.crashes > 0;
            assert!(has_cause, "seed {seed}: late without a cause");
        }
        assert!(
            one.missed <= one.accepted / 1_000,
            "seed {seed}: {} late",
            one.missed
        );
    }
}

#[test]
fn accepting_everything_breaks_it() {
    let (_, one) = ran(small(rush(1, Policy::AcceptEverything)));
    assert!(
        one.missed > one.accepted / 10,
        "{} of {}",
        one.missed,
        one.accepted
    );
}

#[test]
fn who_brings_one_waits_less_than_who_brings_a_pile() {
    let hours = Scenario {
        seconds: 2 * 3_600,
        demand: Demand {
            peakedness: 0.0,
            tenants: 8_000,
            a_day: 130_000.0,
            ..small(day(1, Policy::Ours)).demand
        },
        rack_dies_at: None,
        ..small(day(1, Policy::Ours))
    };
    let (_, ours) = ran(hours);
    let fifo = Policy::FirstComeFirstServed;
    let (_, fifo) = ran(Scenario {
        policy: fifo,
        ..hours
    });
    let p95 = |one: &Figures| percentile(&one.waits_small, 0.95);
    assert!(
        p95(&ours) < 0.5 * p95(&fifo),
        "{} and {}",
        p95(&ours),
        p95(&fifo)
    );
}

#[test]
fn the_same_seed_is_the_same_day() {
    let scenario = Scenario {
        seconds: 1_800,
        ..small(day(3, Policy::Ours))
    };
    let ends = |world: &World| -> Vec<_> {
        let jobs = world.queue.jobs.iter();
        jobs.map(|job| (job.created_at, job.ended_at)).collect()
    };
    let (first, second) = (ran(scenario).0, ran(scenario).0);
    assert_eq!(ends(&first), ends(&second));
    let (other, _) = ran(Scenario {
        seed: 4,
        ..scenario
    });
    assert_ne!(ends(&first), ends(&other));
}
