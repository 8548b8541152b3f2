#!/usr/bin/env bash
# Looks for secrets in every log that the tests left in a directory: `checks/leaks.sh DIR`. The tests write there when
# UPSCALE_TEST_LOGS names it: logs as `*.log`, and in `planted.tsv` each secret that they used, with its kind (API keys,
# Idempotency-Keys, queries of image URLs, signatures). Beside these, whatever looks like a key or a signature counts.
set -euo pipefail
folder="$1"

# Files and the kinds of what stands in them; never the secret itself. Nothing, when all is well.
leaks() {
  local found=1
  cut -f2 "$folder/planted.tsv" | sort -u >"$work/planted"
  if grep --fixed-strings --line-number --only-matching --file="$work/planted" --include='*.log' -r "$1" >"$work/hits"; then
    found=0
    while IFS= read -r hit; do
      kind="$(grep --fixed-strings -- "${hit##*:}" "$folder/planted.tsv" | sed -n 1p | cut -f1)"
      echo "${hit%:*}: ${kind:-a planted secret}"
    done < <(head -20 "$work/hits")
  fi
  if grep --extended-regexp --line-number --include='*.log' -r \
    'usk_live_[0-9A-Za-z]{36}|signature=[0-9A-Za-z_-]{20}|[Bb]earer [0-9A-Za-z]' "$1" | cut -d: -f1,2 | sed -n 1,20p; then
    found=0
  fi
  return "$found"
}

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
logs="$(find "$folder" -name '*.log' | wc -l)"
lines="$(find "$folder" -name '*.log' -exec cat {} + | wc -l)"
secrets="$(cut -f2 "$folder/planted.tsv" | sort -u | wc -l)"
kinds="$(cut -f1 "$folder/planted.tsv" | sort -u | paste -sd, | sed 's/,/, /g')"
[ "$logs" -gt 0 ] && [ "$lines" -gt 0 ] && [ "$secrets" -gt 0 ] || { echo "nothing to search in $folder"; exit 1; }

# A search that finds nothing proves nothing unless it can find: one secret of each kind in a log of its own.
mkdir "$work/control"
while IFS= read -r kind; do
  grep --fixed-strings --max-count=1 "$kind	" "$folder/planted.tsv" | cut -f2 >"$work/control/one.log"
  leaks "$work/control" >/dev/null || { echo "the search cannot find: $kind"; exit 1; }
done < <(cut -f1 "$folder/planted.tsv" | sort -u)

if leaks "$folder"; then
  echo "secrets stand in the logs"
  exit 1
fi
echo "$secrets secrets ($kinds) in $lines lines of $logs logs: none found; each kind is found where it is put"
