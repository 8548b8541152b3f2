//! The downloads of one process: who may begin another, by what its sources did lately, and how many bytes all hold.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::{Duration, Instant};
use upscale_core::AccountId;

use super::{
    FetchBudgets,
    permits::{PermitPool, Permits},
};
use crate::AttemptError;

/// A download that takes no longer may hold a slot meanwhile; nearly all take less.
pub(crate) const QUICK_DOWNLOAD: Duration = Duration::from_millis(500);
/// Downloads at a time of an account of which nothing is known.
const MOST_AT_FIRST: usize = 2;
/// An account that has downloaded nothing for so long is a newcomer again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Accounts remembered before those that are idle are forgotten.
const KEPT: usize = 4_096;
/// One account may hold one part in so many of the permits that are free.
pub(super) const PARTS: usize = 8;
/// The same of bytes: alone, a third of them.
const BYTES_PARTS: usize = 2;
/// Bytes are counted in pieces of 64 KiB.
const PIECE: usize = 64 * 1024;

/// All downloads under way.
#[derive(Debug)]
pub(super) struct Downloads {
    permits: Arc<PermitPool>,
    bytes: Arc<PermitPool>,
    most: usize,
    known: Mutex<HashMap<AccountId, Standing>>,
}

/// What an account's sources did lately. Additive increase, multiplicative decrease, as TCP does with its window (RFC
/// 5681): hosts that answer get more downloads at a time, those that fail give way quickly.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Downloads at a time.
    most: usize,
    /// The last one ended well within [`QUICK_DOWNLOAD`].
    quick: bool,
    at: Instant,
}

impl Standing {
    fn unknown(most: usize) -> Self {
        Self {
            most: MOST_AT_FIRST.min(most),
            quick: false,
            at: Instant::now(),
        }
    }
}

/// The right to one download.
#[derive(Debug)]
pub(crate) struct DownloadPermit {
    pub(super) account: AccountId,
    _permits: Permits,
}

/// Room for the bytes of one source, as they arrive.
#[derive(Debug)]
pub(super) struct Room(Permits);

impl Downloads {
    pub(super) fn new(budgets: &FetchBudgets) -> Self {
        Self {
            permits: PermitPool::new(budgets.permits, PARTS),
            bytes: PermitPool::new(budgets.bytes_held / PIECE, BYTES_PARTS),
            most: budgets.per_account.max(1),
            known: Mutex::default(),
        }
    }

    /// The right to begin one, unless the account has all that it may have under way.
    pub(super) fn begin(&self, account: AccountId) -> Option<DownloadPermit> {
        let permit = self
            .permits
            .try_take(account, self.standing(account).most)?;
        Some(DownloadPermit {
            account,
            _permits: permit,
        })
    }

    /// Room for a source that has not begun to arrive.
    pub(super) fn room(&self, account: AccountId) -> Room {
        Room(self.bytes.none(account))
    }

    /// Downloads that could begin now, if each were another account's.
    pub(super) fn free(&self) -> usize {
        self.permits.free()
    }

    /// Accounts that may begin none now.
    pub(super) fn at_bound(&self) -> Vec<AccountId> {
        let full = |&account: &AccountId| {
            let most = self.standing(account).most;
            !self.permits.has_room(account, most)
        };
        self.permits.holders().into_iter().filter(full).collect()
    }

    /// Whether its downloads are so quick that a slot may be held meanwhile.
    pub(super) fn is_quick(&self, account: AccountId) -> bool {
        self.standing(account).quick
    }

    /// A source arrived, after so long.
    pub(super) fn arrived(&self, account: AccountId, took: Duration) {
        self.change(account, |standing| {
            standing.most += 1;
            standing.quick = took <= QUICK_DOWNLOAD;
        });
    }

    /// A source of the account failed, or was no picture that may be upscaled.
    pub(super) fn failed(&self, account: AccountId) {
        self.change(account, |standing| {
            standing.most /= 2;
            standing.quick = false;
        });
    }

    fn standing(&self, account: AccountId) -> Standing {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = known
            .get(&account)
            .filter(|it| it.at.elapsed() < REMEMBERED);
        recent.map_or_else(|| Standing::unknown(self.most), |&standing| standing)
    }

    fn change(&self, account: AccountId, change: impl FnOnce(&mut Standing)) {
        let mut standing = self.standing(account);
        change(&mut standing);
        standing.most = standing.most.clamp(1, self.most);
        standing.at = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.retain(|_, it| it.at.elapsed() < REMEMBERED);
        }
        // Of more than these within ten minutes the rest stay newcomers, which is what they are held to at first.
        if known.len() < KEPT || known.contains_key(&account) {
            known.insert(account, standing);
        }
    }
}

impl Room {
    /// Room for so many bytes in all.
    ///
    /// # Errors
    /// Busy: the account's sources hold their share of this process' memory.
    pub(super) fn reach(&mut self, bytes: usize) -> Result<(), AttemptError> {
        let more = bytes.div_ceil(PIECE).saturating_sub(self.0.count());
        if more == 0 || self.0.grow(more, usize::MAX) {
            return Ok(());
        }
        Err(AttemptError::busy(
            "Other images of this account were still being processed.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn downloads() -> (Downloads, AccountId) {
        let downloads = Downloads::new(&FetchBudgets::default());
        (downloads, AccountId::random().unwrap())
    }

    fn at_a_time(downloads: &Downloads, account: AccountId) -> usize {
        let begun = std::iter::from_fn(|| downloads.begin(account));
        begun.collect::<Vec<_>>().len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_has_two_at_a_time_good_sources_eight_and_bad_ones_one() {
        let (downloads, account) = downloads();
        assert_eq!(at_a_time(&downloads, account), 2);
        for _ in 0..10 {
            downloads.arrived(account, Duration::from_millis(80));
        }
        assert_eq!(at_a_time(&downloads, account), 8);
        assert!(downloads.is_quick(account));
        downloads.failed(account);
        assert_eq!(at_a_time(&downloads, account), 4);
        assert!(!downloads.is_quick(account));
        for _ in 0..5 {
            downloads.failed(account);
        }
        assert_eq!(at_a_time(&downloads, account), 1);
        advance(REMEMBERED).await;
        assert_eq!(at_a_time(&downloads, account), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_may_begin_none_is_named() {
        let (downloads, account) = downloads();
        let first = downloads.begin(account);
        assert_eq!(downloads.at_bound(), []);
        let second = downloads.begin(account);
        assert_eq!(downloads.at_bound(), [account]);
        assert_eq!(downloads.free(), FetchBudgets::default().permits - 2);
        drop((first, second));
        assert_eq!(downloads.at_bound(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_arrival_is_good_and_not_quick() {
        let (downloads, account) = downloads();
        downloads.arrived(account, QUICK_DOWNLOAD * 2);
        assert_eq!(at_a_time(&downloads, account), 3);
        assert!(!downloads.is_quick(account));
    }

    #[test]
    fn one_account_holds_a_third_of_the_bytes_and_leaves_the_rest_to_others() {
        let (downloads, account) = downloads();
        let bytes = FetchBudgets::default().bytes_held;
        let mut room = downloads.room(account);
        room.reach(bytes / 3 - 2 * PIECE).unwrap();
        room.reach(1).unwrap();
        let error = room.reach(bytes / 2).unwrap_err();
        assert_eq!(error.failure, upscale_core::AttemptFailure::Busy);
        let other = AccountId::random().unwrap();
        downloads.room(other).reach(20 << 20).unwrap();
    }
}
