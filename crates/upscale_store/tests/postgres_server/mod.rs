//! A PostgreSQL server of one's own for tests: made by `initdb` in a temporary directory, with the settings of
//! production, reached by a socket there and by a free port of loopback, gone with the process that started it.
//! Knows nothing of the store, so that every crate's tests and examples can include it by its path.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// The user that runs the server where the tests run as root, which PostgreSQL refuses: the system user `nobody`.
const UNPRIVILEGED: u32 = 65_534;
/// Starts of one process, for the names of their directories.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running server. Its databases belong to the role `upscale`, as in production; `postgres` may do anything.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: PathBuf,
    directory: PathBuf,
    port: u16,
    /// Waits for the end of this process, however it ends, then stops the server and removes its directory.
    guard: Child,
}

/// A server, or none where PostgreSQL is not installed: said aloud, and an error where CI asks.
pub fn start_if_installed() -> Option<PostgresServer> {
    match PostgresServer::start(&[]) {
        Ok(server) => Some(server),
        Err(reason) if std::env::var_os("CI").is_some() => panic!("no PostgreSQL: {reason}"),
        Err(reason) => {
            // Past libtest's capture: a test that left its half out must be heard, though it passes.
            let reported = format!("left out: everything on PostgreSQL ({reason})\n");
            std::io::stderr().write_all(reported.as_bytes()).unwrap();
            None
        }
    }
}

impl PostgresServer {
    /// Makes and starts a server, with further lines of `postgresql.conf`.
    pub fn start(settings: &[&str]) -> Result<Self, String> {
        let binaries = find_binaries()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("upscale-postgres-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).map_err(|error| error.to_string())?;
        let mut server = Self {
            guard: guard(&binaries, &directory),
            binaries,
            directory,
            port: 0,
        };
        server.initialise(settings)?;
        server.start_again()?;
        server.sql("postgres", "CREATE ROLE upscale LOGIN");
        Ok(server)
    }

    fn initialise(&mut self, settings: &[&str]) -> Result<(), String> {
        if is_root() {
            let owned =
                std::os::unix::fs::chown(&self.directory, Some(UNPRIVILEGED), Some(UNPRIVILEGED));
            owned.map_err(|error| error.to_string())?;
        }
        let data = self.data();
        run(self.command("initdb").arg("-D").arg(&data).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]))?;
        // Freed at once and taken by the server a moment later.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        self.port = free.map_err(|error| error.to_string())?.port();
        let mut lines = vec![
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{}'", self.directory.display()),
            format!("port = {}", self.port),
            "max_connections = 200".to_owned(),
        ];
        lines.extend(settings.iter().map(|line| (*line).to_owned()));
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"));
        let file = file.as_mut().map_err(|error| error.to_string())?;
        writeln!(file, "{}", lines.join("\n")).map_err(|error| error.to_string())
    }

    /// Starts the server, which must have been stopped, and waits until it answers.
    pub fn start_again(&self) -> Result<(), String> {
        let log = self.directory.join("log");
        let mut start = self.command("pg_ctl");
        start
            .args(["start", "--wait", "--timeout=90", "-D"])
            .arg(self.data());
        run(start.arg("-l").arg(&log))
            .map_err(|error| format!("{error}\n{}", fs::read_to_string(log).unwrap_or_default()))
    }

    /// Stops the server as a power cut would: nothing is finished, the log is replayed at the next start.
    pub fn stop_immediately(&self) -> Result<(), String> {
        let mut stop = self.command("pg_ctl");
        run(stop
            .args(["stop", "--mode=immediate", "-D"])
            .arg(self.data()))
    }

    /// The files, where certificates may be laid before a start.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Makes a file the server's own and no one else's, as it wants its keys.
    pub fn give(&self, file: &Path) {
        if is_root() {
            std::os::unix::fs::chown(file, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// On loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database, over the socket.
    pub fn url(&self, database: &str) -> String {
        let host = self.directory.display().to_string().replace('/', "%2F");
        format!("postgres://upscale@{host}:{}/{database}", self.port)
    }

    /// A new database of the role `upscale`, a copy of another where one is named.
    pub fn create_database(&self, name: &str, template: Option<&str>) {
        let copied = template.map_or_else(String::new, |template| format!("TEMPLATE {template}"));
        self.sql(
            "postgres",
            &format!("CREATE DATABASE {name} OWNER upscale {copied}"),
        );
    }

    /// Runs statements as the superuser; what they print, unaligned.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// As [`PostgresServer::sql`]; the server's error where it refuses.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["-v", "ON_ERROR_STOP=1", "--username=postgres"])
            .args(["--port", &self.port.to_string(), "--host"])
            .arg(&self.directory)
            .args(["--dbname", database, "--command", sql]);
        let output = psql.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs `pgbench` on a database; what it prints.
    pub fn pgbench(&self, database: &str, flags: &[&str]) -> Result<String, String> {
        let mut pgbench = Command::new(self.binaries.join("pgbench"));
        pgbench
            .args(["--username=postgres", "--port", &self.port.to_string()])
            .arg("--host")
            .arg(&self.directory)
            .args(flags)
            .arg(database);
        let output = pgbench.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, program: &str) -> Command {
        as_owner(&self.binaries.join(program))
    }
}

impl Drop for PostgresServer {
    /// The guard does the rest once its standard input closes.
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}

/// A process of its own group, so that Ctrl-C at the tests does not end it before it has cleaned up.
fn guard(binaries: &Path, directory: &Path) -> Child {
    let script = "read -r _; \"$1/pg_ctl\" stop -m immediate -D \"$2/data\"; rm -rf \"$2\"";
    as_owner(Path::new("/bin/sh"))
        .args(["-c", script, "guard"])
        .args([binaries, directory])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn as_owner(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            format!("--reuid={UNPRIVILEGED}"),
            format!("--regid={UNPRIVILEGED}"),
        ])
        .args(["--clear-groups", "--"])
        .arg(program);
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Newest first where Debian puts them, then whatever the path has.
fn find_binaries() -> Result<PathBuf, String> {
    let installed = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<u32> = installed
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable();
    let debian = versions
        .last()
        .map(|version| format!("/usr/lib/postgresql/{version}/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::split_paths(&path))
        .find(|folder| folder.join("initdb").is_file() && folder.join("psql").is_file())
        .ok_or_else(|| "initdb and psql are not installed (Debian: postgresql)".to_owned())
}

fn run(command: &mut Command) -> Result<(), String> {
    // No pipes: the server inherits them and would keep a reader waiting for as long as it runs.
    let output = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let copy = |error: &std::io::Error| error.to_string();
    let (out, err) = (
        output.reopen().map_err(|e| copy(&e))?,
        output.reopen().map_err(|e| copy(&e))?,
    );
    let status = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .status();
    let status = status.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let reported = fs::read_to_string(output.path()).unwrap_or_default();
    Err(format!("{command:?} ended with {status}: {reported}"))
}
