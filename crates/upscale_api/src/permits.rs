//! How many requests are answered and how many bodies are awaited at a time, by class of caller, and how much of it one
//! caller may hold. A caller of one class never waits for another class, and no caller can fill a class alone.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use metrics::counter;
use tokio::sync::Notify;
use upscale_core::{AccountId, fair_share};

/// An address may hold an eighth of what is free of a pool.
const ADDRESS_ONE_IN: usize = 8;
/// An account may hold as much as is free: alone half of a pool, with one other a third.
const ACCOUNT_ONE_IN: usize = 1;
/// A body younger than this is not given up for another: an honest one is on its way.
const BODY_KEPT: Duration = Duration::from_millis(250);

/// Permits of each class; the defaults are what the service runs with.
#[derive(Debug, Clone)]
pub struct PermitLimits {
    /// Requests of callers without a key or a session, answered at a time.
    pub public: usize,
    /// Requests of callers with a key or a session, answered at a time; also Stripe's events once their signature fits.
    pub keyed: usize,
    /// Requests of operators, answered at a time.
    pub operators: usize,
    /// Result files being sent at a time: each is an open file.
    pub downloads: usize,
    /// Requests held until their task is over. Each keeps its connection, so half of those a listener has by default; as many
    /// are shared out among accounts and again among addresses.
    pub waiting: usize,
    /// Bodies awaited from callers without a key. An event of Stripe has up to 512 KiB, so 128 are 64 MiB at worst.
    pub unknown_bodies: usize,
    /// Bodies awaited from callers with a key or a session, 16 KiB each.
    pub keyed_bodies: usize,
    /// Bodies awaited on the operators' console, 16 KiB each.
    pub operator_bodies: usize,
}

impl Default for PermitLimits {
    fn default() -> Self {
        Self {
            public: 256,
            keyed: 1_024,
            operators: 64,
            downloads: 1_024,
            waiting: 2_048,
            unknown_bodies: 128,
            keyed_bodies: 512,
            operator_bodies: 32,
        }
    }
}

/// The pools of one process.
pub(crate) struct Permits {
    pub(crate) public: Arc<Pool>,
    pub(crate) keyed: Arc<Pool>,
    pub(crate) operators: Arc<Pool>,
    pub(crate) downloads: Arc<Pool>,
    pub(crate) waiting: Arc<Pool>,
    pub(crate) waiting_of_address: Arc<Pool>,
    pub(crate) unknown_bodies: Arc<Pool>,
    pub(crate) keyed_bodies: Arc<Pool>,
    pub(crate) operator_bodies: Arc<Pool>,
}

impl Permits {
    pub(crate) fn new(limits: &PermitLimits) -> Self {
        let pool = |name, size| Arc::new(Pool::new(name, size));
        Self {
            public: pool("answers_public", limits.public),
            keyed: pool("answers_keyed", limits.keyed),
            operators: pool("answers_operators", limits.operators),
            downloads: pool("answers_downloads", limits.downloads),
            waiting: pool("waiting", limits.waiting),
            waiting_of_address: pool("waiting_of_address", limits.waiting),
            unknown_bodies: pool("bodies_unknown", limits.unknown_bodies),
            keyed_bodies: pool("bodies_keyed", limits.keyed_bodies),
            operator_bodies: pool("bodies_operators", limits.operator_bodies),
        }
    }
}

/// For whom a permit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Someone at this address; IPv6 counts by /64.
    Address(IpAddr),
    /// A customer, by key or by session.
    Account(AccountId),
    /// Stripe, once its signature fits.
    Stripe,
    /// Anyone who reaches the operators' console.
    Operator,
}

impl Owner {
    fn one_in(self) -> usize {
        match self {
            Self::Address(_) => ADDRESS_ONE_IN,
            Self::Account(_) | Self::Stripe | Self::Operator => ACCOUNT_ONE_IN,
        }
    }
}

/// Why there is no permit; the text is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Full(pub(crate) String);

/// A bounded number of permits.
pub(crate) struct Pool {
    /// The value of the label `limit` of `upscale_limits_hit_total`.
    name: &'static str,
    size: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    /// By number, so the oldest stands first.
    permits: BTreeMap<u64, Holder>,
    by_owner: HashMap<Owner, usize>,
}

struct Holder {
    owner: Owner,
    since: Instant,
    displaced: Arc<Notify>,
}

impl Held {
    fn of(&self, owner: Owner) -> usize {
        self.by_owner.get(&owner).copied().unwrap_or(0)
    }

    fn insert(&mut self, owner: Owner) -> (u64, Arc<Notify>) {
        self.next += 1;
        let displaced = Arc::new(Notify::new());
        let holder = Holder {
            owner,
            since: Instant::now(),
            displaced: Arc::clone(&displaced),
        };
        self.permits.insert(self.next, holder);
        *self.by_owner.entry(owner).or_default() += 1;
        (self.next, displaced)
    }

    /// None when it was displaced before.
    fn remove(&mut self, number: u64) -> Option<Holder> {
        let holder = self.permits.remove(&number)?;
        if let Some(count) = self.by_owner.get_mut(&holder.owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(&holder.owner);
            }
        }
        Some(holder)
    }

    /// Ends the wait of the one that has waited longest, of this owner or of anyone; false when all are young.
    fn displace(&mut self, of: Option<Owner>, now: Instant) -> bool {
        let mut permits = self.permits.iter();
        let oldest = permits.find(|(_, holder)| of.is_none_or(|owner| owner == holder.owner));
        let is_old = |holder: &Holder| now.duration_since(holder.since) >= BODY_KEPT;
        let number = oldest.and_then(|(number, holder)| is_old(holder).then_some(*number));
        let Some(holder) = number.and_then(|number| self.remove(number)) else {
            return false;
        };
        holder.displaced.notify_one();
        true
    }
}

