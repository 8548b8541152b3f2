#!/usr/bin/env bash
# Everything that must hold before a change lands, one target directory for all of it. Needs Rust and a C
# compiler; what else it needs it installs. Tests that want the picture collection find it through
# UPSCALE_TEST_DATA and say so where they go without.
#   ./test.sh          all of it
#   ./test.sh quick    what most changes break, in a few minutes; it ends with what it left out
# At the end each stage stands with its time: on the wall, and of all processors.
set -euo pipefail
cd "$(dirname "$0")"
# The checks run target/debug/upscale: with another directory inherited, they would find an old one there or none.
export CARGO_TARGET_DIR="$PWD/target"
what="${1:-all}"
case "$what" in
  all | quick) ;;
  *) echo "./test.sh [quick]"; exit 2 ;;
esac

stages=()
# Seconds of processors that this script's ended children took so far (proc_pid_stat(5), fields 16 and 17).
processors() { awk -v tick="$(getconf CLK_TCK)" '{ print ($16 + $17) / tick }' "/proc/$$/stat"; }
finish_stage() {
  [ -z "${stage:-}" ] || stages+=("$(processors) $began_processors $((SECONDS - began)) $stage")
}
step() {
  finish_stage
  stage="$*" began=$SECONDS began_processors="$(processors)"
  printf '\n== %s\n' "$*"
}
report() {
  finish_stage
  printf '\n  wall s   user+sys s   share   stage\n'
  printf '%s\n' "${stages[@]}" | awk -v wall="$SECONDS" '{
    used = $1 - $2; line = sprintf("%8d %12.1f %6.0f%%  ", $3, used, 100 * $3 / (wall ? wall : 1))
    $1 = $2 = $3 = ""; sub(/^ +/, ""); print line " " $0
  }'
  printf '%8d  in all\n' "$SECONDS"
}

# What /dev/shm may still take and what memory is free, the lesser of the two.
gigabytes_of_memory() {
  { df --output=avail /dev/shm 2>/dev/null || echo 0; awk '/^MemAvailable/ { print $2 }' /proc/meminfo; } |
    awk '$1 ~ /^[0-9]+$/ && (!n++ || $1 < least) { least = $1 } END { print int(least / 1048576) }'
}

step "Formatting"
cargo fmt --all -- --check

step "Lints, the fuzz targets' too"
# A name in place of the fuzzer's runtime saves building that, which needs C++.
CUSTOM_LIBFUZZER_PATH=./none.a cargo clippy --locked --workspace --all-targets --features upscale_fuzz/fuzzer -- -D warnings

# Most of what a whole-service test takes is waiting, for a child, a lease, a disk: more of them at a time than processors.
# On two, 6 threads take .8 of the time of 4 for chaos and the contract, but on slow cores limits of 10 s run out then.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) * 2))}"

if [ "$what" = quick ]; then
  step "The shape of the sources, documents' tables and links, packages, units of every room"
  cargo test --locked --workspace --no-fail-fast --lib --bins --test tidy --test packages --test networks --test workflow --test http -- \
    --skip over_random_days
  step "The contract: creating, idempotency, money, refusals, results, keys, limits, metrics"
  cargo test --locked --workspace --no-fail-fast --test contract -- \
    creating:: idempotency:: money:: refusals:: results:: keys:: metrics::
  step "Documents: links and tables"
  cargo test --locked --workspace --no-fail-fast --test documents -- links:: tables:: pages::
  report
  cat <<'LEFT_OUT'

left out by `quick`: the store's random days, the rest of the contract (sandbox, several processes, storages, TLS, mails, models, traces, …), chaos,
the console in Chromium, the decoders' long tests, the documents' commands; licences and advisories, unused
dependencies, schemathesis, the Python and TypeScript clients, the book, the packages' own tools, secrets in
logs, training. `./test.sh` runs them all.
LEFT_OUT
  exit
fi

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

# Before all that takes long: a link that leads nowhere is found in seconds.
step "The book"
checks/book.sh

step "PostgreSQL, a clock to set, Chromium and Vulkan on the processor, which tests start themselves"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get update && apt-get install -y postgresql; }
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || { apt-get update && apt-get install -y libfaketime; }
command -v chromedriver >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core; }
ls /usr/share/vulkan/icd.d/lvp_icd.*.json >/dev/null 2>&1 || { apt-get update && apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1; }
# What finds no PostgreSQL, no Chromium and no Vulkan from here on fails instead of saying what it left out.
export CI=true

step "Tests are built, and target/debug/upscale with them"
# Before Schemathesis runs: nothing replaces its program then. `cargo build` would make another of it, without what only
# tests ask of its dependencies, and compile those again, syn and tokio among them.
cargo test --locked --workspace --no-run

# What runs beside the rest, and what lies in memory, ends with this script, whatever ends it.
beside=()
in_memory=""
ended() {
  [ "${#beside[@]}" = 0 ] || kill -- "${beside[@]}" 2>/dev/null || true
  [ -z "$in_memory" ] || rm -rf "$in_memory"
}
trap ended EXIT

step "Schemathesis against the live service begins"
# Logs and planted secrets of all tests, for one search over all of them at the end.
export UPSCALE_TEST_LOGS="$PWD/target/test-logs"
rm -rf "$UPSCALE_TEST_LOGS"
mkdir -p "$UPSCALE_TEST_LOGS"
python3 -m venv --help >/dev/null 2>&1 || { apt-get update && apt-get install -y python3-venv; }
# It mostly waits, for requests that ask to be held: 230 s with 25 s of processors.
setsid checks/schemathesis.sh >target/schemathesis.log 2>&1 &
schemathesis=$!
beside+=("-$schemathesis")

step "Training begins: lints and tests, with PyTorch in a virtual environment under target/"
# training/upscale_training/winograd.cpp is built where it runs.
command -v c++ >/dev/null || { apt-get update && apt-get install -y g++; }
# It takes what the tests leave: they keep two processors busy for two thirds of their time.
nice -n 19 checks/training.sh >target/training.log 2>&1 &
training=$!
beside+=("$training")

step "Tests"
# They sync small commits by the thousand, and a disk makes them wait: with their files in memory the store's take .8 of the
# time, the contract .86. Up to 4 GB lie there at once.
if [ -z "${TMPDIR:-}" ] && [ "$(gigabytes_of_memory)" -ge 12 ]; then
  in_memory="$(mktemp -d /dev/shm/upscale-tests.XXXXXX)"
  # The server of a test is another user.
  chmod 1777 "$in_memory"
fi
# One that fails hides no other.
TMPDIR="${in_memory:-${TMPDIR:-/tmp}}" cargo test --locked --workspace --no-fail-fast

step "The Python and TypeScript clients against the live service"
checks/clients.sh

step "Packages: image, chart, units, alerts, Debian package, release archive"
checks/packages.sh

step "Training ends"
wait "$training" || { cat target/training.log; exit 1; }
tail -n 3 target/training.log

step "Schemathesis ends"
wait "$schemathesis" || { cat target/schemathesis.log; exit 1; }
beside=()
tail -n 12 target/schemathesis.log

step "Secrets in the logs of all of the above"
checks/leaks.sh "$UPSCALE_TEST_LOGS"

report
