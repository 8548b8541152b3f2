//! An honest customer beside accounts whose image hosts are slow, silent, broken or wrong. What it waited, with and without
//! them, is printed; that it gets all its pictures is asserted. The long form:
//! `UPSCALE_HOSTILE_ACCOUNTS=50 cargo test -p upscale --test contract fairness -- --nocapture`

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use crate::harness::{
    World,
    client::{Client, order},
    image_host::Behaviour,
    pictures::Picture,
};

/// Above the floor of 32 KiB a second below which a download ends.
const SLOW_BYTES_A_SECOND: usize = 38_000;
/// Tasks of the honest customer, one after the other.
const HONEST_TASKS: usize = 12;

#[test]
fn an_honest_customer_waits_no_longer_beside_hostile_ones() {
    let accounts = number("UPSCALE_HOSTILE_ACCOUNTS", 3);
    let tasks_each = number("UPSCALE_HOSTILE_TASKS", if accounts > 3 { 20 } else { 6 });
    // Connects, and then says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to_silence = format!(
        "silent.upscale-tests.org:443={}",
        silent.local_addr().unwrap()
    );
    // Short, so that the world ends soon; but the long form's tasks would not be admitted under it.
    let deadline = if accounts > 3 { "270" } else { "40" };
    let flags = ["--deadline", deadline, "--source-connect-to", &to_silence];
    let world = World::start_with(&flags);
    let urls = hostile_urls(&world);
    let honest = world.customer("40");
    let before = waits(&world, &honest, "before");

    let hostile: Vec<Client> = (0..accounts).map(|_| world.customer("14")).collect();
    let mut accepted = 0;
    for (number, customer) in hostile.iter().enumerate() {
        for task in 0..tasks_each {
            let url = &urls[(number + task) % urls.len()];
            let key = format!("hostile-{number}-{task}");
            accepted += usize::from(customer.create(&key, &order(url, 2)).status == 202);
        }
    }
    assert!(accepted > 0, "nobody attacked");
    let beside = waits(&world, &honest, "beside");
    eprintln!(
        "{accounts} hostile accounts with {accepted} tasks; honest p50 {:.2} s before, {:.2} s beside them ({:.2} x); \
         p95 {:.2} s, {:.2} s ({:.2} x)",
        quantile(&before, 0.5),
        quantile(&beside, 0.5),
        quantile(&beside, 0.5) / quantile(&before, 0.5),
        quantile(&before, 0.95),
        quantile(&beside, 0.95),
        quantile(&beside, 0.95) / quantile(&before, 0.95),
    );
}

/// One of each kind of source that takes long and comes to nothing.
fn hostile_urls(world: &World) -> Vec<String> {
    let slow = Behaviour::Slow(SLOW_BYTES_A_SECOND);
    let endless = Behaviour::Zeros {
        declared: Some(19_000_000),
        sent: 19_000_000,
    };
    vec![
        world.host.set("/slow.png", slow.clone()),
        world.host.set("/slow-too.png", slow),
        world.host.set("/gone.png", Behaviour::Status(404)),
        world.host.set("/busy.png", Behaviour::Status(503)),
        world.host.set("/nonsense.png", endless),
        "https://silent.upscale-tests.org/a.png".to_owned(),
    ]
}

/// What the customer waits for each of its tasks, shortest first.
fn waits(world: &World, customer: &Client, name: &str) -> Vec<Duration> {
    let bytes = Picture::render(64, 48, 3).png();
    let mut waits: Vec<Duration> = (0..HONEST_TASKS)
        .map(|task| {
            let path = format!("/{name}-{task}.png");
            let url = world.serve_bytes(&path, bytes.clone(), (64, 48));
            let begun = Instant::now();
            customer.upscale(&format!("honest-{name}-{task}"), &order(&url, 2));
            begun.elapsed()
        })
        .collect();
    waits.sort();
    waits
}

fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[at].as_secs_f64()
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}
