#!/usr/bin/env bash
# What reliability is held to, tried by the commands that show it and printed as one table with goals, tries and 95 %
# bounds. `checks/figures.sh` takes the short forms (minutes), `checks/figures.sh long` the real leases, deadlines,
# outages and numbers of cycles (hours). Ends with 1 where a promise is broken; times are printed, not judged. Needs what
# the tests need: PostgreSQL, strace, libfaketime, the right to mount.
set -uo pipefail
cd "$(dirname "$0")/.."

profile=()
case "${1:-short}" in
  short) ;;
  long)
    export UPSCALE_CHAOS_ROUNDS=500 UPSCALE_FLEET_ROUNDS=200 UPSCALE_DISK_ROUNDS=40 UPSCALE_CLOCK_ROUNDS=40
    export UPSCALE_FREEZE_ROUNDS=20 UPSCALE_DEATH_ROUNDS=3 UPSCALE_OUTAGE_SECONDS=60
    export UPSCALE_NTH_CALLS=300 UPSCALE_EXACT_ACCOUNTS=1000 PROPTEST_CASES=1250
    profile=(--release)
    ;;
  *)
    echo "usage: checks/figures.sh [short|long]" >&2
    exit 2
    ;;
esac
# What finds no PostgreSQL fails instead of saying what it left out.
export CI=true

said=target/figures.log
failed=()
: >"$said"
try() {
  printf '\n== %s\n' "$*" | tee -a "$said"
  "$@" 2>&1 | tee -a "$said"
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$*")
}

# A row for a command that has no figures of its own but passes or fails.
try_row() {
  local what="$1" goal="$2"
  shift 2
  local before="${#failed[@]}"
  try "$@"
  [ "${#failed[@]}" -gt "$before" ] || echo "FIGURE | $what | $goal | kept | \`$*\` |" >>"$said"
}

try cargo test --locked -p upscale_store --lib -- --nocapture properties nth_fault autoscaling
try cargo test --locked -p upscale --test contract -- --nocapture several_processes
try cargo test --locked -p upscale --test chaos -- --nocapture --test-threads=1
try cargo run --locked "${profile[@]}" -p upscale_store --example throughput -- target/figures-data
try_row "hostile images and frames" "no crash of the parent" \
  cargo test --locked -p upscale_image -p upscale_worker --test pictures --test fuzz_smoke -- mutations:: damaged_frames damaged_urls
try cargo build --locked --bin upscale
try_row "schemathesis on the OpenAPI document" "0 failures, no 5xx" checks/schemathesis.sh

table=target/figures.md
{
  echo "| what was tried | goal | found | tries |"
  echo "|---|---|---|---|"
  grep -o 'FIGURE |.*' "$said" | sed 's/^FIGURE //'
} >"$table"
printf '\n'
cat "$table"
if [ "${#failed[@]}" -gt 0 ]; then
  printf '\nBROKEN, see %s:\n' "$said"
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
