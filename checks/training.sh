#!/usr/bin/env bash
# Lints and tests of training/, and the lints of bench/, with PyTorch in a virtual environment under target/.
# Needs target/debug/upscale, python3 with venv, and a C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/../training"
python="$PWD/../target/training/bin/python"
[ -x "$python" ] || python3 -m venv ../target/training
"$python" -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
"$python" -m ruff check --config pyproject.toml . ../bench
exec "$python" -m pytest
