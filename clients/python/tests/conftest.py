"""A real service for the tests: `upscale demo --hold`, with an image host of its own, on loopback."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Service:
    """Where a running service is."""

    api: str
    key: str
    account: str
    images: list[str]


def png(width: int, height: int) -> bytes:
    """A small picture with a gradient."""
    rows = b"".join(
        b"\x00" + bytes(value for x in range(width) for value in (x * 7 % 256, y * 11 % 256, 90)) for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    binary = os.environ.get("UPSCALE_BINARY") or str(Path(__file__).parents[3] / "target/debug/upscale")
    source = tmp_path_factory.mktemp("pictures") / "small.png"
    source.write_bytes(png(24, 16))
    command = [binary, "demo", "--hold", str(source)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the service did not start"
        yield Service(**json.loads(line))
        process.stdin.close()
        assert process.wait(30) == 0
