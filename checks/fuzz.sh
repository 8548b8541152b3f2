#!/usr/bin/env bash
# Every fuzz target of crates/upscale_fuzz for so many seconds each, one after the other, under the address sanitizer: `checks/fuzz.sh 900`
# (60 by default), or only those that are named behind the number. Ends with one line a target and with 1 when an input
# broke something: it lies in artifacts/ there, and belongs into a test. What was found on the way stays in corpus/ for the
# next run. Not part of test.sh, which runs the same properties over fixed mutations.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
targets=("${@:2}")
[ "${#targets[@]}" -gt 0 ] || targets=(sniff decode frame guard model ncnn)
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz@0.13.2
# Instrumentation is unstable in rustc; the stable compiler has it behind this.
export RUSTC_BOOTSTRAP=1
# The release is linked as one unit, which would take minutes a target.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
home=crates/upscale_fuzz

# Sound inputs to begin with: small pictures of every kind where the collection is, addresses, a model.
seed() {
  local folder="$home/corpus/$1"
  mkdir -p "$folder"
  case "$1" in
    sniff | decode)
      if [ -n "${UPSCALE_TEST_DATA:-}" ]; then
        find "$UPSCALE_TEST_DATA/awkward" -type f -size -64k -exec cp -t "$folder" {} +
      else
        echo "$1 starts from nothing, for UPSCALE_TEST_DATA is not set"
      fi
      ;;
    guard)
      awk -F '\t' -v file="$folder/case-" '
        $1 == "parse" { print $2 >(file NR) }
        $1 == "redirect" { printf "https://a.example.org/a.png\n%s\n", $2 >(file NR) }
        { close(file NR) }' crates/upscale_worker/tests/guard_cases.tsv
      ;;
    model) cp crates/upscale_engine/weights/f-x2.safetensors "$folder" ;;
    ncnn)
      local pairs=crates/upscale_engine/tests/ncnn
      for text in "$pairs"/*.param; do
        { cat "$text" && printf '\0' && cat "${text%.param}.bin"; } >"$folder/$(basename "$text" .param)"
      done
      ;;
  esac
}

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
broken=0
for target in "${targets[@]}"; do
  seed "$target"
  cargo fuzz build --fuzz-dir "$home" --features fuzzer "$target"
  began="$SECONDS"
  # 400 KB: what a model file needs; pictures and frames stay smaller by themselves.
  if ! cargo fuzz run --fuzz-dir "$home" --features fuzzer "$target" -- -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=400000 \
    -print_final_stats=1 >"$logs/$target" 2>&1; then
    broken=1
    grep -E 'panicked|ERROR|Test unit written' -A 3 "$logs/$target" | sed -n 1,20p
  fi
  runs="$(sed -nE 's/^stat::number_of_executed_units: *//p' "$logs/$target")"
  covered="$(grep -oE 'cov: [0-9]+' "$logs/$target" | tail -n 1)"
  inputs="$(find "$home/corpus/$target" -type f | wc -l)"
  echo "$target: ${runs:-0} runs in $((SECONDS - began)) s, ${covered:-cov: ?} edges, $inputs inputs kept" >>"$logs/summary"
done
cat "$logs/summary"
exit "$broken"
