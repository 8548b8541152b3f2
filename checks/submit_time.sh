#!/usr/bin/env bash
# How long `upscale submit` takes from the command to the file for a picture of 0.3 MP, by two binaries in turn, each with a
# service of its own: `checks/submit_time.sh BEFORE AFTER`. Prints the medians of five and their ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
before="$(realpath "$1")" after="$(realpath "$2")"
folder="$(mktemp -d)"
trap 'exec 8>&- 9>&-; wait; rm -rf "$folder"' EXIT

# A photograph has detail everywhere; so has this.
python3 - "$folder/picture.png" <<'PYTHON'
import math, struct, sys, zlib
width, height = 640, 480
rows = bytearray()
for y in range(height):
    rows.append(0)
    for x in range(width):
        value = 128 + 60 * math.sin(x / 7 + y / 19) + 50 * math.sin(y / 5 - x / 23)
        rows += bytes(int(value + shift) % 256 for shift in (0, 20, 40))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
open(sys.argv[1], "wb").write(picture)
PYTHON

# hold NAME BINARY DESCRIPTOR: a service that waits until the descriptor is closed.
hold() {
  mkfifo "$folder/$1.hold"
  "$2" demo --hold "$folder/picture.png" <"$folder/$1.hold" >"$folder/$1.ready" &
  eval "exec $3>'$folder/$1.hold'"
  for _ in $(seq 300); do [ -s "$folder/$1.ready" ] && break; sleep 0.1; done
}
hold before "$before" 8
hold after "$after" 9

python3 - "$folder" "$before" "$after" <<'PYTHON'
import json, os, statistics, subprocess, sys, time
folder, *binaries = sys.argv[1:]
names = ("before", "after")
took = {name: [] for name in names}
for turn in range(5):
    for name, binary in zip(names, binaries):
        ready = json.load(open(f"{folder}/{name}.ready"))
        out = f"{folder}/{name}-{turn}"
        environment = {**os.environ, "UPSCALE_API": ready["api"], "UPSCALE_API_KEY": ready["key"]}
        began = time.monotonic()
        subprocess.run([binary, "submit", ready["images"][0], "--scale", "2", "--out", out], env=environment, check=True)
        took[name].append(time.monotonic() - began)
        assert any(file.endswith(".png") for file in os.listdir(out))
before, after = (statistics.median(took[name]) for name in names)
print(f"submit to file, 640 x 480 at 2x, median of 5: {before:.2f} s before, {after:.2f} s after, {before / after:.1f} times sooner")
PYTHON
