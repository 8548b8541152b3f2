//! Where a store of either engine lives for a test: a directory, and for PostgreSQL a database of its own on
//! the one server that all tests of this process share.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;
use upscale_core::Clock;

use self::postgres_server::{PostgresServer, start_if_installed};
use crate::{Store, StoreOptions, faults::Faults, postgres, sqlite, tx::Tx};

#[path = "../../tests/postgres_server/mod.rs"]
#[allow(unreachable_pub, dead_code, reason = "shared with other crates' tests")]
pub(crate) mod postgres_server;

/// Connections of one store: fewer than the many that some tests ask at once, so that waiting is tested too.
const CONNECTIONS: u32 = 8;
/// Migrated once; every test's database is a copy.
const TEMPLATE: &str = "upscale_template";

static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// How much a commit costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commits {
    /// Synced, as the product does.
    Durable,
    /// Left to the kernel or the server, for tests that make thousands.
    Quick,
}

/// The rows of one store, anyone who opens it. A database goes with its server when this process ends: dropping one
/// costs a checkpoint, a second or more on a busy disk.
pub(crate) struct Home {
    pub(crate) directory: TempDir,
    /// The name of its database; none for SQLite.
    database: Option<String>,
}

impl Home {
    pub(crate) fn sqlite() -> Self {
        let directory = TempDir::new().unwrap();
        Self {
            directory,
            database: None,
        }
    }

    /// None, said aloud, where PostgreSQL is not installed.
    pub(crate) fn postgres() -> Option<Self> {
        Self::copy_of(Some(TEMPLATE))
    }

    /// A database without tables.
    pub(crate) fn postgres_without_tables() -> Option<Self> {
        Self::copy_of(None)
    }

    fn copy_of(template: Option<&str>) -> Option<Self> {
        let server = server()?;
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.create_database(&name, template);
        Some(Self {
            directory: TempDir::new().unwrap(),
            database: Some(name),
        })
    }

    /// A fresh one of every engine.
    pub(crate) fn every() -> Vec<Self> {
        [Some(Self::sqlite()), Self::postgres()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// One of every engine, as a program of this schema made it.
    pub(crate) async fn every_of_schema(schema: i32) -> Vec<Self> {
        let homes = [Some(Self::sqlite()), Self::postgres_without_tables()];
        let homes: Vec<_> = homes.into_iter().flatten().collect();
        for home in &homes {
            let Some(url) = home.url() else {
                sqlite::migrate_to(&mut home.connect_to_file(), schema).unwrap();
                continue;
            };
            let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
                .await
                .unwrap();
            tokio::spawn(connection);
            postgres::migrate_to(&mut client, schema).await.unwrap();
        }
        homes
    }

    pub(crate) fn engine(&self) -> &'static str {
        match self.database {
            None => "sqlite",
            Some(_) => "postgres",
        }
    }

    /// The store as another process would open it.
    pub(crate) async fn open(&self, clock: &Clock, commits: Commits) -> Store {
        self.open_with(clock, commits, StoreOptions::default())
            .await
    }

    /// The same with other options.
    pub(crate) async fn open_with(
        &self,
        clock: &Clock,
        commits: Commits,
        options: StoreOptions,
    ) -> Store {
        let clock = clock.clone();
        if let Some(url) = self.url() {
            let durability = match commits {
                Commits::Durable => postgres::Durability::Full,
                Commits::Quick => postgres::Durability::Off,
            };
            let opened = postgres::Db::open(&url, CONNECTIONS, clock, options, durability).await;
            return Store::Postgres(opened.unwrap());
        }
        let durability = match commits {
            Commits::Durable => sqlite::Durability::Full,
            Commits::Quick => sqlite::Durability::Off,
        };
        Store::open_sqlite_with(self.directory.path(), clock, options, durability)
            .await
            .unwrap()
    }

    /// The address of the database, of PostgreSQL.
    pub(crate) fn url(&self) -> Option<String> {
        let name = self.database.as_ref()?;
        Some(server()?.url(name))
    }

    /// Runs statements beside the store, as someone who may do anything.
    pub(crate) fn try_sql(&self, sql: &str) -> Result<String, String> {
        if let Some(name) = &self.database {
            return server().unwrap().try_sql(name, sql);
        }
        let done = self.connect_to_file().execute_batch(sql);
        done.map(|()| String::new())
            .map_err(|error| error.to_string())
    }

    /// How many rows a table has.
    pub(crate) fn count_rows(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        if let Some(name) = &self.database {
            let counted = server().unwrap().try_sql(name, &sql).unwrap();
            let digits = counted.lines().find_map(|line| line.trim().parse().ok());
            return digits.unwrap_or_else(|| panic!("{counted}"));
        }
        let file = self.connect_to_file();
        file.query_row(&sql, [], |row| row.get(0)).unwrap()
    }

    /// What a query of one column of text finds.
    pub(crate) fn list_lines(&self, sql: &str) -> Vec<String> {
        if let Some(name) = &self.database {
            let found = server().unwrap().try_sql(name, sql).unwrap();
            return found.lines().map(str::to_owned).collect();
        }
        let file = self.connect_to_file();
        let mut statement = file.prepare(sql).unwrap();
        let lines = statement.query_map([], |row| row.get(0)).unwrap();
        lines.collect::<Result<_, _>>().unwrap()
    }

    fn connect_to_file(&self) -> rusqlite::Connection {
        let file = self.directory.path().join("upscale.db");
        rusqlite::Connection::open(file).unwrap()
    }

    /// Changes rows behind the store's back, past every check, trigger and reference.
    pub(crate) fn tamper(&self, sql: &str) {
        if self.database.is_some() {
            // Replicas fire no triggers and check no references; the checks must go for good.
            let sql = sql.replace("DROP TRIGGER ledger_is_not_deleted;", "");
            let script = format!(
                "DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS of_table, conname
                     FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace
                 LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.of_table, one.conname); END LOOP; END $$;
                 SET session_replication_role = replica; {sql}"
            );
            self.try_sql(&script).unwrap();
            return;
        }
        let pragmas = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
        self.try_sql(&format!("{pragmas} {sql}")).unwrap();
    }
}

/// The faults that a store's writes pass.
pub(crate) fn faults(store: &Store) -> Faults {
    match store {
        Store::Sqlite(db) => db.faults.clone(),
        Store::Postgres(db) => db.faults.clone(),
    }
}

fn server() -> Option<&'static PostgresServer> {
    let started = SERVER.get_or_init(|| {
        let server = start_if_installed()?;
        server.create_database(TEMPLATE, None);
        // On a runtime of its own, whose end closes the connections: a template must have none.
        let url = server.url(TEMPLATE);
        let migrate = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let options = StoreOptions::default();
            let opened = Store::open_postgres(&url, 1, Clock::System, options);
            drop(runtime.block_on(opened).unwrap());
        };
        std::thread::spawn(migrate).join().unwrap();
        Some(server)
    });
    started.as_ref()
}

/// The server rolls back once it sees that a connection is gone. Until then its rows are locked, and a claim skips them,
/// as it should and no model knows.
pub(crate) async fn wait_for_rollback(store: &Store) {
    let open = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    let Store::Postgres(_) = store else {
        return;
    };
    for _ in 0..10_000 {
        let open = store.read(async |tx: &mut Tx| tx.number(open, &[]).await);
        if open.await.unwrap() == 0 {
            return;
        }
    }
    panic!("a transaction whose connection is gone stays open");
}
