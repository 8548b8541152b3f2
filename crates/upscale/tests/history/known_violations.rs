//! A judge that never convicts is worthless: one history the contract allows, and the same history spoiled
//! in each way a service could break a promise.

use std::collections::HashSet;

use super::{
    Balance, Create, Download, History, Outcome, Promise, Read, Rules, Seen, Span, State, Transfer,
    Window, check,
};

const SECOND: u64 = 1_000_000;

fn span(started: u64, answered: u64) -> Span {
    Span { started, answered }
}

fn seen(id: &str, state: State) -> Outcome {
    let (reserved, charged) = match state {
        State::Processing => (700, 0),
        State::Succeeded => (0, 700),
        State::FailedRefundPending | State::FailedRefunded => (0, 0),
    };
    Outcome::Task(Seen {
        id: id.to_owned(),
        state,
        reserved,
        charged,
    })
}

fn create(key: &str, at: u64, outcome: Outcome) -> Create {
    Create {
        span: span(at, at + 10),
        account: "ann".to_owned(),
        key: key.to_owned(),
        parameters: format!("parameters of {key}"),
        outcome,
        window: Some(Window {
            limit: 60,
            remaining: 59 - (at / 100) as u32,
            reset: 60,
        }),
        replayed: false,
    }
}

fn replay(key: &str, at: u64, outcome: Outcome) -> Create {
    Create {
        replayed: true,
        ..create(key, at, outcome)
    }
}

fn read(account: &str, id: &str, at: u64, outcome: Outcome) -> Read {
    Read {
        span: span(at, at + 10),
        account: account.to_owned(),
        id: id.to_owned(),
        outcome,
    }
}

fn transfer(kind: &str, task: &str) -> Transfer {
    let [account, kind, task] = ["ann", kind, task].map(str::to_owned);
    Transfer {
        account,
        kind,
        task,
    }
}

fn refused(status: u16, code: &str) -> Outcome {
    Outcome::Refused {
        status,
        code: code.to_owned(),
    }
}

/// A success (its first answer lost), a failure with its refund, a conflict, an empty purse, a foreign caller.
fn allowed() -> History {
    let conflict = Create {
        parameters: "others".to_owned(),
        ..create("key-two", 500, refused(409, "idempotency_conflict"))
    };
    History {
        creates: vec![
            Create {
                window: None,
                ..create("key-one", 0, Outcome::Lost)
            },
            replay("key-one", 100, seen("one", State::Processing)),
            create("key-two", 200, seen("two", State::Processing)),
            replay("key-two", 300, seen("two", State::FailedRefundPending)),
            create("key-three", 400, refused(402, "insufficient_credits")),
            conflict,
        ],
        reads: vec![
            read("ann", "one", 200, seen("one", State::Processing)),
            read("ann", "one", 600, refused(503, "service_unavailable")),
            read("ann", "one", 700, seen("one", State::Succeeded)),
            read("ann", "two", 800, Outcome::Lost),
            read("ann", "two", 900, seen("two", State::FailedRefunded)),
            read("bob", "one", 950, refused(404, "task_not_found")),
        ],
        downloads: vec![Download {
            id: "one".to_owned(),
            expected: (8, 6),
            found: Ok((8, 6)),
        }],
        balances: vec![Balance {
            account: "ann".to_owned(),
            purchased: 1_400,
            available: 700,
            reserved: 0,
            charged: 700,
        }],
        transfers: [
            ("reserve", "one"),
            ("charge", "one"),
            ("reserve", "two"),
            ("refund", "two"),
        ]
        .map(|(kind, task)| transfer(kind, task))
        .to_vec(),
        audit_breaches: Vec::new(),
    }
}

/// The promises that the spoiled history breaks.
fn broken(spoil: impl FnOnce(&mut History)) -> HashSet<Promise> {
    let mut history = allowed();
    spoil(&mut history);
    let violations = check(&history, &Rules::default());
    violations
        .into_iter()
        .map(|violation| violation.promise)
        .collect()
}

#[track_caller]
fn assert_breaks(promise: Promise, spoil: impl FnOnce(&mut History)) {
    let broken = broken(spoil);
    assert!(
        broken.contains(&promise),
        "{promise:?} went unnoticed; noticed: {broken:?}"
    );
}

#[test]
fn an_allowed_history_breaks_nothing() {
    assert_eq!(broken(|_| ()), HashSet::new());
}

