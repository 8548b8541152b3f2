//! What a claim costs when the queue's table is full of dead rows that a forgotten transaction keeps from being
//! removed: recent ones, as after a burst, and old ones, as after ten minutes of steady work.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::interval;
use tokio_postgres::{Client, NoTls};
use upscale_core::AccountId;
use upscale_store::Store;

use crate::{
    load::{Failed, create, open_accounts, report, succeed},
    postgres_server::PostgresServer,
};

const DEAD_ROWS: u32 = 100_000;
const CLAIMS: usize = 200;
/// The steady rate while a transaction is held.
const TASKS_A_SECOND: usize = 100;
const TASKS_AT_A_TIME: usize = 10;

/// Measures before, with dead rows that nothing keeps (autovacuum comes), and with those that are kept.
pub(crate) async fn run(
    server: &PostgresServer,
    database: &str,
    store: &Store,
) -> Result<(), Failed> {
    let accounts = open_accounts(store).await?;
    claims("claims, a clean table", store, &accounts).await?;

    let forgotten = forget(server, database).await?;
    server.sql(database, &dead_rows(600));
    let what =
        format!("claims, {DEAD_ROWS} dead rows of ten minutes ago kept by an open transaction");
    claims(&what, store, &accounts).await?;
    server.sql(database, &dead_rows(60));
    let what = format!("claims, {DEAD_ROWS} more of a minute ago");
    claims(&what, store, &accounts).await?;
    name_old(store, 0).await?;

    forgotten.batch_execute("ROLLBACK").await?;
    server.sql(database, "VACUUM job");
    claims(
        "claims, the transaction ended and vacuum done",
        store,
        &accounts,
    )
    .await
}

/// The same by waiting: a transaction stays open for so long, while tasks come and go at a steady rate; what they leave
/// are its dead rows. Past a minute it is named, as in the service's alarm.
pub(crate) async fn hold(
    server: &PostgresServer,
    database: &str,
    store: &Store,
    seconds: u64,
) -> Result<(), Failed> {
    let mut accounts = open_accounts(store).await?;
    let (forgotten, began) = (forget(server, database).await?, Instant::now());
    let mut next_report = Duration::ZERO;
    let mut ticks = interval(Duration::from_secs(1));
    while began.elapsed() < Duration::from_secs(seconds) {
        if began.elapsed() >= next_report {
            held(server, database, store, &accounts, began).await?;
            next_report += Duration::from_secs(60);
        }
        ticks.tick().await;
        for some in accounts
            .chunks(TASKS_AT_A_TIME)
            .take(TASKS_A_SECOND / TASKS_AT_A_TIME)
        {
            let created = some.iter().map(|account| create(store, account));
            join_all(created)
                .await
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            settle_all(store).await?;
        }
        accounts.rotate_left(TASKS_A_SECOND);
    }
    held(server, database, store, &accounts, began).await?;
    Ok(forgotten.batch_execute("ROLLBACK").await?)
}

async fn held(
    server: &PostgresServer,
    database: &str,
    store: &Store,
    accounts: &[AccountId],
    began: Instant,
) -> Result<(), Failed> {
    let dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'job'";
    let dead = server.sql(database, dead);
    let open_for = began.elapsed().as_secs();
    let what = format!("claims, a transaction open for {open_for} s, {dead} dead rows");
    claims(&what, store, accounts).await?;
    name_old(store, 60).await
}

/// A transaction with a snapshot that no one ends; ends with its client.
async fn forget(server: &PostgresServer, database: &str) -> Result<Client, Failed> {
    let (forgotten, connection) = tokio_postgres::connect(&server.url(database), NoTls).await?;
    tokio::spawn(connection);
    let begin =
        "SET application_name = 'forgotten'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    forgotten.batch_execute(begin).await?;
    Ok(forgotten)
}

async fn name_old(store: &Store, seconds: i64) -> Result<(), Failed> {
    for one in store.operator().list_old_transactions(seconds).await? {
        println!(
            "alarm: {} of {} has been {} for {} s",
            one.application, one.user, one.state, one.seconds
        );
    }
    Ok(())
}

async fn settle_all(store: &Store) -> Result<(), Failed> {
    loop {
        let claims = store.tasks().claim("one after the other", 64, &[]).await?;
        if claims.is_empty() {
            return Ok(());
        }
        let settled = claims.iter().map(|claim| succeed(store, claim));
        join_all(settled)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
    }
}

/// Jobs of that many seconds ago that came and went. Past the references: their tasks are of no interest.
fn dead_rows(seconds_ago: u32) -> String {
    format!(
        "SET session_replication_role = replica;
         INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
         SELECT 'dead_{seconds_ago}_' || n, 'nobody', at, at, at, at + 270000000
         FROM generate_series(1, {DEAD_ROWS}) AS n,
             (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) - {seconds_ago}000000 AS at) AS moment;
         DELETE FROM job WHERE account_id = 'nobody'"
    )
}

/// Each of one job that was created before.
async fn claims(what: &str, store: &Store, accounts: &[AccountId]) -> Result<(), Failed> {
    let mut took = Vec::new();
    for n in 0..CLAIMS {
        create(store, &accounts[n % accounts.len()]).await?;
        let one = Instant::now();
        let claims = store.tasks().claim("one at a time", 1, &[]).await?;
        took.push(one.elapsed());
        for claim in claims {
            succeed(store, &claim).await?;
        }
    }
    let seconds = took.iter().sum::<Duration>().as_secs().max(1);
    took.sort_unstable();
    report(what, &took, seconds);
    Ok(())
}
