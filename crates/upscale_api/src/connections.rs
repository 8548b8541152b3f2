//! Every open connection of one listener: how many there may be, how many of one address, and which give way to a newcomer.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use metrics::gauge;
use upscale_core::fair_share;

use crate::{connection::Connection, serve_limits::ServeLimits};

/// An address may hold an eighth of what is free.
const ADDRESS_ONE_IN: usize = 8;

/// The open connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    by_network: HashMap<IpAddr, BTreeMap<u64, Arc<Connection>>>,
}

/// Removes its connection from the list when dropped.
pub(crate) struct Permit {
    pub(crate) connection: Arc<Connection>,
    number: u64,
    connections: Arc<Connections>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
        gauge!("upscale_connections").decrement(1.0);
    }
}

/// Why a newcomer gets no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPermit {
    /// All connections are at work or have only just come.
    AllAtWork,
    /// Its address has its share, and all of them are at work.
    ShareAtWork { share: usize },
}

impl Open {
    fn insert(&mut self, connection: &Arc<Connection>) -> u64 {
        self.next += 1;
        self.all.insert(self.next, Arc::clone(connection));
        if let Some(network) = connection.network {
            let of_network = self.by_network.entry(network).or_default();
            of_network.insert(self.next, Arc::clone(connection));
        }
        self.next
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.all.remove(&number)?;
        if let Some(network) = connection.network
            && let Some(of_network) = self.by_network.get_mut(&network)
        {
            of_network.remove(&number);
            if of_network.is_empty() {
                self.by_network.remove(&network);
            }
        }
        Some(connection)
    }

    /// The newcomer's own address pays for it where that has its share, however young its others are: who opens
    /// thousands displaces itself.
    fn make_room_of(&mut self, network: IpAddr, limits: &ServeLimits) -> Result<(), NoPermit> {
        let Some(most) = limits.address_connections_max else {
            return Ok(());
        };
        let free = limits.connections_max.saturating_sub(self.all.len());
        let share = fair_share(most, free, ADDRESS_ONE_IN);
        let of_network = self.by_network.get(&network);
        let Some(of_network) = of_network.filter(|all| all.len() >= share) else {
            return Ok(());
        };
        let given_up = who_give_way(of_network, share, Duration::ZERO, limits);
        if given_up.is_empty() {
            return Err(NoPermit::ShareAtWork { share });
        }
        self.close(&given_up);
        Ok(())
    }

    fn make_room(&mut self, limits: &ServeLimits) -> Result<(), NoPermit> {
        if self.all.len() < limits.connections_max {
            return Ok(());
        }
        let most = limits.connections_max;
        let given_up = who_give_way(&self.all, most, limits.newcomer_time, limits);
        if given_up.is_empty() {
            return Err(NoPermit::AllAtWork);
        }
        self.close(&given_up);
        Ok(())
    }

    fn close(&mut self, numbers: &[u64]) {
        for number in numbers {
            if let Some(connection) = self.remove(*number) {
                connection.close();
            }
        }
    }
}

/// A sixteenth of as many as there may be, so that a flood pays for one look at all of them in many and not in each: at
/// one look a newcomer the flood filled the system's queue, and honest clients waited in it.
fn who_give_way(
    among: &BTreeMap<u64, Arc<Connection>>,
    most: usize,
    young: Duration,
    limits: &ServeLimits,
) -> Vec<u64> {
    let now = Instant::now();
    let mut waiting: Vec<((u8, Instant), u64)> = among
        .iter()
        .filter_map(|(number, one)| Some((one.eviction_rank(now, young, limits)?, *number)))
        .collect();
    waiting.sort_unstable();
    waiting.truncate((most / 16).max(1));
    waiting.into_iter().map(|(_, number)| number).collect()
}

impl Connections {
    /// A permit for a newcomer; when all are taken, or all of its address's, those that have waited longest for their
    /// clients give way.
    pub(crate) fn take_permit(
        self: &Arc<Self>,
        network: Option<IpAddr>,
        limits: &ServeLimits,
    ) -> Result<Permit, NoPermit> {
        let mut open = self.lock();
        if let Some(network) = network {
            open.make_room_of(network, limits)?;
        }
        open.make_room(limits)?;
        let connection = Arc::new(Connection::new(Instant::now(), network));
        let number = open.insert(&connection);
        gauge!("upscale_connections").increment(1.0);
        Ok(Permit {
            connection,
            number,
            connections: Arc::clone(self),
        })
    }

