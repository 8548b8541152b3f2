"""The blind bed: pictures that were never trained on, under nine kinds of damage, and what each file tells of itself.

JPEG is Pillow's here, not degrade.py's: what is judged must not be made by what was trained with.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from .condition import CLEAN, UNKNOWN, jpeg_condition
from .rendered import PAGES
from .resize import resize_8bit

Picture = NDArray[np.uint8]
FileInputs = tuple[float, float, float, float]
# Far from the numbers of the pages that are trained on.
PAGE_SEED = 9_000_000
# The mismatched condition of a clean file, the matched one of JPEG 50.
COARSE = jpeg_condition(50, 1.0)


@dataclass(frozen=True)
class Damage:
    """A named way from a clean picture to the file that reaches us, and the condition that its header gives."""

    name: str
    make: Callable[[Picture, int], Picture]
    matched: FileInputs = CLEAN
    mismatched: FileInputs = COARSE


def shrunk(clean: Picture, scale: int, kernel: str = "bicubic") -> Picture:
    return resize_8bit(clean, clean.shape[0] // scale, clean.shape[1] // scale, kernel)


def pillow_jpeg(picture: Picture, quality: int) -> Picture:
    """4:2:0, as nearly every JPEG is."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality, subsampling=2)
    with Image.open(file) as image:
        return np.asarray(image)


def jpeg_damage(quality: int) -> Damage:
    matched = jpeg_condition(quality, 1.0)
    return Damage(f"JPEG {quality}", lambda clean, scale: pillow_jpeg(shrunk(clean, scale), quality), matched, CLEAN)


def twice(clean: Picture, scale: int) -> Picture:
    """JPEG 60 and again 80, the grid 3 and 5 pixels further."""
    padded = np.pad(shrunk(clean, scale), ((5, 0), (3, 0), (0, 0)), mode="edge")
    return pillow_jpeg(pillow_jpeg(padded, 60)[5:, 3:], 80)


def blurred(clean: Picture, scale: int) -> Picture:
    return pillow_jpeg(np.asarray(Image.fromarray(shrunk(clean, scale)).filter(ImageFilter.GaussianBlur(0.8))), 80)


def noisy(clean: Picture, scale: int) -> Picture:
    small = shrunk(clean, scale)
    drawn = np.random.default_rng(5).normal(0.0, 5.0, small.shape)
    return pillow_jpeg(np.clip(small + drawn + 0.5, 0, 255).astype(np.uint8), 85)


DAMAGES = (
    Damage("clean", shrunk),
    Damage("box", lambda clean, scale: shrunk(clean, scale, "box")),
    jpeg_damage(90),
    jpeg_damage(75),
    jpeg_damage(50),
    jpeg_damage(30),
    Damage("JPEG twice", twice, jpeg_condition(80, 1.0), CLEAN),
    Damage("blur 0.8, JPEG 80", blurred, jpeg_condition(80, 1.0), CLEAN),
    Damage("noise 5, JPEG 85", noisy, jpeg_condition(85, 1.0), CLEAN),
)


def conditions(damage: Damage) -> dict[str, FileInputs]:
    """The three things that a network may hear of a file."""
    return {"matched": damage.matched, "unknown": UNKNOWN, "mismatched": damage.mismatched}


def drawn_sets(count: int, side: int = 288) -> dict[str, list[Picture]]:
    """Pages of text and interfaces, and of charts, shapes and pixel art: `count` of each kind."""
    kinds = {"text": PAGES[:2], "graphics": PAGES[2:]}
    return {
        name: [
            np.asarray(draw(np.random.default_rng([PAGE_SEED, kind, number]), side))
            for kind, (_, draw) in enumerate(pages)
            for number in range(count)
        ]
        for name, pages in kinds.items()
    }
