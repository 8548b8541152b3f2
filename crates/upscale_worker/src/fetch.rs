//! The only place that connects to the outside: downloads the image a customer named, over HTTPS, under
//! every rule of the address policy, with a limit on each step. Redirects are followed by hand, so that each
//! hop passes the same rules. No pool, no proxy, no cookie, no referer. What the bytes mean is the child's.

mod budgets;
mod connect;
mod destinations;
mod downloads;
mod exchange;
mod guard;
mod lookup;
mod permits;
mod progress;
mod resolve;

use std::{net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc, time::Instant};

use bytes::Bytes;
use ipnet::{IpNet, Ipv6Net};
use rustls::ClientConfig;
use tokio::time::timeout;
use upscale_core::{AccountId, AttemptFailure, SourceUrl, parse_target};
use url::Url;

pub use self::{
    budgets::FetchBudgets,
    guard::{Forbidden, Guard},
};
use self::{
    budgets::TimeLeft,
    connect::{connect, tls_config},
    destinations::Destinations,
    downloads::{Downloads, Room},
    exchange::{Answer, exchange},
    lookup::Lookups,
    permits::Permits,
    progress::Standing,
    resolve::Routes,
};
pub(crate) use self::{
    downloads::{DownloadPermit, QUICK_DOWNLOAD},
    progress::Progress,
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
    /// Times and amounts that one download may take.
    pub budgets: FetchBudgets,
}

/// One `--source-connect-to NAME:443=ADDR:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// A DNS name, lower case.
    pub name: String,
    /// The address that is connected to in place of the resolved one.
    pub address: SocketAddr,
}

/// Why downloads cannot be set up as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchSetupError {
    /// A file of roots cannot be used.
    #[error("{}: {reason}", file.display())]
    CaFile {
        /// Path as configured.
        file: PathBuf,
        /// Why it cannot be read as PEM certificates.
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
    destinations: Destinations,
    downloads: Downloads,
}

/// A whole source. Its bytes count against its account's share of this process' memory until it is dropped.
#[derive(Debug)]
pub struct Source {
    bytes: Bytes,
    _room: Option<Room>,
}

impl Source {
    /// A sample of the service's own: no download, and no account's share of downloads.
    pub(crate) const fn at_hand(bytes: &'static [u8]) -> Self {
        Self {
            bytes: Bytes::from_static(bytes),
            _room: None,
        }
    }

    /// 1 to 20 × 1024² of them.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
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
                lookups: Lookups::default(),
                budget: budgets.resolve,
            },
            tls: tls_config(&options.ca_files)?,
            budgets,
            destinations: Destinations::new(budgets.destination_permits),
            downloads: Downloads::new(&budgets),
        })
    }

    /// The whole source, 1 to 20 × 1024² bytes.
    ///
    /// # Errors
    /// Permanent: no such host, forbidden address, bad TLS, any status but 200 (429 and 5xx aside), too large, not plain.
    /// Transient: no one could resolve the name, 429, 5xx, anything that breaks off or takes too long.
    /// Busy: the account has all its downloads under way, or its share of the address or of the memory.
    pub async fn download(
        &self,
        account: AccountId,
        source: &SourceUrl,
    ) -> Result<Source, AttemptError> {
        match self.begin(account) {
            Some(permit) => self.download_by(permit, source, &Progress::default()).await,
            None => Err(AttemptError::busy(
                "Other downloads of this account were running.",
            )),
        }
    }

    /// The right to one download, unless the account has all that it may have under way.
    pub(crate) fn begin(&self, account: AccountId) -> Option<DownloadPermit> {
        self.downloads.begin(account)
    }

    /// As [`Fetcher::download`], begun already.
    pub(crate) async fn download_by(
        &self,
        permit: DownloadPermit,
        source: &SourceUrl,
        progress: &Progress,
    ) -> Result<Source, AttemptError> {
        let started = Instant::now();
        let downloaded = self.follow(permit.account, source.url(), progress).await;
        match &downloaded {
            Ok(_) => self.downloads.arrived(permit.account, started.elapsed()),
            Err(error) if error.failure == AttemptFailure::Busy => {}
            Err(_) => self.downloads.failed(permit.account),
        }
        downloaded
    }

    /// What arrived for the account was no picture that may be upscaled.
    pub(crate) fn source_was_refused(&self, account: AccountId) {
        self.downloads.failed(account);
    }

    /// Accounts whose downloads may not begin now.
    pub(crate) fn at_bound(&self) -> Vec<AccountId> {
        self.downloads.at_bound()
    }

    /// Downloads that could begin now, if each were another account's.
    pub(crate) fn free(&self) -> usize {
        self.downloads.free()
    }

    /// Whether the account's sources came quickly of late.
    pub(crate) fn is_quick(&self, account: AccountId) -> bool {
        self.downloads.is_quick(account)
    }

    async fn follow(
        &self,
        account: AccountId,
        source: &Url,
        progress: &Progress,
    ) -> Result<Source, AttemptError> {
        let mut time_left = TimeLeft::new(self.budgets.total);
        let mut room = self.downloads.room(account);
        let mut target = source.clone();
        for _ in 0..=self.budgets.redirects_max {
            match self
                .ask(account, &target, &mut time_left, &mut room, progress)
                .await?
            {
                Answer::Source(bytes) => {
                    return Ok(Source {
                        bytes,
                        _room: Some(room),
                    });
                }
                Answer::Elsewhere(location) => target = redirected(&target, &location)?,
            }
        }
        Err(AttemptError::permanent(format!(
            "The image URL redirects more than {} times.",
            self.budgets.redirects_max
        )))
    }

    /// One hop.
    async fn ask(
        &self,
        account: AccountId,
        target: &Url,
        time_left: &mut TimeLeft,
        room: &mut Room,
        progress: &Progress,
    ) -> Result<Answer, AttemptError> {
        progress.is_at(Standing::LookingUp);
        let host = target.host_str().unwrap_or_default();
        let addresses = time_left.spend(self.routes.find(host)).await?;
        progress.is_at(Standing::WaitingForPermit);
        let _permits = time_left.spend(self.permit_at(account, &addresses)).await?;
        progress.is_at(Standing::Asking);
        let hop = async {
            let stream = connect(host, &addresses, &self.tls, &self.budgets).await?;
            exchange(stream, target, &self.budgets, room, progress).await
        };
        time_left.spend(hop).await
    }

    async fn permit_at(
        &self,
        account: AccountId,
        addresses: &[SocketAddr],
    ) -> Result<Option<Permits>, AttemptError> {
        // The smallest, because resolvers turn the order.
        let Some(&destination) = addresses.iter().min() else {
            return Ok(None);
        };
        let pool = self.destinations.of(destination);
        let permit = timeout(
            self.budgets.wait,
            pool.take(account, self.budgets.per_destination),
        );
        permit
            .await
            .map(Some)
            .map_err(|_| AttemptError::busy("Other downloads from this image host were running."))
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
            "The image URL redirects to a URL that is not allowed: {why}."
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