#[test]
fn a_lost_task_is_noticed() {
    assert_breaks(Promise::AcceptedStaysReadable, |history| {
        history
            .reads
            .push(read("ann", "two", 960, refused(404, "task_not_found")));
    });
    assert_breaks(Promise::AcceptedStaysReadable, |history| {
        history
            .reads
            .push(read("ann", "one", 960, refused(410, "gone")));
    });
}

#[test]
fn two_ids_for_a_key_are_noticed() {
    assert_breaks(Promise::OneIdPerKey, |history| {
        history
            .creates
            .push(replay("key-one", 1_000, seen("other", State::Succeeded)));
    });
}

#[test]
fn one_id_for_two_keys_is_noticed() {
    assert_breaks(Promise::OneKeyPerId, |history| {
        history
            .creates
            .push(create("key-four", 1_000, seen("one", State::Succeeded)));
    });
}

#[test]
fn a_missing_conflict_and_a_baseless_one_are_noticed() {
    assert_breaks(Promise::ConflictIffOtherParameters, |history| {
        let mut other = replay("key-two", 1_000, seen("two", State::FailedRefunded));
        other.parameters = "others".to_owned();
        history.creates.push(other);
    });
    assert_breaks(Promise::ConflictIffOtherParameters, |history| {
        history.creates.push(create(
            "key-one",
            1_000,
            refused(409, "idempotency_conflict"),
        ));
    });
}

#[test]
fn a_second_acceptance_and_an_unfounded_replay_are_noticed() {
    assert_breaks(Promise::ReplayIsMarked, |history| {
        history
            .creates
            .push(create("key-two", 1_000, seen("two", State::FailedRefunded)));
    });
    assert_breaks(Promise::ReplayIsMarked, |history| {
        history.creates[2].replayed = true
    });
}

#[test]
fn a_503_for_a_create_that_was_accepted_is_noticed_and_a_504_is_allowed() {
    assert_breaks(Promise::ReplayIsMarked, |history| {
        history.creates[0].outcome = refused(503, "service_unavailable");
    });
    let unknown = broken(|history| history.creates[0].outcome = refused(504, "upstream_timeout"));
    assert_eq!(unknown, HashSet::new());
}

#[test]
fn a_create_that_no_one_asked_after_is_noticed() {
    assert_breaks(Promise::EveryKeyIsResolved, |history| {
        history.creates.push(Create {
            window: None,
            ..create("key-five", 1_000, Outcome::Lost)
        });
    });
}

#[test]
fn states_that_move_backwards_or_sideways_are_noticed() {
    for (id, state) in [
        ("one", State::Processing),
        ("one", State::FailedRefunded),
        ("two", State::FailedRefundPending),
        ("two", State::Succeeded),
    ] {
        assert_breaks(Promise::StatesMoveForward, |history| {
            history.reads.push(read("ann", id, 1_000, seen(id, state)));
        });
    }
}

#[test]
fn reads_that_overlap_may_be_answered_in_either_order() {
    let crossed = broken(|history| {
        let mut slow = read("ann", "one", 690, seen("one", State::Processing));
        slow.span.answered = 720;
        history.reads.push(slow);
    });
    assert_eq!(crossed, HashSet::new());
}

#[test]
fn a_body_whose_money_does_not_match_its_state_is_noticed() {
    for (state, reserved, charged) in [
        (State::Processing, 0, 0),
        (State::Processing, 700, 700),
        (State::Succeeded, 0, 1_400),
        (State::Succeeded, 0, 0),
    ] {
        assert_breaks(Promise::BillingFollowsState, |history| {
            let id = "one".to_owned();
            let outcome = Outcome::Task(Seen {
                id,
                state,
                reserved,
                charged,
            });
            history.reads.push(read("ann", "one", 640, outcome));
        });
    }
}

#[test]
fn a_double_charge_a_missing_refund_and_a_forgotten_hold_are_noticed() {
    for (available, reserved, charged) in [
        (0, 0, 1_400),
        (0, 0, 700),
        (0, 700, 700),
        (1_400, 0, 0),
        (700, 0, 0),
    ] {
        assert_breaks(Promise::BalanceFollowsTasks, |history| {
            let balance = &mut history.balances[0];
            (balance.available, balance.reserved, balance.charged) = (available, reserved, charged);
        });
    }
}

