"""Faces with and without face_enhance side by side at 100 %, names hidden and sides shuffled, and the tally.

`python -m upscale_training.face_blind draw --upscale PROGRAM --faces FOLDER --out FOLDER` writes sheets like blind.py:
twenty held-out portraits under the damages of face_gates.py in turn, and the large faces as they came, cut to what a
picture may have. `ours` is with face_enhance; `python -m upscale_training.face_blind tally FOLDER ANSWERS` counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .blind import command, hide
from .face_gates import DAMAGES, Picture, enlarge, held_out
from .faces import landmarks, rows
from .resize import resize_8bit

# Side of what is shown of a large face, in output pixels, and of what of its picture is enlarged, in source pixels.
SHOWN, SOURCE = 400, 700
SCALE = 4

Versions = tuple[str, Picture, Picture]


def portraits(program: Path, folder: Path, most: int) -> Iterator[Versions]:
    people = held_out(folder, SCALE)
    damages = [name for name in DAMAGES if name != "clean"]
    for index, (original, _) in enumerate(people[:: max(1, len(people) // most)][:most]):
        damage = damages[index % len(damages)]
        file = DAMAGES[damage](resize_8bit(original, *(length // SCALE for length in original.shape[:2])))
        yield f"{index}, {damage}", *versions(program, file)


def large(program: Path, folder: Path, shuffle: np.random.Generator) -> Iterator[Versions]:
    for row in rows(folder):
        if row["file"].startswith("large/"):
            file, eye = as_it_came(folder / row["file"], landmarks(row)[shuffle.integers(2)])
            ours, other = versions(program, file)
            part = window(SCALE * eye, ours.shape[:2], SHOWN)
            yield row["file"], ours[part], other[part]


def versions(program: Path, file: bytes) -> tuple[Picture, Picture]:
    ours, other = (enlarge(program, file, SCALE, faces)[0] for faces in (True, False))
    return ours, other


def as_it_came(path: Path, eye: NDArray) -> tuple[bytes, NDArray]:
    """The file and where the eye is in it; of a larger one a part, as a JPEG of quality 92."""
    with Image.open(path) as image:
        picture = np.asarray(image.convert("RGB"))
    if max(picture.shape) <= SOURCE:
        return path.read_bytes(), eye
    part, written = window(eye, picture.shape[:2], SOURCE), BytesIO()
    Image.fromarray(picture[part]).save(written, "JPEG", quality=92)
    return written.getvalue(), eye - [part[1].start, part[0].start]


def window(middle: NDArray, size: tuple[int, ...], side: int) -> tuple[slice, slice]:
    """Rows and columns of a square round `middle` (x, y), moved to lie in a picture of that height and width."""
    starts = [
        int(np.clip(at - side / 2, 0, max(0, length - side))) for at, length in zip(middle[::-1], size, strict=True)
    ]
    return slice(starts[0], starts[0] + side), slice(starts[1], starts[1] + side)


def draw(arguments: argparse.Namespace) -> None:
    program, shuffle = arguments.upscale.resolve(), np.random.default_rng(arguments.seed)
    hide(portraits(program, arguments.faces, arguments.most), shuffle, arguments.out / "portraits")
    hide(large(program, arguments.faces, shuffle), shuffle, arguments.out / "large")


def flags(drawing: argparse.ArgumentParser) -> None:
    drawing.add_argument("--upscale", type=Path, required=True, help="the program to look at")
    drawing.add_argument(
        "--faces", type=Path, required=True, help="folder with SOURCES.tsv and its faces, large ones too"
    )
    drawing.add_argument("--most", type=int, default=20, help="portraits")


if __name__ == "__main__":
    command(__doc__, draw, flags)
