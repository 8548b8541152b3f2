//! The system's resolver, on threads of its own. It blocks for as long as a stranger's name server likes
//! (the C library tries for 10 to 30 s), far beyond our budget, so it must not sit on the runtime's threads,
//! which read and write result files; and there is a limit to how many may hang.

use std::{net::IpAddr, sync::Arc, thread};

use dns_lookup::{LookupError, LookupErrorKind, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Lookups at a time, hanging ones included.
const LOOKUPS_MAX: usize = 32;
/// The C library's resolver needs some tens of KiB.
const STACK_BYTES: usize = 512 * 1024;

/// Why a name led nowhere.
#[derive(Debug)]
pub(crate) enum LookupFailure {
    /// There is no such name, or it has no addresses: asking again will not help.
    NoSuchHost(LookupError),
    /// Nobody answered, or nobody could say.
    Unanswered(String),
}

/// Asks the system for addresses.
#[derive(Debug)]
pub(crate) struct Lookups {
    places: Arc<Semaphore>,
}

impl Lookups {
    pub(crate) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }

    /// All addresses of a name, asked once. The final dot makes the name absolute: no search domain is
    /// appended, so that a stranger's name is never looked up inside the operator's own zone, and the hosts
    /// file, which knows no final dots, does not answer.
    pub(crate) async fn ask(&self, host: &str) -> Result<Vec<IpAddr>, LookupFailure> {
        let absolute = format!("{}.", host.trim_end_matches('.'));
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|error| LookupFailure::Unanswered(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("lookup".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Nobody listens any more when the budget was spent; the place is held to the true end.
                let _ = answer.send(look_up(&absolute, place));
            });
        thread.map_err(|error| LookupFailure::Unanswered(error.to_string()))?;
        let answer = answered.await;
        answer.map_err(|error| LookupFailure::Unanswered(error.to_string()))?
    }
}

fn look_up(absolute: &str, _place: OwnedSemaphorePermit) -> Result<Vec<IpAddr>, LookupFailure> {
    let mut addresses: Vec<IpAddr> = lookup_host(absolute).map_err(judge)?.collect();
    addresses.dedup();
    Ok(addresses)
}

/// A name server that failed, or that nobody could reach, is `Again`.
fn judge(error: LookupError) -> LookupFailure {
    match error.kind() {
        LookupErrorKind::NoName | LookupErrorKind::NoData => LookupFailure::NoSuchHost(error),
        _ => LookupFailure::Unanswered(std::io::Error::from(error).to_string()),
    }
}
