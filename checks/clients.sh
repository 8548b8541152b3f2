#!/usr/bin/env bash
# The Python and the TypeScript client: formatting, types, their tests against the real service, and that their packages
# build. Needs target/debug/upscale, python3 with venv, and Node 20 with npm.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
export UPSCALE_BINARY="$root/target/debug/upscale"

[ -x target/clients/bin/python ] || python3 -m venv target/clients
python="$root/target/clients/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
"$python" -m pip install --quiet --group clients/python/pyproject.toml:dev ./clients/python
(
  cd clients/python
  "$python" -m ruff format --check --quiet .
  "$python" -m ruff check --quiet .
  "$python" -m mypy
  "$python" -m pytest -q
)

command -v npm >/dev/null || { apt-get update && apt-get install -y nodejs npm; }
(
  cd clients/typescript
  npm ci --silent
  npm test --silent
  npm pack --silent --pack-destination "$root/target"
)
