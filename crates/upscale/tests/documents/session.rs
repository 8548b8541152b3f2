//! One reader at a terminal: the command lines of one page, in one shell, in a directory of their own, against the real
//! binary and real services on loopback.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::pages::Block;
use crate::harness::{
    bucket::Bucket,
    image_host::{Behaviour, HOST_NAME, ImageHost},
    pictures::Picture,
    postgres_server::{PostgresServer, start_if_installed},
    serve::tail,
};

/// A page may take this long: a bound against hanging, not a promise of speed.
const SECONDS_MAX: &str = "900";

/// What the shell knows beside its own: services are started in the background and waited for, curl says by its status
/// what HTTP said, and a placeholder such as `acc_…` is what was last printed that begins so.
const PRELUDE: &str = r#"
set -euo pipefail
cd "$WORK"
last() { grep -ohE "$1[0-9A-Za-z]+" "$OUT/said" "$OUT/ready" | tail -1; }
services=()
stop() {
  for service in "${services[@]}"; do kill "$service" 2>>"$OUT/errors" && wait "$service" || true; done
  services=()
}
trap stop EXIT
start() {
  [ "$1" = serve ] && stop
  local sources="$SOURCES"
  [ "$1" = api ] && sources=
  # Emptied here: the child may be late to do it, and what the last service reported would be taken for its own.
  : >"$OUT/ready"
  command upscale "$@" $sources >>"$OUT/ready" 2>>"$OUT/service" &
  services+=("$!")
  until grep -q '"event":"ready"' "$OUT/ready"; do
    kill -0 "$!" 2>>"$OUT/errors" || { echo "upscale $* ended" >&2; exit 1; }
    sleep 0.05
  done
}
upscale() {
  case "$1" in
    serve | api | worker) start "$@" ;;
    *) command upscale "$@" ;;
  esac
}
curl() { command curl --fail-with-body "$@"; }
exec >"$OUT/said" 2>"$OUT/errors"
"#;

/// What a page writes for its reader, and what stands in its place here.
fn replaced(text: &str, ports: &[u16; 6]) -> String {
    let mut text = text.to_owned();
    // In two steps: a port of ours such as 43187 begins as one that a page writes.
    for (place, written) in [8080, 8081, 8082, 8083, 9090, 4318].iter().enumerate() {
        let marked = format!("127.0.0.1:<{place}>");
        text = text.replace(&format!("127.0.0.1:{written}"), &marked);
    }
    for (place, port) in ports.iter().enumerate() {
        text = text.replace(&format!("<{place}>"), &port.to_string());
    }
    for (written, here) in [
        ("cargo run --release --bin upscale --", "upscale"),
        ("images.example.com", HOST_NAME),
        ("/var/lib/upscale", "$WORK/var-lib-upscale"),
        ("/run/upscale", "$WORK/run-upscale"),
        ("/etc/upscale/secret-key", "$WORK/secret-key"),
        ("/backup/today", "$WORK/backup-today"),
        ("acc_…", "$(last acc_)"),
        ("key_…", "$(last key_)"),
        ("ups_…", "$(last ups_)"),
        ("usk_live_…", "$(last usk_live_)"),
        ("sk_test_…", "sk_test_documents"),
        ("whsec_…", "whsec_documents"),
        ("https://…", "https://example.com/model"),
    ] {
        text = text.replace(written, here);
    }
    text
}

/// Whether the block speaks of a database server or a bucket: it is run alone, for what it exports is not for others.
pub(crate) fn needs_stores(block: &Block) -> bool {
    block.text.contains("postgres://") || block.text.contains("s3://")
}

/// What stands behind `postgres://` and `s3://`, started by us; none where PostgreSQL is not installed, which is said.
struct Stores {
    database: PostgresServer,
    bucket: Bucket,
}

impl Stores {
    fn start(folder: &Path) -> Option<Self> {
        let database = start_if_installed()?;
        database.create_database("upscale_documents", None);
        let bucket = Bucket::start(folder);
        Some(Self { database, bucket })
    }

