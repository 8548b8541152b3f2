"""The bed of restoring networks: noise, softness, their mixtures and pairs from real cameras, and what each picture is.

`Row.conditions` gives what a network may be given: matched, estimated as in the service, unknown, and mismatched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .bed import Picture, pillow_jpeg, shrunk
from .condition import CLEAN, SILENT, jpeg_condition, source_inputs
from .estimate import Estimator
from .evaluate import estimated, read_clean
from .resize import resize_8bit

# What the estimate is replaced by where it is mismatched: a clean picture is called spoilt and the other way round.
MISMATCHED = {True: (10.0, 1.0), False: (0.0, 0.0)}
# Sides of a crop: larger photographs would take the bed's time for no further kind of picture.
SIDE_MAX = 512


@dataclass(frozen=True)
class Row:
    """A damage: how it is made of a clean picture and a scale; noise, softness and quality (0: no JPEG), as true."""

    name: str
    noise: float = 0.0
    softness: float = 0.0
    quality: int = 0
    kernel: str = "bicubic"

    def make(self, clean: Picture, scale: int) -> Picture:
        small = softened(shrunk(clean, scale, self.kernel), self.softness)
        if self.noise:
            small = small + np.random.default_rng(7).normal(0.0, self.noise, small.shape)
        small = np.clip(np.round(small), 0.0, 255.0).astype(np.uint8)
        return pillow_jpeg(small, self.quality) if self.quality else small

    def conditions(self, small: Picture, estimator: Estimator) -> dict[str, tuple[float, ...]]:
        """Conditions of six numbers, by who says them."""
        file = jpeg_condition(self.quality, 1.0) if self.quality else CLEAN
        spoilt = bool(self.noise or self.softness)
        return {
            "matched": (*file, *source_inputs(self.noise, self.softness)),
            "estimate": (*file, *estimated(small, estimator)),
            "unknown": (*file, SILENT, SILENT),
            "mismatched": (*file, *source_inputs(*MISMATCHED[not spoilt])),
        }


ROWS = (
    Row("clean"),
    Row("box", kernel="box"),
    *(Row(f"JPEG {quality}", quality=quality) for quality in (90, 75, 50, 30)),
    *(Row(f"noise {level}", noise=float(level)) for level in (3, 5, 10, 20)),
    Row("noise 10, JPEG 85", noise=10.0, quality=85),
    Row("noise 20, JPEG 60", noise=20.0, quality=60),
    *(Row(f"blur {sigma}", softness=sigma) for sigma in (0.8, 1.2, 1.6)),
    Row("blur 1.0, noise 5, JPEG 75", noise=5.0, softness=1.0, quality=75),
)


def softened(picture: Picture, sigma: float) -> np.ndarray:
    """By a Gaussian, mirrored at the edges; float64 levels."""
    whole = picture.astype(np.float64)
    if sigma == 0.0:
        return whole
    reach = int(np.ceil(4.0 * sigma))
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    taps /= taps.sum()
    for axis in (0, 1):
        width = [(reach, reach) if one == axis else (0, 0) for one in range(3)]
        padded = np.pad(whole, width, mode="symmetric")
        whole = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=axis) @ taps
    return whole


def cropped(picture: Picture) -> Picture:
    """The middle, at most SIDE_MAX wide and high, sides multiples of 4."""
    height, width = (min(length, SIDE_MAX) // 4 * 4 for length in picture.shape[:2])
    top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
    return picture[top : top + height, left : left + width]


def pairs(folder: Path, scale: int = 4) -> Iterator[tuple[Picture, Picture]]:
    """Original and small picture of one scene, taken by one camera at two focal lengths (4x); for 2x the original is
    halved."""
    for path in sorted((folder / "LR_x4").iterdir()):
        original, small = read_clean(folder / "HR" / path.name, 4), read_clean(path, 1)
        halved = resize_8bit(original, *(length // 2 for length in original.shape[:2])) if scale == 2 else original
        yield halved, small
