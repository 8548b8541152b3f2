"""Runs the service behind each proxy as docs/proxies.md says, and asks it through the proxy as customers do.

The recipes are read from the page. Changed are only what a test must: ports, and whose certificate is shown.
"""

import hashlib
import http.server
import json
import os
import re
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
UPSCALE = ROOT / "target/debug/upscale"
API, FILES, CONSOLE = "api.example.com", "files.example.com", "console.example.com"
SOURCE = "images.example.org"
WRONG_KEYS = 5
# Not the proxy's own address, which is trusted.
CLIENT, NEIGHBOUR = "127.0.0.2", "127.0.0.3"


def recipe(heading):
    """The first block of code below a heading of the page."""
    page = (ROOT / "docs/proxies.md").read_text()
    return re.search(rf"^## {heading}\n.*?^```text\n(.*?)^```", page, re.S | re.M).group(1)


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def free_ports(count):
    import socket

    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, is_so):
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    sys.exit(f"{what}: not within a minute")


def certificate(folder, name, names):
    key, crt = folder / f"{name}.key", folder / f"{name}.crt"
    alternatives = ",".join(f"DNS:{one}" for one in names)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={names[0]}",
        "-addext", f"subjectAltName={alternatives}", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", str(key), "-out", str(crt))
    return crt, key


def png(width, height):
    rows = b"".join(b"\0" + bytes((x * 7 + y * 3 + c) % 256 for x in range(width) for c in range(3)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def serve_picture(folder):
    crt, key = certificate(folder, "source", [SOURCE])
    picture = png(200, 150)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(picture)))
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return crt, server.server_port


class Service:
    """The real service, told the names of a proxy on this port."""

    def __init__(self, folder, listen, console, port, source):
        self.data = folder / f"data-{port}"
        ca, source_port = source
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UPSCALE_")}
        self.log = open(folder / f"service-{port}.log", "w")
        self.process = subprocess.Popen(
            [UPSCALE, "serve", "--data", self.data, "--listen", f"127.0.0.1:{listen}", "--trusted-proxy", "127.0.0.1",
             "--base-url", f"https://{API}:{port}", "--result-url", f"https://{FILES}:{port}",
             "--console-listen", f"127.0.0.1:{console}", "--console-url", f"https://{CONSOLE}:{port}",
             "--failing-auth-per-minute", str(WRONG_KEYS), "--drain-delay", "2",
             "--source-ca", ca, "--source-connect-to", f"{SOURCE}:443=127.0.0.1:{source_port}"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        assert "ready" in self.process.stdout.readline(), "the service did not start"
        account = self.operate("account", "create", "proxied")["account"]
        self.operate("account", "credit", account, "10", "--reference", "proxies")
        self.key = self.operate("key", "create", account)["key"]

    def operate(self, *command):
        return json.loads(run(str(UPSCALE), *command, "--json", "--data", str(self.data)))


class Browser:
    """curl, which knows the proxy by its certificate."""

    def __init__(self, root, port, folder):
        self.root, self.port, self.folder = root, port, folder

    def ask(self, url, *flags, source=CLIENT):
        """Status, headers by lower-case name, body."""
        head, body = self.folder / "head", self.folder / "body"
        names = [flag for name in [API, FILES, CONSOLE] for flag in ["--resolve", f"{name}:{self.port}:127.0.0.1"]]
        if not url.startswith("https://"):
            url = f"https://{API}:{self.port}{url}"
        for left in [head, body]:
            left.unlink(missing_ok=True)
        asked = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", "60", "--cacert", str(self.root), "--interface", source,
             "--dump-header", str(head), "--output", str(body), *names, *flags, url], capture_output=True, check=False)
        body.touch()
        lines = head.read_text().splitlines() if head.exists() else []
        # 92: the rest of the upload was refused, which HTTP/2 says by a reset; the answer may have come before, or not.
        if asked.returncode == 92 and not lines:
            return 0, {}, b""
        if asked.returncode not in [0, 92]:
            raise subprocess.CalledProcessError(asked.returncode, url, stderr=asked.stderr)
        start = max(number for number, line in enumerate(lines) if line.startswith("HTTP/"))
        pairs = [line.split(": ", 1) for line in lines[start + 1:] if ": " in line]
        return int(lines[start].split()[1]), {name.lower(): value for name, value in pairs}, body.read_bytes()


def check_result(browser, service):
    bearer = ["--header", f"Authorization: Bearer {service.key}"]
    order = json.dumps({"image_url": f"https://{SOURCE}/a.png", "scale": 4})
    create = [*bearer, "--header", "Content-Type: application/json", "--header", "Idempotency-Key: proxied-1", "--data", order]
    wait_for("readiness", lambda: browser.ask("/readyz")[0] == 200)
    status, headers, body = browser.ask("/api/v1/upscales", *create)
    assert status == 202 and "x-ratelimit-remaining" in headers and headers["x-request-id"].startswith("req_"), headers
    address = json.loads(body)["urls"]["get"]
    assert address.startswith(f"https://{API}:{browser.port}/"), address
    def read():
        return json.loads(browser.ask(address, *bearer)[2])

    wait_for("the task", lambda: read()["status"] != "processing")
    task = read()
    assert task["status"] == "succeeded", task
    link = task["result"]["url"]
    assert link.startswith(f"https://{FILES}:{browser.port}/r/"), link
    status, headers, whole = browser.ask(link)
    digest = hashlib.sha256(whole).hexdigest()
    assert status == 200 and headers["etag"] == f'"{digest}"' and int(headers["content-length"]) == len(whole), headers
    assert headers["x-content-type-options"] == "nosniff" and headers["content-type"] == "image/png"
    status, headers, part = browser.ask(link, "--range", "100-199")
    assert status == 206 and part == whole[100:200] and headers["content-range"] == f"bytes 100-199/{len(whole)}"
    assert browser.ask(link, "--header", f'If-None-Match: "{digest}"')[0] == 304
    assert browser.ask(link, "--head")[1]["content-length"] == str(len(whole))
    return len(whole)


