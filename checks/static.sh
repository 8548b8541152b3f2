#!/usr/bin/env bash
# One binary for every Linux of this processor: built for musl, held to need no file of the system, and a whole demo of it run
# in a root that holds nothing but it and the certificates of authorities, as the image does. `checks/static.sh [cargo build's
# flags]`, e.g. `--release`; leaves the binary in target/static. Needs musl-gcc (Debian: musl-tools) and the standard library for musl
# (`rustup target add x86_64-unknown-linux-musl`) or its sources of the very same version, from which it is built: in the
# toolchain (`rustup component add rust-src`) or in RUST_LIBRARY (`…/library` of Debian's rust-src), with LLVM's unwinder as
# an archive (Debian: libunwind-14-dev; gcc's own asks glibc for help). The demo needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-musl
command -v musl-gcc >/dev/null || { echo "musl-gcc is missing"; exit 1; }
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=musl-gcc CC_x86_64_unknown_linux_musl=musl-gcc

sysroot="$(rustc --print sysroot)"
std=()
if [ ! -d "$sysroot/lib/rustlib/$target" ]; then
  library="${RUST_LIBRARY:-$sysroot/lib/rustlib/src/rust/library}"
  [ -d "$library/core" ] || { echo "neither $target nor the standard library's sources are here"; exit 1; }
  export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$library"
  # What rustup would bring along: crt1.o and libc.a come from the system's musl, the unwinder from LLVM.
  unwinder="$(ls /usr/lib/llvm-*/lib/libunwind.a 2>/dev/null | tail -n 1)"
  [ -n "$unwinder" ] || { echo "LLVM's libunwind.a is missing"; exit 1; }
  export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-Clink-self-contained=no -Ctarget-feature=+crt-static -Lnative=target/static/lib"
  mkdir -p target/static/lib
  rm -f target/static/lib/libunwind.a
  cp "$unwinder" target/static/lib/libunwind.a
  # Debian's archive was made for glibc and reports its own mistakes by a function that musl does not have.
  echo '#include <stdarg.h>
    #include <stdio.h>
    int __fprintf_chk(FILE *to, int flag, const char *format, ...) {
      va_list rest; va_start(rest, format); (void)flag;
      int printed = vfprintf(to, format, rest); va_end(rest);
      return printed;
    }' | musl-gcc -O -c -x c -o target/static/lib/chk.o -
  ar r target/static/lib/libunwind.a target/static/lib/chk.o
  std=(-Zbuild-std=std,panic_unwind)
fi
# Not position-independent: musl-gcc knows no static programs that are.
cargo rustc "${std[@]}" --locked --package upscale --bin upscale --target "$target" --target-dir target/static "$@" -- \
  -Crelocation-model=static

folder=debug
for flag in "$@"; do [ "$flag" != --release ] || folder=release; done
binary="target/static/$target/$folder/upscale"
if readelf --program-headers --dynamic "$binary" | grep -E 'INTERP|NEEDED'; then
  echo "$binary wants files of the system"
  exit 1
fi
echo "$binary: $(stat --format %s "$binary") bytes, needs no file of the system"

root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/etc/ssl/certs"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp "$binary" "$root/upscale"
unshare --mount bash -euc '
  mount -t proc proc "$1/proc"
  mount --bind /dev "$1/dev"
  chroot "$1" /upscale demo --out /tmp/demo
' demo "$root"
