//! What can happen in a random day, and how often.

use proptest::prelude::*;

/// Accounts of one case.
pub(super) const ACCOUNTS: usize = 2;

/// One thing that someone does, or time.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Create {
        account: usize,
        key: u8,
        four_times: bool,
    },
    /// New keys, one after the other.
    Burst {
        account: usize,
        count: u8,
    },
    Count {
        account: usize,
        requests: u8,
    },
    Purchase {
        account: usize,
        reference: u8,
        amount: i64,
    },
    Claim {
        count: u32,
    },
    /// The claims of a case are numbered back from the latest.
    Heartbeat {
        claim: usize,
    },
    Release {
        claim: usize,
    },
    Retry {
        claim: usize,
        crash: bool,
        seconds: u8,
    },
    Succeed {
        claim: usize,
    },
    Fail {
        claim: usize,
    },
    /// The worker dies, and that is proven.
    Die,
    FinishRefunds,
    Reap,
    Advance {
        seconds: i64,
    },
    Reopen,
}

/// A crash around the first commit of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Crash {
    None,
    BeforeCommit,
    AfterCommit,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let (account, claim) = (0..ACCOUNTS, 0..4usize);
    prop_oneof![
        16 => (account.clone(), 0..5u8, prop::bool::weighted(0.2))
            .prop_map(|(account, key, four_times)| Step::Create { account, key, four_times }),
        1 => (account.clone(), 6..14u8).prop_map(|(account, count)| Step::Burst { account, count }),
        1 => (account.clone(), 1..70u8).prop_map(|(account, requests)| Step::Count { account, requests }),
        4 => (account, 0..4u8, prop::sample::select(vec![700, 1_500, 20_000]))
            .prop_map(|(account, reference, amount)| Step::Purchase { account, reference, amount }),
        20 => (1..4u32).prop_map(|count| Step::Claim { count }),
        5 => claim.clone().prop_map(|claim| Step::Heartbeat { claim }),
        4 => claim.clone().prop_map(|claim| Step::Release { claim }),
        6 => (claim.clone(), any::<bool>(), 0..20u8)
            .prop_map(|(claim, crash, seconds)| Step::Retry { claim, crash, seconds }),
        9 => claim.clone().prop_map(|claim| Step::Succeed { claim }),
        9 => claim.prop_map(|claim| Step::Fail { claim }),
        2 => Just(Step::Die),
        2 => Just(Step::FinishRefunds),
        5 => Just(Step::Reap),
        // Twice the lease's end: only when it passes can a report be stale.
        16 => prop::sample::select(vec![1, 10, 59, 60, 61, 60, 61, 200, 271, 43_200, -45, -3_600])
            .prop_map(|seconds| Step::Advance { seconds }),
        1 => Just(Step::Reopen),
    ]
}

pub(super) fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![
        8 => Just(Crash::None),
        1 => Just(Crash::BeforeCommit),
        1 => Just(Crash::AfterCommit),
    ]
}
