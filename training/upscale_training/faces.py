"""Trains a face network from a general one: `python -m upscale_training.faces CONFIG --faces FOLDER`.

FOLDER holds portraits and a `SOURCES.tsv` (columns `file`, `licence` and the landmarks). A quarter of the persons is
never trained on; face_gates.py judges on them. What a face network is for is seen in the damage: a face in a real
file is small, soft, noisy and went through JPEG, so six in seven of the faces here are or were.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from . import degrade
from .data import MULTIPLE, as_batch, packed, place, read_picture
from .detail import CrispRun
from .invented import invented
from .mixture import Draw, Group, Mixture
from .recipe import Recipe
from .resize import resize_8bit
from .scenes import Scenes
from .train import Run, go_on, options, prepare

# One person in four is kept for judging.
HELD_OUT_OF = 4
# Sizes in which a picture is seen, as far as it stays large enough for a patch.
SIZES = (1.0, 0.7, 0.45, 0.3)
# How far the middle of a patch may lie from the middle of eyes and mouth, in sides of the patch: the band that
# makes a face that person is seen in nearly every patch.
JITTER = 0.3
# Of the patches, how many show a portrait as it is, half of them mirrored.
AS_IS = 0.2
# At 4x no portrait of 225 pixels holds a larger scene with its margin.
SCENES = Scenes(clean=0.15, file=0.35, sides=(48,), mixture=Mixture(mild=0.3, strong=0.2))


@dataclass(frozen=True)
class Portrait:
    """A picture of a face; `middle` (x, y) of eyes, nose and mouth in pixels."""

    file: str
    licence: str
    middle: tuple[float, float]

    def is_held_out(self) -> bool:
        """By the name alone, so that a longer list keeps everybody on their side. A portrait is one person."""
        if not self.file.startswith("portraits/"):
            return False
        return hashlib.sha256(self.file.encode()).digest()[0] % HELD_OUT_OF == 0


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "SOURCES.tsv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_portraits(folder: Path) -> list[Portrait]:
    return [portrait(row) for row in rows(folder)]


def portrait(row: dict[str, str]) -> Portrait:
    marks = landmarks(row).mean(axis=0)
    return Portrait(row["file"], row["licence"], (float(marks[0]), float(marks[1])))


def landmarks(row: dict[str, str]) -> NDArray:
    """[5, 2]: right eye, left eye, nose, right and left corner of the mouth, as x and y."""
    column = next(name for name in row if name.startswith("right_eye_x"))
    return np.array([float(number) for number in row[column].split(",")]).reshape(5, 2)


class Faces:
    """The portraits to train on, in several sizes; takes the place of data.Pictures."""

    def __init__(self, folder: Path, cache: Path, recipe: Recipe, device: str = "cpu") -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self.scale, self.device, self.resident = recipe.scale, device, False
        chosen = [one for one in read_portraits(folder) if not one.is_held_out()]
        least = (max(SCENES.sides) + 2 * degrade.MARGIN) * self.scale
        views = [view for one in chosen for view in sizes(folder, one, least)]
        self.middles = [(one.middle[0] * size, one.middle[1] * size) for one, size in views]
        key = hashlib.sha256(f"{[(one.file, size) for one, size in views]}".encode()).hexdigest()[:12]
        self.packed = packed(cache / f"faces-{key}", (seen(folder / one.file, size) for one, size in views))

    def patches(self, draw: Draw, size: int, side: int, pixel_art: bool = False) -> Tensor:
        """[size, 3, side, side] in 0..1, nearly upright; pixel art is never among them."""
        chosen = draw.integers(len(self.packed), size=size)
        as_is, others = np.split(chosen, [round(AS_IS * size + draw.random() - 0.5)])
        parts = []
        if len(as_is):
            parts.append(as_batch([self.as_it_is(self.packed[at], at, side, draw) for at in as_is]).to(self.device))
        if len(others):
            wholes = [as_batch([self.packed[at]]).to(self.device) for at in others]
            parts.append(invented(wholes, np.array([self.middles[at] for at in others]), side, JITTER, draw))
        return torch.cat(parts)[torch.from_numpy(draw.permutation(size)).to(self.device)]

    def as_it_is(self, picture: NDArray[np.uint8], at: int, side: int, draw: Draw) -> NDArray[np.uint8]:
        x, y = (
            int(np.clip(middle + (draw.uniform(-JITTER, JITTER) - 0.5) * side, 0, length - side))
            for middle, length in zip(self.middles[at], (picture.shape[1], picture.shape[0]), strict=True)
        )
        return place(picture[y : y + side, x : x + side], 0, draw.integers(2))


def sizes(folder: Path, one: Portrait, least: int) -> list[tuple[Portrait, float]]:
    """Those of SIZES in which both sides have `least` pixels."""
    with Image.open(folder / one.file) as image:
        shorter = min(length - length % MULTIPLE for length in image.size)
    return [(one, size) for size in SIZES if round(shorter * size) >= least]


def seen(path: Path, size: float) -> NDArray[np.uint8]:
    whole = read_picture(path)
    height, width = (round(length * size) for length in whole.shape[:2])
    return whole if size == 1.0 else resize_8bit(whole, height, width)


class FaceRun(CrispRun):
    """Goes on from a finished restoring network of the same shape, on faces alone.

    Of all faces as much contrast is asked as they have: the mean of all that a face could be is no one's.
    """

    scenes = SCENES

    def loss(self, output: Tensor, group: Group) -> Tensor:
        return self.crisp_loss(output, group)


class EarlyFaceRun(Run):
    """The same scenes by square error alone: thousands of steps of it are what keeps eyes those of the person."""

    scenes = SCENES


def train_on_faces(about: str | None, kind: Callable[[Recipe], type[Run]]) -> None:
    """What a command does that trains the `kind` of run which its recipe asks for."""
    parser = options(about)
    parser.add_argument("--faces", type=Path, required=True, help="folder with SOURCES.tsv and its portraits")
    arguments = parser.parse_args()
    recipe = prepare(arguments)
    faces = Faces(arguments.faces, arguments.runs / "cache", recipe, arguments.device)
    go_on(kind(recipe)(recipe, arguments.device, arguments.compile), faces, arguments)


if __name__ == "__main__":
    train_on_faces(__doc__, lambda recipe: FaceRun if recipe.contrast else EarlyFaceRun)
