//! Downloads under way from one address at a time: no host is overrun, and no account has all of a host that many use.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{downloads::PARTS, permits::PermitPool};

/// Addresses remembered before those out of use are forgotten.
const KEPT: usize = 1_024;

/// A pool for each address that is in use.
#[derive(Debug)]
pub(super) struct Destinations {
    each: usize,
    pools: Mutex<HashMap<SocketAddr, Weak<PermitPool>>>,
}

impl Destinations {
    pub(super) fn new(each: usize) -> Self {
        Self {
            each,
            pools: Mutex::default(),
        }
    }

    /// Its pool; anyone who holds or awaits a permit keeps it known.
    pub(super) fn of(&self, address: SocketAddr) -> Arc<PermitPool> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pools.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        if pools.len() >= KEPT {
            pools.retain(|_, pool| pool.strong_count() > 0);
        }
        let pool = PermitPool::new(self.each, PARTS);
        pools.insert(address, Arc::downgrade(&pool));
        pool
    }
}
