//! The table of malformed and hostile HTTP that `malformed.rs` sends.

/// The start of a create request; more headers follow.
pub(crate) const CREATE: &str = "POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\n";

/// A name and the bytes to send.
pub(crate) type Case = (String, Vec<u8>);

/// Whole messages.
const MESSAGES: &[(&str, &[u8])] = &[
    ("nothing but line breaks", b"\r\n\r\n\r\n\r\n"),
    ("garbage", b"\x00\x01\x02\xff\xfe\r\n\r\n"),
    (
        "a TLS hello",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ),
    ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("HTTP/0.9", b"GET /\r\n"),
    ("no host", b"GET /x HTTP/1.1\r\n\r\n"),
    ("an unfinished head", b"GET /x HTTP/1.1\r\nHost: a\r\n"),
    ("a head that stops in a name", b"GET /x HTTP/1.1\r\nHos"),
    ("bare line feeds and no host", b"GET /x HTTP/1.1\n\n"),
];

/// First lines of otherwise sound messages.
const REQUEST_LINES: &[(&str, &str)] = &[
    ("HTTP/3.0", "GET /x HTTP/3.0"),
    ("HTTP/1.10", "GET /x HTTP/1.10"),
    ("a lower-case version", "GET /x http/1.1"),
    ("no version", "GET /x"),
    ("no path", "GET HTTP/1.1"),
    ("two spaces", "GET  /x HTTP/1.1"),
    ("a space in the path", "GET /x y HTTP/1.1"),
    ("a tab in the request line", "GET\t/x HTTP/1.1"),
    ("a control character in the path", "GET /x\x01 HTTP/1.1"),
    ("a NUL in the path", "GET /x\0y HTTP/1.1"),
    ("a fragment in the path", "GET /x#y HTTP/1.1"),
    ("a path without its slash", "GET x HTTP/1.1"),
    ("an empty method", " /x HTTP/1.1"),
    (
        "the absolute form",
        "GET http://evil.example.org/api/v1/upscales HTTP/1.1",
    ),
    (
        "the authority form",
        "CONNECT evil.example.org:443 HTTP/1.1",
    ),
    ("the asterisk form", "OPTIONS * HTTP/1.1"),
];

/// Header lines beside a sound first line and `Host`.
const HEADERS: &[(&str, &str)] = &[
    ("a folded header", "X-Folded: one\r\n two"),
    ("a space before the colon", "X-Space : one"),
    ("a space in a header's name", "X Space: one"),
    ("no colon", "X-None"),
    ("an empty name", ": value"),
    ("a NUL in a value", "X-Nul: a\0b"),
    ("a lone CR in a value", "X-Cr: a\rb"),
    ("two hosts", "Host: b"),
    (
        "an upgrade to a web socket",
        "Connection: upgrade\r\nUpgrade: websocket",
    ),
    (
        "an upgrade to HTTP/2",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    ),
];

/// Another whole request, to be hidden in a body.
const SECOND: &str = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Framing headers and the bytes behind them.
const BODIES: &[(&str, &str, &str)] = &[
    (
        "CL.TE",
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "0\r\n\r\nG",
    ),
    (
        "CL.TE and a request",
        "Content-Length: 40\r\nTransfer-Encoding: chunked",
        SECOND,
    ),
    (
        "TE.CL and a request",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        SECOND,
    ),
    (
        "chunked, then a request",
        "Transfer-Encoding: chunked",
        SECOND,
    ),
    (
        "two lengths",
        "Content-Length: 2\r\nContent-Length: 40",
        "{}",
    ),
    ("two lengths in one", "Content-Length: 2, 40", "{}"),
    ("a negative length", "Content-Length: -2", "{}"),
    ("a length with a sign", "Content-Length: +2", "{}"),
    ("a length in hex", "Content-Length: 0x2", "{}"),
    (
        "a length of 2^64",
        "Content-Length: 18446744073709551616",
        "{}",
    ),
    ("a length with a space", "Content-Length: 1 2", "{}"),
    ("an empty length", "Content-Length: ", "{}"),
    ("a length of a gigabyte", "Content-Length: 1073741824", "{}"),
    (
        "a length that is never reached",
        "Content-Length: 100",
        "{}",
    ),
    (
        "an unknown coding",
        "Transfer-Encoding: xchunked",
        "0\r\n\r\n",
    ),
    (
        "chunked not last",
        "Transfer-Encoding: chunked, gzip",
        "0\r\n\r\n",
    ),
    (
        "chunked, then not",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "0\r\n\r\n",
    ),
    (
        "a hidden coding",
        "Transfer-Encoding:\x0bchunked",
        "0\r\n\r\n",
    ),
    (
        "a coding before the colon",
        "Transfer-Encoding : chunked",
        "0\r\n\r\n",
    ),
    (
        "a chunk size that is none",
        "Transfer-Encoding: chunked",
        "zz\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "a chunk size of 2^64",
        "Transfer-Encoding: chunked",
        "10000000000000000\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "a negative chunk size",
        "Transfer-Encoding: chunked",
        "-2\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "a chunk longer than it says",
        "Transfer-Encoding: chunked",
        "1\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "chunks without an end",
        "Transfer-Encoding: chunked",
        "2\r\n{}\r\n",
    ),
];

/// Heads that are no HTTP, or HTTP of another kind, or too much of it.
pub(crate) fn broken_heads() -> Vec<Case> {
    let line = |line: &str| format!("{line}\r\nHost: a\r\n\r\n").into_bytes();
    let with =
        |header: &str| format!("GET /x HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n").into_bytes();
    let many = |count: usize| "X-Many: 1\r\n".repeat(count).trim_end().to_owned();
    let oversized = [
        (
            "an endless method",
            line(&format!("{} /x HTTP/1.1", "M".repeat(40_000))),
        ),
        (
            "an endless path",
            line(&format!("GET /{} HTTP/1.1", "x".repeat(70_000))),
        ),
        (
            "a path of 20,000",
            line(&format!("GET /{} HTTP/1.1", "x".repeat(20_000))),
        ),
        (
            "a header of 40,000 bytes",
            with(&format!("X-Long: {}", "x".repeat(40_000))),
        ),
        ("65 headers", with(&many(64))),
        ("10,000 headers", with(&many(10_000))),
    ];
    let messages = MESSAGES.iter().map(|(name, bytes)| (*name, bytes.to_vec()));
    let lines = REQUEST_LINES.iter().map(|(name, text)| (*name, line(text)));
    let headers = HEADERS.iter().map(|(name, text)| (*name, with(text)));
    let all = messages.chain(lines).chain(headers).chain(oversized);
    all.map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

/// Bodies whose end is not where one of two readers would look for it, or that never end.
pub(crate) fn broken_bodies() -> Vec<Case> {
    let create =
        |framing: &str, body: &str| format!("{CREATE}{framing}\r\n\r\n{body}").into_bytes();
    let chunked = "Transfer-Encoding: chunked";
    let extension = format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(60_000));
    let trailers = format!("0\r\n{}\r\n", "X-T: 1\r\n".repeat(20_000));
    let old = CREATE.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let oversized = [
        ("an endless chunk extension", create(chunked, &extension)),
        ("endless trailers", create(chunked, &trailers)),
        ("chunked in HTTP/1.0", old.into_bytes()),
    ];
    let bodies = BODIES
        .iter()
        .map(|(name, framing, body)| (*name, create(framing, body)));
    let all = bodies.chain(oversized);
    all.map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}
