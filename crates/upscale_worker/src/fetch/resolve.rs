//! From a name to socket addresses that may be connected to: the operator's map first, else one resolution
//! whose every answer passes the guard. No one resolves the name again after this.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use nix::ifaddrs::getifaddrs;
use tokio::time::timeout;

use super::{
    guard::{Forbidden, Guard},
    lookup::{LookupFailure, Lookups},
};
use crate::AttemptError;

/// Addresses one name may have.
const ADDRESSES_MAX: usize = 16;
const HTTPS_PORT: u16 = 443;

/// Where names lead.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) mapped: HashMap<String, SocketAddr>,
    pub(crate) guard: Guard,
    pub(crate) lookups: Lookups,
    /// For one resolution.
    pub(crate) budget: Duration,
}

impl Routes {
    /// At least one address, in the resolver's order. Only a mapped name skips the address rules.
    pub(crate) async fn find(&self, host: &str) -> Result<Vec<SocketAddr>, AttemptError> {
        if let Some(&address) = self.mapped.get(host) {
            return Ok(vec![address]);
        }
        let addresses = self.resolve(host).await?;
        self.judge(host, addresses, &own_addresses()?)
    }

    /// What a name resolved to, whole or not at all. `own` are the addresses of this host.
    pub(crate) fn judge(
        &self,
        host: &str,
        addresses: Vec<IpAddr>,
        own: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, AttemptError> {
        if addresses.is_empty() {
            return Err(no_such_host(host).with_detail("no addresses"));
        }
        if addresses.len() > ADDRESSES_MAX {
            return Err(AttemptError::permanent(format!(
                "The host of the image URL has {} addresses, at most {ADDRESSES_MAX} are checked.",
                addresses.len()
            )));
        }
        let checked = self.guard.check(&addresses, own);
        checked.map_err(|Forbidden(address)| {
            AttemptError::permanent("The host of the image URL has an address that is not allowed.")
                .with_detail(format!("{host}: {address}"))
        })?;
        let with_port = |address| SocketAddr::new(address, HTTPS_PORT);
        Ok(addresses.into_iter().map(with_port).collect())
    }

    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, AttemptError> {
        let answered = timeout(self.budget, self.lookups.ask(host)).await;
        let answered = answered.map_err(|_| {
            AttemptError::transient(format!(
                "The host name of the image URL was not resolved within {:?}.",
                self.budget
            ))
        })?;
        answered.map_err(|failure| match failure {
            LookupFailure::NoSuchHost(error) => no_such_host(host).with_detail(error),
            LookupFailure::Unanswered(detail) => {
                AttemptError::transient("Could not resolve the host name of the image URL.")
                    .with_detail(detail)
            }
        })
    }
}

/// A typo, most often: the customer hears of it at once.
fn no_such_host(host: &str) -> AttemptError {
    AttemptError::permanent(format!("Could not resolve {host}."))
}

/// What this host answers to itself, read anew each time: interfaces come and go.
fn own_addresses() -> Result<Vec<IpAddr>, AttemptError> {
    let interfaces = getifaddrs().map_err(|error| {
        AttemptError::transient("The host of the image URL could not be checked.")
            .with_detail(error)
    })?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    });
    Ok(addresses.collect())
}
