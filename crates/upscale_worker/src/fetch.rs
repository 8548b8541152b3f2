//! The only place that connects to the outside: downloads the image a stranger named, over HTTPS, under
//! every rule of the address policy, with a limit on each step. Redirects are followed by hand, so that each
//! hop passes the same rules. No pool, no proxy, no cookie, no referer. What the bytes mean is the child's.

mod budgets;
mod connect;
mod exchange;
mod guard;
mod lookup;
mod places;
mod resolve;

use std::{net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc};

use bytes::Bytes;
use ipnet::{IpNet, Ipv6Net};
use rustls::ClientConfig;
use upscale_core::{AccountId, SourceUrl, parse_target};
use url::Url;

pub use self::{
    budgets::FetchBudgets,
    guard::{Forbidden, Guard},
};
use self::{
    budgets::TimeLeft,
    connect::{connect, tls_config},
    exchange::{Answer, exchange},
    lookup::Lookups,
    places::Places,
    resolve::Routes,
};
use crate::AttemptError;

/// What the operator says about downloads.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Names that lead to addresses of the operator's choice and skip the address rules.
    pub connect_to: Vec<ConnectTo>,
    /// PEM files with roots to trust beside the web's.
    pub ca_files: Vec<PathBuf>,
    /// Ranges that are refused beside those that are not public.
    pub denied: Vec<IpNet>,
    /// NAT64 prefixes of this network (RFC 6052: /32, /40, /48, /56, /64 or /96).
    pub nat64_prefixes: Vec<Ipv6Net>,
    /// Limits.
    pub budgets: FetchBudgets,
}

/// One `--source-connect-to NAME:443=ADDR:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// A DNS name, lower case.
    pub name: String,
    /// Where it leads.
    pub address: SocketAddr,
}

/// Why downloads cannot be set up as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchSetupError {
    /// A file of roots cannot be used.
    #[error("{}: {reason}", file.display())]
    CaFile {
        /// Which.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A mapping is malformed.
    #[error("{0:?} is not NAME:443=ADDR:PORT with a public DNS name and an IP address")]
    ConnectTo(String),
    /// A NAT64 prefix has a length that RFC 6052 does not know.
    #[error("{0} cannot be a NAT64 prefix: its length must be 32, 40, 48, 56, 64 or 96")]
    Nat64Prefix(Ipv6Net),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl FromStr for ConnectTo {
    type Err = FetchSetupError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || FetchSetupError::ConnectTo(text.to_owned());
        let (name, address) = text.split_once('=').ok_or_else(refused)?;
        let name = name.strip_suffix(":443").ok_or_else(refused)?;
        let url = parse_target(&format!("https://{name}/")).map_err(|_| refused())?;
        if name.contains(['/', '?', '#', ':']) {
            return Err(refused());
        }
        Ok(Self {
            name: url.host_str().ok_or_else(refused)?.to_owned(),
            address: address.parse().map_err(|_| refused())?,
        })
    }
}

/// Downloads sources.
#[derive(Debug)]
pub struct Fetcher {
    routes: Routes,
    tls: Arc<ClientConfig>,
    budgets: FetchBudgets,
    destinations: Places,
    accounts: Places,
}

impl Fetcher {
    /// Ready to download, as told.
    ///
    /// # Errors
    /// [`FetchSetupError`] when a file of roots cannot be read or a prefix is impossible.
    pub fn new(options: &FetchOptions) -> Result<Self, FetchSetupError> {
        let known_lengths = [32, 40, 48, 56, 64, 96];
        let impossible = options
            .nat64_prefixes
            .iter()
            .find(|prefix| !known_lengths.contains(&prefix.prefix_len()));
        if let Some(&prefix) = impossible {
            return Err(FetchSetupError::Nat64Prefix(prefix));
        }
        let budgets = options.budgets;
        let mapped = options.connect_to.iter();
        Ok(Self {
            routes: Routes {
                mapped: mapped.map(|to| (to.name.clone(), to.address)).collect(),
                guard: Guard {
                    denied: options.denied.clone(),
                    nat64_prefixes: options.nat64_prefixes.clone(),
                },
                lookups: Lookups::new(),
                budget: budgets.resolve,
            },
            tls: tls_config(&options.ca_files)?,
            budgets,
            destinations: Places::new(budgets.per_destination),
            accounts: Places::new(budgets.per_account),
        })
    }

    /// The whole source, 1 to 20 × 1024² bytes. Waits while the account or the destination has all its
    /// downloads under way.
    ///
    /// # Errors
    /// Permanent: no such host, forbidden address, bad TLS, any status but 200 (429 and 5xx aside), too large, not plain.
    /// Transient: nobody could resolve the name, 429, 5xx, anything that breaks off or takes too long.
    pub async fn download(
        &self,
        account: &AccountId,
        source: &SourceUrl,
    ) -> Result<Bytes, AttemptError> {
        let _place = self.accounts.take(account.as_str()).await;
        let mut time_left = TimeLeft::new(self.budgets.total);
        let mut target = source.url().clone();
        for _ in 0..=self.budgets.redirects_max {
            match self.ask(&target, &mut time_left).await? {
                Answer::Source(bytes) => return Ok(bytes),
                Answer::Elsewhere(location) => target = redirected(&target, &location)?,
            }
        }
        Err(AttemptError::permanent(format!(
            "The source redirects more than {} times.",
            self.budgets.redirects_max
        )))
    }

    /// One hop.
    async fn ask(&self, target: &Url, time_left: &mut TimeLeft) -> Result<Answer, AttemptError> {
        let host = target.host_str().unwrap_or_default();
        let addresses = time_left.spend(self.routes.find(host)).await?;
        // The smallest, because resolvers turn the order.
        let destination = addresses.iter().map(SocketAddr::ip).min();
        let destination = destination.map(|ip| ip.to_string()).unwrap_or_default();
        let _place = self.destinations.take(&destination).await;
        let hop = async {
            let stream = connect(host, &addresses, &self.tls, &self.budgets).await?;
            exchange(stream, target, &self.budgets).await
        };
        time_left.spend(hop).await
    }
}

/// Where a redirect leads. The text is judged as it was sent, before a parser makes it nicer: what
/// names a host must be a whole `https://` URL by itself (or lack just the scheme).
///
/// # Errors
/// Permanent, with the first broken rule.
pub fn redirected(from: &Url, location: &str) -> Result<Url, AttemptError> {
    let refused = |why: &str| {
        AttemptError::permanent(format!(
            "The source redirects to a URL that is not allowed: {why}."
        ))
    };
    if location.contains('\\') || !location.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refused("it has characters that are not allowed"));
    }
    let absolute = if location.starts_with("//") {
        format!("https:{location}")
    } else if names_scheme(location) {
        location.to_owned()
    } else {
        let joined = from
            .join(location)
            .map_err(|_| refused("it is not a well-formed URL"))?;
        joined.into()
    };
    parse_target(&absolute).map_err(refused)
}

/// RFC 3986, section 4.2: a colon before the first slash, question mark or hash makes a scheme.
fn names_scheme(location: &str) -> bool {
    let first_part = location.split(['/', '?', '#']).next().unwrap_or_default();
    first_part.contains(':')
}

#[cfg(test)]
mod guard_table;
