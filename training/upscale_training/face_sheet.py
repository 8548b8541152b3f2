"""Faces to look at, at 100 %: `python -m upscale_training.face_sheet --upscale PROGRAM --faces FOLDER --out SHEET.png`.

A row a held-out person, with the next damage of face_gates.py in turn: bicubic, the program without and with
`--face-enhance`, the original. Portraits belong to others: the sheet is to look at, not to commit.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .contact import labelled
from .evaluate import interpolate
from .face_gates import DAMAGES, Picture, around, enlarge, held_out
from .resize import resize_8bit
from .sheet import beside

# Output pixels of a window round the face.
SIDE = 224


def row(program: Path, original: Picture, marks: NDArray, damage: str, scale: int) -> Picture:
    """[height, 4 x SIDE and gaps, 3] of one person."""
    file = DAMAGES[damage](resize_8bit(original, *(length // scale for length in original.shape[:2])))
    with Image.open(io.BytesIO(file)) as image:
        small = np.asarray(image.convert("RGB"))
    versions = {
        "bicubic": interpolate("bicubic")(small, scale),
        "Upscale": enlarge(program, file, scale, False)[0],
        "face_enhance": enlarge(program, file, scale, True)[0],
        "original": original,
    }
    corner = window(original, marks)
    return beside([labelled(name, one, original, damage, corner) for name, one in versions.items()])


def window(picture: Picture, marks: NDArray) -> tuple[int, int, int]:
    """Top, left and side of a square round the face that lies inside the picture."""
    side = min(SIDE, *picture.shape[:2])
    middles = [(part.start + part.stop) // 2 for part in around(marks)]
    top, left = (
        int(np.clip(middle - side // 2, 0, length - side))
        for middle, length in zip(middles, picture.shape[:2], strict=True)
    )
    return top, left, side


def sheet(program: Path, people: list[tuple[Picture, NDArray]], scale: int) -> Picture:
    names = list(DAMAGES)
    rows = [row(program, *one, names[index % len(names)], scale) for index, one in enumerate(people)]
    widest = max(one.shape[1] for one in rows)
    return np.concatenate([np.pad(one, ((0, 0), (0, widest - one.shape[1]), (0, 0))) for one in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upscale", type=Path, required=True, help="the program whose faces are shown")
    parser.add_argument("--faces", type=Path, required=True, help="folder with SOURCES.tsv and its portraits")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", type=int, choices=(2, 4), default=4)
    parser.add_argument("--people", type=int, default=10, help="held-out persons, evenly from the whole list")
    arguments = parser.parse_args()
    people = held_out(arguments.faces, arguments.scale)
    chosen = people[:: max(1, len(people) // arguments.people)][: arguments.people]
    Image.fromarray(sheet(arguments.upscale.resolve(), chosen, arguments.scale)).save(arguments.out)


if __name__ == "__main__":
    main()
