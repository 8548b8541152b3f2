//! Counts honest requests that are refused while 5,000 sockets send slowly: sign-in forms, events of Stripe, heads, and
//! bodies with good keys. First the sockets come from 250 addresses and the honest from another one; then all share one
//! address, where classes alone protect the honest. Each turn asks 1,000 times: reads, creates, downloads, probes.
//! Loopback only; ends by itself after some minutes.
//!
//! `cargo run -p upscale_api --example slow_sockets [SOCKETS] [REQUESTS]`

mod attack;
mod honest;

use std::{io::Write, net::Ipv4Addr, time::Duration};

use attack::{Attack, Opening};
use honest::{AnyError, Report, World};
use tokio::runtime::{Builder, Runtime};
use upscale_core::Clock;

const SOCKETS: usize = 5_000;
const REQUESTS: usize = 1_000;
/// Accounts behind the slow bodies with keys.
const HOSTILE_ACCOUNTS: usize = 100;
/// For the service to forget one attack before the next.
const PAUSE: Duration = Duration::from_secs(6);

/// Server, attackers and honest clients have threads of their own, as on machines of their own.
fn main() -> Result<(), AnyError> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let sockets = numbers.next().transpose()?.unwrap_or(SOCKETS);
    let requests = numbers.next().transpose()?.unwrap_or(REQUESTS);
    let (server, attackers, honest) = (threads(2)?, threads(1)?, threads(1)?);
    let directory = tempfile::TempDir::new()?;
    let world = server.block_on(World::start(directory.path()))?;
    let alone = honest.block_on(world.ask(requests, Ipv4Addr::LOCALHOST))?;
    tell("no one attacks", "", &alone)?;
    for (where_from, from) in [
        ("250 addresses", many as fn(usize) -> Ipv4Addr),
        ("the same address", one as fn(usize) -> Ipv4Addr),
    ] {
        for (shape, openings) in server.block_on(shapes(&world))? {
            let attack = attackers.block_on(async { Attack::start(&openings, sockets, from) });
            attackers.block_on(attack.under_way(sockets));
            let report = honest.block_on(world.ask(requests, Ipv4Addr::LOCALHOST))?;
            let counts = attackers.block_on(attack.stop());
            let held = format!(
                "{} open at a time, {} opened",
                counts.most_open, counts.opened
            );
            tell(&format!("{shape} from {where_from}"), &held, &report)?;
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

async fn shapes(world: &World) -> Result<Vec<(&'static str, Vec<Opening>)>, AnyError> {
    let now = Clock::System.now().unix_seconds();
    let mut creates = Vec::new();
    for _ in 0..HOSTILE_ACCOUNTS {
        creates.push(Opening::create(world.api, &world.key().await?));
    }
    let heads = [world.api, world.results, world.console].map(Opening::head);
    Ok(vec![
        ("slow sign-in forms", vec![Opening::form(world.console)]),
        ("slow webhooks", vec![Opening::webhook(world.api, now)]),
        ("slow heads", heads.to_vec()),
        ("slow keyed bodies", creates),
    ])
}

fn threads(count: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .build()
}

fn many(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 0, (number % 250) as u8)
}

fn one(_: usize) -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

fn tell(what: &str, sockets: &str, report: &Report) -> Result<(), AnyError> {
    let mut out = std::io::stdout().lock();
    let refused: usize = report.refused.values().sum();
    let asked = refused + report.times.len();
    let at = |share: usize| report.times.get(report.times.len() * share / 100);
    let millis = |share| at(share).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0);
    let (p50, p99) = (millis(50), millis(99));
    writeln!(
        out,
        "{what}: {refused} of {asked} refused; p50 {p50:.1} ms, p99 {p99:.1} ms; {sockets}"
    )?;
    for ((what, instead), count) in &report.refused {
        writeln!(out, "  {count} of {what}: {instead}")?;
    }
    Ok(())
}
