#!/usr/bin/env bash
# The engine's tests as 64-bit ARM runs them, under QEMU: `checks/neon.sh [cargo test's names]`. Needs a cross compiler
# and the emulator (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static), and the standard library for
# that target (`rustup target add aarch64-unknown-linux-gnu`) or its sources of the very same version, from which it is
# built: in the toolchain (`rustup component add rust-src`) or in RUST_LIBRARY (`…/library` of Debian's rust-src).
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
  command -v "$program" >/dev/null || { echo "$program is missing"; exit 1; }
done

sysroot="$(rustc --print sysroot)"
std=()
if [ ! -d "$sysroot/lib/rustlib/$target" ]; then
  library="${RUST_LIBRARY:-$sysroot/lib/rustlib/src/rust/library}"
  [ -d "$library/core" ] || { echo "neither $target nor the standard library's sources are here"; exit 1; }
  export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$library"
  std=(-Zbuild-std)
fi
cargo test "${std[@]}" --locked --release --package upscale_simd --package upscale_engine --lib --tests --target "$target" \
  --target-dir target/neon "$@"