#[test]
fn ledger_lines_that_are_missing_doubled_or_unfounded_are_noticed() {
    for index in 0..4 {
        assert_breaks(Promise::LedgerFollowsTasks, |history| {
            history.transfers.remove(index);
        });
        assert_breaks(Promise::LedgerFollowsTasks, |history| {
            let twice = history.transfers[index].clone();
            history.transfers.push(twice);
        });
    }
    for (kind, task) in [
        ("charge", "two"),
        ("refund", "one"),
        ("reserve", "never seen"),
    ] {
        assert_breaks(Promise::LedgerFollowsTasks, |history| {
            history.transfers.push(transfer(kind, task));
        });
    }
}

#[test]
fn a_twenty_first_active_task_is_noticed_and_a_twentieth_is_not() {
    let with_active = |count: u64| {
        broken(|history| {
            for number in 0..count {
                let id = format!("active {number}");
                let accepted = 2_000 + number * 100;
                let mut first = create(&id, accepted, seen(&id, State::Processing));
                first.window = None;
                history.creates.push(first);
                let lines = ["reserve", "refund"].map(|kind| transfer(kind, &id));
                history.transfers.extend(lines);
                for (at, state) in [(9_000, State::Processing), (9_500, State::FailedRefunded)] {
                    history.reads.push(read("ann", &id, at, seen(&id, state)));
                }
            }
        })
    };
    assert_eq!(with_active(20), HashSet::new());
    assert_eq!(with_active(21), HashSet::from([Promise::ActiveLimitHolds]));
}

#[test]
fn a_sixty_first_request_and_a_number_given_twice_are_noticed() {
    assert_breaks(Promise::CreateRateHolds, |history| {
        let twice = history.creates[1].clone();
        history.creates.push(twice);
    });
    assert_breaks(Promise::CreateRateHolds, |history| {
        for _ in 0..61 {
            let mut one_more = create("key-six", 0, refused(400, "invalid_scale"));
            one_more.window = Some(Window {
                limit: 60,
                remaining: 0,
                reset: 120,
            });
            history.creates.push(one_more);
        }
    });
    let over = broken(|history| {
        for _ in 0..5 {
            let mut one_more = create("key-six", 0, refused(429, "rate_limit_exceeded"));
            one_more.window = Some(Window {
                limit: 60,
                remaining: 0,
                reset: 60,
            });
            history.creates.push(one_more);
        }
    });
    assert_eq!(over, HashSet::new(), "being told no is not being let in");
}

#[test]
fn a_task_over_the_daily_limit_is_noticed() {
    let history = allowed();
    let strict = Rules {
        daily_tasks_max: 1,
        ..Rules::default()
    };
    let broken: Vec<_> = check(&history, &strict)
        .into_iter()
        .map(|one| one.promise)
        .collect();
    assert_eq!(broken, [Promise::DailyLimitHolds]);
}

#[test]
fn a_result_of_the_wrong_size_and_one_that_does_not_decode_are_noticed() {
    for found in [Ok((8, 7)), Ok((4, 3)), Err("no PNG".to_owned())] {
        assert_breaks(Promise::ResultsAreWhole, |history| {
            history.downloads[0].found = found
        });
    }
}

#[test]
fn a_task_that_never_ends_and_one_that_ends_late_are_noticed() {
    assert_breaks(Promise::TerminalInTime, |history| {
        history
            .reads
            .retain(|read| read.id != "one" || read.span.started < 600);
    });
    assert_breaks(Promise::TerminalInTime, |history| {
        let late = seen("three", State::Processing);
        history.creates.push(create("key-late", 500, late.clone()));
        history.reads.push(read("ann", "three", 331 * SECOND, late));
        let end = seen("three", State::FailedRefunded);
        history.reads.push(read("ann", "three", 332 * SECOND, end));
    });
}

#[test]
fn a_foreign_caller_who_sees_a_task_is_noticed() {
    assert_breaks(Promise::OthersSeeNothing, |history| {
        history
            .reads
            .push(read("bob", "one", 960, seen("one", State::Succeeded)));
    });
}

#[test]
fn an_internal_error_is_noticed() {
    assert_breaks(Promise::NoInternalError, |history| {
        history
            .reads
            .push(read("ann", "one", 960, refused(500, "internal_error")));
    });
    assert_breaks(Promise::NoInternalError, |history| {
        history
            .creates
            .push(create("key-six", 960, refused(502, "bad_gateway")));
    });
}

#[test]
fn a_breach_in_the_audit_is_noticed() {
    assert_breaks(Promise::AuditIsClean, |history| {
        history
            .audit_breaches
            .push("I4 acc_1: held 700, open reservations 0".to_owned());
    });
}