    fn replaced(&self, text: &str) -> String {
        let database = self.database.url("upscale_documents");
        let written = "postgres://upscale:PASSWORD@db.internal/upscale?sslmode=verify-full&sslrootcert=/etc/upscale/db-ca.pem";
        let variables = "AWS_ENDPOINT_URL=https://s3.example.com AWS_REGION=eu-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…";
        text.replace(written, &database)
            .replace("postgres://…", &database)
            .replace("s3://results/live", &self.bucket.url())
            .replace(variables, "AWS_ENDPOINT_URL AWS_SECRET_ACCESS_KEY")
    }
}

/// Ports that are free now.
fn free_ports() -> [u16; 6] {
    let listeners = [0; 6].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Runs the blocks one after another; what went wrong, and where.
pub(crate) fn run(blocks: &[&Block]) -> Result<(), String> {
    let folder = TempDir::new().unwrap();
    let (work, out) = (folder.path().join("work"), folder.path().join("out"));
    fs::create_dir(&out).unwrap();
    furnish(&work);
    let host = ImageHost::start(folder.path());
    host.set(
        "/photo.jpg",
        Behaviour::File(Picture::render(40, 30, 1).jpeg()),
    );
    let mut stores = None;
    if blocks.iter().any(|block| needs_stores(block)) {
        let Some(started) = Stores::start(folder.path()) else {
            return Ok(());
        };
        stores = Some(started);
    }
    let ports = free_ports();
    let path = std::env::var("PATH").unwrap();
    let status = shell()
        .arg(script(blocks, &ports, stores.as_ref()))
        .env("PATH", format!("{}:{path}", bin(folder.path()).display()))
        .env("WORK", &work)
        .env("OUT", &out)
        .env("SOURCES", host.flags().join(" "))
        .env("UPSCALE_LISTEN", format!("127.0.0.1:{}", ports[0]))
        .envs(stores.iter().flat_map(|stores| stores.bucket.variables()))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    if status.success() {
        return Ok(());
    }
    let ends = ["at", "said", "errors", "service"].map(|name| tail(&out.join(name)));
    let [at, reported, errors, service] = ends;
    Err(format!(
        "{status} in the block that begins {at:?}\nsaid: {reported}\nerrors: {errors}\nservice: {service}"
    ))
}

/// A shell with a time to end in, free of what the developer's own environment configures.
fn shell() -> Command {
    let mut command = Command::new("timeout");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UPSCALE_") {
            command.env_remove(name);
        }
    }
    command.args([SECONDS_MAX, "bash", "-c"]);
    command
}

/// The blocks as one program that notes which of them it is at.
fn script(blocks: &[&Block], ports: &[u16; 6], stores: Option<&Stores>) -> String {
    let block = |block: &&Block| {
        let first = block.text.lines().next().unwrap_or_default();
        let first = first.replace('\'', "");
        let text = match stores {
            Some(stores) => stores.replaced(&block.text),
            None => block.text.clone(),
        };
        let text = replaced(&text, ports);
        format!("printf '%s\\n' '{first}' >\"$OUT/at\"\n{text}\n")
    };
    let blocks: String = blocks.iter().map(block).collect();
    format!("{PRELUDE}{blocks}")
}

/// A folder with the binary under test alone in it.
fn bin(folder: &Path) -> std::path::PathBuf {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_upscale"), bin.join("upscale")).unwrap();
    bin
}

/// What the pages take for granted: a photograph, and a model that someone brought.
fn furnish(work: &Path) {
    fs::create_dir(work).unwrap();
    fs::create_dir(work.join("run-upscale")).unwrap();
    fs::write(work.join("photo.jpg"), Picture::render(48, 32, 2).jpeg()).unwrap();
    let model = crate::harness::model::compact(4);
    fs::write(work.join("4x-some-model.pth"), &model).unwrap();
    let (text, numbers) = crate::harness::model::compact_ncnn(4);
    fs::write(work.join("4x-some-model.param"), text).unwrap();
    fs::write(work.join("4x-some-model.bin"), numbers).unwrap();
    let restoring = crate::harness::model::softening();
    fs::write(work.join("1x-some-model.pth"), restoring).unwrap();
    fs::create_dir(work.join("models")).unwrap();
    fs::write(work.join("models/another.pth"), &model).unwrap();
}
