//! The judge of money and limits: what an account was charged and let in, against what its clients saw.

use std::collections::{HashMap, HashSet};

use super::{History, Outcome, Promise, Rules, State, Violation, check::violation};

pub(super) fn check(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    check_bodies(history, rules, found);
    check_balances(history, rules, found);
    check_transfers(history, found);
    check_active(history, rules, found);
    check_windows(history, found);
    check_days(history, rules, found);
}

/// 0.7 is reserved while processing, charged when succeeded, neither when failed.
fn check_bodies(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    for (_, _, seen) in history.sightings() {
        let expected = match seen.state {
            State::Processing => (rules.price, 0),
            State::Succeeded => (0, rules.price),
            State::FailedRefundPending | State::FailedRefunded => (0, 0),
        };
        if (seen.reserved, seen.charged) != expected {
            let detail = format!(
                "{} is {:?} with {} reserved and {} charged (thousandths)",
                seen.id, seen.state, seen.reserved, seen.charged
            );
            found.push(violation(Promise::BillingFollowsState, detail));
        }
    }
}

/// At the end an account has paid for exactly the tasks it saw succeed, and nothing is held for a task
/// that is over.
fn check_balances(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    let ends = last_states(history);
    for balance in &history.balances {
        let with_state = |wanted: fn(State) -> bool| {
            let states = ends
                .values()
                .filter(|(account, state)| *account == balance.account && wanted(*state));
            states.count() as i64
        };
        let charged = rules.price * with_state(|state| state == State::Succeeded);
        let reserved = rules.price
            * with_state(|state| matches!(state, State::Processing | State::FailedRefundPending));
        let available = balance.purchased - charged - reserved;
        let seen = (balance.charged, balance.reserved, balance.available);
        if seen != (charged, reserved, available) {
            let detail = format!(
                "{}: charged, reserved, available are {seen:?}, its tasks say {:?}",
                balance.account,
                (charged, reserved, available)
            );
            found.push(violation(Promise::BalanceFollowsTasks, detail));
        }
    }
}

/// Every accepted task was reserved once, charged once if it succeeded, refunded once if it failed; and
/// no money moved for a task that no client was told of.
fn check_transfers(history: &History, found: &mut Vec<Violation>) {
    let mut counts: HashMap<&str, [usize; 3]> = HashMap::new();
    for transfer in &history.transfers {
        let kinds = ["reserve", "charge", "refund"];
        if let Some(kind) = kinds.iter().position(|kind| *kind == transfer.kind) {
            counts.entry(&transfer.task).or_default()[kind] += 1;
        }
    }
    let known: HashSet<&str> = history
        .balances
        .iter()
        .map(|one| one.account.as_str())
        .collect();
    let mut ends = last_states(history);
    ends.retain(|_, (account, _)| known.contains(account));
    for (id, (_, state)) in &ends {
        let counted = counts.remove(id).unwrap_or_default();
        let expected = match state {
            State::Processing | State::FailedRefundPending => [1, 0, 0],
            State::Succeeded => [1, 1, 0],
            State::FailedRefunded => [1, 0, 1],
        };
        if counted != expected {
            let detail =
                format!("{id} is {state:?}; reserved, charged, refunded {counted:?} times");
            found.push(violation(Promise::LedgerFollowsTasks, detail));
        }
    }
    for (id, counted) in counts {
        let detail = format!("{id}, which no one was told of, moved money {counted:?} times");
        found.push(violation(Promise::LedgerFollowsTasks, detail));
    }
}

/// The furthest state in which each accepted task was seen, with its account.
fn last_states(history: &History) -> HashMap<&str, (&str, State)> {
    let mut ends: HashMap<&str, (&str, State)> = history
        .accepted()
        .into_iter()
        .map(|(id, account)| (id, (account, State::Processing)))
        .collect();
    for (_, _, seen) in history.sightings() {
        if let Some((_, state)) = ends.get_mut(seen.id.as_str())
            && state.may_become(seen.state)
        {
            *state = seen.state;
        }
    }
    ends
}

/// A task is surely active from its 202 until the last request that still found it processing was sent.
fn check_active(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    let mut spans: HashMap<&str, (&str, u64, u64)> = HashMap::new();
    for create in &history.creates {
        if let Outcome::Task(seen) = &create.outcome {
            let entry = spans
                .entry(&seen.id)
                .or_insert((&create.account, create.span.answered, 0));
            entry.1 = entry.1.min(create.span.answered);
        }
    }
    for (span, _, seen) in history.sightings() {
        if let Some(entry) = spans.get_mut(seen.id.as_str())
            && seen.state == State::Processing
        {
            entry.2 = entry.2.max(span.started);
        }
    }
    let mut edges: HashMap<&str, Vec<(u64, i64)>> = HashMap::new();
    for (account, from, to) in spans.into_values().filter(|(_, from, to)| from <= to) {
        let edges = edges.entry(account).or_default();
        edges.extend([(from, 1), (to + 1, -1)]);
    }
    for (account, mut edges) in edges {
        edges.sort_unstable();
        let mut active = 0;
        let most = edges.iter().map(|(_, step)| {
            active += step;
            active
        });
        let most = most.max().unwrap_or(0);
        if most > rules.active_tasks_max as i64 {
            let detail = format!("{account} had {most} tasks active at a time");
            found.push(violation(Promise::ActiveLimitHolds, detail));
        }
    }
}

/// Within one window no two requests are the n-th, and no more than the limit pass.
fn check_windows(history: &History, found: &mut Vec<Violation>) {
    let mut windows: HashMap<(&str, i64), (u32, Vec<u32>)> = HashMap::new();
    for create in &history.creates {
        let over = matches!(&create.outcome,
            Outcome::Refused { status: 429, code } if code == "rate_limit_exceeded");
        if let (Some(window), false) = (create.window, over) {
            let entry = windows.entry((&create.account, window.reset)).or_default();
            entry.0 = window.limit;
            entry.1.push(window.remaining);
        }
    }
    for ((account, reset), (limit, remaining)) in windows {
        let distinct: HashSet<u32> = remaining.iter().copied().collect();
        let above = remaining.iter().any(|&left| left >= limit);
        if remaining.len() > limit as usize || distinct.len() < remaining.len() || above {
            let detail = format!(
                "{account}, window to {reset}: {} requests passed a limit of {limit}, leaving {} numbers",
                remaining.len(),
                distinct.len()
            );
            found.push(violation(Promise::CreateRateHolds, detail));
        }
    }
}

/// Runs are shorter than a day, so that two UTC days are the most one can touch; the first is enough.
fn check_days(history: &History, rules: &Rules, found: &mut Vec<Violation>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, account) in history.accepted() {
        *counts.entry(account).or_default() += 1;
    }
    for (account, count) in counts
        .into_iter()
        .filter(|(_, count)| *count > rules.daily_tasks_max)
    {
        let detail = format!("{account} had {count} tasks accepted in a day");
        found.push(violation(Promise::DailyLimitHolds, detail));
    }
}
