//! A fleet on PostgreSQL and a bucket: API processes and workers that reach the database by a line that can be cut.

use tempfile::TempDir;

use super::{cutter::Cutter, processes::Worker};
use crate::harness::{
    World,
    bucket::Bucket,
    postgres_server::{PostgresServer, start_if_installed},
    serve::Serve,
};

pub(crate) const DATABASE: &str = "fleet";

pub(crate) struct Fleet {
    pub(crate) apis: Vec<Serve>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) world: World,
    pub(crate) bucket: Bucket,
    pub(crate) cutter: Cutter,
    pub(crate) postgres: PostgresServer,
    /// Flags of every process: what all of a service must agree on.
    flags: Vec<String>,
}

impl Fleet {
    /// Database and bucket, and no process yet. None, said aloud, where PostgreSQL is not installed.
    pub(crate) fn prepare(flags: &[&str]) -> Option<Self> {
        let postgres = start_if_installed()?;
        let folder = TempDir::new().unwrap();
        let bucket = Bucket::start(folder.path());
        postgres.create_database(DATABASE, None);
        let cutter = Cutter::start(postgres.port());
        let mut variables = bucket.place();
        let database = format!("postgres://upscale@127.0.0.1:{}/{DATABASE}", cutter.port);
        variables.push(("UPSCALE_DATABASE".to_owned(), database));
        let of_serve = [&["--workers", "1"], flags].concat();
        Some(Self {
            apis: Vec::new(),
            workers: Vec::new(),
            world: World::prepare_in(folder, &of_serve, variables),
            bucket,
            cutter,
            postgres,
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
        })
    }

    pub(crate) fn start_api(&mut self) {
        self.start_api_unannounced();
        if let Some(api) = self.apis.last() {
            self.world.direct_customers_to(&api.api);
        }
    }

    /// It takes no traffic yet.
    pub(crate) fn start_api_unannounced(&mut self) {
        let (mut command, log) = self.world.command();
        command.arg("api").args(&self.flags);
        self.apis.push(Serve::start_front(command, &log));
    }

    /// A worker with this many slots, and flags of its own.
    pub(crate) fn start_worker(&mut self, slots: usize, own: &[&str]) {
        let (mut command, log) = self.world.command();
        command.args(["worker", "--workers", &slots.to_string()]);
        command.args(&self.flags).args(own);
        command.args(self.world.host.flags());
        self.workers.push(Worker::start(command, &log));
    }

    /// What a migration does to the tables that statements read whole.
    pub(crate) fn add_columns(&self, name: &str) {
        for table in ["account", "api_key", "task"] {
            let sql = format!("ALTER TABLE {table} ADD COLUMN {name} BIGINT");
            self.postgres.sql(DATABASE, &sql);
        }
    }

    /// One number of the database.
    pub(crate) fn count(&self, sql: &str) -> u64 {
        self.postgres.sql(DATABASE, sql).parse().unwrap()
    }

    /// In order: what is under way is finished or given back.
    pub(crate) fn stop(&mut self) {
        for worker in self.workers.drain(..) {
            assert_eq!(worker.stop().code(), Some(0));
        }
        for api in self.apis.drain(..) {
            assert_eq!(api.stop().code(), Some(0));
        }
    }
}
