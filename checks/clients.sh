#!/usr/bin/env bash
# The Python and the TypeScript client: formatting, types, their tests against the real service, that their packages
# build, that what tsc makes is what is committed, and that the lines of their READMEs, and the packages that a running
# service hands out, work in an empty folder as a new user would use them. Needs target/debug/upscale, python3 with venv,
# and Node 20 with npm.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
export UPSCALE_BINARY="$root/target/debug/upscale"

[ -x target/clients/bin/python ] || python3 -m venv target/clients
python="$root/target/clients/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
"$python" -m pip install --quiet --group clients/python/pyproject.toml:dev ./clients/python
(
  cd clients/python
  "$python" -m ruff format --check --quiet .
  "$python" -m ruff check --quiet .
  "$python" -m mypy
  "$python" -m pytest -q
)

command -v npm >/dev/null || { apt-get update && apt-get install -y nodejs npm; }
(
  cd clients/typescript
  npm ci --silent
  npm test --silent
  # The service carries this JavaScript: it must be what the sources make.
  if [ -n "$(git status --porcelain --untracked-files=all dist/src)" ]; then
    echo "clients/typescript/dist/src differs from what tsc makes of the sources: commit it" >&2
    git diff --stat dist/src >&2
    exit 1
  fi
  npm pack --silent --pack-destination "$root/target"
)

# As a new user: an empty folder, the line that installs, the programs of the README. The checkout has what git has, so
# that nothing built before helps. A service of this machine stands in for the reader's, and its picture for theirs.
folder="$(mktemp -d)"
mkfifo "$folder/hold"
trap 'exec 9>&-; wait; rm -rf "$folder"' EXIT
mkdir "$folder/python" "$folder/node"
git ls-files -z --cached --others --exclude-standard clients | xargs -0 cp --parents --target-directory "$folder/python"
cp -r "$folder/python/clients" "$folder/node/clients"
"$UPSCALE_BINARY" demo --hold <"$folder/hold" >"$folder/ready" &
exec 9>"$folder/hold"
for _ in $(seq 300); do [ -s "$folder/ready" ] && break; sleep 0.1; done
field() { "$python" -c "import json, sys; print(json.load(open('$folder/ready'))$1)"; }
export UPSCALE_API UPSCALE_API_KEY
UPSCALE_API="$(field '["api"]')" UPSCALE_API_KEY="$(field '["key"]')"
picture="$(field '["images"][0]')"

# block LANGUAGE NUMBER: that block of code of a README, with our picture in place of its addresses.
block() {
  awk -v wanted="$2" "/^\`\`\`$1\$/ { if (++seen == wanted) inside = 1; next } /^\`\`\`/ { inside = 0 } inside" "$3" |
    sed -E "s#https://images\.example\.com/[^\"\`]*#$picture#g"
}
is_picture() { [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ]; }

(
  cd "$folder/python"
  python3 -m venv fresh && . fresh/bin/activate
  eval "$(block sh 1 "$root/clients/python/README.md" | sed 's/pip install/pip install --quiet --disable-pip-version-check/')"
  for number in 1 2; do
    block python "$number" "$root/clients/python/README.md" >program.py
    python program.py
  done
  is_picture cat-4x.png && is_picture 0.png && is_picture 1.png
  echo "Python: both programs of the README ran in an empty environment"
)
(
  cd "$folder/node"
  npm init --yes --silent >/dev/null && npm pkg set type=module
  eval "$(block sh 1 "$root/clients/typescript/README.md" | sed 's/npm install/npm install --silent/')"
  for number in 1 2; do
    block ts "$number" "$root/clients/typescript/README.md" >"program$number.ts"
    # What the README shows is JavaScript as it stands; its types are checked besides.
    cp "program$number.ts" "program$number.mjs"
    node "program$number.mjs"
  done
  "$root/clients/typescript/node_modules/.bin/tsc" --noEmit --strict --target ES2022 --module NodeNext --lib ES2023,DOM \
    --typeRoots "$root/clients/typescript/node_modules/@types" --types node program1.ts program2.ts
  is_picture cat-4x.png && [ "$(ls ups_*.png | wc -l)" -eq 2 ]
  echo "TypeScript: both programs of the README ran in an empty project"
)

# The same from the running service: its own page says the lines.
curl --silent --fail "$UPSCALE_API/clients" >"$folder/lines"
line() { grep "^$1 install $UPSCALE_API/clients/" "$folder/lines"; }
mkdir "$folder/wheel" "$folder/tarball"
(
  cd "$folder/wheel"
  python3 -m venv fresh && . fresh/bin/activate
  eval "$(line pip | sed 's/pip install/pip install --quiet --disable-pip-version-check/')"
  block python 1 "$root/clients/python/README.md" >program.py
  python program.py
  is_picture cat-4x.png
  [ "$(pip show --files upscale-api | grep -c 'upscale_api/.*\.py$')" -eq "$(ls "$root"/clients/python/src/upscale_api/*.py | wc -l)" ]
  pip check --disable-pip-version-check
  echo "Python: the wheel of the running service was installed and ran"
)
(
  cd "$folder/tarball"
  npm init --yes --silent >/dev/null && npm pkg set type=module
  eval "$(line npm | sed 's/npm install/npm install --silent/')"
  block ts 1 "$root/clients/typescript/README.md" >program.mjs
  node program.mjs
  is_picture cat-4x.png
  echo "TypeScript: the tarball of the running service was installed and ran"
)
