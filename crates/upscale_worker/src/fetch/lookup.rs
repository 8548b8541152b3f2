//! The system's resolver, on threads of its own. It blocks for as long as a stranger's name server likes
//! (the C library tries for 10 to 30 s), far beyond our budget, so it must not sit on the runtime's threads,
//! which read and write result files; and there is a limit to how many may hang.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
    thread,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Lookups at a time, hanging ones included.
const LOOKUPS_MAX: usize = 32;
/// The C library's resolver needs some tens of KiB.
const STACK_BYTES: usize = 512 * 1024;

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
    pub(crate) async fn ask(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let absolute = format!("{}.", host.trim_end_matches('.'));
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(io::Error::other)?;
        let (answer, answered) = oneshot::channel();
        thread::Builder::new()
            .name("lookup".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Nobody listens any more when the budget was spent; the place is held to the true end.
                let _ = answer.send(look_up(&absolute, place));
            })?;
        answered.await.map_err(io::Error::other)?
    }
}

fn look_up(absolute: &str, _place: OwnedSemaphorePermit) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = (absolute, 443_u16)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .collect();
    addresses.dedup();
    Ok(addresses)
}
