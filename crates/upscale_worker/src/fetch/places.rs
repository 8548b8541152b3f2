//! How many downloads run at a time under one name: a destination or an account.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Names remembered before those that nobody uses are forgotten.
const NAMES_KEPT: usize = 1_024;

/// So many places under each name.
#[derive(Debug)]
pub(super) struct Places {
    each: usize,
    names: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// One place; given back when dropped.
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    /// Keeps the name's semaphore known as long as somebody holds or awaits a place.
    _name: Arc<Semaphore>,
}

impl Places {
    pub(super) fn new(each: usize) -> Self {
        Self {
            each: each.max(1),
            names: Mutex::default(),
        }
    }

    /// Waits for a place, first come first served.
    pub(super) async fn take(&self, name: &str) -> Place {
        let semaphore = self.semaphore(name);
        // Nobody closes the semaphore, so there is always a permit.
        let permit = Arc::clone(&semaphore).acquire_owned().await.ok();
        Place {
            _permit: permit,
            _name: semaphore,
        }
    }

    fn semaphore(&self, name: &str) -> Arc<Semaphore> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name).and_then(Weak::upgrade) {
            return known;
        }
        if names.len() >= NAMES_KEPT {
            names.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let semaphore = Arc::new(Semaphore::new(self.each));
        names.insert(name.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}
