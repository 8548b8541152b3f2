"""Whether face_enhance helps large faces.

`python -m upscale_training.large_face_gates --upscale PROGRAM --faces FOLDER`

The large faces of FOLDER, on which the networks that draw them were not trained, are shrunk and spoilt like the
portraits of face_gates.py: at 4x their boxes have some 70 to 130 source pixels. A crisper face is further from the
original by square error, so decibels are shown and not judged. Every gate is printed; the exit status is 1 where one
fails.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .face_gates import GRID_MAX, Mark, Picture, around, conclude, judge
from .faces import landmarks, rows
from .identity import rank_one

# Pixels of a face in the file: with less it is a small one at 4x, for which face_gates.py is there.
HEIGHT_MIN = 280
DAMAGES = ("clean", "JPEG 70", "JPEG 30", "noise 5", "blur 1")
# Fine detail in the face grows by this factor where the network is told to sharpen more ...
SHARPENED, DETAIL_GROWS_MIN = ("clean", "JPEG 70", "JPEG 30"), {2: 1.1, 4: 1.2}
# ... and shrunk again the picture is as near to its source as without, less this many decibels, or as near as this.
CONSISTENCY_LOSS_MAX, CONSISTENT = 0.5, 45.0


def large(folder: Path, scale: int) -> list[tuple[Picture, NDArray]]:
    """Large faces with their landmarks, cut to a multiple of the scale."""
    found = []
    for row in rows(folder):
        height = next(int(row[name]) for name in row if name.startswith("face_h"))
        if row["file"].startswith("large/") and height >= HEIGHT_MIN:
            with Image.open(folder / row["file"]) as image:
                picture = np.asarray(image.convert("RGB"))
            rows_, columns = (length // scale * scale for length in picture.shape[:2])
            found.append((picture[:rows_, :columns], landmarks(row)))
    return found


def gates(damage: str, marks: list[Mark], ranks: list[float], scale: int) -> list[tuple[str, bool]]:
    grid = float(np.mean([mark.grid for mark in marks]))
    plain, back = np.mean([mark.consistency for mark in marks], axis=0)
    back_min = min(plain - CONSISTENCY_LOSS_MAX, CONSISTENT)
    found = [
        (f"{damage}: rank 1 {ranks[1]:.3f}, at least {ranks[0]:.3f}", ranks[1] >= ranks[0]),
        (f"{damage}: a grid of {grid:.2f} levels, at most {GRID_MAX}", grid <= GRID_MAX),
        (f"{damage}: shrunk again {back:.2f} dB, at least {back_min:.2f}", bool(back >= back_min)),
    ]
    if damage in SHARPENED:
        plain, faces = np.mean([mark.detail for mark in marks], axis=0)
        grows_min = DETAIL_GROWS_MIN[scale]
        text = f"{damage}: fine detail x {faces / plain:.2f}, at least x {grows_min:.2f}"
        found.append((text, bool(faces >= grows_min * plain)))
    return found


def line(damage: str, marks: list[Mark], ranks: list[float]) -> str:
    gain = float(np.mean([mark.box[1] - mark.box[0] for mark in marks]))
    eyes = float(np.mean([mark.eyes[1] - mark.eyes[0] for mark in marks]))
    detail = np.mean([mark.detail for mark in marks], axis=0)
    change, found = float(np.mean([mark.change for mark in marks])), sum(mark.found > 0 for mark in marks)
    return (
        f"| {damage} | {found}/{len(marks)} | {gain:+.2f} | {eyes:+.2f} | {ranks[0]:.3f} | {ranks[1]:.3f} "
        f"| {detail[0]:.2f} | {detail[1]:.2f} | {change:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upscale", type=Path, required=True, help="the program to judge")
    parser.add_argument("--faces", type=Path, required=True, help="folder with SOURCES.tsv and its large faces")
    parser.add_argument("--scale", type=int, choices=(2, 4), default=4)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    program, people = arguments.upscale.resolve(), large(arguments.faces, arguments.scale)
    places = [around(marks) for _, marks in people]
    gallery = [original[place] for (original, _), place in zip(people, places, strict=True)]
    print(f"{len(people)} large faces at {arguments.scale}x")
    print("| damage | found | box dB | eyes dB | rank 1 plain | rank 1 faces | fine detail plain | faces | change |")
    print("|---|---|---|---|---|---|---|---|---|")
    all_gates = []
    for damage in DAMAGES:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            marks = list(pool.map(lambda one, damage=damage: judge(program, *one, damage, arguments.scale), people))
        faces = [[mark.pictures[which][place] for mark, place in zip(marks, places, strict=True)] for which in (0, 1)]
        ranks = [rank_one(gallery, one) for one in faces]
        print(line(damage, marks, ranks), flush=True)
        all_gates += gates(damage, marks, ranks, arguments.scale)
    conclude(all_gates)


if __name__ == "__main__":
    main()
