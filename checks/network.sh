#!/usr/bin/env bash
# The network that a packaged service has, in namespaces of its own: a private database, a private resolver and a cloud's
# metadata address stand outside. Out of the box database and resolver are reached and the downloader refuses the metadata
# address by itself. With packages/systemd/deny-private.conf, holes made for the two, the kernel refuses it as well. systemd lays
# these lists on by cgroup and takes the longest prefix; there is none here as process 1, so routes stand in, which do the same.
# Needs target/debug/upscale, root, PostgreSQL and iproute2.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ] || ! ip netns add "upscale-try-$$" 2>/dev/null; then
  echo "left out: the network of the units (needs root and network namespaces)"
  exit 0
fi
ip netns delete "upscale-try-$$"

upscale="$PWD/target/debug/upscale" units="$PWD/packages/systemd" bin="$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)"
in="upscale-in-$$" out="upscale-out-$$"
folder="$(mktemp -d)"
chmod 755 "$folder"
started=()
finish() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  ip netns delete "$in" 2>/dev/null || true
  ip netns delete "$out" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

ip netns add "$in"
ip netns add "$out"
ip -n "$in" link add inside type veth peer name outside netns "$out"
for at in "$in lo" "$in inside" "$out lo" "$out outside"; do ip -n ${at% *} link set "${at#* }" up; done
ip -n "$in" address add 10.0.9.1/32 dev inside
for address in 10.0.0.2 10.0.5.7 169.254.169.254; do ip -n "$out" address add "$address/32" dev outside; done
ip -n "$in" route add default dev inside
ip -n "$out" route add 10.0.9.1 dev outside

# A resolver that knows one name, which is a trap, and the metadata service, which notes who comes.
cat >"$folder/outside.py" <<'PYTHON'
import socket, sys, threading

def resolver():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("10.0.0.2", 53))
    while True:
        query, client = server.recvfrom(512)
        question = query[12 : query.index(b"\0", 12) + 5]
        is_a = question[-4:-2] == b"\0\1"
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4" + socket.inet_aton("169.254.169.254") if is_a else b""
        server.sendto(query[:2] + b"\x81\x80\0\1\0" + bytes([is_a]) + b"\0\0\0\0" + question + answer, client)
        print("asked", flush=True)

def metadata():
    server = socket.create_server(("169.254.169.254", 443))
    while True:
        server.accept()[0].close()
        print("metadata reached", flush=True)

threading.Thread(target=resolver).start()
metadata()
PYTHON
ip netns exec "$out" python3 "$folder/outside.py" >"$folder/seen" &
started+=($!)

mkdir "$folder/postgres"
chown postgres "$folder/postgres"
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
as_postgres "$bin/initdb" --auth trust --username upscale --no-sync "$folder/postgres/data" >/dev/null
echo "host all all 10.0.9.1/32 trust" >>"$folder/postgres/data/pg_hba.conf"
ip netns exec "$out" setpriv --reuid postgres --regid postgres --clear-groups \
  "$bin/postgres" -D "$folder/postgres/data" -h 10.0.5.7 -k "$folder/postgres" >"$folder/postgres.log" 2>&1 &
started+=($!)
for _ in $(seq 300); do as_postgres "$bin/pg_isready" -q -h "$folder/postgres" && break; sleep 0.1; done

export UPSCALE_DATABASE="postgres://upscale@10.0.5.7/postgres"
echo "nameserver 10.0.0.2" >"$folder/resolv.conf"
# inside COMMAND: where the service lives, with its resolver. Becomes the command, so that its process can be told to end.
cat >"$folder/inside" <<SCRIPT
#!/bin/bash
exec ip netns exec "$in" unshare --mount bash -c 'mount --bind "\$0" /etc/resolv.conf; exec "\$@"' "$folder/resolv.conf" "\$@"
SCRIPT
chmod +x "$folder/inside"
inside() { "$folder/inside" "$@"; }
connects() { inside python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], 443), 5)' "$1" 2>/dev/null; }

# serves NAME: a service starts on the private database, asks the private resolver, and a source at the metadata address is refused.
serves() {
  "$folder/inside" "$upscale" serve --data "$folder/data" --listen 127.0.0.1:8080 >"$folder/ready-$1" 2>"$folder/log-$1" &
  local service=$! before
  started+=("$service")
  for _ in $(seq 300); do [ -s "$folder/ready-$1" ] && break; sleep 0.1; done
  [ -s "$folder/ready-$1" ] || { cat "$folder/log-$1"; echo "$1: the service does not start"; exit 1; }
  before="$(grep -c '^asked' "$folder/seen" || true)"
  key="$(inside "$upscale" quickstart --data "$folder/data" --json | grep -o 'usk_live_[0-9A-Za-z]*')"
  inside python3 - "$key" >"$folder/answer-$1" <<'PYTHON'
import json, sys, time, urllib.request

def ask(path, **more):
    headers = {"Authorization": "Bearer " + sys.argv[1], "Content-Type": "application/json", "Idempotency-Key": "metadata-1"}
    request = urllib.request.Request("http://127.0.0.1:8080/api/v1/upscales" + path, headers=headers, **more)
    return json.load(urllib.request.urlopen(request))

order = {"image_url": "https://metadata.example.com/latest.png", "scale": 2}
task = ask("", data=json.dumps(order).encode())
for _ in range(300):
    if task["status"] != "processing":
        break
    time.sleep(0.2)
    task = ask("/" + task["id"])
print(task["status"], task["error"]["message"])
PYTHON
  kill "$service"
  wait "$service" || true
  grep -q '^failed ' "$folder/answer-$1"
  [ "$(grep -c '^asked' "$folder/seen")" -gt "$before" ] || { echo "$1: the resolver was not asked"; exit 1; }
  echo "$1: database and resolver reached; $(cat "$folder/answer-$1")"
}

serves "out of the box"
if grep -q '^metadata' "$folder/seen"; then
  echo "the downloader reached the metadata address"
  exit 1
fi
# That it was refused and not merely out of reach: the network leads there.
connects 169.254.169.254 || { echo "the trap is not there"; exit 1; }

list() { sed -n "s/^#\?$1=\([0-9a-f].*\)/\1/p" "$units/deny-private.conf"; }
for range in $(list IPAddressDeny); do
  case "$range" in
    *:*) ip -n "$in" -6 route add unreachable "$range" ;;
    *) ip -n "$in" route add unreachable "$range" ;;
  esac
done
for hole in $(list IPAddressAllow); do ip -n "$in" route replace "$hole" dev inside; done
serves "with deny-private.conf and its two holes"
if connects 169.254.169.254 || connects 10.0.5.8; then
  echo "deny-private.conf lets the metadata address through"
  exit 1
fi
[ "$(grep -c '^metadata' "$folder/seen")" = 1 ]
echo "the network of the units: what is private and needed is reached, the metadata address is not"
