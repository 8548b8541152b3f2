#!/usr/bin/env bash
# A release archive as its user meets it, made of the debug binary without its symbols: packed twice with the same bytes,
# sums checked, unpacked in an empty folder, and a whole demo run by what came out. `checks/release.sh [TARGET]` looks at one
# that packages/release.sh has made. Needs target/debug/upscale.
set -euo pipefail
cd "$(dirname "$0")/.."
archives="$PWD/target/release-archives"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
target="${1:-}"
if [ -z "$target" ]; then
  target="$(rustc --print host-tuple)"
  strip --strip-all -o "$folder/binary" target/debug/upscale
  packages/release.sh --binary "$folder/binary" "$target"
  mv "$archives/SHA256SUMS" "$folder/first"
  # Nothing of the moment or of the user who packs it: the sums of two archives are the same.
  sleep 1
  (umask 077 && packages/release.sh --binary "$folder/binary" "$target" >/dev/null)
  diff "$folder/first" "$archives/SHA256SUMS"
fi

(cd "$archives" && sha256sum --check --ignore-missing SHA256SUMS)
cd "$folder"
tar --extract --gzip --file "$archives"/upscale-*-"$target.tar.gz"
cd upscale-*-"$target"
[ "$(LC_ALL=C ls -A | tr '\n' ' ')" = "CHANGELOG.md LICENSE README.md completions man upscale upscale.cdx.json " ]
bash -n completions/upscale.bash
grep -q '^#compdef upscale' completions/_upscale
grep -q -- '-c upscale' completions/upscale.fish
[ "$(ls man | wc -l)" -gt 10 ] && grep -q '^\.TH' man/upscale.1
./upscale --version
./upscale demo --out "$folder/demo" >"$folder/told"
[ -s "$folder/demo/demo.html" ] && [ "$(ls "$folder"/demo/*.png | wc -l)" -ge 2 ]
echo "the release archive for $target unpacks, its sums and pages are right, and a demo ran from it"
