//! What `slow_sockets`, the example, shows with 5,000 sockets, with 1,400: more than there are places of any class, and
//! none of the honest is refused.

#[path = "../measure/attack.rs"]
mod attack;
#[path = "../measure/honest.rs"]
mod honest;

use std::net::Ipv4Addr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use upscale_core::Clock;

use attack::{Attack, Opening};
use honest::World;

const SOCKETS: usize = 1_400;
const REQUESTS: usize = 80;
/// Open files of everything but the two ends of each socket.
const OTHER_FILES: u64 = 600;
/// Accounts behind the slow bodies with keys.
const HOSTILE_ACCOUNTS: usize = 10;

/// As many sockets as this process may open both ends of.
fn sockets() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = 2 * SOCKETS as u64 + OTHER_FILES;
    let granted = limit.maximum.unwrap_or(u64::MAX).min(needed);
    if limit.current.is_some_and(|current| current < granted) {
        let raised = Rlimit {
            current: Some(granted),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).unwrap();
    }
    let sockets = (granted.saturating_sub(OTHER_FILES) / 2) as usize;
    if sockets < SOCKETS {
        eprintln!(
            "LEFT OUT: {sockets} slow sockets instead of {SOCKETS}: the limit of open files is {granted}"
        );
    }
    sockets
}

async fn refuse_no_one_honest(openings: &[Opening], world: &World) {
    let sockets = sockets();
    let from: [fn(usize) -> Ipv4Addr; 2] = [
        |number| Ipv4Addr::new(127, 2, 0, (number % 250) as u8),
        // Beside the honest: here the classes alone protect them.
        |_| Ipv4Addr::LOCALHOST,
    ];
    for from in from {
        let attack = Attack::start(openings, sockets, from);
        attack.under_way(sockets).await;
        let report = world.ask(REQUESTS, Ipv4Addr::LOCALHOST).await.unwrap();
        let counts = attack.stop().await;
        assert!(counts.opened >= sockets, "{counts:?}");
        assert!(counts.most_open > sockets / 8, "{counts:?}");
        assert!(report.refused.is_empty(), "{:?} {counts:?}", report.refused);
        assert_eq!(report.times.len(), REQUESTS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_forms_and_events_of_unknown_callers_keep_no_one_out() {
    let directory = TempDir::new().unwrap();
    let world = World::start(directory.path()).await.unwrap();
    let now = Clock::System.now().unix_seconds();
    let openings = [
        Opening::form(world.console),
        Opening::webhook(world.api, now),
    ];
    refuse_no_one_honest(&openings, &world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_slow_bodies_with_good_keys_keep_no_one_out() {
    let directory = TempDir::new().unwrap();
    let world = World::start(directory.path()).await.unwrap();
    let mut openings = [world.api, world.results, world.console]
        .map(Opening::head)
        .to_vec();
    for _ in 0..HOSTILE_ACCOUNTS {
        openings.push(Opening::create(world.api, &world.key().await.unwrap()));
    }
    refuse_no_one_honest(&openings, &world).await;
}
