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
    image_host::{Behaviour, HOST_NAME, ImageHost},
    pictures::Picture,
};

/// A page may take this long.
const SECONDS_MAX: &str = "420";

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
  command upscale "$@" $SOURCES >"$OUT/ready" 2>>"$OUT/service" &
  services+=("$!")
  until grep -q '"event":"ready"' "$OUT/ready"; do
    kill -0 "$!" 2>>"$OUT/errors" || { echo "upscale $* ended" >&2; exit 1; }
    sleep 0.05
  done
}
upscale() {
  case "$1" in
    serve | worker) start "$@" ;;
    *) command upscale "$@" ;;
  esac
}
curl() { command curl --fail-with-body "$@"; }
exec >"$OUT/said" 2>"$OUT/errors"
"#;

/// What a page writes for its reader, and what stands in its place here.
fn replaced(text: &str, ports: &[u16; 4]) -> String {
    let mut text = text.to_owned();
    for (written, port) in [8080, 8081, 9090, 4318].iter().zip(ports) {
        text = text.replace(
            &format!("127.0.0.1:{written}"),
            &format!("127.0.0.1:{port}"),
        );
    }
    for (written, here) in [
        ("cargo run --release --bin upscale --", "upscale"),
        ("images.example.com", HOST_NAME),
        ("/var/lib/upscale", "$WORK/var-lib-upscale"),
        ("/backup/today", "$WORK/backup-today"),
        ("acc_…", "$(last acc_)"),
        ("key_…", "$(last key_)"),
        ("ups_…", "$(last ups_)"),
        ("usk_live_…", "$(last usk_live_)"),
        ("https://…", "https://example.com/model"),
    ] {
        text = text.replace(written, here);
    }
    text
}

/// Ports that are free now.
fn free_ports() -> [u16; 4] {
    let listeners = [0; 4].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Runs the blocks one after another; what went wrong, and where.
pub(crate) fn run(blocks: &[&Block]) -> Result<(), String> {
    let folder = TempDir::new().unwrap();
    let (work, out) = (folder.path().join("work"), folder.path().join("out"));
    fs::create_dir(&out).unwrap();
    furnish(&work);
    let host = ImageHost::start(folder.path());
    let picture = Picture::render(40, 30, 1).jpeg();
    host.set("/photo.jpg", Behaviour::File(picture));
    let ports = free_ports();
    let mut script = PRELUDE.to_owned();
    for block in blocks {
        let first = block.text.lines().next().unwrap_or_default();
        let quoted = first.replace('\'', "");
        script += &format!(
            "printf '%s\\n' '{quoted}' >\"$OUT/at\"\n{}\n",
            replaced(&block.text, &ports)
        );
    }
    let mut command = Command::new("timeout");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UPSCALE_") {
            command.env_remove(name);
        }
    }
    let path = std::env::var("PATH").unwrap();
    let status = command
        .args([SECONDS_MAX, "bash", "-c", &script])
        .env("PATH", format!("{}:{path}", bin(folder.path()).display()))
        .env("WORK", &work)
        .env("OUT", &out)
        .env("SOURCES", host.flags().join(" "))
        .env("UPSCALE_LISTEN", format!("127.0.0.1:{}", ports[0]))
        .env("UPSCALE_RESULTS_LISTEN", format!("127.0.0.1:{}", ports[1]))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    if status.success() {
        return Ok(());
    }
    let tail = |name: &str| {
        let text = fs::read_to_string(out.join(name)).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    };
    Err(format!(
        "{status} in the block that begins {:?}\nsaid: {}\nerrors: {}\nservice: {}",
        tail("at"),
        tail("said"),
        tail("errors"),
        tail("service")
    ))
}

/// A folder with the binary under test alone in it.
fn bin(folder: &Path) -> std::path::PathBuf {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_upscale"), bin.join("upscale")).unwrap();
    bin
}

/// What the pages take for granted: a photograph, and a model that somebody brought.
fn furnish(work: &Path) {
    fs::create_dir(work).unwrap();
    fs::write(work.join("photo.jpg"), Picture::render(48, 32, 2).jpeg()).unwrap();
    let model = crate::harness::model::compact(4);
    fs::write(work.join("4x-some-model.pth"), &model).unwrap();
    fs::create_dir(work.join("models")).unwrap();
    fs::write(work.join("models/another.pth"), &model).unwrap();
}
