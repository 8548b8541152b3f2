#!/usr/bin/env bash
# The software bill of materials of the binary: CycloneDX 1.5 as JSON, every crate of the release with version, licence and
# checksum, to target/upscale.cdx.json or the file that is named; for x86-64 and glibc or the target that is named. With
# SOURCE_DATE_EPOCH the same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${1:-target/upscale.cdx.json}"
target="${2:-x86_64-unknown-linux-gnu}"
command -v cargo-cyclonedx >/dev/null || cargo install --locked --debug cargo-cyclonedx@0.5.9
cargo cyclonedx --quiet --manifest-path crates/upscale/Cargo.toml --format json --spec-version 1.5 \
  --target "$target" --override-filename upscale.cdx
# The tool writes beside every manifest of the workspace.
mkdir -p "$(dirname "$out")"
mv crates/upscale/upscale.cdx.json "$out"
find crates -name upscale.cdx.json -delete
python3 - "$out" <<'PYTHON'
import json, os, sys

bill = json.load(open(sys.argv[1]))
if "SOURCE_DATE_EPOCH" in os.environ:
    # A random number, the moment, and the folder of the checkout: nothing of a release.
    bill.pop("serialNumber", None)
    bill["metadata"].pop("timestamp", None)
    text = json.dumps(bill, indent=2).replace(os.getcwd(), "")
    bill = json.loads(text)
    open(sys.argv[1], "w").write(text + "\n")
components = bill["components"]
assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
unlicensed = [c["name"] for c in components if not c.get("licenses")]
assert len(components) > 100 and not unlicensed, f"{len(components)} components, without licence: {unlicensed}"
print(f"{sys.argv[1]}: CycloneDX {bill['specVersion']}, {len(components)} components, each with its licence")
PYTHON
