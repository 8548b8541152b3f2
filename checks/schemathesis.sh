#!/usr/bin/env bash
# Schemathesis against the live service: every operation of the OpenAPI document with sound, unsound and connected
# requests, up to 400 examples an operation and phase. Fails on any 5xx, on any answer that the document does not promise, and
# when fewer than 300 requests of an operation passed key and window. Every third request asks to be held (`Prefer: wait`).
# Takes the binary of `cargo build`;
# `checks/schemathesis.sh 2000` asks for more.
set -euo pipefail
cd "$(dirname "$0")/.."
examples="${1:-400}"
wanted=300
accounts=40
checks="$PWD/checks"
upscale="$PWD/target/debug/upscale"
python="$PWD/target/schemathesis/bin/python"

[ -x "$python" ] || python3 -m venv target/schemathesis
"$python" -m pip install --quiet --disable-pip-version-check --requirement checks/requirements.txt

folder="$(mktemp -d)"
log="${UPSCALE_TEST_LOGS:-$folder}/schemathesis.log"
# No address may be connected to: the URLs are invented, and a real host may be there. Sixteen at a time, so that the
# backlog of tasks that fail is no reason to turn any away.
"$upscale" serve --data "$folder/data" --listen 127.0.0.1:0 --results-listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 \
  --workers 16 --threads 1 --source-deny 0.0.0.0/0,::/0 \
  --failing-auth-per-minute 1000000 --reads-per-second 100000 \
  >"$folder/ready" 2>"$log" &
service=$!
trap 'kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 300); do [ -s "$folder/ready" ] && break; sleep 0.1; done
value() { sed -E "s/.*\"$1\":\"([^\"]+)\".*/\1/"; }
api="$(value api <"$folder/ready")"
for number in $(seq "$accounts"); do
  account="$("$upscale" account create "schemathesis $number" --data "$folder/data" --json | value account)"
  "$upscale" account credit "$account" 1000 --reference "schemathesis $number" --data "$folder/data" --json >/dev/null
  "$upscale" key create "$account" --data "$folder/data" --json | value key >>"$folder/keys"
done

if [ -n "${UPSCALE_TEST_LOGS:-}" ]; then
  sed 's/^/API key\t/' "$folder/keys" >>"$UPSCALE_TEST_LOGS/planted.tsv"
fi

cd "$folder"
# A request that asks to be held is, for 30 s at most.
run_phase() {
  SCHEMATHESIS_KEYS="$folder/keys" SCHEMATHESIS_HOOKS=schemathesis_hooks PYTHONPATH="$checks" PYTHONDONTWRITEBYTECODE=1 \
    "$python" -m schemathesis.cli run "$api/openapi.json" --url "$api" --checks all --max-examples "$examples" --seed 11 \
    --request-timeout 60 --max-response-time 40 --generation-database none --generation-with-security-parameters false --no-color "$@"
}
run_phase --phases examples,coverage,fuzzing,stateful --mode all --workers 2
# Beside creates, reads mostly repeat ids that were handed out: 46 to 520 of them remain. Alone they are as many as asked for.
run_phase --phases fuzzing --mode positive --include-method GET

# Requests that all ended in 401 would pass as well: what was answered must show that the service was reached.
"$python" - "$(value metrics <"$folder/ready")" "$wanted" <<'PYTHON'
import re, sys, urllib.request

text = urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode()
line = r'^upscale_requests_total\{route="(/api[^"]*)",method="(\w+)",status="(\w+)"\} (\d+)$'
answers = re.findall(line, text, re.MULTILINE)
for route, method, status, count in sorted(answers):
    print(f"{method:7} {route:24} {status} {count:>6}")
seen = {(method, status) for _, method, status, _ in answers}
for operation in ("/api/v1/upscales", "POST"), ("/api/v1/upscales/{id}", "GET"):
    passed = [int(count) for *asked, status, count in answers if tuple(asked) == operation and status not in ("401", "429")]
    print(*reversed(operation), f"passed key and window {sum(passed)} times, at least {sys.argv[2]} wanted")
    if sum(passed) < int(sys.argv[2]):
        sys.exit(1)
sys.exit(0 if {("POST", "202"), ("POST", "400"), ("GET", "200"), ("GET", "404")} <= seen else "an answer is missing")
PYTHON
"$upscale" audit --data "$folder/data"