def check_limits(browser, service):
    bearer = ["--header", f"Authorization: Bearer {service.key}", "--header", "Idempotency-Key: proxied-2"]
    large = browser.folder / "large"
    # Far beyond both limits, the faster of the two refuses; a service that closes first is 502 in Caddy.
    for size, statuses in [(20_000, [400]), (2_000_000, [400, 413, 502, 0])]:
        large.write_bytes(b"{" + b" " * size)
        status = browser.ask("/api/v1/upscales", *bearer, "--header", "Content-Type: application/json", "--data-binary",
                             f"@{large}")[0]
        assert status in statuses, f"a body of {size} bytes: {status}"
    status = browser.ask("/healthz", "--http1.1", "--header", "X-Large: " + "x" * 40_000)[0]
    assert status in [400, 431, 494], f"a head of 40 kB: {status}"
    assert browser.ask("/healthz", "--header", "X-Large: " + "x" * 15_000)[0] == 200


def check_addresses(browser):
    """A forged X-Forwarded-For is not believed, and clients are told apart."""
    def wrong(number, source):
        forged = f"X-Forwarded-For: 203.0.113.{number}"
        return browser.ask("/api/v1/upscales/ups_0", "--header", "Authorization: Bearer usk_live_wrong", "--header", forged,
                           source=source)[0]

    found = [wrong(number, CLIENT) for number in range(WRONG_KEYS + 1)]
    assert found == [401] * WRONG_KEYS + [429], f"forged addresses are believed: {found}"
    assert wrong(99, NEIGHBOUR) == 401, "a neighbour pays for the tries of another"


def check_console(browser):
    status, headers, page = browser.ask(f"https://{CONSOLE}:{browser.port}/sign-in")
    assert status == 200 and b"<form" in page and "strict-transport-security" in headers, headers
    assert "__Host-" in headers["set-cookie"] and "Secure" in headers["set-cookie"], headers


def check_stop(browser, service):
    """Readiness goes first, and requests are still answered through the proxy."""
    service.process.terminate()
    wait_for("draining", lambda: browser.ask("/readyz")[0] == 503)
    assert browser.ask("/healthz")[0] == 200
    assert service.process.wait(60) == 0
    assert browser.ask("/healthz")[0] == 502


def caddy(folder, port, listen, console, crt, key):
    text = recipe("Caddy").replace("127.0.0.1:8080", f"127.0.0.1:{listen}").replace("127.0.0.1:8082", f"127.0.0.1:{console}")
    text = re.sub(r"^(\S.*) \{$", rf"\1 {{\n\ttls {crt} {key}", text, flags=re.M)
    options = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port {port}\n\tdefault_bind 127.0.0.1\n}}\n"
    (folder / "Caddyfile").write_text(options + text)
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")], home


def nginx(folder, port, listen, console, crt, key):
    text = recipe("nginx").replace("127.0.0.1:8080", f"127.0.0.1:{listen}").replace("127.0.0.1:8082", f"127.0.0.1:{console}")
    text = text.replace("/etc/ssl/example.com.crt", str(crt)).replace("/etc/ssl/example.com.key", str(key))
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    own = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    (folder / "nginx.conf").write_text(
        f"daemon off;\nuser root;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{own}\n{text}\n}}\n")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")], dict(os.environ)


def try_proxy(name, prepare, folder, source):
    port, listen, console = free_ports(3)
    crt, key = certificate(folder, name, [API, FILES, CONSOLE])
    service = Service(folder, listen, console, port, source)
    command, environment = prepare(folder, port, listen, console, crt, key)
    proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.err", "w"), env=environment)
    browser = Browser(crt, port, folder)
    try:
        def answers():
            try:
                return browser.ask("/healthz")[0] == 200
            except subprocess.CalledProcessError:
                assert proxy.poll() is None, (folder / f"{name}.err").read_text()
                return False

        wait_for(f"{name}", answers)
        size = check_result(browser, service)
        check_limits(browser, service)
        check_addresses(browser)
        check_console(browser)
        check_stop(browser, service)
    finally:
        proxy.terminate()
        proxy.wait()
        service.process.kill()
        service.process.wait()
    print(f"{name}: a result of {size} bytes whole and in ranges, limits, addresses, the console, a stop that is announced")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = serve_picture(folder)
        for proxy, prepare in [("caddy", caddy), ("nginx", nginx)]:
            try_proxy(proxy, prepare, folder, source)


main()
