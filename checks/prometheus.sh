#!/usr/bin/env bash
# What Prometheus makes of us, by its own tool: the alert rules parse, each fires on its series and is silent on a healthy
# service's (packages/prometheus/alerts_test.yaml); every query of the dashboard parses; and what a live service serves under
# /metrics keeps the naming rules (counters end in _total, base units, help texts). Needs target/debug/upscale.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v promtool >/dev/null || { apt-get update && apt-get install -y --no-install-recommends prometheus; }

promtool check rules --lint-fatal packages/prometheus/alerts.yaml
promtool test rules packages/prometheus/alerts_test.yaml

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
# As rules of recording, for those promtool parses; the dashboard's own variable is Grafana's to fill in.
python3 - packages/grafana/upscale.json >"$folder/dashboard.json" <<'PYTHON'
import json, sys

panels = json.load(open(sys.argv[1]))["panels"]
queries = [(panel["id"], target) for panel in panels for target in panel.get("targets", [])]
assert len(queries) > 40, f"only {len(queries)} queries"
rules = [
    {"record": f"panel_{panel}_{target['refId']}", "expr": target["expr"].replace("$__rate_interval", "5m")}
    for panel, target in queries
]
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
PYTHON
promtool check rules --lint-fatal "$folder/dashboard.json"

target/debug/upscale serve --data "$folder/data" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 \
  >"$folder/ready" 2>"$folder/log" &
service=$!
trap 'kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 300); do [ -s "$folder/ready" ] && break; sleep 0.1; done
metrics="$(sed -E 's/.*"metrics":"([^"]+)".*/\1/' "$folder/ready")/metrics"
python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' "$metrics" \
  >"$folder/metrics"
series="$(grep --count --invert-match '^#' "$folder/metrics")"
grep -q '^upscale_build_info{' "$folder/metrics" && grep -q '^process_cpu_seconds_total ' "$folder/metrics"
promtool check metrics <"$folder/metrics"
echo "Prometheus: rules, their tests, the dashboard's queries and $series series of a live service are in order"
