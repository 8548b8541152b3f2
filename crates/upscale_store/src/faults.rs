//! Faults that tests arm: the N-th statement fails, a commit is not sent, or its answer is lost, whether or not it took
//! effect.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::StoreError;

/// Counts down to one failure; 0 means that none is armed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    statement: Arc<AtomicU32>,
    before_commit: Arc<AtomicU32>,
    unheard_commit: Arc<AtomicU32>,
    after_commit: Arc<AtomicU32>,
}

impl Faults {
    /// The `n`-th statement from now on fails as a full disk does, n ≥ 1.
    pub(crate) fn fail_statement(&self, n: u32) {
        self.statement.store(n, Ordering::SeqCst);
    }
    /// The `n`-th commit from now on is rolled back instead.
    pub(crate) fn fail_before_commit(&self, n: u32) {
        self.before_commit.store(n, Ordering::SeqCst);
    }
    /// The `n`-th commit from now on is rolled back instead, and its caller never hears so.
    pub(crate) fn lose_commit(&self, n: u32) {
        self.unheard_commit.store(n, Ordering::SeqCst);
    }
    /// The `n`-th commit from now on takes effect, and its caller never hears so.
    pub(crate) fn fail_after_commit(&self, n: u32) {
        self.after_commit.store(n, Ordering::SeqCst);
    }
    /// Whether an armed fault has not struck yet.
    pub(crate) fn is_armed(&self) -> bool {
        [
            &self.statement,
            &self.before_commit,
            &self.unheard_commit,
            &self.after_commit,
        ]
        .iter()
        .any(|count| count.load(Ordering::SeqCst) > 0)
    }

    pub(crate) fn pass_statement(&self) -> Result<(), StoreError> {
        strike(&self.statement, "statement").map_err(StoreError::Unavailable)
    }
    pub(crate) fn pass_before_commit(&self) -> Result<(), StoreError> {
        strike(&self.before_commit, "before the commit").map_err(StoreError::Unavailable)?;
        strike(&self.unheard_commit, "the commit is lost").map_err(StoreError::OutcomeUnknown)
    }
    pub(crate) fn pass_after_commit(&self) -> Result<(), StoreError> {
        strike(&self.after_commit, "after the commit").map_err(StoreError::OutcomeUnknown)
    }
}

fn strike(count: &AtomicU32, place: &str) -> Result<(), String> {
    let counted_down = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    match counted_down {
        Ok(1) => Err(format!("injected fault: {place}")),
        _ => Ok(()),
    }
}
