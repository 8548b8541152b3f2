#!/usr/bin/env bash
# Installs the peers into a virtual environment and compares them with this project on the same network.
# Usage: bench/peers/run.sh [compare.py's options], e.g. --sizes 256 --threads 2 --rounds 5
# PEERS_DIR keeps the environment and the models (default: target/peers); nothing else is written.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${PEERS_DIR:-target/peers}
if [ ! -x "$folder/venv/bin/python" ]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet numpy onnx onnxruntime openvino nncf ncnn
fi
cargo build --release --quiet --package upscale
exec "$folder/venv/bin/python" bench/peers/compare.py --ours target/release/upscale --folder "$folder" "$@"
