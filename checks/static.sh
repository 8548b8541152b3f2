#!/usr/bin/env bash
# One binary for every Linux of a processor: built for musl, held to need no file of the system, and a whole demo of it run
# in a root that holds nothing but it and the certificates of authorities, as the image does. For another processor one
# image is upscaled there by its emulator.
#   checks/static.sh [--target x86_64-unknown-linux-musl|aarch64-unknown-linux-musl] [cargo build's flags, such as --release]
# leaves the binary in target/static. Needs the standard library for the target (`rustup target add TARGET`) or its sources of
# the compiler's own version, from which it is built: in the toolchain (`rustup component add rust-src`) or in RUST_LIBRARY (`…/library` of
# Debian's rust-src), with LLVM's unwinder as an archive (Debian: libunwind-14-dev of the target's architecture; gcc's own asks
# glibc for help). For x86-64 it needs musl-gcc (Debian: musl-tools), for ARM a cross compiler and musl for it
# (gcc-aarch64-linux-gnu, musl-dev:arm64 after `dpkg --add-architecture arm64`). The chroot needs root and, on another processor, its emulator
# (qemu-user-static).
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-musl
if [ "${1:-}" = --target ]; then target="$2"; shift 2; fi
processor="${target%%-*}"
mkdir -p target/static
case "$target" in
  x86_64-unknown-linux-musl) compiler=musl-gcc archiver=ar llvm="/usr/lib/llvm-*/lib" ;;
  aarch64-unknown-linux-musl)
    # Debian has no program of this name for another processor than its own, but the file that makes one of gcc.
    specs="${MUSL_SPECS:-/usr/lib/aarch64-linux-musl/musl-gcc.specs}"
    [ -e "$specs" ] || { echo "musl for ARM is missing: $specs"; exit 1; }
    command -v aarch64-linux-gnu-gcc >/dev/null || { echo "aarch64-linux-gnu-gcc is missing"; exit 1; }
    compiler="$PWD/target/static/aarch64-musl-gcc" llvm="${ARM_LLVM:-/usr/lib/llvm-*/lib/aarch64-linux-gnu}"
    printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc "$@" -specs %s\n' "$specs" >"$compiler"
    chmod +x "$compiler"
    archiver=aarch64-linux-gnu-ar
    ;;
  *) echo "$target is none of those that this script links"; exit 1 ;;
esac
command -v "$compiler" >/dev/null || { echo "$compiler is missing"; exit 1; }
name="$(tr a-z- A-Z_ <<<"$target")"
export "CARGO_TARGET_${name}_LINKER=$compiler" "CC_${target//-/_}=$compiler" "AR_${target//-/_}=$archiver"

sysroot="$(rustc --print sysroot)"
std=()
if [ ! -d "$sysroot/lib/rustlib/$target" ]; then
  library="${RUST_LIBRARY:-$sysroot/lib/rustlib/src/rust/library}"
  [ -d "$library/core" ] || { echo "neither the standard library for $target nor its sources are here: rustup target add $target"; exit 1; }
  export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$library"
  # What rustup would bring along: crt1.o and libc.a come from the system's musl, the unwinder from LLVM.
  unwinder="$(ls $llvm/libunwind.a 2>/dev/null | tail -n 1)"
  [ -n "$unwinder" ] || { echo "LLVM's libunwind.a is missing in $llvm"; exit 1; }
  export "CARGO_TARGET_${name}_RUSTFLAGS=-Clink-self-contained=no -Ctarget-feature=+crt-static -Lnative=target/static/$processor"
  mkdir -p "target/static/$processor"
  rm -f "target/static/$processor/libunwind.a"
  cp "$unwinder" "target/static/$processor/libunwind.a"
  # Debian's archive was made for glibc and reports its own mistakes by a function that musl does not have.
  echo '#include <stdarg.h>
    #include <stdio.h>
    int __fprintf_chk(FILE *to, int flag, const char *format, ...) {
      va_list rest; va_start(rest, format); (void)flag;
      int printed = vfprintf(to, format, rest); va_end(rest);
      return printed;
    }' | "$compiler" -O -c -x c -o "target/static/$processor/chk.o" -
  "$archiver" r "target/static/$processor/libunwind.a" "target/static/$processor/chk.o"
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
if [ "$processor" != "$(uname -m)" ]; then
  # The service starts its own program anew and confines it by calls that the emulator does not know: one image without it.
  emulator="$(command -v "qemu-$processor-static")" || { echo "qemu-$processor-static is missing"; exit 1; }
  cp "$emulator" "$root/emulator"
  cp crates/upscale_core/src/samples/harbour.png "$root/tmp/"
  chroot "$root" /emulator /upscale file /tmp/harbour.png -o /tmp/harbour-2x.png
  [ "$(head -c 8 "$root/tmp/harbour-2x.png" | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]
  echo "left out: the demo, on this processor"
  exit
fi
unshare --mount bash -euc '
  mount -t proc proc "$1/proc"
  mount --bind /dev "$1/dev"
  chroot "$1" /upscale demo --out /tmp/demo
' demo "$root"
