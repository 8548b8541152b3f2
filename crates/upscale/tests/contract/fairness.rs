//! An honest customer beside accounts whose image hosts are slow, silent, broken or wrong. What it waited, with and without
//! them, is printed; that it gets all its pictures is asserted. The long form:
//! `UPSCALE_HOSTILE_ACCOUNTS=50 cargo test -p upscale --test contract fairness -- --nocapture`

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::harness::{
    World,
    bucket::Bucket,
    client::{Client, order},
    image_host::Behaviour,
    pictures::Picture,
    postgres_server::start_if_installed,
};

/// Above the floor of 32 KiB a second below which a download ends.
const SLOW_BYTES_A_SECOND: usize = 38_000;
/// Tasks of the honest customer, one after the other.
const HONEST_TASKS: usize = 12;

#[test]
fn an_honest_customer_waits_no_longer_beside_hostile_ones() {
    let attack = Attack::from_environment();
    let world = World::start_with(&attack.flags());
    attack.compare(&world, "SQLite and files");
}

#[test]
fn an_honest_customer_waits_no_longer_beside_hostile_ones_on_postgres_and_a_bucket() {
    let Some(postgres) = start_if_installed() else {
        return;
    };
    postgres.create_database("fairness", None);
    let attack = Attack::from_environment();
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let mut variables = bucket.place();
    let database = format!("postgres://upscale@127.0.0.1:{}/fairness", postgres.port());
    variables.push(("UPSCALE_DATABASE".to_owned(), database));
    let mut world = World::prepare_in(folder, &attack.flags(), variables);
    world.serve_again();
    attack.compare(&world, "PostgreSQL and a bucket");
    // Before its database and its bucket.
    drop(world);
}

/// How many accounts send how many tasks each that take long and come to nothing.
struct Attack {
    accounts: usize,
    tasks_each: usize,
    /// Accepts connections and says nothing.
    silent: TcpListener,
    to_silence: String,
}

impl Attack {
    fn from_environment() -> Self {
        let accounts = number("UPSCALE_HOSTILE_ACCOUNTS", 3);
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        Self {
            accounts,
            tasks_each: number("UPSCALE_HOSTILE_TASKS", if accounts > 3 { 20 } else { 6 }),
            silent,
            to_silence: format!("silent.upscale-tests.org:443={address}"),
        }
    }

    /// The deadline is short, so that the world ends soon; but the long form's tasks would not be admitted under it.
    fn flags(&self) -> [&str; 4] {
        let deadline = if self.accounts > 3 { "270" } else { "40" };
        [
            "--deadline",
            deadline,
            "--source-connect-to",
            &self.to_silence,
        ]
    }

    fn compare(&self, world: &World, place: &str) {
        let urls = hostile_urls(world);
        let honest = world.customer("40");
        let before = waits(world, &honest, "before");
        let accepted = self.send(world, &urls);
        assert!(accepted > 0, "no one attacked");
        let beside = waits(world, &honest, "beside");
        let figures = [("p50", 0.5), ("p95", 0.95)].map(|(name, share)| {
            let (before, beside) = (quantile(&before, share), quantile(&beside, share));
            format!(
                "{name} {before:.2} s before, {beside:.2} s beside them ({:.2} x)",
                beside / before
            )
        });
        eprintln!(
            "{} hostile accounts with {accepted} tasks on {place}; honest {}",
            self.accounts,
            figures.join("; ")
        );
        assert!(
            self.silent.local_addr().is_ok(),
            "the silent host is still there"
        );
    }

    /// How many tasks were accepted.
    fn send(&self, world: &World, urls: &[String]) -> usize {
        let hostile: Vec<Client> = (0..self.accounts).map(|_| world.customer("14")).collect();
        let mut accepted = 0;
        for (number, customer) in hostile.iter().enumerate() {
            for task in 0..self.tasks_each {
                let url = &urls[(number + task) % urls.len()];
                let key = format!("hostile-{number}-{task}");
                accepted += usize::from(customer.create(&key, &order(url, 2)).status == 202);
            }
        }
        accepted
    }
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
