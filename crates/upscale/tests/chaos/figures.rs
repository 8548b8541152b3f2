//! What a run of faults amounts to, as one table.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use super::load::SOURCES;
use crate::{
    harness::{
        World,
        figure::{print_figure, tries_and_bound},
    },
    history::{History, Outcome, State},
};

/// What was done to the service, how often.
#[derive(Default)]
pub(crate) struct Deeds {
    rounds: u64,
    /// Deeds by name.
    done: BTreeMap<&'static str, u64>,
    /// Until a service that was killed, or that had no room, says it is ready: shown, never asserted.
    recoveries: Vec<Duration>,
}

impl Deeds {
    pub(crate) fn of(rounds: u64) -> Self {
        Self {
            rounds,
            ..Self::default()
        }
    }

    pub(crate) fn did(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    pub(crate) fn recovered_after(&mut self, took: Duration) {
        self.recoveries.push(took);
    }

    fn total(&self) -> u64 {
        self.done.values().sum()
    }
}

/// Prints the table of a world that the judge has passed. `what` was done to it; the other is what the recoveries are,
/// and how long they may take.
pub(crate) fn print_figures(world: &World, deeds: &Deeds, what: &str, recovery: (&str, &str)) {
    let history = &*world.recorder.history();
    let downloads: usize = SOURCES.iter().map(|path| world.host.hits(path)).sum();
    let accepted = history.accepted().len();
    let succeeded = history.downloads.len();
    let refunded = refunded(history);
    let lines = [deed_lines(deeds), load_lines(history)].concat();
    for (what, figure) in lines {
        print(what, &figure);
    }
    print("downloads of sources", &downloads.to_string());
    print("tasks succeeded, result whole", &succeeded.to_string());
    print("tasks failed and refunded", &refunded.to_string());
    let charged: i64 = history.balances.iter().map(|balance| balance.charged).sum();
    print(
        "credits charged",
        &format!("{}.{:03}", charged / 1_000, charged % 1_000),
    );
    print("lost, doubled or miscounted", "0");
    assert!(
        accepted > 0 && deeds.total() > 0,
        "a run without tasks or faults shows nothing"
    );
    assert_eq!(
        succeeded + refunded,
        accepted,
        "every accepted task is over"
    );
    let faults = tries_and_bound(deeds.total() as usize, "faults");
    let tasks = tries_and_bound(accepted, "tasks");
    let tries = format!("{} cycles: {faults}; {tasks}", deeds.rounds);
    print_figure(
        what,
        "nothing lost, nothing charged twice",
        "0 lost, 0 doubled",
        &tries,
    );
    print_recoveries(&deeds.recoveries, recovery);
}

fn print_recoveries(recoveries: &[Duration], (what, goal): (&str, &str)) {
    let mut sorted = recoveries.to_vec();
    sorted.sort_unstable();
    if let Some(slowest) = sorted.last() {
        let (median, slowest) = (sorted[sorted.len() / 2], slowest.as_secs_f64());
        let found = format!(
            "median {:.2} s, slowest {slowest:.2} s",
            median.as_secs_f64()
        );
        print_figure(what, goal, &found, &format!("{} times", sorted.len()));
    }
}

fn print(what: &str, figure: &str) {
    println!("{what:<36} {figure:>10}");
}

fn deed_lines(deeds: &Deeds) -> Vec<(&'static str, String)> {
    let mut lines = vec![("rounds", deeds.rounds.to_string())];
    let done = deeds.done.iter();
    lines.extend(done.map(|(what, times)| (*what, times.to_string())));
    let recovery = deeds.recoveries.iter().max();
    lines.extend(recovery.map(|took| {
        let seconds = took.as_secs_f64();
        ("slowest recovery", format!("{seconds:.2} s"))
    }));
    lines
}

fn load_lines(history: &History) -> Vec<(&'static str, String)> {
    let with_status = |wanted: &[u16]| {
        let refused = history.creates.iter().filter(|create| {
            matches!(&create.outcome, Outcome::Refused { status, .. } if wanted.contains(status))
        });
        refused.count().to_string()
    };
    let lost = history
        .creates
        .iter()
        .filter(|create| create.outcome == Outcome::Lost)
        .count();
    let replays = history
        .creates
        .iter()
        .filter(|create| create.replayed)
        .count();
    vec![
        ("create requests", history.creates.len().to_string()),
        ("  tasks accepted", history.accepted().len().to_string()),
        ("  replays", replays.to_string()),
        ("  conflicts", with_status(&[409])),
        ("  limits", with_status(&[429])),
        ("  put off (503, 504)", with_status(&[503, 504])),
        ("  answers lost", lost.to_string()),
        ("reads", history.reads.len().to_string()),
    ]
}

/// Tasks whose refund a client has seen.
fn refunded(history: &History) -> usize {
    let reads = history.reads.iter().filter_map(|read| match &read.outcome {
        Outcome::Task(seen) if seen.state == State::FailedRefunded => Some(seen.id.as_str()),
        _ => None,
    });
    reads.collect::<HashSet<_>>().len()
}
