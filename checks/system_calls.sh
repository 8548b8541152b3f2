#!/usr/bin/env bash
# Traces the processes that decode images (strace) over the drawn pictures and the real files of every odd kind, writes which
# system calls they make inside their sandbox, and compares that with the list that the filter is held to: it fails when the
# list changes, or when the filter allows a call that is neither in it nor explained. Needs strace and UPSCALE_TEST_DATA.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v strace >/dev/null || { apt-get update && apt-get install -y --no-install-recommends strace; }
[ -d "${UPSCALE_TEST_DATA:?the folder of the test pictures}/awkward" ] || { echo "no awkward pictures in $UPSCALE_TEST_DATA"; exit 1; }
list=crates/upscale_pipeline/src/sandbox/traced.txt
before="$(mktemp)"
trap 'rm -f "$before"' EXIT
cp "$list" "$before"
CI=true UPDATE_SYSTEM_CALLS=1 cargo test --locked -p upscale --test contract children_make_no_call
diff -u "$before" "$list" || { echo "children make other calls than $list said: look at the filter (sandbox/calls.rs)"; exit 1; }
cargo test --locked -p upscale --test contract every_allowed_call
echo "$(grep -cv '^#' "$list") calls, each of them traced"
