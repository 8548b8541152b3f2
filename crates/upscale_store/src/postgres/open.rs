//! Opens the database: parses its address, makes the pool, brings the tables up to date.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use refinery::Runner;
use tokio::sync::Notify;
use tokio_postgres::Client;
use upscale_core::Clock;

use super::{
    Begin, Db,
    error::{in_full, is_lock_not_got, unavailable},
    time::Time,
    tls::connector,
    url::parse_address,
};
use crate::{
    StoreError, StoreOptions,
    schema::{check_schema, newest},
    signing_key::{FIRST_SIGNING_KEY, new_signing_key},
};

mod embedded {
    refinery::embed_migrations!("migrations/postgres");
}

/// Waiting for a connection of the pool, making one, and testing one: within a request's 10 s together.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(4);
/// A peer that vanished is noticed after this, not after the kernel's quarter of an hour.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
/// Every session's own limits. A lock is waited for 3 s, then the caller hears 503. A process that stops in
/// the middle of a transaction keeps an account's row for 10 s at most. A commit is answered when it is on
/// the disk, whatever the server's default. READ COMMITTED is what the locks are made for.
const SESSION: &str = "SET statement_timeout = '5s'; SET lock_timeout = '3s';
     SET idle_in_transaction_session_timeout = '10s'; SET default_transaction_isolation = 'read committed'";
/// Two processes that meet a new database at once must not both make its tables. Any number will do.
const MIGRATION_LOCK: i64 = 0x75_70_73_63_61_6c_65;

/// How long a migration waits for a table: every other statement on it queues behind, and is put off after 3 s. A dump or an
/// audit, which reads the table for longer, then goes on, and so does the service.
const TABLE_WAIT: &str = "SET lock_timeout = '1s'";
/// Between two waits: those that queued are served.
const TABLE_PAUSE: &str = "SELECT pg_sleep(2)";
/// Some half an hour in all, for a dump of a large database.
const TABLE_WAITS: u32 = 600;

/// How much of a commit must be on the disk before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Synced: the product's way.
    Full,
    /// Left to the server's next flush: for tests that make thousands of tasks and lose no power.
    #[cfg(test)]
    Off,
}

impl Db {
    /// `address` is a libpq URL, `connections` the most this process opens.
    pub(crate) async fn open(
        address: &str,
        connections: u32,
        clock: Clock,
        options: StoreOptions,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        let db = Self {
            pool: pool(address, connections, durability)?,
            time: Time::new(clock),
            options,
            job_added: Arc::new(Notify::new()),
            secret_keys: None,
            #[cfg(test)]
            faults: crate::faults::Faults::default(),
        };
        db.migrate().await?;
        // The first word of the server's clock.
        db.run(Begin::Write, async |_| Ok(())).await?;
        Ok(db)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.get().await.map_err(unavailable)?;
        let lock = format!(
            "SET statement_timeout = 0; SET lock_timeout = 0; SELECT pg_advisory_lock({MIGRATION_LOCK})"
        );
        connection.batch_execute(&lock).await?;
        let migrated = bring_up_to_date(&mut connection).await;
        // The lock and the settings end with the session, whatever became of it.
        drop(deadpool_postgres::Object::take(connection));
        migrated
    }
}

async fn bring_up_to_date(client: &mut Client) -> Result<(), StoreError> {
    let version: i64 = client
        .query_one(
            "SELECT CAST(current_setting('server_version_num') AS BIGINT)",
            &[],
        )
        .await?
        .try_get(0)?;
    if version < 150_000 {
        let what = format!(
            "PostgreSQL 15 or newer is needed, this one is {}",
            version / 10_000
        );
        return Err(StoreError::Unavailable(what));
    }
    let migrations = embedded::migrations::runner();
    check_schema(find_schema(client).await?, newest(&migrations))?;
    run_migrations(&migrations, client).await?;
    // Under the migration lock, so two processes cannot make two.
    let (id, secret) = new_signing_key()?;
    client.execute(FIRST_SIGNING_KEY, &[&id, &secret]).await?;
    Ok(())
}

/// Each in a transaction of its own. One that does not get a table's lock is undone and tried again.
async fn run_migrations(migrations: &Runner, client: &mut Client) -> Result<(), StoreError> {
    client.batch_execute(TABLE_WAIT).await?;
    for waits in 1.. {
        let Err(error) = migrations.run_async(client).await else {
            break;
        };
        let (is_lock_not_got, error) = (is_lock_not_got(&error), in_full(&error));
        if !is_lock_not_got || waits == TABLE_WAITS {
            let what = format!("migration failed, try {waits}: {error}");
            return Err(StoreError::Unavailable(what));
        }
        tracing::warn!(
            waits,
            error,
            "a migration waits for a table that another session uses"
        );
        client.batch_execute(TABLE_PAUSE).await?;
    }
    Ok(())
}

/// Makes the tables as a program of this schema knows them.
#[cfg(test)]
pub(crate) async fn migrate_to(client: &mut Client, schema: i32) -> Result<(), refinery::Error> {
    let migrations = embedded::migrations::runner().set_target(refinery::Target::Version(schema));
    migrations.run_async(client).await.map(drop)
}

/// The newest migration that was made; none in a new database.
async fn find_schema(client: &Client) -> Result<Option<i64>, StoreError> {
    let history = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if !client
        .query_one(history, &[])
        .await?
        .try_get::<_, bool>(0)?
    {
        return Ok(None);
    }
    let newest = "SELECT CAST(max(version) AS BIGINT) FROM refinery_schema_history";
    Ok(client.query_one(newest, &[]).await?.try_get(0)?)
}

fn pool(address: &str, connections: u32, durability: Durability) -> Result<Pool, StoreError> {
    let address = parse_address(address)?;
    let mut config = address.config;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECTION_TIMEOUT);
    }
    config
        .application_name("upscale")
        .tcp_user_timeout(TCP_TIMEOUT);
    let manager = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(config, connector(&address.check)?, manager);
    let session = format!("{SESSION}; {}", durability.as_setting());
    let pool = Pool::builder(manager)
        .max_size(connections as usize)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECTION_TIMEOUT))
        .create_timeout(Some(CONNECTION_TIMEOUT))
        .recycle_timeout(Some(CONNECTION_TIMEOUT))
        .post_create(Hook::async_fn(move |client, _| {
            let session = session.clone();
            Box::pin(async move {
                client
                    .batch_execute(&session)
                    .await
                    .map_err(HookError::Backend)
            })
        }));
    pool.build()
        .map_err(|error| StoreError::Unavailable(error.to_string()))
}

impl Durability {
    fn as_setting(self) -> &'static str {
        match self {
            Self::Full => "SET synchronous_commit = on",
            #[cfg(test)]
            Self::Off => "SET synchronous_commit = off",
        }
    }
}
