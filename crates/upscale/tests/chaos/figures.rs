//! What a run of kills amounts to, as one table.

use std::{collections::HashSet, time::Duration};

use crate::history::{History, Outcome, State};

/// Who was killed how often.
#[derive(Default)]
pub(crate) struct Kills {
    pub(crate) rounds: u64,
    pub(crate) serve: u64,
    pub(crate) second: u64,
    pub(crate) child: u64,
    /// From a killed service's restart to its ready line: shown, never asserted.
    pub(crate) slowest_restart: Duration,
}

/// Prints the table of a history that the judge has passed.
pub(crate) fn print_figures(history: &History, kills: &Kills, downloads: usize) {
    let accepted = history.accepted().len();
    let succeeded = history.downloads.len();
    let refunded = refunded(history);
    let lines = [kill_lines(kills), load_lines(history)].concat();
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
    // Nothing seen in n tries: with 95 % confidence it happens in less than 3 of n (rule of three).
    let killed = kills.serve + kills.second + kills.child;
    print(
        "95 % bound per task (3/n)",
        &format!("{:.2} %", 300.0 / accepted as f64),
    );
    print(
        "95 % bound per kill (3/n)",
        &format!("{:.2} %", 300.0 / killed as f64),
    );
    assert!(
        accepted > 0 && killed > 0,
        "a run without tasks or kills shows nothing"
    );
    assert_eq!(
        succeeded + refunded,
        accepted,
        "every accepted task is over"
    );
}

fn print(what: &str, figure: &str) {
    println!("{what:<32} {figure:>10}");
}

fn kill_lines(kills: &Kills) -> Vec<(&'static str, String)> {
    vec![
        ("rounds", kills.rounds.to_string()),
        ("kills of the service", kills.serve.to_string()),
        ("kills of a second service", kills.second.to_string()),
        ("kills of a child", kills.child.to_string()),
        (
            "slowest restart to ready",
            format!("{:.2} s", kills.slowest_restart.as_secs_f64()),
        ),
    ]
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
