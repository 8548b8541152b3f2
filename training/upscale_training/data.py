"""Training pictures: decoded once into one uint8 file, shrunk once per scale, cropped into batches by step.

A batch depends on (seed, step) alone, so that a resumed run draws exactly what an unbroken one would.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from .resize import resize_8bit

# Every clean picture is cut to a multiple of this, so that x2 and x4 share one cache.
MULTIPLE = 4
PICTURE_PIXELS_MAX = 16_000_000


@dataclass(frozen=True)
class Attribution:
    """One line of ATTRIBUTION.tsv; `kind` is photo, art, diagram, screenshot or synthetic."""

    file: str
    licence: str
    kind: str


def read_attribution(folder: Path) -> list[Attribution]:
    """The pictures that may be trained on: those that the attribution file names, in its order."""
    with open(folder / "ATTRIBUTION.tsv", newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        found = [Attribution(row["file"], row["licence"], row["kind"]) for row in rows]
    if not found:
        raise ValueError(f"{folder}/ATTRIBUTION.tsv names no picture")
    return found


def read_picture(path: Path) -> NDArray[np.uint8]:
    """RGB [h, w, 3], cut to a multiple of 4 from the top left."""
    with Image.open(path) as image:
        width, height = image.size
        if width * height > PICTURE_PIXELS_MAX:
            raise ValueError(f"{path}: {width}x{height} pixels, at most {PICTURE_PIXELS_MAX} are taken")
        picture = np.asarray(image.convert("RGB"))
    return picture[: height - height % MULTIPLE, : width - width % MULTIPLE]


class Pictures:
    """Clean and shrunk pictures of one scale, memory-mapped from a cache folder."""

    def __init__(self, folder: Path, cache: Path, scale: int) -> None:
        names = [row.file for row in read_attribution(folder)]
        # The key changes with the list of pictures: a cache of another list is never taken for this one.
        key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
        cache.mkdir(parents=True, exist_ok=True)
        self.scale = scale
        self.clean = Packed(cache / f"clean-{key}")
        self.shrunk = Packed(cache / f"shrunk-x{scale}-{key}")
        if not self.clean.exists():
            self.clean.write(read_picture(folder / name) for name in names)
        self.clean.open()
        if not self.shrunk.exists():
            self.shrunk.write(resize_8bit(big, big.shape[0] // scale, big.shape[1] // scale) for big in self.clean)
        self.shrunk.open()

    def batch(self, seed: int, step: int, size: int, side: int) -> tuple[Tensor, Tensor]:
        """Small [size, 3, side, side] and clean [size, 3, side*scale, side*scale] patches in 0..1.

        A picture is drawn in proportion to its area and turned or mirrored into one of eight positions.
        """
        draw = np.random.default_rng([seed, step])
        fits = np.minimum(self.shrunk.shape[:, 0], self.shrunk.shape[:, 1]) >= side
        if not fits.any():
            raise ValueError(f"no picture is {side} pixels on its shorter side after shrinking {self.scale} times")
        area = np.where(fits, self.shrunk.shape[:, 0] * self.shrunk.shape[:, 1], 0).astype(np.float64)
        chosen = draw.choice(len(area), size=size, p=area / area.sum())
        pairs = [self.patch(draw, picture, side) for picture in chosen]
        return as_batch([small for small, _ in pairs]), as_batch([clean for _, clean in pairs])

    def patch(self, draw: np.random.Generator, picture: int, side: int) -> tuple[NDArray, NDArray]:
        height, width = self.shrunk.shape[picture]
        y, x = draw.integers(height - side + 1), draw.integers(width - side + 1)
        turn, mirror, scale = draw.integers(4), draw.integers(2), self.scale
        small = self.shrunk[picture][y : y + side, x : x + side]
        clean = self.clean[picture][y * scale : (y + side) * scale, x * scale : (x + side) * scale]
        return place(small, turn, mirror), place(clean, turn, mirror)


class Packed:
    """Pictures of different sizes end to end in one file, `<stem>.raw`, their sizes in `<stem>.json`."""

    def __init__(self, stem: Path) -> None:
        self.raw, self.index = stem.with_suffix(".raw"), stem.with_suffix(".json")

    def exists(self) -> bool:
        # The index is written last: where it lies, the pixels are whole.
        return self.index.exists()

    def write(self, pictures) -> None:
        sizes = []
        with open(self.raw, "wb") as file:
            for picture in pictures:
                sizes.append(picture.shape[:2])
                file.write(np.ascontiguousarray(picture).tobytes())
        self.index.write_text(json.dumps(sizes))

    def open(self) -> None:
        self.shape = np.array(json.loads(self.index.read_text()))
        ends = np.cumsum(self.shape[:, 0] * self.shape[:, 1] * 3)
        self.start = np.concatenate([[0], ends[:-1]])
        self.pixels = np.asarray(np.memmap(self.raw, dtype=np.uint8, mode="r", shape=(int(ends[-1]),)))

    def __len__(self) -> int:
        return len(self.shape)

    def __getitem__(self, picture: int) -> NDArray[np.uint8]:
        if not 0 <= picture < len(self):
            raise IndexError(picture)
        height, width = self.shape[picture]
        start = self.start[picture]
        return self.pixels[start : start + height * width * 3].reshape(height, width, 3)


def place(patch: NDArray, turn: int, mirror: int) -> NDArray:
    turned = np.rot90(patch, turn)
    return turned[:, ::-1] if mirror else turned


def as_batch(patches: list[NDArray]) -> Tensor:
    """uint8 patches [h, w, 3] to float [n, 3, h, w] in 0..1, channels last in memory."""
    stacked = torch.from_numpy(np.stack(patches))
    return stacked.permute(0, 3, 1, 2).float().div_(255.0)