/// One permit, free again when dropped.
pub(crate) struct Permit {
    pool: Arc<Pool>,
    number: u64,
    displaced: Arc<Notify>,
}

impl Permit {
    /// Resolves when another needed it more.
    pub(crate) async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        drop(self.pool.lock().remove(self.number));
    }
}

impl Pool {
    fn new(name: &'static str, size: usize) -> Self {
        Self {
            name,
            size: size.max(1),
            held: Mutex::default(),
        }
    }

    /// A permit for answering.
    ///
    /// # Errors
    /// [`Full`] when all are taken, or this owner has its share.
    pub(crate) fn take(self: &Arc<Self>, owner: Owner) -> Result<Permit, Full> {
        let mut held = self.lock();
        match self.why_not(&held, owner) {
            None => Ok(self.permit(&mut held, owner)),
            Some(full) => Err(self.refuse(full)),
        }
    }

    /// How many are taken now.
    pub(crate) fn taken(&self) -> usize {
        self.lock().permits.len()
    }

    /// A permit for waiting: the one who has waited longest gives way, of the same owner where the share is used up. An
    /// honest body comes at once, so who is displaced is slow.
    ///
    /// # Errors
    /// [`Full`] when all who could give way have only just come.
    pub(crate) fn take_or_displace(self: &Arc<Self>, owner: Owner) -> Result<Permit, Full> {
        let mut held = self.lock();
        if let Some(full) = self.why_not(&held, owner) {
            let of = (held.permits.len() < self.size).then_some(owner);
            if !held.displace(of, Instant::now()) {
                return Err(self.refuse(full));
            }
            counter!("upscale_limits_hit_total", "limit" => self.name).increment(1);
        }
        Ok(self.permit(&mut held, owner))
    }

    fn why_not(&self, held: &Held, owner: Owner) -> Option<Full> {
        let free = self.size.saturating_sub(held.permits.len());
        if free == 0 {
            return Some(Full(format!(
                "all {} permits of {} are taken",
                self.size, self.name
            )));
        }
        let (has, share) = (held.of(owner), fair_share(self.size, free, owner.one_in()));
        (has >= share).then(|| {
            Full(format!(
                "one caller holds {has} permits of {}, {free} of {} are free",
                self.name, self.size
            ))
        })
    }

    fn refuse(&self, full: Full) -> Full {
        counter!("upscale_limits_hit_total", "limit" => self.name).increment(1);
        full
    }

    fn permit(self: &Arc<Self>, held: &mut Held, owner: Owner) -> Permit {
        let (number, displaced) = held.insert(owner);
        Permit {
            pool: Arc::clone(self),
            number,
            displaced,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Owner {
        Owner::Address(IpAddr::V4(number.into()))
    }

    /// As many permits as this owner gets.
    fn take_all(pool: &Arc<Pool>, owner: Owner) -> Vec<Permit> {
        std::iter::from_fn(|| pool.take(owner).ok()).collect()
    }

    #[test]
    fn one_address_gets_a_ninth_of_a_pool_and_the_next_a_little_less() {
        let pool = Arc::new(Pool::new("test", 90));
        let first = take_all(&pool, address(1));
        let second = take_all(&pool, address(2));
        assert_eq!((first.len(), second.len()), (10, 9));
        // Who comes late still finds a permit.
        let others: Vec<_> = (3..20).map(|one| take_all(&pool, address(one))).collect();
        assert!(others.iter().all(|permits| !permits.is_empty()));
        drop(first);
        assert!(pool.take(address(1)).is_ok());
    }

    #[test]
    fn an_account_gets_half_and_a_full_pool_says_so_in_numbers() {
        let pool = Arc::new(Pool::new("test", 4));
        let account = Owner::Account(AccountId::random().unwrap());
        let held = take_all(&pool, account);
        assert_eq!(held.len(), 2);
        let Err(Full(text)) = pool.take(account) else {
            panic!("a third permit");
        };
        assert!(
            text.contains("holds 2 permits") && text.contains("2 of 4"),
            "{text}"
        );
        let others: Vec<_> = (1..=2)
            .map(|one| pool.take(address(one)).unwrap())
            .collect();
        let Err(Full(text)) = pool.take(address(3)) else {
            panic!("a fifth permit");
        };
        assert_eq!(text, "all 4 permits of test are taken");
        drop((held, others));
        let empty = pool.lock();
        assert!(empty.permits.is_empty() && empty.by_owner.is_empty());
    }

    #[tokio::test]
    async fn the_oldest_waiting_gives_way_to_its_own_and_in_a_full_pool_to_anyone() {
        let pool = Arc::new(Pool::new("test", 18));
        let (slow, honest) = (address(1), address(2));
        let held: Vec<Permit> = take_all(&pool, slow);
        assert_eq!(held.len(), 2);
        assert!(pool.take_or_displace(slow).is_err(), "all are young");
        pool.lock().permits.values_mut().for_each(|holder| {
            holder.since = Instant::now().checked_sub(BODY_KEPT).unwrap();
        });
        let newer = pool.take_or_displace(slow).unwrap();
        held[0].displaced().await;
        assert_eq!(pool.lock().of(slow), 2);
        let rest: Vec<_> = (3..19)
            .map(|one| pool.take(address(one)).unwrap())
            .collect();
        let late = pool.take_or_displace(honest).unwrap();
        held[1].displaced().await;
        drop((held, newer, rest, late));
        assert!(pool.lock().permits.is_empty());
    }
}
