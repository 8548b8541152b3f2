//! Faults that tests arm: the N-th statement fails, or a commit is cut off before or after it took effect.

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
    /// The `n`-th commit from now on takes effect, but its caller hears that it failed.
    pub(crate) fn fail_after_commit(&self, n: u32) {
        self.after_commit.store(n, Ordering::SeqCst);
    }
    /// Whether an armed fault has not struck yet.
    pub(crate) fn is_armed(&self) -> bool {
        [&self.statement, &self.before_commit, &self.after_commit]
            .iter()
            .any(|count| count.load(Ordering::SeqCst) > 0)
    }

    pub(crate) fn pass_statement(&self) -> Result<(), StoreError> {
        strike(&self.statement, "statement")
    }
    pub(crate) fn pass_before_commit(&self) -> Result<(), StoreError> {
        strike(&self.before_commit, "before the commit")
    }
    pub(crate) fn pass_after_commit(&self) -> Result<(), StoreError> {
        strike(&self.after_commit, "after the commit")
    }
}

fn strike(count: &AtomicU32, place: &str) -> Result<(), StoreError> {
    let counted_down = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    match counted_down {
        Ok(1) => Err(StoreError::Unavailable(format!("injected fault: {place}"))),
        _ => Ok(()),
    }
}
