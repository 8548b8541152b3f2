"""Training pictures: decoded once into one uint8 file, cut into patches. What happens to them then is mixture.py's."""

from __future__ import annotations

import copy
import csv
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from .rendered import is_pixel_art, page

# Every clean picture is cut to a multiple of this.
MULTIPLE = 4
PICTURE_PIXELS_MAX = 16_000_000
# Kinds of pictures whose fine detail may be drawn anew: never letters, lines or icons.
TEXTURED = ("photo", "art")


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
    """The clean pictures of a folder and pages drawn by code, memory-mapped from a cache; cut into patches by draws."""

    def __init__(
        self, folder: Path, cache: Path, scale: int, pages: int = 0, device: str = "cpu", resident: bool = False
    ) -> None:
        rows = read_attribution(folder)
        names = [row.file for row in rows]
        cache.mkdir(parents=True, exist_ok=True)
        # `resident`: all of the pictures are held on the device, and patches are gathered there.
        self.scale, self.device, self.resident = scale, device, resident
        # Of the patches, how many come from the pages drawn by code.
        self.page_share = 1.0 / 6.0
        # The key changes with the list of pictures: a cache of another list is never taken for this one.
        key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
        self.clean = packed(cache / f"clean-{key}", (read_picture(folder / name) for name in names))
        self.pages = packed(cache / f"pages-{pages}", (page(seed) for seed in range(pages))) if pages else None

        self.painted = [seed for seed in range(pages) if not is_pixel_art(seed)]
        self.textured = [place for place, row in enumerate(rows) if row.kind in TEXTURED]
        self.untextured = [place for place, row in enumerate(rows) if row.kind not in TEXTURED]
        # Where to draw clean pictures from; None: from all of them, in proportion to their areas.
        self.among: list[int] | None = None

    def textured_only(self) -> Pictures:
        """The same without pages, diagrams, screenshots: photographs and art alone."""
        if not self.textured:
            raise ValueError(f"no picture is of a kind among {', '.join(TEXTURED)}")
        found = copy.copy(self)
        found.pages, found.among = None, self.textured
        return found

    def untextured_only(self) -> Pictures:
        """The same without photographs and art: pages, diagrams, screenshots."""
        if not self.untextured:
            raise ValueError(f"every picture is of a kind among {', '.join(TEXTURED)}")
        found = copy.copy(self)
        found.among = self.untextured
        return found

    def patches(self, draw: np.random.Generator, size: int, side: int, pixel_art: bool = True) -> Tensor:
        """[size, 3, side, side] in 0..1, each turned or mirrored into one of eight positions."""
        drawn = draw.random(size) < self.page_share if self.pages else np.zeros(size, bool)
        among = None if pixel_art else self.painted
        places = [
            self.pages.place(draw, side, among) if one else self.clean.place(draw, side, self.among) for one in drawn
        ]
        if self.resident:
            return self.gathered(drawn, places)
        chosen = [self.pages if one else self.clean for one in drawn]
        return as_batch([pack.patch(at) for pack, at in zip(chosen, places, strict=True)]).to(self.device)

    def gathered(self, drawn: NDArray[np.bool_], places: list[Place]) -> Tensor:
        """The same from what is held on the device: all of the pages at once, then all of the pictures."""
        parts = [
            pack.resident([places[at] for at in chosen], self.device)
            for pack, chosen in ((self.pages, np.flatnonzero(drawn)), (self.clean, np.flatnonzero(~drawn)))
            if len(chosen)
        ]
        order = np.argsort(np.argsort(~drawn, kind="stable"), kind="stable")
        return torch.cat(parts)[torch.from_numpy(order).to(self.device)].float() / 255.0


@dataclass(frozen=True)
class Place:
    """A square of a picture, and into which of eight positions it is turned."""

    picture: int
    y: int
    x: int
    side: int
    turns: int
    mirror: int


