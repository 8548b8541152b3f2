#!/usr/bin/env bash
# Release archives, one for each target: upscale-VERSION-TARGET.tar.gz with the binary, licence, README, changelog, completions
# of shells, manual pages and the bill of materials, and SHA256SUMS of all of them, in target/release-archives. The same
# commit and binary give the same bytes.
#   packages/release.sh                        x86_64-unknown-linux-musl and aarch64-unknown-linux-musl, by checks/static.sh
#   packages/release.sh TARGET ...             these
#   packages/release.sh --binary FILE TARGET   packs a binary that is there, for trying
# Where a target cannot be linked here it says what is missing, goes on with the others, and ends with 1. An archive of another
# processor needs its emulator (Debian: qemu-user-static), for the binary writes its own pages. Where they are published is up to
# the publisher.
set -euo pipefail
cd "$(dirname "$0")/.."
given=
if [ "${1:-}" = --binary ]; then given="$2"; shift 2; fi
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
version="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
out=target/release-archives
mkdir -p "$out"

# pack TARGET BINARY
pack() {
  local target="$1" name="upscale-$version-$1" work runner=()
  work="$(mktemp -d)"
  local folder="$work/$name"
  mkdir "$folder" "$folder/completions"
  cp "$2" "$folder/upscale"
  case "$target" in "$(uname -m)"-*) ;; *) runner=("qemu-${target%%-*}-static") ;; esac
  [ "$("${runner[@]}" "$folder/upscale" --version)" = "upscale $version" ]
  cp LICENSE README.md CHANGELOG.md "$folder"
  "${runner[@]}" "$folder/upscale" completions bash >"$folder/completions/upscale.bash"
  "${runner[@]}" "$folder/upscale" completions zsh >"$folder/completions/_upscale"
  "${runner[@]}" "$folder/upscale" completions fish >"$folder/completions/upscale.fish"
  "${runner[@]}" "$folder/upscale" man "$folder/man"
  checks/sbom.sh "$folder/upscale.cdx.json" "$target"
  find "$folder" -type f -exec chmod 644 {} +
  find "$folder" -type d -exec chmod 755 {} +
  chmod 755 "$folder/upscale"
  tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=ustar "$name" | gzip --no-name >"$out/$name.tar.gz"
  rm -rf "$work"
  echo "$out/$name.tar.gz: $(stat --format %s "$out/$name.tar.gz") bytes"
}

missing=()
packed=()
for target in "${targets[@]}"; do
  binary="$given"
  if [ -z "$binary" ]; then
    if ! checks/static.sh --target "$target" --release; then
      missing+=("$target")
      continue
    fi
    binary="target/static/$target/release/upscale"
  fi
  pack "$target" "$binary"
  packed+=("upscale-$version-$target.tar.gz")
done
if [ "${#packed[@]}" -gt 0 ]; then
  (cd "$out" && sha256sum "${packed[@]}" >SHA256SUMS && cat SHA256SUMS)
fi
if [ "${#missing[@]}" -gt 0 ]; then
  echo "cannot be linked on this machine, for the reason above: ${missing[*]}"
  exit 1
fi
