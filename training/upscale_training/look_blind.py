"""Two looks of the program, or of two programs, side by side at 100 %, names hidden and sides shuffled, and the tally.

`python -m upscale_training.look_blind draw PICTURES... --upscale PROGRAM --looks natural faithful --out FOLDER` shows
of each picture where most is to be seen; `bicubic` counts as a look, and so does the file of somebody's model. `ours`
is the first one. `--against PROGRAM` makes the second one, for old and new weights: pictures that it makes alike are
then left out and named.
`python -m upscale_training.look_blind tally FOLDER ANSWERS` counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from .bed import Picture
from .blind import busiest, command, hide
from .evaluate import ENDINGS, interpolate
from .face_gates import clean
from .program import enlarged

# Sides of what is shown and, of larger pictures, of what is enlarged, in source pixels.
SIDE, SOURCE = 86, 600
# Source pixels around what is shown that other people's models see: Real-ESRGAN's take minutes for a whole picture.
MARGIN = 24


def part(path: Path) -> tuple[bytes, Picture, tuple[int, int]]:
    """The file, or of a larger one the corner of SOURCE pixels as it came (JPEG 95 where it was one), and the busiest
    square's top and left."""
    with Image.open(path) as image:
        kind, picture = image.format, np.asarray(image.convert("RGB"))
    file = path.read_bytes()
    if max(picture.shape) > SOURCE:
        picture, written = picture[:SOURCE, :SOURCE], BytesIO()
        Image.fromarray(picture).save(written, *(["JPEG"] if kind == "JPEG" else ["PNG"]), quality=95)
        file = written.getvalue()
    return file, picture, busiest(picture, min(SIDE, *(side - 2 for side in picture.shape[:2])))


def versions(programs: tuple[Path, Path], path: Path, looks: list[str], scale: int) -> tuple[str, Picture, Picture]:
    file, picture, corner = part(path)
    shown = tuple(slice(scale * start, scale * (start + SIDE)) for start in corner)

    def by(program: Path, look: str) -> Picture:
        if look == "bicubic":
            return interpolate("bicubic")(picture, scale)[shown]
        if Path(look).suffix:
            return by_model(program, Path(look), picture, corner, scale)
        return enlarged(program, file, scale, "--look", look)[0][shown]

    ours, other = (by(program, look) for program, look in zip(programs, looks, strict=True))
    return path.name, ours, other


def by_model(program: Path, model: Path, picture: Picture, corner: tuple[int, int], scale: int) -> Picture:
    """What is shown, as the program makes it by somebody's model."""
    starts = [max(0, start - MARGIN) for start in corner]
    seen = picture[tuple(slice(first, start + SIDE + MARGIN) for first, start in zip(starts, corner, strict=True))]
    made, _ = enlarged(program, clean(seen), scale, "--model", str(model.resolve()))
    inside = (scale * (start - first) for first, start in zip(starts, corner, strict=True))
    return made[tuple(slice(first, first + scale * SIDE) for first in inside)]


def draw(arguments: argparse.Namespace) -> None:
    files = [file for given in arguments.pictures for file in (sorted(given.iterdir()) if given.is_dir() else [given])]
    paths = [path for path in files if path.suffix.lower() in ENDINGS]
    shuffle = np.random.default_rng(arguments.seed)
    chosen = shuffle.permutation(len(paths))[: arguments.most]

    programs = (arguments.upscale.resolve(), (arguments.against or arguments.upscale).resolve())

    def found() -> Iterator[tuple[str, Picture, Picture]]:
        for index in chosen:
            name, ours, other = versions(programs, paths[index], arguments.looks, arguments.scale)
            if arguments.against and np.array_equal(ours, other):
                print(f"{name}: alike, left out")
            else:
                yield name, ours, other

    hide(found(), shuffle, arguments.out)


def flags(drawing: argparse.ArgumentParser) -> None:
    drawing.add_argument("pictures", type=Path, nargs="+", help="files and folders")
    drawing.add_argument("--upscale", type=Path, required=True, help="the program to look at")
    drawing.add_argument("--against", type=Path, help="another program, which makes the second look")
    drawing.add_argument("--looks", nargs=2, required=True, metavar="LOOK")
    drawing.add_argument("--scale", type=int, choices=(2, 4), default=4)
    drawing.add_argument("--most", type=int, default=40)


if __name__ == "__main__":
    command(__doc__, draw, flags)
