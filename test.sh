#!/usr/bin/env bash
# Everything that must hold before a change lands, one target directory for all of it. Needs Rust and a C
# compiler; what else it needs it installs. Tests that want the picture collection find it through
# UPSCALE_TEST_DATA and say so where they go without.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

step "Formatting"
cargo fmt --all -- --check

step "Lints"
cargo clippy --locked --workspace --all-targets -- -D warnings

step "Licences, sources, duplicates; advisories where their database can be reached"
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
# All targets' crates, for their licences are judged too.
cargo fetch --locked
cargo deny --offline check --hide-inclusion-graph licenses bans sources
if timeout 60 cargo deny fetch db >/dev/null 2>&1; then
  cargo deny check advisories
else
  echo "left out: advisories (their database cannot be reached from here)"
fi

step "Dependencies that nobody uses"
command -v cargo-machete >/dev/null || cargo install --locked cargo-machete@0.9.2
cargo machete crates

step "PostgreSQL, which tests start themselves"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get update && apt-get install -y postgresql; }
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || { apt-get update && apt-get install -y libfaketime; }

step "Chromium, for the console"
command -v chromedriver >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core; }
# What finds no PostgreSQL and no Chromium from here on fails instead of saying what it left out.
export CI=true

step "Tests"
# Logs and planted secrets of all tests, for one search over all of them at the end.
export UPSCALE_TEST_LOGS="$PWD/target/test-logs"
rm -rf "$UPSCALE_TEST_LOGS"
mkdir -p "$UPSCALE_TEST_LOGS"
cargo test --locked --workspace

step "Fuzz targets build"
# Only checked: a name in place of the fuzzer's runtime saves building that, which needs C++.
CUSTOM_LIBFUZZER_PATH=./none.a cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

python3 -m venv --help >/dev/null 2>&1 || { apt-get update && apt-get install -y python3-venv; }

step "Schemathesis against the live service"
cargo build --locked --bin upscale
checks/schemathesis.sh

step "The Python and TypeScript clients against the live service"
checks/clients.sh

step "The book"
checks/book.sh

step "Packages: image, chart, units, alerts, Debian package"
checks/packages.sh

step "Secrets in the logs of all of the above"
checks/leaks.sh "$UPSCALE_TEST_LOGS"

step "Training: lints and tests, with PyTorch in a virtual environment under target/"
# training/upscale_training/winograd.cpp is built where it runs.
command -v c++ >/dev/null || { apt-get update && apt-get install -y g++; }
python="$PWD/target/training/bin/python"
[ -x "$python" ] || python3 -m venv target/training
"$python" -m pip install --quiet --disable-pip-version-check --requirement training/requirements.txt
(cd training && "$python" -m ruff check . && "$python" -m pytest)
