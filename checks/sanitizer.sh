#!/usr/bin/env bash
# The engine's tests under the address sanitizer, kernels and leases included: `checks/sanitizer.sh [cargo test's names]`.
# It sees reads and writes outside of what was allocated, on the heap and the stack, and after it was freed. Its runtime
# comes with the stable compiler; asking for it needs RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1
target=x86_64-unknown-linux-gnu

# A check that finds nothing proves nothing unless it can find: one byte past the end of an allocation.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
echo 'fn main() {
    let bytes = vec![1u8; 64];
    let past = std::env::args().count() + 63;
    println!("{}", unsafe { *bytes.as_ptr().add(past) });
}' >"$work/past.rs"
rustc --edition 2024 --target "$target" -Zsanitizer=address -o "$work/past" "$work/past.rs"
if "$work/past" >/dev/null 2>"$work/said" || ! grep -q heap-buffer-overflow "$work/said"; then
  echo "the sanitizer does not see a read past the end"
  exit 1
fi

RUSTFLAGS="-Zsanitizer=address" cargo test --locked --package upscale_simd --package upscale_engine --lib --tests --target "$target" \
  --target-dir target/sanitizer "$@"
