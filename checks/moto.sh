#!/usr/bin/env bash
# A second opinion on the bucket: the storage check and tasks from order to download against moto's S3 server, where the
# tests have s3s-fs. Needs target/debug/upscale, python3-venv and curl.
set -euo pipefail
cd "$(dirname "$0")/.."

upscale="$PWD/target/debug/upscale"
bin="$PWD/target/moto/bin"
[ -x "$bin/python" ] || python3 -m venv target/moto
"$bin/python" -m pip install --quiet --disable-pip-version-check 'moto[server]==5.2.5'

made="$(mktemp -d)"
pids=()
tidy_up() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$made"
}
trap tidy_up EXIT

"$bin/moto_server" --host 127.0.0.1 --port 0 >"$made/moto.log" 2>&1 &
pids+=($!)
wait_for() { # FILE PATTERN: the first match
  for _ in $(seq 300); do
    grep -m1 -oE "$2" "$1" 2>/dev/null && return
    sleep 0.1
  done
  echo "$1 never said $2" >&2
  cat "$1" >&2
  exit 1
}
endpoint="$(wait_for "$made/moto.log" 'http://127\.0\.0\.1:[0-9]+')"
curl --fail --silent --show-error -X PUT "$endpoint/results" >/dev/null

export AWS_ENDPOINT_URL="$endpoint" AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing-secret

"$upscale" storage check --storage s3://results/kept

UPSCALE_SECOND_STORAGE="$endpoint" cargo test --quiet --package upscale --test contract \
  storage::tasks_go_through_another_storage -- --exact --nocapture
