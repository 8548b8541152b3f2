#!/bin/sh
# Counts honest requests that are refused while 5,000 sockets send forms, events, heads and bodies a byte a second, from
# 250 addresses and from the honest one's own. Loopback only; ends by itself after some minutes, and fails when any honest
# request was refused. Other counts: checks/slow_sockets.sh SOCKETS REQUESTS
set -eu
cd "$(dirname "$0")/.."
report=$(mktemp)
trap 'rm -f "$report"' EXIT
ulimit -n "$(ulimit -Hn)" || echo "the limit of open files stays at $(ulimit -n): fewer sockets may be open at a time"
cargo run --quiet -p upscale_api --example slow_sockets -- "$@" | tee "$report"
test "$(grep -c ': 0 of ' "$report")" -eq 9
