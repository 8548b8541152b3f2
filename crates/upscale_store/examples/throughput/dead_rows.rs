//! What a claim costs when the queue's table is full of dead rows that a forgotten transaction keeps from being
//! removed: recent ones, as after a burst, and old ones, as after ten minutes of steady work.

use std::time::{Duration, Instant};

use tokio_postgres::NoTls;
use upscale_core::{AccountId, ResultFile, random_token};
use upscale_store::{Settlement, Store};

use crate::{
    load::{Failed, create, open_accounts, report},
    postgres_server::PostgresServer,
};

const DEAD_ROWS: u32 = 100_000;
const CLAIMS: usize = 200;

/// Measures before, with dead rows that nothing keeps (autovacuum comes), and with those that are kept.
pub(crate) async fn run(
    server: &PostgresServer,
    database: &str,
    store: &Store,
) -> Result<(), Failed> {
    let accounts = open_accounts(store).await?;
    claims("claims, a clean table", store, &accounts).await?;

    let (forgotten, connection) = tokio_postgres::connect(&server.url(database), NoTls).await?;
    tokio::spawn(connection);
    forgotten
        .batch_execute(
            "SET application_name = 'forgotten'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
        )
        .await?;
    server.sql(database, &dead_rows(600));
    let what =
        format!("claims, {DEAD_ROWS} dead rows of ten minutes ago kept by an open transaction");
    claims(&what, store, &accounts).await?;
    server.sql(database, &dead_rows(60));
    let what = format!("claims, {DEAD_ROWS} more of a minute ago");
    claims(&what, store, &accounts).await?;
    for one in store.list_old_transactions(0).await? {
        println!(
            "alarm: {} of {} has been {} for {} s",
            one.application, one.user, one.state, one.seconds
        );
    }

    forgotten.batch_execute("ROLLBACK").await?;
    server.sql(database, "VACUUM job");
    claims(
        "claims, the transaction ended and vacuum done",
        store,
        &accounts,
    )
    .await
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
        let claims = store.claim("one at a time", 1).await?;
        took.push(one.elapsed());
        for claim in claims {
            let file = ResultFile {
                name: random_token()?,
                sha256: "0".repeat(64),
                size_bytes: 1,
                width: 1,
                height: 1,
            };
            let settlement = Settlement::Succeeded(file);
            store
                .settle(
                    &claim.task_id,
                    claim.attempt,
                    settlement,
                    upscale_store::Spent::slot(0.1),
                )
                .await?;
        }
    }
    let seconds = took.iter().sum::<Duration>().as_secs().max(1);
    took.sort_unstable();
    report(what, &took, seconds);
    Ok(())
}
