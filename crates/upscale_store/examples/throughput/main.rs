//! How many tasks a second pass through queue and ledger on this machine, on SQLite and on PostgreSQL, beside what
//! each engine alone commits in the same run; and what dead rows and a forgotten transaction do to claims:
//! `cargo run --release -p upscale_store --example throughput [DIR [SECONDS]]`, the last to leave a transaction open for
//! that long, really. A PostgreSQL server is made in the directory for temporary files with `initdb`, and goes with the
//! run.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a command whose output is its purpose, and which may end by panicking"
)]

mod dead_rows;
mod engine_alone;
#[allow(dead_code, unreachable_pub, reason = "shared with tests")]
#[path = "../../tests/figure/mod.rs"]
mod figure;
mod load;
#[allow(dead_code, unreachable_pub, reason = "shared with tests")]
#[path = "../../tests/postgres_server/mod.rs"]
mod postgres_server;

use std::path::PathBuf;

use upscale_core::Clock;
use upscale_store::{Store, StoreOptions};

use self::{load::Failed, postgres_server::PostgresServer};

/// Connections of the service, and of the baseline.
const CONNECTIONS: u32 = 10;
const DATABASE: &str = "throughput";

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let directory = std::env::args()
        .nth(1)
        .map_or_else(|| "throughput-data".into(), PathBuf::from);
    std::fs::create_dir_all(&directory)?;
    println!("== SQLite, in {}", directory.display());
    let alone = engine_alone::sqlite(&directory)?;
    let store = Store::open_sqlite(&directory, Clock::System, StoreOptions::default()).await?;
    load::run(&store, "SQLite", alone).await?;
    drop(store);

    println!("== PostgreSQL, {CONNECTIONS} connections over a socket");
    let server = PostgresServer::start(&["shared_buffers = 256MB"])?;
    server.create_database(DATABASE, None);
    let alone = engine_alone::postgres(&server, CONNECTIONS)?;
    let (url, options) = (server.url(DATABASE), StoreOptions::default());
    let store = Store::open_postgres(&url, CONNECTIONS, Clock::System, options).await?;
    load::run(&store, "PostgreSQL", alone).await?;
    dead_rows::run(&server, DATABASE, &store).await?;
    if let Some(seconds) = std::env::args().nth(2) {
        dead_rows::hold(&server, DATABASE, &store, seconds.parse()?).await?;
    }
    Ok(())
}
