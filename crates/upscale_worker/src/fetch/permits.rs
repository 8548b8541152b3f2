//! Permits that accounts share fairly: none gets more of a pool than its share of what is free, so an account whose
//! sources are slow leaves room for everyone else's.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use upscale_core::{AccountId, fair_share};

/// A pool of permits.
#[derive(Debug)]
pub(super) struct PermitPool {
    /// One account may hold one part in so many of what is free.
    parts: usize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug)]
struct Held {
    free: usize,
    by: HashMap<AccountId, usize>,
}

/// Some permits of one account; given back when dropped.
#[derive(Debug)]
pub(super) struct Permits {
    pool: Arc<PermitPool>,
    account: AccountId,
    count: usize,
}

impl PermitPool {
    /// So many in all, at least 1.
    pub(super) fn new(all: usize, parts: usize) -> Arc<Self> {
        Arc::new(Self {
            parts,
            held: Mutex::new(Held {
                free: all.max(1),
                by: HashMap::new(),
            }),
            freed: Notify::new(),
        })
    }

    /// No permit yet; it can [grow](Permits::grow).
    pub(super) fn none(self: &Arc<Self>, account: AccountId) -> Permits {
        Permits {
            pool: Arc::clone(self),
            account,
            count: 0,
        }
    }

    /// One for the account, unless it holds its share of what is free, or `most`.
    pub(super) fn try_take(self: &Arc<Self>, account: AccountId, most: usize) -> Option<Permits> {
        let mut permit = self.none(account);
        permit.grow(1, most).then_some(permit)
    }

    /// Waits for one.
    pub(super) async fn take(self: &Arc<Self>, account: AccountId, most: usize) -> Permits {
        loop {
            // Listens before it looks: a permit that is given back in between wakes it.
            let freed = self.freed.notified();
            if let Some(permit) = self.try_take(account, most) {
                return permit;
            }
            freed.await;
        }
    }

    /// Whether the account could have one more.
    pub(super) fn has_room(&self, account: AccountId, most: usize) -> bool {
        let held = self.lock();
        held.free > 0 && held.own(account) < fair_share(most, held.free, self.parts)
    }

    /// Those that hold any.
    pub(super) fn holders(&self) -> Vec<AccountId> {
        self.lock().by.keys().copied().collect()
    }

    /// Permits that are free.
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn own(&self, account: AccountId) -> usize {
        self.by.get(&account).copied().unwrap_or(0)
    }
}

impl Permits {
    /// How many it holds.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes so many more, all or none of them; `most` is what the account may hold of the pool in all.
    pub(super) fn grow(&mut self, by: usize, most: usize) -> bool {
        let mut held = self.pool.lock();
        let own = held.own(self.account) + by;
        if by > held.free || own > fair_share(most, held.free, self.pool.parts) {
            return false;
        }
        held.free -= by;
        held.by.insert(self.account, own);
        self.count += by;
        true
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        // A permit that was never given wakes no waiter: that would be itself, without end.
        if self.count == 0 {
            return;
        }
        let mut held = self.pool.lock();
        held.free += self.count;
        let own = held.own(self.account) - self.count;
        if own == 0 {
            held.by.remove(&self.account);
        } else {
            held.by.insert(self.account, own);
        }
        drop(held);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_holds_its_share_waits_and_others_do_not() {
        let permits = PermitPool::new(16, 8);
        let [greedy, other] = [(); 2].map(|()| AccountId::random().unwrap());
        // An eighth of the 16, then of the 15 that are left.
        let held = [permits.try_take(greedy, 8), permits.try_take(greedy, 8)];
        assert!(held[0].is_some() && held[1].is_none());
        assert!(permits.try_take(other, 8).is_some());
        let mut waiting = std::pin::pin!(permits.take(greedy, 8));
        let now = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(now, &mut waiting).await.is_err());
        drop(held);
        waiting.await;
        assert_eq!((permits.free(), permits.holders()), (16, vec![]));
    }

    #[test]
    fn a_permit_grows_whole_or_not_at_all() {
        let permits = PermitPool::new(100, 2);
        let account = AccountId::random().unwrap();
        let mut permit = permits.none(account);
        assert!(permit.grow(20, usize::MAX));
        assert!(!permit.grow(21, usize::MAX));
        assert!(!permits.has_room(account, 20) && permits.has_room(account, 21));
        assert_eq!((permits.free(), permits.holders()), (80, vec![account]));
        drop(permit);
        assert_eq!(permits.free(), 100);
    }
}
