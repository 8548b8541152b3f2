//! All runs side by side, one row a figure.

use crate::{
    figures::{Figures, figures, percentile},
    world::{Scenario, World},
};

type Row = (&'static str, fn(&Figures, &World) -> String);

const ROWS: [Row; 26] = [
    ("tasks wanted", |one, _| one.wanted.to_string()),
    ("tasks accepted", |one, _| one.accepted.to_string()),
    ("succeeded", |one, _| one.succeeded.to_string()),
    ("failed, refunded", |one, _| one.failed.to_string()),
    ("missed the deadline", |one, _| one.missed.to_string()),
    ("lost", |one, _| one.lost.to_string()),
    ("503 before anything is reserved", |_, world| {
        world.tally.put_off.to_string()
    }),
    ("429 active", |_, world| world.tally.over_active.to_string()),
    ("429 rate", |_, world| world.tally.over_rate.to_string()),
    ("tasks beyond the day's limit", |_, world| {
        world.tally.over_day.to_string()
    }),
    ("wait p50, s", |one, _| at(&one.waits, 0.5)),
    ("wait p95, s", |one, _| at(&one.waits, 0.95)),
    ("wait p99, s", |one, _| at(&one.waits, 0.99)),
    ("wait, longest, s", |one, _| at(&one.waits, 1.0)),
    ("  one at a time, p50, s", |one, _| {
        at(&one.waits_small, 0.5)
    }),
    ("  one at a time, p99, s", |one, _| {
        at(&one.waits_small, 0.99)
    }),
    ("  hundred largest, p50, s", |one, _| {
        at(&one.waits_large, 0.5)
    }),
    ("  hundred largest, p99, s", |one, _| {
        at(&one.waits_large, 0.99)
    }),
    ("accepted to over, p50, s", |one, _| {
        at(&one.turnarounds, 0.5)
    }),
    ("accepted to over, p99, s", |one, _| {
        at(&one.turnarounds, 0.99)
    }),
    ("accepted to over, longest, s", |one, _| {
        at(&one.turnarounds, 1.0)
    }),
    ("Jain index of fair shares", |one, _| {
        format!("{:.3}", one.jain)
    }),
    ("slots held", |one, _| percent(one.utilisation)),
    ("slots held, busiest hour", |one, _| {
        percent(one.busiest_hour)
    }),
    ("deaths, stalls, leases lost", |_, world| {
        let tally = &world.tally;
        format!("{} {} {}", tally.deaths, tally.stalls, tally.leases_lost)
    }),
    ("stale finishes refused", |_, world| {
        world.tally.stale_finishes.to_string()
    }),
];

fn at(sorted: &[f64], share: f64) -> String {
    format!("{:.1}", percentile(sorted, share))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A Markdown table.
pub(crate) fn print(runs: &[(&str, Scenario, World)]) {
    let figures: Vec<Figures> = runs
        .iter()
        .map(|(_, scenario, world)| figures(world, scenario))
        .collect();
    print!("| {:<32} |", "");
    for (name, _, _) in runs {
        print!(" {name:>16} |");
    }
    print!("\n|---|");
    for _ in runs {
        print!("--:|");
    }
    for (what, figure) in ROWS {
        print!("\n| {what:<32} |");
        for ((_, _, world), one) in runs.iter().zip(&figures) {
            print!(" {:>16} |", figure(one, world));
        }
    }
    println!();
}
