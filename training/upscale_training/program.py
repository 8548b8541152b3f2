"""The program itself, `upscale file`, on a file in memory."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from .bed import Picture


def enlarged(program: Path, file: bytes, scale: int, *flags: str) -> tuple[Picture, str]:
    """The result, and what the program says on its standard error."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "source", Path(folder) / "result.png"
        source.write_bytes(file)
        order = [program, "file", source, result, "--scale", str(scale), "--threads", "1", *flags]
        done = subprocess.run(order, capture_output=True, text=True, check=True)
        with Image.open(result) as image:
            return np.asarray(image.convert("RGB")), done.stderr
