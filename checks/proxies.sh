#!/usr/bin/env bash
# The proxies' recipes of docs/proxies.md, taken from that page, with a real Caddy and a real nginx of Debian's packages in
# front of the real service: results, headers, limits, whose address counts. Needs target/debug/upscale; root to install.
set -euo pipefail
cd "$(dirname "$0")/.."
need() { command -v "$1" >/dev/null || { apt-get update && apt-get install -y --no-install-recommends "$2"; }; }
need nginx nginx-light
need caddy caddy
need openssl openssl
need curl curl
python3 checks/proxies.py
