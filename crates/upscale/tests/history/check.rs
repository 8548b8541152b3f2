//! The judge: one function a promise about keys, states and results. Money and limits have files of their own.

use std::collections::HashMap;

use super::{Create, History, Outcome, Promise, Rules, Span, State, Violation, check_accounts};

/// Every broken promise; empty when the history is one the contract allows.
pub fn check(history: &History, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    check_readable(history, &mut found);
    check_keys(history, &mut found);
    check_resolved(history, &mut found);
    check_states(history, &mut found);
    check_downloads(history, &mut found);
    check_terminal(history, rules, &mut found);
    check_others(history, &mut found);
    check_errors(history, &mut found);
    check_accounts::check(history, rules, &mut found);
    let audit = history.audit_breaches.iter();
    found.extend(audit.map(|line| violation(Promise::AuditIsClean, line.clone())));
    found
}

pub(super) fn violation(promise: Promise, detail: String) -> Violation {
    Violation { promise, detail }
}

/// An id that was handed out answers its owner from then on: 200, or no answer, or a temporary one, or one
/// that is about the key that asked and not about the task.
fn check_readable(history: &History, found: &mut Vec<Violation>) {
    let first_answers = first_acceptances(history);
    for read in &history.reads {
        let Some(&(owner, answered)) = first_answers.get(read.id.as_str()) else {
            continue;
        };
        if read.account != owner || read.span.started < answered {
            continue;
        }
        if let Outcome::Refused { status, code } = &read.outcome
            && !matches!(status, 401 | 403 | 429 | 503 | 504)
        {
            let detail = format!("{} was accepted, then a read said {status} {code}", read.id);
            found.push(violation(Promise::AcceptedStaysReadable, detail));
        }
    }
}

/// Owner and the moment of the first 202, by id.
fn first_acceptances(history: &History) -> HashMap<&str, (&str, u64)> {
    let mut first: HashMap<&str, (&str, u64)> = HashMap::new();
    for create in &history.creates {
        if let Outcome::Task(seen) = &create.outcome {
            let entry = first
                .entry(&seen.id)
                .or_insert((&create.account, create.span.answered));
            entry.1 = entry.1.min(create.span.answered);
        }
    }
    first
}

/// One key, one id, one set of parameters; and back.
fn check_keys(history: &History, found: &mut Vec<Violation>) {
    let mut by_key: HashMap<(&str, &str), Vec<&Create>> = HashMap::new();
    let mut key_of: HashMap<&str, (&str, &str)> = HashMap::new();
    for create in &history.creates {
        let key = (create.account.as_str(), create.key.as_str());
        by_key.entry(key).or_default().push(create);
        if let Outcome::Task(seen) = &create.outcome {
            let owner = *key_of.entry(&seen.id).or_insert(key);
            if owner != key {
                let detail = format!("{} answers {owner:?} and {key:?}", seen.id);
                found.push(violation(Promise::OneKeyPerId, detail));
            }
        }
    }
    for (key, creates) in by_key {
        check_one_key(key, &creates, found);
    }
}

fn check_one_key(key: (&str, &str), creates: &[&Create], found: &mut Vec<Violation>) {
    let accepted: Vec<(&Create, &str)> = creates
        .iter()
        .filter_map(|create| match &create.outcome {
            Outcome::Task(seen) => Some((*create, seen.id.as_str())),
            _ => None,
        })
        .collect();
    if let Some((first, id)) = accepted.first() {
        for (create, other) in &accepted[1..] {
            if other != id {
                let detail = format!("key {key:?} named {id} and {other}");
                found.push(violation(Promise::OneIdPerKey, detail));
            }
            if create.parameters != first.parameters {
                let detail = format!("key {key:?} accepted with two sets of parameters");
                found.push(violation(Promise::ConflictIffOtherParameters, detail));
            }
        }
        check_replays(key, creates, &accepted, found);
    }
    for create in creates.iter().filter(|create| is_conflict(&create.outcome)) {
        if creates
            .iter()
            .all(|other| other.parameters == create.parameters)
        {
            let detail = format!("key {key:?} had one set of parameters and got a 409");
            found.push(violation(Promise::ConflictIffOtherParameters, detail));
        }
    }
}

/// A key is accepted anew once and then replayed; a replay without a first acceptance needs a request whose outcome was
/// unknown. A 503 is none: it says that nothing was reserved.
fn check_replays(
    key: (&str, &str),
    creates: &[&Create],
    accepted: &[(&Create, &str)],
    found: &mut Vec<Violation>,
) {
    let anew = accepted
        .iter()
        .filter(|(create, _)| !create.replayed)
        .count();
    let unknown = creates.iter().any(|create| match create.outcome {
        Outcome::Lost => true,
        Outcome::Refused { status, .. } => status == 504,
        Outcome::Task(_) => false,
    });
    if anew > 1 || anew == 0 && !unknown {
        let detail = format!("key {key:?} was accepted anew {anew} times");
        found.push(violation(Promise::ReplayIsMarked, detail));
    }
}

fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { status: 409, .. })
}

/// A create whose answer was lost is asked again until it is known what became of it; otherwise nothing
/// could be said about the money.
fn check_resolved(history: &History, found: &mut Vec<Violation>) {
    for lost in history
        .creates
        .iter()
        .filter(|create| create.outcome == Outcome::Lost)
    {
        let resolved = history.creates.iter().any(|other| {
            (&other.account, &other.key) == (&lost.account, &lost.key)
                && match &other.outcome {
                    Outcome::Task(_) => true,
                    Outcome::Refused { status, .. } => {
                        matches!(status, 402 | 409) && other.span.started >= lost.span.answered
                    }
                    Outcome::Lost => false,
                }
        });
        if !resolved {
            let detail = format!("key {} of {} was never answered", lost.key, lost.account);
            found.push(violation(Promise::EveryKeyIsResolved, detail));
        }
    }
}

/// Of two sightings where one was over before the other began, the later is not behind.
fn check_states(history: &History, found: &mut Vec<Violation>) {
    let mut by_id: HashMap<&str, Vec<(Span, State)>> = HashMap::new();
    for (span, _, seen) in history.sightings() {
        by_id.entry(&seen.id).or_default().push((span, seen.state));
    }
    for (id, sightings) in by_id {
        for (index, &(earlier, before)) in sightings.iter().enumerate() {
            let backwards = sightings[index + 1..].iter().find(|(later, after)| {
                later.started >= earlier.answered && !before.may_become(*after)
            });
            if let Some((_, after)) = backwards {
                let detail = format!("{id} was {before:?} and then {after:?}");
                found.push(violation(Promise::StatesMoveForward, detail));
            }
        }
        // Overlapping reads may cross, but no task has two ends.
        let succeeded = sightings
            .iter()
            .any(|(_, state)| *state == State::Succeeded);
        let failed = sightings
            .iter()
            .any(|(_, state)| state.is_terminal() && *state != State::Succeeded);
        if succeeded && failed {
            let detail = format!("{id} both succeeded and failed");
            found.push(violation(Promise::StatesMoveForward, detail));
        }
    }
}

fn check_downloads(history: &History, found: &mut Vec<Violation>) {
    for download in &history.downloads {
        let wrong = match &download.found {
            Ok(size) if *size == download.expected => continue,
            Ok((width, height)) => format!("is {width} x {height}"),
            Err(what) => what.clone(),
        };
        let (width, height) = download.expected;
        let detail = format!(
            "{} must be a PNG of {width} x {height}: {wrong}",
            download.id
        );
        found.push(violation(Promise::ResultsAreWhole, detail));
    }
}

/// The last sighting of every accepted task is terminal, and none is processing past its time.
fn check_terminal(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    let acceptances = first_acceptances(history);
    let mut last: HashMap<&str, State> = HashMap::new();
    for (span, _, seen) in history.sightings() {
        let Some(&(_, accepted)) = acceptances.get(seen.id.as_str()) else {
            continue;
        };
        let age = span.started.saturating_sub(accepted);
        if seen.state == State::Processing && age > rules.terminal_within {
            let detail = format!(
                "{} was processing {} s after its 202",
                seen.id,
                age / 1_000_000
            );
            found.push(violation(Promise::TerminalInTime, detail));
        }
        let entry = last.entry(&seen.id).or_insert(seen.state);
        if seen.state.is_terminal() {
            *entry = seen.state;
        }
    }
    for (id, state) in last.iter().filter(|(_, state)| !state.is_terminal()) {
        let detail = format!("{id} ended as {state:?}");
        found.push(violation(Promise::TerminalInTime, detail));
    }
}

/// Who does not own a task is told that there is none, as of a task that never was.
fn check_others(history: &History, found: &mut Vec<Violation>) {
    let owners = first_acceptances(history);
    for read in &history.reads {
        let is_foreign = owners
            .get(read.id.as_str())
            .is_none_or(|(owner, _)| *owner != read.account);
        if is_foreign && let Outcome::Task(_) = read.outcome {
            let detail = format!("{} was shown to {}", read.id, read.account);
            found.push(violation(Promise::OthersSeeNothing, detail));
        }
    }
}

/// 503 and 504 are answers of the contract; any other 5xx is a fault.
fn check_errors(history: &History, found: &mut Vec<Violation>) {
    let creates = history.creates.iter().map(|create| &create.outcome);
    let outcomes = creates.chain(history.reads.iter().map(|read| &read.outcome));
    for outcome in outcomes {
        if let Outcome::Refused { status, code } = outcome
            && *status >= 500
            && !matches!(status, 503 | 504)
        {
            let detail = format!("{status} {code}");
            found.push(violation(Promise::NoInternalError, detail));
        }
    }
}