    /// Closes every connection that is past a limit.
    pub(crate) fn close_overdue(&self, limits: &ServeLimits) {
        let now = Instant::now();
        for connection in self.lock().all.values() {
            if connection.is_overdue(now, limits) {
                connection.close();
            }
        }
    }

    /// Closes every connection, whatever it is doing.
    pub(crate) fn close_all(&self) {
        self.lock().all.values().for_each(|one| one.close());
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(newcomer_time: Duration) -> ServeLimits {
        ServeLimits {
            connections_max: 4,
            newcomer_time,
            ..ServeLimits::default()
        }
    }

    /// Whether the connection has been told to go.
    async fn is_closed(permit: &Permit) -> bool {
        let closed = permit.connection.closed();
        tokio::time::timeout(Duration::from_millis(1), closed)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn dribblers_give_way_before_the_silent_and_these_before_the_idle_but_none_at_work() {
        let connections = Arc::new(Connections::default());
        let limits = limits(Duration::ZERO);
        let permits: Vec<Permit> = (0..4)
            .map(|_| connections.take_permit(None, &limits).unwrap())
            .collect();
        let busy = permits[0].connection.begin_request();
        drop(permits[1].connection.begin_request());
        permits[3].connection.has_read();
        let mut newcomers = Vec::new();
        for expected in [3, 2, 1] {
            let newcomer = connections.take_permit(None, &limits).unwrap();
            newcomers.push((newcomer.connection.begin_request(), newcomer));
            assert!(is_closed(&permits[expected]).await, "permit {expected}");
        }
        assert!(
            connections.take_permit(None, &limits).is_err(),
            "all are at work"
        );
        drop(busy);
        assert!(connections.take_permit(None, &limits).is_ok());
        assert!(is_closed(&permits[0]).await);
    }

    #[tokio::test]
    async fn one_that_has_just_come_does_not_give_way() {
        let connections = Arc::new(Connections::default());
        let limits = limits(Duration::from_secs(3_600));
        let mut permits: Vec<Permit> = (0..4)
            .map(|_| connections.take_permit(None, &limits).unwrap())
            .collect();
        assert!(connections.take_permit(None, &limits).is_err());
        permits.pop();
        assert!(connections.take_permit(None, &limits).is_ok());
    }

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[tokio::test]
    async fn an_address_with_its_share_displaces_itself_and_no_one_else() {
        let connections = Arc::new(Connections::default());
        let limits = ServeLimits {
            connections_max: 90,
            newcomer_time: Duration::from_secs(3_600),
            ..ServeLimits::default()
        };
        let honest = connections.take_permit(address(1), &limits).unwrap();
        let mut flood = Vec::new();
        for _ in 0..1_000 {
            flood.push(connections.take_permit(address(2), &limits).unwrap());
            assert!(connections.lock().by_network[&address(2).unwrap()].len() <= 10);
        }
        assert!(!is_closed(&honest).await);
        assert!(is_closed(&flood[0]).await);
        // Who is at work is not displaced, and then the address has to wait.
        let busy: Vec<_> = flood
            .iter()
            .map(|one| one.connection.begin_request())
            .collect();
        let refused = connections.take_permit(address(2), &limits).err();
        assert!(
            matches!(refused, Some(NoPermit::ShareAtWork { share: 9 | 10 })),
            "{refused:?}"
        );
        assert!(connections.take_permit(address(3), &limits).is_ok());
        drop((busy, flood, honest));
        let open = connections.lock();
        assert!(open.all.is_empty() && open.by_network.is_empty());
    }

    #[tokio::test]
    async fn who_has_rested_for_long_gives_way_first_and_who_waits_for_a_body_before_the_silent() {
        let connections = Arc::new(Connections::default());
        let limits = ServeLimits {
            header_timeout: Duration::ZERO,
            ..limits(Duration::ZERO)
        };
        let take = || connections.take_permit(None, &limits).unwrap();
        let permits = [take(), take(), take(), take()];
        permits[1].connection.has_read();
        let busy = permits[2].connection.begin_request();
        let waiting = permits[2].connection.begin_waiting(false);
        drop(permits[3].connection.begin_request());
        let mut newcomers = Vec::new();
        for expected in [3, 1, 2, 0] {
            let newcomer = take();
            newcomers.push((newcomer.connection.begin_request(), newcomer));
            assert!(is_closed(&permits[expected]).await, "permit {expected}");
        }
        drop((waiting, busy));
    }
}