class Packed:
    """Pictures of different sizes end to end in one file, `<stem>.raw`, their sizes in `<stem>.json`."""

    def __init__(self, stem: Path) -> None:
        self.raw, self.index = stem.with_suffix(".raw"), stem.with_suffix(".json")
        self.held: Tensor | None = None

    def exists(self) -> bool:
        # The index is written last: where it lies, the pixels are whole.
        return self.index.exists()

    def write(self, pictures: Iterable[NDArray[np.uint8]]) -> None:
        """Through neighbour files of this process: those that share a network pack the same pictures at once."""
        sizes = []
        raw, index = (path.with_suffix(f"{path.suffix}.{os.getpid()}") for path in (self.raw, self.index))
        with open(raw, "wb") as file:
            for picture in pictures:
                sizes.append(picture.shape[:2])
                file.write(np.ascontiguousarray(picture).tobytes())
        index.write_text(json.dumps(sizes))
        raw.replace(self.raw)
        index.replace(self.index)

    def open(self) -> None:
        self.shape = np.array(json.loads(self.index.read_text()))
        ends = np.cumsum(self.shape[:, 0] * self.shape[:, 1] * 3)
        self.start = np.concatenate([[0], ends[:-1]])
        self.areas = np.cumsum(self.shape[:, 0] * self.shape[:, 1])
        self.pixels = np.asarray(np.memmap(self.raw, dtype=np.uint8, mode="r", shape=(int(ends[-1]),)))

    def __len__(self) -> int:
        return len(self.shape)

    def __getitem__(self, picture: int) -> NDArray[np.uint8]:
        if not 0 <= picture < len(self):
            raise IndexError(picture)
        height, width = self.shape[picture]
        start = self.start[picture]
        return self.pixels[start : start + height * width * 3].reshape(height, width, 3)

    def place(self, draw: np.random.Generator, side: int, among: list[int] | None = None) -> Place:
        """Where to cut a patch; a picture is drawn in proportion to its area, or evenly from those of `among`."""
        if (self.shape.min(axis=1) < side).any():
            raise ValueError(f"a picture of {self.raw} is smaller than the {side} pixels of a patch")
        if among is None:
            picture = int(np.searchsorted(self.areas, draw.integers(self.areas[-1]), side="right"))
        else:
            picture = int(draw.choice(among))
        y, x = (int(draw.integers(length - side + 1)) for length in self.shape[picture])
        return Place(picture, y, x, side, int(draw.integers(4)), int(draw.integers(2)))

    def patch(self, at: Place) -> NDArray[np.uint8]:
        """[side, side, 3]."""
        return place(self[at.picture][at.y : at.y + at.side, at.x : at.x + at.side], at.turns, at.mirror)

    def resident(self, places: list[Place], device: str) -> Tensor:
        """The same of several places of one side, [n, 3, side, side] of levels, from the pictures held on `device`:
        nothing is copied there again."""
        if self.held is None:
            self.held = torch.from_numpy(np.array(self.pixels)).to(device)
        rows = [(self.start[at.picture], self.shape[at.picture][1], at.y, at.x, at.turns, at.mirror) for at in places]
        columns = torch.from_numpy(np.array(rows, np.int64)).to(device).T[:, :, None, None]
        start, width, y, x, turns, mirror = columns
        last = places[0].side - 1
        down, across = (torch.arange(last + 1, device=device).view(shape) for shape in ((1, -1, 1), (1, 1, -1)))
        across = torch.where(mirror == 1, last - across, across)
        # What `rot90` does by so many quarter turns.
        row = torch.where(turns % 2 == 0, down, across)
        column = torch.where(turns % 2 == 0, across, down)
        row = torch.where(turns >= 2, last - row, row)
        column = torch.where((turns == 1) | (turns == 2), last - column, column)
        at = start + ((y + row) * width + x + column) * 3
        return torch.stack([self.held[at + colour] for colour in range(3)], dim=1)


def packed(stem: Path, pictures: Iterable[NDArray[np.uint8]]) -> Packed:
    """The packed file of that name, written first where it is not there."""
    found = Packed(stem)
    if not found.exists():
        found.write(pictures)
    found.open()
    return found


def place(patch: NDArray, turn: int, mirror: int) -> NDArray:
    turned = np.rot90(patch, turn)
    return turned[:, ::-1] if mirror else turned


def as_batch(patches: list[NDArray]) -> Tensor:
    """uint8 patches [h, w, 3] to float [n, 3, h, w] in 0..1, channels last in memory."""
    stacked = torch.from_numpy(np.stack(patches))
    return stacked.permute(0, 3, 1, 2).float().div_(255.0)
