//! What an engine commits in a second when nothing of ours stands above it.

use std::{
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    load::{Failed, LOAD_SECONDS, report},
    postgres_server::PostgresServer,
};

/// One row a commit on one connection, synced as the store syncs; and what the disk alone syncs.
pub(crate) fn sqlite(directory: &Path) -> Result<u64, Failed> {
    let mut file = File::create(directory.join("sync-alone"))?;
    repeat("4 KiB write + fdatasync, alone", || {
        file.write_all(&[0; 4096])?;
        Ok(file.sync_data()?)
    })?;
    let connection = rusqlite::Connection::open(directory.join("engine-alone.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS line (text TEXT NOT NULL)",
    )?;
    let mut insert =
        connection.prepare("INSERT INTO line VALUES ('a row of this length, more or less')")?;
    repeat("one row a commit, alone", || {
        Ok(insert.execute([]).map(drop)?)
    })
}

/// `pgbench`, its transaction without the hot rows (`-N`: an update, a read, an insert), as many connections.
pub(crate) fn postgres(server: &PostgresServer, connections: u32) -> Result<u64, Failed> {
    server.create_database("pgbench", None);
    server.pgbench("pgbench", &["--initialize", "--quiet", "--scale=10"])?;
    let clients = format!("--client={connections}");
    let seconds = format!("--time={LOAD_SECONDS}");
    let flags = [
        "--skip-some-updates",
        "--no-vacuum",
        "--protocol=prepared",
        "--jobs=2",
    ];
    let reported = server.pgbench("pgbench", &[&flags[..], &[&clients, &seconds]].concat())?;
    let line = reported
        .lines()
        .find(|line| line.starts_with("tps = "))
        .ok_or("pgbench said no tps")?;
    println!("pgbench -N, {connections} connections, alone: {line}");
    let tps = line
        .trim_start_matches("tps = ")
        .split(' ')
        .next()
        .unwrap_or_default();
    Ok(tps.parse::<f64>()? as u64)
}

fn repeat(what: &str, mut once: impl FnMut() -> Result<(), Failed>) -> Result<u64, Failed> {
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_secs(LOAD_SECONDS) {
        let one = Instant::now();
        once()?;
        took.push(one.elapsed());
    }
    took.sort_unstable();
    report(what, &took, LOAD_SECONDS);
    Ok(took.len() as u64 / LOAD_SECONDS)
}
