"""Faces that nobody has: portraits turned, stretched, bent, mirrored and lit otherwise.

Portraits are few (339), and a scene at 4x takes 224 of their 225 pixels. Seen as they are, they were learnt by heart:
behind JPEG 30 a network was 1.17 dB better than the restoring one on those it was trained on and .76 on the others, one
of three times the weights 1.75 and .62 (LABORATORY.md).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .mixture import Draw
from .spectrum import luma

# Pixels of a portrait to one of the patch, in powers of two: never enlarged, for originals are to stay sharp.
SHRUNK = (0.0, 0.6)
# Deviations: degrees; the logarithm of how much one side is stretched; how far each of BENT x BENT places is moved, in
# sides of the patch.
TURNED, STRETCHED, MOVED, BENT = 12.0, 0.05, 0.012, 5
# Deviations of the logarithms: exponent of all colours and of each, distance of a colour from grey.
GAMMA, TINT, SATURATION = 0.2, 0.04, 0.12


def another(picture: Tensor, middle: tuple[float, float], side: int, jitter: float, draw: Draw) -> Tensor:
    """[1, 3, side, side] of a face like that of `picture` [1, 3, h, w], RGB in 0..1.

    `middle` (x, y) of the face, in pixels, comes to lie within `jitter` sides of the patch's own, further off where the
    picture would end otherwise. Beyond its edges it is mirrored.
    """
    size = np.array(picture.shape[:1:-1])
    step = 2.0 ** draw.uniform(*SHRUNK)
    half = np.minimum(0.5 * side * step, size / 2)
    centre = np.clip(np.array(middle) + draw.uniform(-jitter, jitter, 2) * side * step, half, size - half)
    at = (bent(side, draw) @ axes(draw).T * step + centre).astype(np.float32)
    # grid_sample counts from -1 at the left edge of the first pixel to 1 at the right edge of the last.
    grid = torch.from_numpy((2.0 * at + 1.0) / size - 1.0).float()[None].to(picture.device)
    face = functional.grid_sample(picture, grid, "bicubic", "reflection", align_corners=False)
    return lit(face.clamp(0.0, 1.0), draw)


def bent(side: int, draw: Draw) -> np.ndarray:
    """[side, side, 2]: x and y of each pixel of a patch, counted from its middle, moved smoothly."""
    moved = torch.from_numpy(draw.normal(0.0, MOVED * side, (1, 2, BENT, BENT)))
    smooth = functional.interpolate(moved, (side, side), mode="bicubic", align_corners=True)[0]
    places = np.arange(side) - 0.5 * (side - 1)
    return np.stack(np.meshgrid(places, places), axis=-1) + smooth.permute(1, 2, 0).numpy()


def axes(draw: Draw) -> np.ndarray:
    """[2, 2]: the portrait's x and y (rows) for a step across and one down in the patch."""
    turn, stretch = np.radians(draw.normal(0.0, TURNED)), np.exp(draw.normal(0.0, STRETCHED))
    mirrored = 1.0 - 2.0 * draw.integers(2)
    return np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) * (mirrored * stretch, 1.0 / stretch)


def lit(face: Tensor, draw: Draw) -> Tensor:
    """RGB [n, 3, h, w] in 0..1 under another light."""
    powers = torch.from_numpy(np.exp(draw.normal(0.0, GAMMA) + draw.normal(0.0, TINT, 3))).float().to(face.device)
    face = face ** powers[:, None, None]
    return torch.lerp(luma(face), face, float(np.exp(draw.normal(0.0, SATURATION)))).clamp(0.0, 1.0)
