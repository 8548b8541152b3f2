//! Names are resolved by our own queries to the system's name servers, not by the C library: a query that is dropped
//! is over, so an untrusted name server that never answers holds a socket for our budget and no thread of ours.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::MetadataExt,
    sync::{Mutex, PoisonError},
};

use hickory_resolver::{
    Resolver, TokioResolver,
    config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    lookup::Lookup,
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::{RData, RecordType},
    system_conf::parse_resolv_conf,
};
use tokio::join;

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Why a name led nowhere.
#[derive(Debug)]
pub(crate) enum LookupFailure {
    /// There is no such name, or it has no addresses: asking again will not help.
    NoSuchHost(String),
    /// No one answered, or no one could say.
    Unanswered(String),
}

/// Asks the system's name servers for addresses.
#[derive(Default)]
pub(crate) struct Lookups(Mutex<Option<Configured>>);

/// Which file said so: device, inode, size, and seconds and nanoseconds of its last change.
type Version = (u64, u64, u64, i64, i64);

struct Configured {
    by: Option<Version>,
    resolver: TokioResolver,
}

impl std::fmt::Debug for Lookups {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Lookups")
    }
}

impl Lookups {
    /// All addresses of a name, asked once. The final dot makes the name absolute: no search domain is
    /// appended, so that a customer's name is never looked up inside the operator's own zone; the hosts
    /// file is not read.
    pub(crate) async fn ask(&self, host: &str) -> Result<Vec<IpAddr>, LookupFailure> {
        let absolute = format!("{}.", host.trim_end_matches('.'));
        let resolver = self.resolver().map_err(unanswered)?;
        let (v4, v6) = join!(
            resolver.lookup(absolute.as_str(), RecordType::A),
            resolver.lookup(absolute.as_str(), RecordType::AAAA)
        );
        let mut addresses = Vec::new();
        let mut failures = Vec::new();
        for answered in [v4, v6] {
            match answered {
                Ok(answer) => addresses.extend(addresses_of(&answer)),
                Err(error) => failures.push(error),
            }
        }
        if !addresses.is_empty() {
            return Ok(addresses);
        }
        let unknown = failures.iter().position(|it| !it.is_no_records_found());
        Err(match unknown {
            Some(at) => unanswered(failures.swap_remove(at)),
            None => LookupFailure::NoSuchHost(format!("{failures:?}")),
        })
    }

    /// By the file as it is now: machines change networks, and containers get theirs late.
    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let by = fs::metadata(RESOLV_CONF).ok().map(|file| {
            let (seconds, nanos) = (file.mtime(), file.mtime_nsec());
            (file.dev(), file.ino(), file.size(), seconds, nanos)
        });
        let mut configured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*configured {
            Some(known) if known.by == by => Ok(known.resolver.clone()),
            _ => {
                let resolver = configure()?;
                *configured = Some(Configured {
                    by,
                    resolver: resolver.clone(),
                });
                Ok(resolver)
            }
        }
    }
}

/// Name servers, attempts and time-outs as the file says. As with the C library a missing file, or one without a name
/// server, means the one on this machine.
fn configure() -> Result<TokioResolver, NetError> {
    let text = fs::read(RESOLV_CONF).unwrap_or_default();
    let (config, mut options) = parse_resolv_conf(text).unwrap_or_else(|_| {
        let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![local]);
        (config, ResolverOpts::default())
    });
    options.use_hosts_file = ResolveHosts::Never;
    // Each download resolves once, and what it resolved is judged then.
    options.cache_size = 0;
    // Bounded by the downloads under way; the default of 32 on a connection would be everyone's.
    options.max_active_requests = 1_024;
    let builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.with_options(options).build()
}

fn addresses_of(answer: &Lookup) -> impl Iterator<Item = IpAddr> {
    let records = answer.answers().iter();
    records.filter_map(|record| match &record.data {
        RData::A(v4) => Some(IpAddr::V4(v4.0)),
        RData::AAAA(v6) => Some(IpAddr::V6(v6.0)),
        _ => None,
    })
}

fn unanswered(error: NetError) -> LookupFailure {
    LookupFailure::Unanswered(error.to_string())
}
